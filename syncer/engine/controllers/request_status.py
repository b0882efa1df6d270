"""The last result of each request: for commands, metrics, readiness and the summary.

A request in step takes no memory, and any other one some 200 bytes: its state, and its reason as a
code with arguments. Texts of syncers and API servers, which no code has, are kept apart, within a
limit for each virtual cluster; of others only the code is left.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

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
#: Requests of a virtual cluster of which the last error is kept once they are in step again.
MOST_ERRORS = 32
#: The states of requests whose owners are notified when they last long.
WAITS = frozenset((RequestState.PENDING, RequestState.PAUSED))
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


@dataclass(frozen=True, slots=True)
class LastError:
    """The last error of a request, which may be in step by now."""

    #: The class of the error.
    error: str
    message: str
    #: The time of the attempt, in seconds of the engine's clock.
    at: float


class _Kept:
    """A status as it is kept."""

    __slots__ = ("args", "code", "error", "notified", "since", "state", "text_hash", "tried")

    def __init__(self, state: RequestState, reason: StateReason, error: str) -> None:
        self.state = state
        self.code = reason.code
        #: Empty for a text, which is kept apart.
        self.args: tuple[object, ...] = ()
        #: 0 without a text.
        self.text_hash = 0
        if reason.code.is_text:
            self.text_hash = hash(reason) or 1
        else:
            self.args = _shared(reason.args)
        self.error = error
        #: The uid of the object whose owner has been notified of this wait; None if nobody was.
        self.notified: str | None = None
        self.since = 0.0
        self.tried = 1

    def is_same(self, other: "_Kept") -> bool:
        """Return True if both have the same state and the same reason."""
        return (
            self.state is other.state
            and self.code is other.code
            and self.args == other.args
            and self.text_hash == other.text_hash
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
        #: The number of these by virtual cluster, syncer, state, code and class of error, so that
        #: nobody who wants numbers looks at each request.
        self._numbers: Counter[tuple[str, str, str, str, str]] = Counter()
        #: By virtual cluster: the latest texts of requests.
        self._texts: dict[str, LRUCache[SyncRequest, str]] = {}
        #: By virtual cluster: the latest errors.
        self._errors: dict[str, LRUCache[SyncRequest, LastError]] = {}
        #: Virtual clusters with waits of which nobody has been notified.
        self._unnotified: set[str] = set()
        #: Number of changes, by (virtual cluster, syncer, side, verb).
        self.done: Counter[tuple[str, str, str, str]] = Counter()

    def in_step(self, request: SyncRequest) -> None:
        """Record that a request ended in step."""
        kept = self._kept.get((request.cluster, request.syncer))
        if not kept:
            return
        before = kept.pop(_place(request), None)
        if before is None:
            return
        self._count(request.cluster, request.syncer, before, -1)
        if before.text_hash:
            self._forget_text(request)

    def note(
        self,
        request: SyncRequest,
        state: RequestState,
        reason: StateReason,
        *,
        uid: str = "",
        error: str = "",
        now: float = 0.0,
    ) -> bool:
        """Record why a request isn't in step, at time ``now``. Return True if that is news.

        ``uid`` is that of the virtual object, ``""`` if there is none.
        """
        kept = self._kept.setdefault((request.cluster, request.syncer), {})
        place = _place(request)
        before = kept.get(place)
        status = _Kept(state, reason, error)
        status.since = now
        if before is not None and before.state is state:
            status.since = before.since
            status.tried = before.tried + 1
        kept[place] = status
        is_news = before is None or not status.is_same(before)
        if is_news:
            if before is not None:
                self._count(request.cluster, request.syncer, before, -1)
            self._count(request.cluster, request.syncer, status, 1)
        if error:
            self._keep_error(request, LastError(error, str(reason), now))
        if status.text_hash:
            self._keep_text(request, str(reason))
        elif before is not None and before.text_hash:
            self._forget_text(request)
        if before is not None and not is_news and before.notified == uid:
            status.notified = uid
        elif state in WAITS and not reason.code.has_event:
            self._unnotified.add(request.cluster)
        return is_news

    def drop(self, cluster: str, syncer: str) -> None:
        """Forget a syncer that has stopped."""
        kept = self._kept.pop((cluster, syncer), {})
        for status in kept.values():
            self._count(cluster, syncer, status, -1)
        _forget_syncer(self._texts, cluster, syncer)
        _forget_syncer(self._errors, cluster, syncer)

    def of(self, request: SyncRequest) -> RequestStatus | None:
        """Return the status of a request; None if it is in step or unknown."""
        kept = self._kept.get((request.cluster, request.syncer), {}).get(_place(request))
        return None if kept is None else self._shown(request, kept)

    def last_error(self, request: SyncRequest) -> LastError | None:
        """Return the last error of a request; None if there was none, or it isn't kept any more."""
        errors = self._errors.get(request.cluster)
        return None if errors is None else errors.get(request)

    def of_syncer(self, cluster: str, syncer: str) -> Iterator[tuple[SyncRequest, RequestState]]:
        """Yield the requests of a syncer that are not in step."""
        for place, kept in list(self._kept.get((cluster, syncer), {}).items()):
            yield _request(cluster, syncer, place), kept.state

    def long_waits(
        self, cluster: str, syncers: Iterable[str], *, before: float
    ) -> Iterator[tuple[SyncRequest, RequestStatus]]:
        """Yield the requests of these syncers that wait, or are paused, for a reason of which
        nobody has been notified, since some time before; see :meth:`notified`.
        """
        if cluster not in self._unnotified:
            return
        has_others = False
        for syncer in syncers:
            for place, kept in self._kept.get((cluster, syncer), {}).items():
                if kept.state not in WAITS or kept.code.has_event or kept.notified is not None:
                    continue
                if kept.since > before:
                    has_others = True
                    continue
                request = _request(cluster, syncer, place)
                yield request, self._shown(request, kept)
        if not has_others:
            self._unnotified.discard(cluster)

    def notified(self, request: SyncRequest, uid: str) -> None:
        """Record that the owner of the object with this uid, ``""`` without one, was notified of
        the reason.
        """
        kept = self._kept.get((request.cluster, request.syncer), {}).get(_place(request))
        if kept is not None:
            kept.notified = uid

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
        """Count the requests that are not in step, by virtual cluster, syncer and state.

        Thread-safe, as the other counts.
        """
        counts: Counter[tuple[str, ...]] = Counter()
        for (cluster, syncer, state, _, _), number in list(self._numbers.items()):
            counts[cluster, syncer, state] += number
        return counts

    def count_reasons(self) -> Mapping[tuple[str, ...], int]:
        """Count them by virtual cluster, syncer, state and code."""
        counts: Counter[tuple[str, ...]] = Counter()
        for (cluster, syncer, state, code, _), number in list(self._numbers.items()):
            counts[cluster, syncer, state, code] += number
        return counts

    def parked(self) -> Mapping[tuple[str, ...], int]:
        """Count the parked requests, by virtual cluster, syncer and class of error."""
        counts: Counter[tuple[str, ...]] = Counter()
        for (cluster, syncer, state, _, error), number in list(self._numbers.items()):
            if state == RequestState.PARKED.value:
                counts[cluster, syncer, error] += number
        return counts

    # -- inside ------------------------------------------------------------------------------------

    def _count(self, cluster: str, syncer: str, status: _Kept, number: int) -> None:
        """Count a status once more, or with -1 once less."""
        labels = (cluster, syncer, status.state.value, status.code.name, status.error)
        left = self._numbers[labels] + number
        if left:
            self._numbers[labels] = left
        else:
            del self._numbers[labels]

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

    def _keep_error(self, request: SyncRequest, error: LastError) -> None:
        errors = self._errors.get(request.cluster)
        if errors is None:
            errors = LRUCache(MOST_ERRORS)
            self._errors[request.cluster] = errors
        errors[request] = error

    def _keep_text(self, request: SyncRequest, text: str) -> None:
        texts = self._texts.get(request.cluster)
        if texts is None:
            texts = LRUCache(MOST_TEXT, getsizeof=_size)
            self._texts[request.cluster] = texts
        texts[request] = text

    def _shown(self, request: SyncRequest, kept: _Kept) -> RequestStatus:
        args = kept.args
        if kept.text_hash:
            texts = self._texts.get(request.cluster)
            text = FORGOTTEN if texts is None else texts.get(request, FORGOTTEN)
            args = (text,)
        reason = StateReason(kept.code, *args)
        return RequestStatus(kept.state, reason, kept.error, kept.since, kept.tried)


def _request(cluster: str, syncer: str, place: _Place) -> SyncRequest:
    if isinstance(place, SyncRequest):
        return place
    return SyncRequest(cluster, syncer, place)


def _forget_syncer(kept: dict[str, LRUCache[SyncRequest, Any]], cluster: str, syncer: str) -> None:
    """Forget what is kept of the requests of a syncer; of its virtual cluster, if that is all."""
    found = kept.get(cluster)
    if found is None:
        return
    for request in list(found):
        if request.syncer == syncer:
            del found[request]
    if not found:
        del kept[cluster]


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
