"""Workers take requests from the queue, carry out their plans, and settle the outcome."""

import asyncio
import contextlib
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from cachetools import LRUCache

from syncer.api import reasons
from syncer.api.decision import Decision, Outcome, Warned
from syncer.api.errors import Refused, SyncerError
from syncer.api.objects import Obj, Side, SyncRequest, uid_of
from syncer.api.reasons import RequestState
from syncer.api.texts import shortened
from syncer.api.values import value_class
from syncer.engine.controllers.failure_reasons import failure_reason
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.controllers.request_status import RequestStatuses, decided_status
from syncer.engine.controllers.retry_policy import NEVER, Retry, RetryAction, retry_for
from syncer.engine.controllers.tenant_messages import for_tenant
from syncer.engine.controllers.wakeups import Wakeups
from syncer.engine.reconcile.controller import (
    MOST_NAMED,
    BoundSyncer,
    CheckedCopies,
    NamedCopy,
    Read,
)
from syncer.engine.reconcile.plan import Deferred, Plan, PostponedFields
from syncer.engine.reconcile.policies.contention import waiting
from syncer.observe.logs import get_logger
from syncer.observe.metrics import LagDirection, Metrics, SyncerMetrics
from syncer.remembered import REMEMBERED
from syncer.translate.messages import LONGEST_LABEL_QUOTE, MOST_LISTED
from syncer.workqueue.fair import QueueClosed
from syncer.workqueue.queue import LAST_RETRY, Queue

#: How often a request is reconciled again at once because its own writes changed its objects.
ROUNDS = 6
#: Requests after which a worker lets other tasks run; with 32 workers the event loop is blocked for
#: some 5 ms at most.
BREATH = 3
#: Seconds of a request, since its latest write, after which a worker lets other tasks run in any
#: case. Others have run while it waited for the response to a write.
LONG_SECONDS = 0.005
#: Seconds that requests get to finish when leadership is lost; less than the rest of the Lease (15
#: - 10).
DRAIN_SECONDS = 3.0

log = get_logger(__name__)

#: The result of a request, as the metrics name it.
_Result = Literal["success", "error", "requeue_after"]


class WorkerEvents(Protocol):
    """Receives notifications of the workers."""

    def lost(self, pair: ClusterPair, side: Side, error: SyncerError) -> None:
        """Handle a request that got no answer from a side."""
        ...

    def warn(
        self,
        pair: ClusterPair,
        request: SyncRequest,
        reason: str,
        message: str,
        *,
        about: Obj | None,
    ) -> None:
        """Notify the owner of the virtual object, or of ``about``."""
        ...


@dataclass(slots=True)
class _Recorder:
    """Counts the writes of a request."""

    metrics: SyncerMetrics
    statuses: RequestStatuses
    cluster: str
    syncer: str
    writes: int = 0
    #: When the latest writes were made, in seconds of the engine's clock; 0 before the first.
    written: float = 0.0
    sides: set[Side] = field(default_factory=set)
    frozen: list[PostponedFields] = field(default_factory=list)
    #: The errors of merges that were refused in the latest round.
    refusals: list[SyncerError] = field(default_factory=list)
    #: The events of the writes of the latest round.
    warnings: list[Warned] = field(default_factory=list)

    def wrote(self, side: Side, verb: str) -> None:
        self.metrics.wrote(side, verb)
        self.statuses.done[self.cluster, self.syncer, side, verb] += 1
        self.writes += 1
        self.sides.add(side)

    def futile(self, side: Side) -> None:
        self.metrics.futile(side)

    def postponed(self, postponed: PostponedFields) -> None:
        self.frozen.append(postponed)

    def warned(self, warning: Warned) -> None:
        self.warnings.append(warning)

    def refused(self, postponed: PostponedFields, error: SyncerError) -> None:
        self.frozen.append(postponed)
        self.refusals.append(error)


