"""Workers take requests from the queue, carry out their plans, and settle the outcome."""

import asyncio
import contextlib
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from syncer.api.decision import Decision, Outcome
from syncer.api.errors import Refused, SyncerError
from syncer.api.objects import Obj, Request, Side
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.controllers.request_status import RequestStatuses, State
from syncer.engine.controllers.retry_policy import Retry, RetryAction, retry_for
from syncer.engine.controllers.tenant_messages import for_tenant
from syncer.engine.controllers.wakeups import Wakeups
from syncer.engine.reconcile.controller import Controller, Read
from syncer.engine.reconcile.policies.contention import HeldFields, waiting
from syncer.engine.workqueue.fair import QueueClosed
from syncer.engine.workqueue.queue import LAST_RETRY, Queue
from syncer.observe.logs import get_logger
from syncer.observe.metrics import Metrics, SyncerMetrics

#: How often a request is reconciled again at once because its own writes changed its objects.
ROUNDS = 6
#: Requests after which a worker lets other tasks run; with 32 workers the event loop is blocked for
#: some 5 ms at most.
BREATH = 3
#: Seconds that requests get to finish when leadership is lost; less than the rest of the Lease (15
#: - 10).
DRAIN_SECONDS = 3.0

log = get_logger(__name__)


class Told(Protocol):
    """Receives notifications of the workers."""

    def lost(self, pair: ClusterPair, side: Side, error: SyncerError) -> None:
        """Handle a request that got no answer from a side."""
        ...

    def warn(self, pair: ClusterPair, request: Request, reason: str, message: str, *, about: Obj | None) -> None:
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
    sides: set[Side] = field(default_factory=set)
    frozen: list[HeldFields] = field(default_factory=list)
    #: The latest decision's reads of other objects.
    reads: tuple[Read, ...] = ()

    def wrote(self, side: Side, verb: str) -> None:
        self.metrics.wrote(side.value, verb)
        self.statuses.done[self.cluster, self.syncer, side.value, verb] += 1
        self.writes += 1
        self.sides.add(side)

    def futile(self, side: Side) -> None:
        self.metrics.futile(side.value)

    def held(self, held: HeldFields) -> None:
        self.frozen.append(held)


