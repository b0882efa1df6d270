"""Workers take requests from the queue, carry out their plans, and settle the outcome."""

import asyncio
import contextlib
import time
import traceback
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from cachetools import LRUCache

from syncer.api import reasons
from syncer.api.decision import Decision, Outcome, Verb, Warned
from syncer.api.errors import Refused, SyncerError
from syncer.api.objects import Key, Obj, Side, SyncRequest, uid_of
from syncer.api.paths import dig, path_text
from syncer.api.reasons import RequestState
from syncer.api.texts import shortened
from syncer.api.values import value_class
from syncer.engine.controllers.failure_reasons import failure_reason
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.controllers.request_status import RequestStatuses, decided_status
from syncer.engine.controllers.retry_policy import NEVER, Retry, RetryAction, retry_for
from syncer.engine.controllers.tenant_messages import for_tenant
from syncer.engine.controllers.wakeups import Wakeups
from syncer.engine.reconcile.calls import Operation
from syncer.engine.reconcile.controller import (
    MOST_NAMED,
    BoundSyncer,
    CheckedCopies,
    NamedCopy,
    Read,
)
from syncer.engine.reconcile.patch_paths import changes, is_stored_as_sent
from syncer.engine.reconcile.plan import (
    Deferred,
    Plan,
    PlannedWrite,
    PostponedFields,
    ServerAnswer,
)
from syncer.engine.reconcile.policies.contention import waiting
from syncer.observe.events import EventType
from syncer.observe.logs import WORK, get_logger
from syncer.observe.metrics import LagDirection, Metrics, SyncerMetrics
from syncer.remembered import REMEMBERED
from syncer.translate.alike import same
from syncer.translate.messages import listed
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

    def notify(
        self,
        pair: ClusterPair,
        request: SyncRequest,
        reason: str,
        message: str,
        *,
        about: Obj | None = None,
        level: EventType = "Warning",
        once: bool = False,
    ) -> None:
        """Notify the owner of the virtual object, or of ``about``."""
        ...


