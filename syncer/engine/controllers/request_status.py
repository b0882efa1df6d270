"""The last result of each request: for commands, metrics, readiness and the summary.

A request in step takes no memory, and any other one some 200 bytes: its state, and its reason as a
code with arguments. Texts of syncers and API servers, which no code has, are kept apart, within a
limit for each virtual cluster; of others only the code is left.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from cachetools import LRUCache

from syncer.api.decision import Decision, Outcome
from syncer.api.objects import Key, SyncRequest
from syncer.api.reasons import (
    AWAITED_BY_SYNCER,
    SKIPPED_BY_SYNCER,
    ReasonCode,
    RequestState,
    StateReason,
)
from syncer.api.texts import shortened
from syncer.engine.reconcile.controller import LONGEST_NAMED
from syncer.remembered import REMEMBERED

#: Characters of texts that are kept for a virtual cluster.
MOST_TEXT = 1 << 18
#: Characters that are counted in addition for each text, as its entry takes as much memory.
TEXT_OVERHEAD = 300
#: The text of one that isn't kept any more.
FORGOTTEN = "its text isn't kept, as there are many: `syncer explain` shows it again"


@dataclass(frozen=True, slots=True)
class RequestStatus:
    """The reason why a request isn't in step."""

    state: RequestState
    reason: StateReason
    #: The class of the error, or ``""``.
    error: str = ""
    #: The time since which the request has been in this state, in seconds of the engine's clock.
    since: float = 0.0
    #: The number of attempts since then.
    tried: int = 1


class _Kept:
    """A status as it is kept."""

    __slots__ = ("args", "code", "error", "since", "state", "text", "tried")

    def __init__(self, state: RequestState, reason: StateReason, error: str) -> None:
        self.state = state
        self.code = reason.code
        #: Empty for a text, which is kept apart.
        self.args: tuple[object, ...] = ()
        #: The hash of the text; 0 without one.
        self.text = 0
        if reason.code.is_text:
            self.text = hash(reason) or 1
        else:
            self.args = _shared(reason.args)
        self.error = error
        self.since = 0.0
        self.tried = 1

    def is_same(self, other: "_Kept") -> bool:
        """Return True if both have the same state and the same reason."""
        return (
            self.state is other.state
            and self.code is other.code
            and self.args == other.args
            and self.text == other.text
            and self.error == other.error
        )


@lru_cache(maxsize=REMEMBERED)
def _shared(args: tuple[object, ...]) -> tuple[object, ...]:
    """Return the same arguments, in one tuple for all requests."""
    return args


#: The key of a request in the table of its syncer: the request itself if it has a host key.
_Place = Key | SyncRequest


def _place(request: SyncRequest) -> _Place:
    return request.key if request.host_key is None else request


