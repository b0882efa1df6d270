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
class RequestStatus:
    """Why a request isn't in step; ``error`` is the class of the error, ``""`` where there was none.

    ``since`` is the time from which on it has stood so, for whatever reason, and ``tried`` how often it has ended so.
    """

    state: State
    reason: str
    error: str = ""
    since: float = field(default=0.0, compare=False)
    tried: int = field(default=1, compare=False)


class RequestStatuses:
    """The requests that are not in step, and what has been done by syncer."""

    def __init__(self) -> None:
        self._statuses: dict[Request, RequestStatus] = {}
        #: Changes made, by (virtual cluster, syncer, side, verb).
        self.done: Counter[tuple[str, str, str, str]] = Counter()

    def in_step(self, request: Request) -> None:
        """Note that a request ended with both sides as they should be."""
        self._statuses.pop(request, None)

    def note(self, request: Request, state: State, reason: str, *, error: str = "", now: float = 0.0) -> bool:
        """Keep why a request isn't in step, as of ``now``; whether that is new."""
        before = self._statuses.get(request)
        since, tried = (before.since, before.tried + 1) if before and before.state is state else (now, 1)
        self._statuses[request] = RequestStatus(state, reason, error, since, tried)
        return self._statuses[request] != before

    def drop(self, cluster: str, syncer: str) -> None:
        """Forget a syncer's requests: it has stopped."""
        for request in [one for one in self._statuses if (one.cluster, one.syncer) == (cluster, syncer)]:
            del self._statuses[request]

    def of(self, request: Request) -> RequestStatus | None:
        """How a request stands; None: in step, or never seen."""
        return self._statuses.get(request)

    def troubles(self) -> Iterator[tuple[Request, RequestStatus]]:
        """Yield the requests that fail or are parked."""
        for request, status in list(self._statuses.items()):
            if status.state in (State.FAILING, State.PARKED):
                yield request, status

    def pending(self) -> Iterator[tuple[Request, RequestStatus]]:
        """Yield the requests that wait for something."""
        for request, status in list(self._statuses.items()):
            if status.state is State.PENDING:
                yield request, status

    def count(self) -> Mapping[tuple[str, ...], int]:
        """Return requests by virtual cluster, syncer and state, those in step left out."""
        return Counter(
            (request.cluster, request.syncer, status.state.value) for request, status in list(self._statuses.items())
        )

    def parked(self) -> Mapping[tuple[str, ...], int]:
        """Parked requests by virtual cluster, syncer and class of error."""
        return Counter(
            (request.cluster, request.syncer, status.error)
            for request, status in list(self._statuses.items())
            if status.state is State.PARKED
        )
