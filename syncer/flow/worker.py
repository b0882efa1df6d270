"""Takes requests from the queue, has them decided and carried out, and settles what becomes of each."""

import asyncio
import contextlib
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from syncer.api.decision import Decision, Outcome, Verb
from syncer.api.errors import Refused, SyncerError
from syncer.api.objects import Obj, Request, Side
from syncer.flow.ledger import Ledger, State
from syncer.flow.link import Link
from syncer.flow.outcomes import Fate, Next, after
from syncer.flow.part import Part
from syncer.flow.queue import Queue, QueueClosed
from syncer.observe.logs import get_logger
from syncer.observe.metrics import Metrics, QueueMetrics, SyncerMetrics

#: How often a request is decided again at once because its own writes changed what it sees.
ROUNDS = 6
#: Requests after which a worker lets other tasks run; with 32 of them the loop is held up for some 5 ms at most.
BREATH = 3
#: Seconds that requests get to finish when leadership is lost; less than what is left of the Lease then (15 - 10).
DRAIN_SECONDS = 3.0

log = get_logger(__name__)


class Told(Protocol):
    """What the workers tell the rest of the flow."""

    def lost(self, link: Link, side: Side, error: SyncerError) -> None:
        """A request got no answer from one side."""
        ...

    def warn(self, link: Link, request: Request, reason: str, message: str, *, about: Obj | None) -> None:
        """The owner of the virtual object should know, or of the one that it is about."""
        ...


@dataclass(slots=True)
class _Recorder:
    """Counts the writes of one request."""

    metrics: SyncerMetrics
    ledger: Ledger
    syncer: str
    sides: set[Side]

    def wrote(self, side: Side, verb: str) -> None:
        self.metrics.wrote(side.value, verb)
        self.ledger.done[self.syncer, side.value, verb] += 1
        self.sides.add(side)

    def futile(self, side: Side) -> None:
        self.metrics.futile(side.value)