class RequestStatuses:
    """The requests that are not in step, and the changes made."""

    def __init__(self) -> None:
        #: By virtual cluster and syncer.
        self._kept: dict[tuple[str, str], dict[_Place, _Kept]] = {}
        #: By virtual cluster: the latest texts of requests.
        self._texts: dict[str, LRUCache[SyncRequest, str]] = {}
        #: Number of changes, by (virtual cluster, syncer, side, verb).
        self.done: Counter[tuple[str, str, str, str]] = Counter()

    def in_step(self, request: SyncRequest) -> None:
        """Record that a request ended in step."""
        kept = self._kept.get((request.cluster, request.syncer))
        if not kept:
            return
        before = kept.pop(_place(request), None)
        if before is not None and before.text:
            self._forget_text(request)

    def note(
        self,
        request: SyncRequest,
        state: RequestState,
        reason: StateReason,
        *,
        error: str = "",
        now: float = 0.0,
    ) -> bool:
        """Record why a request isn't in step, at time ``now``. Return True if that is news."""
        kept = self._kept.setdefault((request.cluster, request.syncer), {})
        place = _place(request)
        before = kept.get(place)
        status = _Kept(state, reason, error)
        status.since = now
        if before is not None and before.state is state:
            status.since = before.since
            status.tried = before.tried + 1
        kept[place] = status
        if status.text:
            self._keep_text(request, str(reason))
        elif before is not None and before.text:
            self._forget_text(request)
        return before is None or not status.is_same(before)

    def drop(self, cluster: str, syncer: str) -> None:
        """Forget a syncer that has stopped."""
        kept = self._kept.pop((cluster, syncer), {})
        texts = self._texts.get(cluster)
        if texts is None:
            return
        for place, status in kept.items():
            if status.text:
                texts.pop(_request(cluster, syncer, place), None)
        if not texts:
            del self._texts[cluster]

    def of(self, request: SyncRequest) -> RequestStatus | None:
        """Return the status of a request; None if it is in step or unknown."""
        kept = self._kept.get((request.cluster, request.syncer), {}).get(_place(request))
        return None if kept is None else self._shown(request, kept)

    def of_syncer(self, cluster: str, syncer: str) -> Iterator[tuple[SyncRequest, RequestState]]:
        """Yield the requests of a syncer that are not in step."""
        for place, kept in list(self._kept.get((cluster, syncer), {}).items()):
            yield _request(cluster, syncer, place), kept.state

    def troubles(self) -> Iterator[tuple[SyncRequest, RequestStatus]]:
        """Yield the requests that fail or are parked."""
        return self._in((RequestState.FAILING, RequestState.PARKED))

    def pending(self) -> Iterator[tuple[SyncRequest, RequestStatus]]:
        """Yield the requests that wait for something."""
        return self._in((RequestState.PENDING,))

    def unfinished(self) -> Iterator[tuple[SyncRequest, RequestStatus]]:
        """Yield all requests but those that are skipped."""
        return self._in([state for state in RequestState if state is not RequestState.SKIPPED])

    def count(self) -> Mapping[tuple[str, ...], int]:
        """Count the requests that are not in step, by virtual cluster, syncer and state."""
        counts: Counter[tuple[str, ...]] = Counter()
        for (cluster, syncer), kept in list(self._kept.items()):
            for status in list(kept.values()):
                counts[cluster, syncer, status.state.value] += 1
        return counts

    def count_reasons(self) -> Mapping[tuple[str, ...], int]:
        """Count them by virtual cluster, syncer, state and code."""
        counts: Counter[tuple[str, ...]] = Counter()
        for (cluster, syncer), kept in list(self._kept.items()):
            for status in list(kept.values()):
                counts[cluster, syncer, status.state.value, status.code.name] += 1
        return counts

    def parked(self) -> Mapping[tuple[str, ...], int]:
        """Count the parked requests, by virtual cluster, syncer and class of error."""
        counts: Counter[tuple[str, ...]] = Counter()
        for (cluster, syncer), kept in list(self._kept.items()):
            for status in list(kept.values()):
                if status.state is RequestState.PARKED:
                    counts[cluster, syncer, status.error] += 1
        return counts

    # -- inside ------------------------------------------------------------------------------------

    def _forget_text(self, request: SyncRequest) -> None:
        texts = self._texts.get(request.cluster)
        if texts is not None:
            texts.pop(request, None)

    def _in(
        self, states: tuple[RequestState, ...] | list[RequestState]
    ) -> Iterator[tuple[SyncRequest, RequestStatus]]:
        for (cluster, syncer), kept in list(self._kept.items()):
            for place, status in list(kept.items()):
                if status.state in states:
                    request = _request(cluster, syncer, place)
                    yield request, self._shown(request, status)

    def _keep_text(self, request: SyncRequest, text: str) -> None:
        texts = self._texts.get(request.cluster)
        if texts is None:
            texts = LRUCache(MOST_TEXT, getsizeof=_size)
            self._texts[request.cluster] = texts
        texts[request] = text

    def _shown(self, request: SyncRequest, kept: _Kept) -> RequestStatus:
        args = kept.args
        if kept.text:
            texts = self._texts.get(request.cluster)
            text = FORGOTTEN if texts is None else texts.get(request, FORGOTTEN)
            args = (text,)
        reason = StateReason(kept.code, *args)
        return RequestStatus(kept.state, reason, kept.error, kept.since, kept.tried)


def _request(cluster: str, syncer: str, place: _Place) -> SyncRequest:
    if isinstance(place, SyncRequest):
        return place
    return SyncRequest(cluster, syncer, place)


def _size(text: str) -> int:
    return len(text) + TEXT_OVERHEAD


def decided_status(decision: Decision) -> tuple[RequestState, StateReason] | None:
    """Return the state that follows from a decision, with the reason; None if it is in step."""
    match decision.outcome:
        case Outcome.IN_STEP:
            return None
        case Outcome.SKIPPED:
            return RequestState.SKIPPED, _reason(decision.reason, SKIPPED_BY_SYNCER)
        case Outcome.PENDING:
            reason = _reason(decision.reason, AWAITED_BY_SYNCER)
            if reason.code.state in (RequestState.PAUSED, RequestState.FROZEN):
                return reason.code.state, reason
            return RequestState.PENDING, reason


def _reason(text: str, code: ReasonCode) -> StateReason:
    """Return a text as a reason: itself if it has a code, otherwise with this one.

    Texts and arguments that are too long to be kept, as they may be a tenant's, are cut.
    """
    if not isinstance(text, StateReason):
        return code(shortened(text))
    if text.code.is_text:
        args = [shortened(str(each)) for each in text.args]
        return text.code(*args)
    return text.code(*[_cut(each) for each in text.args])


def _cut(argument: object) -> object:
    """Return an argument, as a text if it is too long."""
    shown = str(argument)
    return argument if len(shown) <= LONGEST_NAMED else shown[:LONGEST_NAMED]
