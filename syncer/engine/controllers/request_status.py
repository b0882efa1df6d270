"""The last result of each request, for metrics, readiness and the summary.

A request in step takes no memory.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from syncer.api.objects import SyncRequest


class RequestState(StrEnum):
    """The state of a request that isn't in step."""

    PENDING = "pending"
    SKIPPED = "skipped"
    FAILING = "failing"
    PARKED = "parked"


@dataclass(frozen=True, slots=True)
class RequestStatus:
    """The reason why a request isn't in step."""

    state: RequestState
    reason: str
    #: The class of the error, or ``""``.
    error: str = ""
    #: The time since which the request has been in this state, in seconds of the engine's clock.
    since: float = field(default=0.0, compare=False)
    #: The number of attempts since then.
    tried: int = field(default=1, compare=False)


class RequestStatuses:
    """The requests that are not in step, and the changes made."""

    def __init__(self) -> None:
        self._statuses: dict[SyncRequest, RequestStatus] = {}
        #: Number of changes, by (virtual cluster, syncer, side, verb).
        self.done: Counter[tuple[str, str, str, str]] = Counter()

    def in_step(self, request: SyncRequest) -> None:
        """Record that a request ended in step."""
        self._statuses.pop(request, None)

    def note(
        self,
        request: SyncRequest,
        state: RequestState,
        reason: str,
        *,
        error: str = "",
        now: float = 0.0,
    ) -> bool:
        """Record why a request isn't in step, at time ``now``. Return True if that is news."""
        before = self._statuses.get(request)
        since = now
        tried = 1
        if before is not None and before.state is state:
            since = before.since
            tried = before.tried + 1
        status = RequestStatus(state, reason, error, since, tried)
        self._statuses[request] = status
        return status != before

    def drop(self, cluster: str, syncer: str) -> None:
        """Forget a syncer that has stopped."""
        for request in list(self._statuses):
            if request.cluster == cluster and request.syncer == syncer:
                del self._statuses[request]

    def of(self, request: SyncRequest) -> RequestStatus | None:
        """Return the status of a request; None if it is in step or unknown."""
        return self._statuses.get(request)

    def troubles(self) -> Iterator[tuple[SyncRequest, RequestStatus]]:
        """Yield the requests that fail or are parked."""
        for request, status in list(self._statuses.items()):
            if status.state in (RequestState.FAILING, RequestState.PARKED):
                yield request, status

    def pending(self) -> Iterator[tuple[SyncRequest, RequestStatus]]:
        """Yield the requests that wait for something."""
        for request, status in list(self._statuses.items()):
            if status.state is RequestState.PENDING:
                yield request, status

    def count(self) -> Mapping[tuple[str, ...], int]:
        """Count the requests that are not in step, by virtual cluster, syncer and state."""
        counts: Counter[tuple[str, ...]] = Counter()
        for request, status in list(self._statuses.items()):
            counts[request.cluster, request.syncer, status.state.value] += 1
        return counts

    def parked(self) -> Mapping[tuple[str, ...], int]:
        """Count the parked requests, by virtual cluster, syncer and class of error."""
        counts: Counter[tuple[str, ...]] = Counter()
        for request, status in list(self._statuses.items()):
            if status.state is RequestState.PARKED:
                counts[request.cluster, request.syncer, status.error] += 1
        return counts