class Workers:
    """A number of workers on a queue."""

    def __init__(
        self,
        queue: Queue,
        pairs: Mapping[str, ClusterPair],
        statuses: RequestStatuses,
        told: Told,
        metrics: Metrics,
        *,
        clock: Callable[[], float],
    ) -> None:
        self.queue, self.pairs, self.statuses, self.told = queue, pairs, statuses, told
        self._metrics, self._clock = metrics, clock
        #: Where syncers have raised exceptions, by syncer: a single traceback suffices for each
        #: bug.
        self._shown: set[tuple[str, int]] = set()
        self._busy: set[asyncio.Task[None] | None] = set()
        self._draining = False
        self.wakeups = Wakeups(queue)

    async def run(self, count: int) -> None:
        """Work until the queue is closed or this is cancelled; requests in work are finished,
        within a time limit.
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
        me, looked = asyncio.current_task(), 0
        while not self._draining:
            if looked == BREATH:
                looked = 0
                await asyncio.sleep(0)  # requests without writes never wait, and others need the loop, too
            try:
                request, changed = await self.queue.get()
            except QueueClosed:
                return
            start, metrics = self._clock(), self._metrics.queue(request.cluster)
            self._busy.add(me)
            metrics.waited(start - changed)
            writes = 0
            try:
                writes = await self.handle(request, changed)
                looked = 0 if writes else looked + 1
            except asyncio.CancelledError:
                self.queue.add(request)  # its progress is unknown
                raise
            finally:
                seconds = self._clock() - start
                metrics.worked(seconds)
                self.queue.done(request, seconds=seconds, writes=writes)
                self._busy.discard(me)

    async def handle(self, request: Request, changed: float) -> int:
        """Reconcile a request from beginning to end; errors stay with it.

        Return the number of writes.
        """
        pair = self.pairs[request.cluster]
        controller = pair.controllers.get(request.syncer)
        if controller is None or not controller.ready:
            return 0  # every key is queued when the syncer is ready
        metrics = self._metrics.syncer(request.cluster, request.syncer)
        start = time.perf_counter()
        result: Literal["success", "error", "requeue_after"] = "success"
        recorder = _Recorder(metrics, self.statuses, request.cluster, request.syncer)
        try:
            decision = await self._in_step(pair, controller, request, changed, recorder)
            if pair.controllers.get(request.syncer) is not controller:
                return recorder.writes  # the syncer has left meanwhile, and its stores with it
            result = self._settle(pair, request, decision, recorder.reads)
        except Exception as error:  # noqa: BLE001 — a syncer's bug must not stop the others
            if pair.controllers.get(request.syncer) is not controller:
                return recorder.writes
            result = "error"
            metrics.failed(type(error).__name__)
            self._failed(pair, request, error, recorder.reads)
        metrics.reconciled(result, time.perf_counter() - start)
        return recorder.writes

    async def _in_step(
        self, pair: ClusterPair, controller: Controller, request: Request, changed: float, recorder: _Recorder
    ) -> Decision:
        """Reconcile until there is nothing left to write."""
        metrics = recorder.metrics
        for _ in range(ROUNDS):
            self.queue.absorb(request)
            reads = pair.reconciler.view.reads()
            try:
                plan = pair.reconciler.reconcile(controller, request, reads)
            finally:
                recorder.reads = tuple(reads.noted)
            decision = plan.decision
            recorder.reads += _waited_for(pair, decision) if decision.on else ()
            recorder.frozen.clear()
            sides = await pair.applier.apply(plan, recorder)
            self._tell_frozen(pair, request, recorder.frozen)
            if not sides or not _may_follow(controller, decision, sides):
                self.queue.forget(request)
                break
        else:
            self.queue.retry(request, at_most=controller.config.max_retry_delay)
            why = f"{decision.reason}; it still needed a write after {ROUNDS} rounds"
            decision = replace(decision, outcome=Outcome.PENDING, reason=why)
        for side in recorder.sides:
            metrics.lag("down" if side is Side.HOST else "up", self._clock() - changed)
        if recorder.sides:
            where = ",".join(sorted(recorder.sides))
            log.debug("wrote", **_about(request), sides=where, reason=decision.reason)
        else:
            metrics.no_op()
        return waiting(decision, recorder.frozen)

    def _tell_frozen(self, pair: ClusterPair, request: Request, frozen: Iterable[HeldFields]) -> None:
        for held in frozen:
            if held.new:
                log.warning("frozen", **_about(request), reason=held.reason)
                with contextlib.suppress(Exception):  # as below
                    self.told.warn(pair, request, "FieldFrozen", held.reason, about=None)

    def _settle(
        self, pair: ClusterPair, request: Request, decision: Decision, reads: Iterable[Read]
    ) -> Literal["success", "requeue_after"]:
        if decision.outcome is Outcome.PENDING or decision.on:
            self.wakeups.wait(request, reads)
        else:
            self.wakeups.forget(request)
        match decision.outcome:
            case Outcome.IN_STEP:
                self.statuses.in_step(request)
            case Outcome.SKIPPED if pair.is_gone(request):
                self.statuses.in_step(request)
            case Outcome.SKIPPED:
                self.statuses.note(request, State.SKIPPED, decision.reason, now=self._clock())
            case Outcome.PENDING:
                if self.statuses.note(request, State.PENDING, decision.reason, now=self._clock()):
                    log.debug("waits", **_about(request), reason=decision.reason)
        if decision.after is None:
            return "success"
        self.queue.add(request, after=decision.after)
        return "requeue_after"

    def _failed(self, pair: ClusterPair, request: Request, error: Exception, reads: Iterable[Read]) -> None:
        if isinstance(error, RecursionError):
            error = Refused("it is nested deeper than can be worked on; make it flatter", reason="Unreadable")
        what = retry_for(error, self.queue.failures(request))
        self._again(pair, request, error, what, reads)  # first of all, so that it is not lost whatever happens below
        try:
            self._tell_failure(pair, request, error, what)
        except Exception:
            log.exception("a failure could not be told of", **_about(request))

    def _tell_failure(self, pair: ClusterPair, request: Request, error: Exception, what: Retry) -> None:
        message = str(error) if isinstance(error, SyncerError) else f"{type(error).__name__}: {error}"
        state = State.PARKED if what.action is RetryAction.PARK else State.FAILING
        new = self.statuses.note(request, state, message, error=type(error).__name__, now=self._clock())
        if new:
            self._log(request, error, message)
        self._metrics.queue(request.cluster).retried()
        if what.event and (new or what.action is RetryAction.BACK_OFF):
            with contextlib.suppress(Exception):  # the names are from the syncer's host_key, which may have raised
                about = getattr(error, "about", None)
                self.told.warn(pair, request, what.event, for_tenant(error, message), about=about)

    def _log(self, request: Request, error: Exception, message: str) -> None:
        keys = _about(request)
        if isinstance(error, SyncerError):
            parked = retry_for(error, 0).action is RetryAction.PARK
            log.warning("parked" if parked else "failed, will try again", **keys, error=message)
            return
        place = (request.syncer, _way_of(error))
        shown = {"error": message} if place in self._shown else {"exc_info": error}
        self._shown.add(place)
        log.error("a syncer raised", **keys, **shown)

    def _again(self, pair: ClusterPair, request: Request, error: Exception, what: Retry, reads: Iterable[Read]) -> None:
        controller, side = pair.controllers.get(request.syncer), getattr(error, "side", None)
        at_most = controller.config.max_retry_delay if controller else LAST_RETRY
        if what.action is RetryAction.PARK:
            self.queue.add(request, after=self.queue.around(what.seconds), low=True)
            self.wakeups.park(pair, request, reads, error)
            return
        self.wakeups.forget(request)
        if what.action is RetryAction.RECONNECT and isinstance(error, SyncerError) and side is not None:
            self.told.lost(pair, side, error)
        self.queue.retry(request, at_least=what.seconds, at_most=at_most, at_once=what.action is RetryAction.AT_ONCE)


def _about(request: Request) -> dict[str, Any]:
    """Return the keys of a log line about a request."""
    return {"cluster": request.cluster, "syncer": request.syncer, "key": request.key}


def _way_of(error: Exception) -> int:
    """Return a hash of the lines that led to an error."""
    return hash(tuple((frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)))


def _waited_for(pair: ClusterPair, decision: Decision) -> tuple[Read, ...]:
    """Return the objects that a decision waits for, as they are now."""
    stores = [(pair.informers.store(seen.side, seen.resource), seen.key) for seen in decision.on]
    return tuple(Read(store, key, store.entry(key)) for store, key in stores)


def _may_follow(controller: Controller, decision: Decision, sides: set[Side]) -> bool:
    """Return True if the writes may lead to further ones: the host's response may flow back, a
    deleted object is created again.
    """
    flows_back = controller.ownership is not None or (bool(controller.syncer.up) and Side.HOST in sides)
    return flows_back or decision.deletes