@value_class
class _Attempt:
    """The end of the work on a request: its latest decision, or the error instead of it."""

    #: None if there is an error.
    decision: Decision | None
    #: None if there is a decision.
    error: Exception | None
    #: The objects that were read besides the two of the request.
    reads: tuple[Read, ...]
    #: The fields of the virtual object that are not copied.
    left_out: tuple[str, ...] = ()


class Workers:
    """A number of workers on a queue."""

    def __init__(
        self,
        queue: Queue,
        pairs: Mapping[str, ClusterPair],
        statuses: RequestStatuses,
        events: WorkerEvents,
        metrics: Metrics,
        *,
        clock: Callable[[], float],
    ) -> None:
        self.queue = queue
        self.pairs = pairs
        self.statuses = statuses
        self._events = events
        self._metrics = metrics
        self._clock = clock
        #: Where syncers have raised exceptions, by syncer: a single traceback suffices for each
        #: bug.
        self._raised: set[tuple[str, int]] = set()
        #: By the hash of a request with the fields that stay behind, or with another warning.
        self._warned: LRUCache[int, None] = LRUCache(REMEMBERED)
        self._busy: set[asyncio.Task[None] | None] = set()
        self._draining = False
        self.wakeups = Wakeups(queue)

    async def run(self, count: int) -> None:
        """Work until the queue is closed or this is cancelled.

        Requests in work are finished, within a time limit.
        """
        tasks = [asyncio.create_task(self._work()) for _ in range(count)]
        wakeups = asyncio.create_task(self.wakeups.run())
        try:
            # Unlike a gather, this leaves the workers alone when it is cancelled.
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        except asyncio.CancelledError:
            await self._drain(tasks)
            raise
        finally:
            wakeups.cancel()
            self.wakeups.clear()

    def drop(self, cluster: str, syncer: str) -> None:
        """Forget a syncer that has stopped."""
        for known in (self.statuses, self.wakeups, self.queue):
            known.drop(cluster, syncer)

    async def _drain(self, tasks: Iterable["asyncio.Task[None]"]) -> None:
        """Stop the idle workers, and give the others some seconds to finish their requests."""
        self._draining = True
        busy = [task for task in tasks if task in self._busy]
        for task in tasks:
            if task not in self._busy:
                task.cancel()
        try:
            if busy:
                await asyncio.wait(busy, timeout=DRAIN_SECONDS)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._draining = False

    async def _work(self) -> None:
        me = asyncio.current_task()
        without_pause = 0
        while not self._draining:
            if without_pause == BREATH:
                # Requests without writes never wait, and others need the event loop, too.
                without_pause = 0
                await asyncio.sleep(0)
            try:
                request, changed = await self.queue.get()
            except QueueClosed:
                return

            start = self._clock()
            metrics = self._metrics.queue(request.cluster)
            self._busy.add(me)
            metrics.waited(start - changed)
            writes = 0
            written = 0.0
            try:
                writes, written = await self.handle(request, changed)
                if writes:
                    without_pause = 0
                else:
                    without_pause += 1
            except asyncio.CancelledError:
                self.queue.add(request)  # its progress is unknown
                raise
            finally:
                now = self._clock()
                if now - max(start, written) > LONG_SECONDS:
                    without_pause = BREATH
                seconds = now - start
                metrics.worked(seconds)
                self.queue.done(request, seconds=seconds, writes=writes)
                self._busy.discard(me)

    async def handle(self, request: SyncRequest, changed: float) -> tuple[int, float]:
        """Reconcile a request from beginning to end; errors stay with it.

        Return the number of writes, and the time of the latest; 0 if there was none.
        """
        pair = self.pairs.get(request.cluster)
        if pair is None:
            return 0, 0.0
        controller = pair.controllers.get(request.syncer)
        if controller is None or not controller.ready:
            return 0, 0.0  # every key is queued when the syncer is ready

        metrics = self._metrics.syncer(request.cluster, request.syncer)
        start = time.perf_counter()
        recorder = _Recorder(metrics, self.statuses, request.cluster, request.syncer)
        attempt = await self._in_step(pair, controller, request, changed, recorder)
        if pair.controllers.get(request.syncer) is not controller:
            # The syncer has left meanwhile, and its stores with it.
            return recorder.writes, recorder.written

        if attempt.error is not None:
            result = self._failed(pair, request, attempt.error, attempt.reads)
        else:
            try:
                result = self._settle(pair, request, attempt)
            except Exception as error:  # noqa: BLE001 — a syncer's bug must not stop the others
                result = self._failed(pair, request, error, attempt.reads)
        metrics.reconciled(result, time.perf_counter() - start)
        return recorder.writes, recorder.written

    async def _in_step(
        self,
        pair: ClusterPair,
        controller: BoundSyncer,
        request: SyncRequest,
        changed: float,
        recorder: _Recorder,
    ) -> _Attempt:
        """Reconcile until there is nothing left to write, or until an error."""
        deferred: Deferred | None = None
        written_from: str | None = None
        known: CheckedCopies = _NOTHING_KNOWN
        reads: tuple[Read, ...] = ()
        try:
            for _ in range(ROUNDS):
                self.queue.absorb(request)
                reconciled = pair.reconciler.reconcile(controller, request, known)
                plan = reconciled.plan
                reads = reconciled.reads
                left_out = reconciled.left_out
                if plan is None:
                    return _Attempt(None, reconciled.error, reads)
                decision = plan.decision
                unread = reconciled.unread
                del reconciled  # it has the plan
                if unread:
                    del plan
                    known = await _check_in_steps(unread)
                    continue

                for ref in decision.on:
                    store = pair.informers.at(*ref)
                    reads += (Read.of(store, ref.key),)
                recorder.frozen.clear()
                deferred = pair.reconciler.admit(plan, written_from)
                if deferred is not None:
                    if deferred.backs_off:
                        at_least = deferred.seconds or 0.0
                        at_most = controller.config.max_retry_delay
                        self.queue.retry(request, at_least=at_least, at_most=at_most)
                    decision = deferred.instead_of(decision)
                    break

                written_from = plan.original
                sides = await pair.applier.apply(plan, recorder)
                if sides:
                    recorder.written = self._clock()
                if decision.warning is not None:
                    self._send_warning(pair, request, plan, decision.warning)
                for warning in recorder.warnings:
                    self._send_warning(pair, request, plan, warning)
                recorder.warnings.clear()
                if recorder.frozen:
                    self._send_frozen(pair, request, recorder)
                if not sides or not _may_follow(controller, decision, sides):
                    self.queue.forget(request)
                    break
                if decision.deletes and controller.is_over(request.key, plan.observed.host_key):
                    # What has changed meanwhile is covered, too: the deletion of our own write.
                    self.queue.absorb(request)
                    self.queue.forget(request)
                    decision = Decision(reason=decision.reason)
                    break
                del plan  # its objects aren't held while those of the next one are decoded
            else:
                self.queue.retry(request, at_most=controller.config.max_retry_delay)
                why = reasons.NOT_SETTLED(decision.reason, ROUNDS)
                decision = replace(decision, outcome=Outcome.PENDING, reason=why)

            for side in recorder.sides:
                direction: LagDirection = "down" if side is Side.HOST else "up"
                recorder.metrics.lag(direction, recorder.written - changed)
            if not recorder.sides:
                if deferred is None or deferred.seconds is None:
                    recorder.metrics.no_op()
            elif log.is_verbose:
                where = ",".join(sorted(recorder.sides))
                log.debug(
                    "request made changes", **_about(request), sides=where, reason=decision.reason
                )
            return _Attempt(waiting(decision, recorder.frozen), None, reads, left_out)
        except Exception as error:  # noqa: BLE001 — a syncer's bug must not stop the others
            return _Attempt(None, error, reads)

    def _send_warning(
        self, pair: ClusterPair, request: SyncRequest, plan: Plan, warning: Warned
    ) -> None:
        """Notify the owner of an object once of a warning of its decision or its writes."""
        virtual = plan.observed.virtual
        uid = uid_of(virtual) if virtual else ""
        warned = hash((request, uid, warning))
        if warned in self._warned:
            return
        self._warned[warned] = None
        # The object may be deleted by now.
        self._notify(pair, request, warning.reason, warning.message, about=virtual)

    def _send_frozen(self, pair: ClusterPair, request: SyncRequest, recorder: _Recorder) -> None:
        """Notify the owner of an object of refused merges, and of fields that are newly frozen."""
        for error in recorder.refusals:
            message = shortened(str(error))
            log.warning("a cluster refused a merge", **_about(request), error=message)
            event = retry_for(error, 0).event
            self._notify(pair, request, event, for_tenant(error, message))
        recorder.refusals.clear()

        for report in recorder.frozen:
            if report.new:
                log.warning(
                    "fields are not written for a time", **_about(request), reason=report.reason
                )
                self._notify(pair, request, "FieldFrozen", report.reason)

    def _send_left_out(
        self, pair: ClusterPair, request: SyncRequest, fields: tuple[str, ...]
    ) -> None:
        """Notify the owner of an object once of the fields that are not copied to the host."""
        warned = hash((request, fields))
        if warned in self._warned:
            return
        self._warned[warned] = None

        named = []
        for field_path in fields[:MOST_LISTED]:
            if len(field_path) > LONGEST_LABEL_QUOTE:
                named.append(f"{field_path[:LONGEST_LABEL_QUOTE]}…")
            else:
                named.append(field_path)
        list_of_fields = ", ".join(named)
        if len(fields) > MOST_LISTED:
            list_of_fields += f" and {len(fields) - MOST_LISTED} more"
        why = "not copied to the host, whose policy or version keeps it out"
        message = f"{why}: {list_of_fields}"
        log.debug("fields were not copied", **_about(request), fields=len(fields))
        self._notify(pair, request, "NotCopied", message)

    def _notify(
        self,
        pair: ClusterPair,
        request: SyncRequest,
        reason: str,
        message: str,
        *,
        about: Obj | None = None,
    ) -> None:
        # The names in an event are from the syncer's host_key, which may raise.
        with contextlib.suppress(Exception):
            self._events.warn(pair, request, reason, message, about=about)

    def _settle(self, pair: ClusterPair, request: SyncRequest, attempt: _Attempt) -> _Result:
        decision = attempt.decision
        reads = attempt.reads
        assert decision is not None
        if decision.outcome is Outcome.PENDING or decision.on:
            self.wakeups.wait(request, reads)
        else:
            self.wakeups.forget(request)
        status = decided_status(decision)
        is_over = decision.outcome is Outcome.SKIPPED and pair.is_gone(request)
        if status is None or is_over:
            self.statuses.in_step(request)
        else:
            state, reason = status
            is_new = self.statuses.note(request, state, reason, now=self._clock())
            if is_new and decision.outcome is Outcome.PENDING:
                log.debug("request is waiting", **_about(request), reason=str(reason))

        result: _Result = "success"
        if decision.after is not None:
            self.queue.add(request, after=decision.after)
            result = "requeue_after"
        if attempt.left_out:
            self._send_left_out(pair, request, attempt.left_out)
        return result

    def _failed(
        self, pair: ClusterPair, request: SyncRequest, error: Exception, reads: Iterable[Read]
    ) -> _Result:
        self._metrics.syncer(request.cluster, request.syncer).failed(type(error).__name__)
        if isinstance(error, RecursionError):
            why = "it is nested deeper than can be worked on; make it flatter"
            error = Refused(why, reason="Unreadable")
        retry = retry_for(error, self.queue.failures(request))
        # First of all, so that the request isn't lost whatever happens below.
        self._again(pair, request, error, retry, reads)
        try:
            self._report_failure(pair, request, error, retry)
        except Exception:
            log.exception("a failure could not be reported", **_about(request))
        return "error"

    def _report_failure(
        self, pair: ClusterPair, request: SyncRequest, error: Exception, retry: Retry
    ) -> None:
        text = str(error)
        if not isinstance(error, SyncerError):
            text = f"{type(error).__name__}: {error}"
        message = shortened(text)
        state = RequestState.PARKED if retry.action is RetryAction.PARK else RequestState.FAILING
        kind = type(error).__name__
        reason = failure_reason(error, message)
        is_new = self.statuses.note(request, state, reason, error=kind, now=self._clock())
        if is_new:
            self._log(request, error, message)
        self._metrics.queue(request.cluster).retried()
        if retry.event and (is_new or retry.action is RetryAction.BACK_OFF):
            about = getattr(error, "about", None)
            self._notify(pair, request, retry.event, for_tenant(error, message), about=about)

    def _log(self, request: SyncRequest, error: Exception, message: str) -> None:
        keys = _about(request)
        if isinstance(error, SyncerError):
            if retry_for(error, 0).action is RetryAction.PARK:
                log.warning("parked", **keys, error=message)
            else:
                log.warning("failed, will try again", **keys, error=message)
            return

        frames = traceback.extract_tb(error.__traceback__)
        lines = tuple([(frame.filename, frame.lineno) for frame in frames])
        raised = (request.syncer, hash(lines))
        if raised in self._raised:
            log.error("a syncer raised", **keys, error=message)
        else:
            self._raised.add(raised)
            log.error("a syncer raised", **keys, exc_info=error)

    def _again(
        self,
        pair: ClusterPair,
        request: SyncRequest,
        error: Exception,
        retry: Retry,
        reads: Iterable[Read],
    ) -> None:
        """Queue a request that failed once more, or park it."""
        controller = pair.controllers.get(request.syncer)
        at_most = controller.config.max_retry_delay if controller is not None else LAST_RETRY
        if retry.action is RetryAction.PARK:
            if retry.seconds == NEVER:
                self.wakeups.forget(request)
                return
            if retry.seconds:
                self.queue.park(request, retry.seconds)
            else:
                self.queue.retry(request, at_most=at_most)
            self.wakeups.park(pair, request, reads, error)
            return

        self.wakeups.forget(request)
        if retry.action is RetryAction.RECONNECT and isinstance(error, SyncerError):
            side = getattr(error, "side", None)
            if side is not None:
                self._events.lost(pair, side, error)
        is_at_once = retry.action is RetryAction.AT_ONCE
        self.queue.retry(request, at_least=retry.seconds, at_most=at_most, at_once=is_at_once)


#: The checked copies of a request before any copy was left unread.
_NOTHING_KNOWN: CheckedCopies = {}


async def _check_in_steps(unread: Iterable[NamedCopy]) -> CheckedCopies:
    """Check the named copies that a decision left unread, and let other tasks run in between."""
    known = {}
    room = 0
    for named in unread:
        if room <= 0:
            await asyncio.sleep(0)
            room = MOST_NAMED
        checked = named.check()
        known[named] = checked
        if checked.entry is not None:
            room -= checked.entry.size
    return known


def _about(request: SyncRequest) -> dict[str, Any]:
    """Return the keys of a log line about a request."""
    return {"cluster": request.cluster, "syncer": request.syncer, "key": request.key}


def _may_follow(controller: BoundSyncer, decision: Decision, sides: set[Side]) -> bool:
    """Return True if the writes may lead to further ones.

    The host's response may be written back, and a deleted object is created again.
    """
    may_return = controller.writes_back or (bool(controller.syncer.up) and Side.HOST in sides)
    return may_return or decision.is_step or decision.deletes