class Workers:
    """A number of workers on one queue."""

    def __init__(
        self,
        queue: Queue,
        links: Mapping[str, Link],
        ledger: Ledger,
        told: Told,
        metrics: Metrics,
        queue_metrics: QueueMetrics,
        *,
        clock: Callable[[], float],
    ) -> None:
        self.queue, self.links, self.ledger, self.told = queue, links, ledger, told
        self._metrics, self._queue_metrics, self._clock = metrics, queue_metrics, clock
        self._by_syncer: dict[str, SyncerMetrics] = {}
        #: Where syncers have raised, by syncer: one traceback tells all that others of the same bug could.
        self._shown: set[tuple[str, int]] = set()
        self._busy: set[asyncio.Task[None] | None] = set()
        self._draining = False

    async def run(self, count: int) -> None:
        """Work until the queue is closed or this is cancelled; requests that have begun are finished, in bounds."""
        tasks = [asyncio.create_task(self._work()) for _ in range(count)]
        try:
            await asyncio.gather(*tasks)
        except asyncio.CancelledError:
            await self._drain(tasks)
            raise

    async def _drain(self, tasks: Iterable["asyncio.Task[None]"]) -> None:
        """Stop those who wait for a request, and give the others some seconds to finish theirs."""
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
            looked += 1
            if looked % BREATH == 0:
                await asyncio.sleep(0)  # requests that need no write never wait, and others want the loop, too
            try:
                request, changed = await self.queue.get()
            except QueueClosed:
                return
            start = self._clock()
            self._busy.add(me)
            self._queue_metrics.waited(start - changed)
            try:
                await self.handle(request, changed)
            finally:
                seconds = self._clock() - start
                self._queue_metrics.worked(seconds)
                self.queue.done(request, seconds=seconds)
                self._busy.discard(me)

    async def handle(self, request: Request, changed: float) -> None:
        """Look at one request from beginning to end; whatever goes wrong stays with this request."""
        link = self.links[request.cluster]
        part = link.parts.get(request.syncer)
        if part is None or not part.ready:
            return  # every key is asked when the syncer is ready
        metrics = self._metrics_of(request.syncer)
        start = time.perf_counter()
        result: Literal["success", "error", "requeue", "requeue_after"] = "success"
        try:
            decision = await self._in_step(link, part, request, changed, metrics)
            result = self._settle(link, request, decision)
        except Exception as error:  # noqa: BLE001 — a syncer's bug must not stop the others
            if link.parts.get(request.syncer) is not part:
                return  # it has left meanwhile, and its stores with it
            result = "error"
            metrics.failed(type(error).__name__)
            self._failed(link, request, error)
        metrics.reconciled(result, time.perf_counter() - start)

    async def _in_step(
        self, link: Link, part: Part, request: Request, changed: float, metrics: SyncerMetrics
    ) -> Decision:
        """Decide and carry out until there is nothing left to write."""
        recorder = _Recorder(metrics, self.ledger, request.syncer, set())
        for _ in range(ROUNDS):
            decision, objects = link.look(request)
            for seen in decision.on:  # before anything is awaited, so that nothing can appear unnoticed
                link.caches.store(seen.side, seen.resource).wake(seen.key, request, lambda: self.queue.add(request))
            sides = await link.carrier.carry_out(part.syncer, decision, recorder, seen=objects)
            if not sides or not _may_follow(part, decision, sides):
                self.queue.forget(request)
                break
        else:
            self.queue.retry(request)
        for side in recorder.sides:
            metrics.lag("down" if side is Side.HOST else "up", self._clock() - changed)
        if recorder.sides:
            where = ",".join(sorted(recorder.sides))
            log.debug("wrote", syncer=request.syncer, key=str(request.key), sides=where, reason=decision.reason)
        else:
            metrics.no_op()
        return decision

    def _settle(
        self, link: Link, request: Request, decision: Decision
    ) -> Literal["success", "requeue", "requeue_after"]:
        match decision.outcome:
            case Outcome.IN_STEP:
                self.ledger.in_step(request)
            case Outcome.SKIPPED if link.is_gone(request):
                self.ledger.in_step(request)
            case Outcome.SKIPPED:
                self.ledger.note(request, State.SKIPPED, decision.reason)
            case Outcome.PENDING:
                if self.ledger.note(request, State.PENDING, decision.reason):
                    log.debug("waits", syncer=request.syncer, key=str(request.key), reason=decision.reason)
        if decision.after is None:
            return "success"
        self.queue.add(request, after=decision.after)
        return "requeue_after"

    def _failed(self, link: Link, request: Request, error: Exception) -> None:
        what = after(error, self.queue.failures(request))
        parked = what.fate is Fate.PARK
        message = str(error) if isinstance(error, SyncerError) else f"{type(error).__name__}: {error}"
        state = State.PARKED if parked else State.FAILING
        new = self.ledger.note(request, state, message, error=type(error).__name__)
        if new:
            self._log(request, error, message)
        if what.event and (new or what.fate is Fate.BACK_OFF):
            with contextlib.suppress(Exception):  # its names are from the syncer's host_key, which may have raised
                self.told.warn(link, request, what.event, message, about=getattr(error, "about", None))
        self._queue_metrics.retried()
        self._again(link, request, error, what)

    def _log(self, request: Request, error: Exception, message: str) -> None:
        keys = {"syncer": request.syncer, "key": str(request.key)}
        if isinstance(error, SyncerError):
            log.warning("parked" if isinstance(error, Refused) else "failed, will try again", **keys, error=message)
            return
        place = (request.syncer, _way_of(error))
        shown = {"error": message} if place in self._shown else {"exc_info": error}
        self._shown.add(place)
        log.error("a syncer raised", **keys, **shown)

    def _again(self, link: Link, request: Request, error: Exception, what: Next) -> None:
        match what.fate:
            case Fate.AT_ONCE:
                self.queue.retry(request, at_once=True)
            case Fate.PARK:
                self.queue.add(request, after=what.seconds)
            case Fate.LATER:
                self.queue.retry(request, at_least=what.seconds)
            case Fate.RECONNECT:
                side = getattr(error, "side", None)
                if isinstance(error, SyncerError) and side is not None:
                    self.told.lost(link, side, error)
                self.queue.retry(request)
            case Fate.BACK_OFF:
                self.queue.retry(request)

    def _metrics_of(self, syncer: str) -> SyncerMetrics:
        if syncer not in self._by_syncer:
            self._by_syncer[syncer] = self._metrics.syncer(syncer)
        return self._by_syncer[syncer]


def _way_of(error: Exception) -> int:
    """The lines that led to an error, as a number that is the same for the same lines."""
    return hash(tuple((frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)))


def _may_follow(part: Part, decision: Decision, sides: set[Side]) -> bool:
    """Whether what was written may call for more: the host's answer may flow back, what was deleted is made anew."""
    flows_back = bool(part.syncer.up) and Side.HOST in sides
    return flows_back or any(write.verb is Verb.DELETE for write in decision.writes)