@dataclass(slots=True)
class _Recorder:
    """Counts the writes of a request, and has the keys of its log lines."""

    metrics: SyncerMetrics
    statuses: RequestStatuses
    #: None once the work on the request is over. A connection that was opened for it has the
    #: recorder in its context, and must not hold the stores of a syncer that has stopped.
    controller: BoundSyncer | None
    request: SyncRequest
    writes: int = 0
    #: When the latest writes were made, in seconds of the engine's clock; 0 before the first.
    written: float = 0.0
    sides: set[Side] = field(default_factory=set)
    #: True if the answer to a write of the latest round, or a refusal, may lead to another one.
    leads_on: bool = False
    #: The virtual object of a round while its writes are made; None if there is none.
    virtual: Obj | None = None
    frozen: list[PostponedFields] = field(default_factory=list)
    #: The errors of merges that were refused in the latest round.
    refusals: list[SyncerError] = field(default_factory=list)
    #: The events of the writes of the latest round.
    warnings: list[Warned] = field(default_factory=list)
    #: The name of the copy that was created on the host; ``""`` if none was.
    copied_as: str = ""
    _keys: Mapping[str, Any] | None = None

    def log_keys(self) -> Mapping[str, Any]:
        controller = self.controller
        if controller is None:
            return _NO_KEYS
        if self._keys is None:
            request = self.request
            self._keys = {
                "cluster": request.cluster,
                "syncer": request.syncer,
                "resource": controller.syncer.resource,
                "key": request.key,
                "host_key": controller.host_key_of(request),
                "reconcile_id": uuid.uuid4(),
            }
        return self._keys

    def answered(self, planned: PlannedWrite, answer: ServerAnswer) -> None:
        controller = self.controller
        assert controller is not None  # the work on the request goes on
        side = planned.write.side
        verb = answer.call.kind
        if answer.changed:
            self.metrics.wrote(side, verb)
            self.statuses.done[self.request.cluster, self.request.syncer, side, verb] += 1
            self.writes += 1
            self.sides.add(side)
            is_copy = side is Side.HOST and planned.write.resource is None
            if is_copy and verb is Operation.CREATE:
                self.copied_as = planned.ref.key.name
        else:
            self.metrics.futile(side)
            fields = changes(answer.call, planned.live, controller.settings.marks)
            log.info(
                "a write changed nothing",
                object=str(planned.ref),
                verb=verb,
                fields=[path_text(each.path) for each in fields],
            )
        if _leads_on(controller, planned, answer, self.virtual):
            self.leads_on = True

    def replaced(self) -> None:
        self.leads_on = True

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
        recorder = _Recorder(metrics, self.statuses, controller, request)
        WORK.set(recorder)
        try:
            attempt = await self._in_step(pair, controller, request, changed, recorder)
            if pair.controllers.get(request.syncer) is not controller:
                # The syncer has left meanwhile, and its stores with it.
                return recorder.writes, recorder.written

            if recorder.copied_as and request.key.name not in recorder.copied_as:
                self._send_shortened(pair, controller, request)
            if attempt.error is not None:
                result = self._failed(pair, request, attempt.error, attempt.reads)
            else:
                try:
                    result = self._settle(pair, request, attempt)
                except Exception as error:  # noqa: BLE001 — a syncer's bug must not stop the others
                    result = self._failed(pair, request, error, attempt.reads)
            metrics.reconciled(result, time.perf_counter() - start)
            return recorder.writes, recorder.written
        finally:
            recorder.controller = None
            recorder.virtual = None

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
                    store = controller.store_of(ref)
                    reads += (Read.of(store, ref.key),)
                recorder.frozen.clear()
                recorder.leads_on = False
                deferred = pair.reconciler.admit(plan, written_from)
                if deferred is not None:
                    if deferred.backs_off:
                        at_least = deferred.seconds or 0.0
                        at_most = controller.config.max_retry_delay
                        self.queue.retry(request, at_least=at_least, at_most=at_most)
                    decision = deferred.instead_of(decision)
                    break

                written_from = plan.original
                recorder.virtual = plan.observed.virtual
                sides = await pair.applier.apply(plan, recorder)
                recorder.virtual = None
                if sides:
                    recorder.written = self._clock()
                if decision.warning is not None:
                    self._send_warning(pair, request, plan, decision.warning)
                for warning in recorder.warnings:
                    self._send_warning(pair, request, plan, warning)
                recorder.warnings.clear()
                if recorder.frozen:
                    self._send_frozen(pair, request, recorder)
                may_follow = recorder.leads_on or decision.is_step or decision.deletes
                if not sides or not may_follow:
                    self.queue.forget(request)
                    break
                if decision.deletes and controller.is_over(request.key, plan.observed.host_key):
                    # What has changed meanwhile is covered, too: the deletion of our own write.
                    self.queue.absorb(request)
                    self.queue.forget(request)
                    decision = Decision(reason=decision.reason)
                    break
                is_final = not (recorder.leads_on or decision.is_step)
                if is_final and (why := _waits_for_end(controller, plan)):
                    self.queue.forget(request)
                    decision = replace(decision, outcome=Outcome.PENDING, reason=why)
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
                log.debug("request made changes", sides=where, reason=decision.reason)
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
            log.warning("a cluster refused a merge", error=message)
            event = retry_for(error, 0).event
            self._notify(pair, request, event, for_tenant(error, message))
        recorder.refusals.clear()

        for report in recorder.frozen:
            if report.new:
                log.warning("fields are not written for a time", reason=report.reason)
                self._notify(pair, request, "FieldFrozen", report.reason)

    def _send_left_out(
        self, pair: ClusterPair, request: SyncRequest, fields: tuple[str, ...]
    ) -> None:
        """Notify the owner of an object once of the fields that are not copied to the host."""
        warned = hash((request, fields))
        if warned in self._warned:
            return
        self._warned[warned] = None

        why = "not copied to the host, whose policy or version keeps it out"
        log.debug("fields were not copied", fields=len(fields))
        self._notify(pair, request, "NotCopied", f"{why}: {listed(fields)}")

    def _send_shortened(
        self, pair: ClusterPair, controller: BoundSyncer, request: SyncRequest
    ) -> None:
        """Notify the owner of an object whose new copy has a name without that of the object."""
        key = request.key
        name = controller.host_key(key).name
        if key.name in name:
            return
        translated: Key | None = None
        with contextlib.suppress(Exception):  # a name translator may raise
            translated = pair.settings.names.to_host(controller.syncer.host_resource, key)
        if translated is not None and translated.name == name:  # the kind has no names of its own
            self._notify(pair, request, "NameShortened", _SHORTENED, level="Normal", once=True)

    def _notify(
        self,
        pair: ClusterPair,
        request: SyncRequest,
        reason: str,
        message: str,
        *,
        about: Obj | None = None,
        level: EventType = "Warning",
        once: bool = False,
    ) -> None:
        # The names in an event are from the syncer's host_key, which may raise.
        with contextlib.suppress(Exception):
            self._events.notify(pair, request, reason, message, about=about, level=level, once=once)

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
            uid = ""
            if decision.outcome is Outcome.PENDING:
                uid = pair.uid_of(request)
            is_new = self.statuses.note(request, state, reason, uid=uid, now=self._clock())
            if is_new and decision.outcome is Outcome.PENDING:
                log.debug("request is waiting", reason=str(reason))

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
            log.exception("a failure could not be reported")
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
        if isinstance(error, SyncerError):
            if retry_for(error, 0).action is RetryAction.PARK:
                log.warning("parked", error=message)
            else:
                log.warning("failed, will try again", error=message)
            return

        frames = traceback.extract_tb(error.__traceback__)
        lines = tuple([(frame.filename, frame.lineno) for frame in frames])
        raised = (request.syncer, hash(lines))
        if raised in self._raised:
            log.error("a syncer raised", error=message)
        else:
            self._raised.add(raised)
            log.error("a syncer raised", exc_info=error)

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


