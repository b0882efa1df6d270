"""How each request last ended, for metrics, readiness and the summary. What is in step takes no room."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from syncer.api.objects import Request


class State(StrEnum):
    """How a request stands when it isn't in step."""

    PENDING = "pending"
    SKIPPED = "skipped"
    FAILING = "failing"
    PARKED = "parked"


@dataclass(frozen=True, slots=True)
class Standing:
    """Why a request isn't in step; ``error`` is the class of the error, ``""`` where there was none.

    ``since`` is the time from which on it has stood so, for whatever reason, and ``tried`` how often it has ended so.
    """

    state: State
    reason: str
    error: str = ""
    since: float = field(default=0.0, compare=False)
    tried: int = field(default=1, compare=False)


class Ledger:
    """The requests that are not in step, and what has been done by syncer."""

    def __init__(self) -> None:
        self._standing: dict[Request, Standing] = {}
        #: Changes made, by (syncer, side, verb).
        self.done: Counter[tuple[str, str, str]] = Counter()

    def in_step(self, request: Request) -> None:
        """The request ended with both sides as they should be."""
        self._standing.pop(request, None)

    def note(self, request: Request, state: State, reason: str, *, error: str = "", now: float = 0.0) -> bool:
        """Keep why a request isn't in step, as of ``now``; whether that is new."""
        before = self._standing.get(request)
        since, tried = (before.since, before.tried + 1) if before and before.state is state else (now, 1)
        self._standing[request] = Standing(state, reason, error, since, tried)
        return self._standing[request] != before

    def drop(self, cluster: str, syncer: str) -> None:
        """Forget a syncer's requests: it has stopped."""
        for request in [one for one in self._standing if (one.cluster, one.syncer) == (cluster, syncer)]:
            del self._standing[request]

    def of(self, request: Request) -> Standing | None:
        """How a request stands; None: in step, or never seen."""
        return self._standing.get(request)

    def troubles(self) -> Iterator[tuple[Request, Standing]]:
        """The requests that fail or are parked."""
        for request, standing in list(self._standing.items()):
            if standing.state in (State.FAILING, State.PARKED):
                yield request, standing

    def pending(self) -> Iterator[tuple[Request, Standing]]:
        """The requests that wait for something."""
        for request, standing in list(self._standing.items()):
            if standing.state is State.PENDING:
                yield request, standing

    def count(self) -> Mapping[tuple[str, ...], int]:
        """Requests by syncer and state, those in step left out."""
        return Counter((request.syncer, standing.state.value) for request, standing in list(self._standing.items()))

    def parked(self) -> Mapping[tuple[str, ...], int]:
        """Parked requests by syncer and class of error."""
        return Counter(
            (request.syncer, standing.error)
            for request, standing in list(self._standing.items())
            if standing.state is State.PARKED
        )