_NO_KEYS: Mapping[str, Any] = {}
#: The event about a copy with such a name.
_SHORTENED = (
    "its copy on the host has a shortened name with a hash at the end, as its whole name would be"
    " too long there, or could be that of another object: a shorter name stays readable"
)
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


def _waits_for_end(controller: BoundSyncer, plan: Plan) -> str:
    """Return why a request waits for the end of the objects that it has deleted.

    ``""`` if one of them is gone already, or its syncer is to decide again.
    """
    why = ""
    for planned in plan.writes:
        write = planned.write
        if write.verb is not Verb.DELETE:
            continue
        entry = controller.store_of(planned.ref).entry(planned.ref.key)
        is_there = entry is not None and entry.uid == uid_of(write.obj)
        if not is_there or not write.meanwhile:
            return ""
        why = write.meanwhile
    return why


def _leads_on(
    controller: BoundSyncer, planned: PlannedWrite, answer: ServerAnswer, virtual: Obj | None
) -> bool:
    """Return True if the answer to a write may lead to another decision.

    What the host answers may be written back: after a change of a copy, only other values of the
    fields that come up. After its creation, only other values than the virtual object has, or than
    were sent. What others have changed before is shown by the watch. A deletion is followed by
    another decision anyway, unless it says why not.
    """
    if controller.writes_back:
        return True
    up = controller.syncer.up
    write = planned.write
    if not up or write.side is not Side.HOST or write.verb is Verb.DELETE:
        return False
    now = answer.obj
    before: Obj | None = None
    if write.verb is Verb.APPLY and answer.call.kind is Operation.PATCH:
        if not controller.looks_back:
            before = planned.live
    elif answer.call.kind is Operation.CREATE and not controller.looks_at_creation:
        verbatim = not planned.ref.resource.is_built_in
        if now is not None and is_stored_as_sent(answer.call, now, verbatim=verbatim):
            before = virtual
    if before is None or now is None:
        return True
    return any(not same(dig(before, path), dig(now, path)) for path in up)
