"""Step 3: requests that need a look, each once, delayed where told to, and fair between virtual clusters.

A request is never in two workers; one that is added while it is worked on is worked on again. Each virtual cluster has
a lane. The next request is taken from the lane that has used the least worker time for its weight (start-time fair
queueing), so a tenant that floods the queue, or whose requests are slow, delays itself. Retries wait in the same lane,
after its other requests: what fails again and again, and what is only looked at to be sure, is of low priority. One
request in some is a low one all the same, so that no flood holds them up for ever. Requests of a syncer with limits of
its own wait before a gate until they are let into the lane.
"""

import asyncio
import heapq
import itertools
import random
from collections import Counter, deque
from collections.abc import Callable, Mapping

from syncer.api.objects import Request
from syncer.engine.workqueue.gate import Gate
from syncer.engine.workqueue.lane import Lane

#: Seconds before the first retry of a request, doubled each time.
FIRST_RETRY = 0.05
#: Seconds that the delay of a retry never exceeds unless told otherwise.
LAST_RETRY = 60.0
#: A retry's delay is its share of the time by chance: the least, and how much more it may be.
LEAST_SHARE, MORE_SHARE = 0.75, 0.5
#: Timers that were overtaken by a change and may wait for their time beside those that count.
SPARE_TIMERS = 100
#: Worker seconds that a lane is charged in advance for a request, until it is known what it took.
EXPECTED_SECONDS = 0.005


class QueueClosed(Exception):
    """There will be no more requests."""


class Queue:
    """The one queue of the engine. ``clock`` gives seconds; ``weights`` gives a lane more than its share of 1."""

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        weights: Mapping[str, float] | None = None,
        spread: Callable[[], float] = random.random,
        added: Callable[[str], None] = lambda cluster: None,
    ) -> None:
        self._clock, self._weights, self._spread = clock, weights or {}, spread
        self._count_added = added
        self._lanes: dict[str, Lane] = {}
        #: By virtual cluster and syncer, for those that have limits.
        self._gates: dict[tuple[str, str], Gate] = {}
        self._order: list[tuple[float, int, Lane]] = []
        self._number = itertools.count()
        self._waiting: dict[Request, float] = {}  # ready, with the time of the first change that is not yet looked at
        self._running: dict[Request, float] = {}
        self._again: dict[Request, tuple[float, bool]] = {}  # changed while running; whether only low
        self._timers: list[tuple[float, int, Request]] = []
        self._due: dict[Request, float] = {}
        self._due_low: set[Request] = set()
        self._failures: dict[Request, int] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._wake: asyncio.TimerHandle | None = None
        self._now_used = 0.0
        self.closed = False

    # -- what the flow does ----------------------------------------------------------------------------------------

    def add(self, request: Request, *, after: float = 0.0, low: bool = False) -> None:
        """Let the request be looked at, now or after so many seconds (the earliest time asked for counts).

        With ``low`` it comes after the others of its virtual cluster, unless it is added without as well.
        """
        if after > 0:
            self._delay(request, self._clock() + after, low=low)
            return
        low = self._was_due(request, low=low)
        now = self._clock()
        if request in self._running:
            since, only_low = self._again.get(request, (now, True))
            self._again[request] = (since, low and only_low)
        elif request not in self._waiting:
            self._count_added(request.cluster)
            self._waiting[request] = now
            self._put(request, low=low)
        elif not low:
            gate = self._gate(request) if self._gates else None
            if gate is None or not gate.move_up(request):
                self._lane(request.cluster).move_up(request)

    async def get(self) -> tuple[Request, float]:
        """Return the next request and the time of the first change behind it.

        :class:`QueueClosed` after :meth:`close`.
        """
        while True:
            if self.closed:
                raise QueueClosed
            request = self._take()
            if request is not None:
                return request, self._start(request)
            getter = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                self._pass_on(getter)
                raise

    def looking(self, request: Request) -> None:
        """Say that a request being worked on is looked at anew: what was added until now needs no further look."""
        self._again.pop(request, None)

    def done(self, request: Request, *, seconds: float = 0.0, writes: int = 0) -> None:
        """End the work on a request that took so many seconds of a worker, and cost so many writes."""
        del self._running[request]
        lane = self._lane(request.cluster)
        lane.used += max(seconds - EXPECTED_SECONDS, -EXPECTED_SECONDS) / lane.weight
        gate = self._gate(request) if self._gates else None
        if gate is not None:
            gate.leave(writes, self._clock())
        again = self._again.pop(request, None)
        if again is not None:
            self._waiting[request], low = again
            self._put(request, low=self._was_due(request, low=low))
        if gate is not None:
            self._admit(gate)

    def retry(
        self, request: Request, *, at_least: float = 0.0, at_most: float = LAST_RETRY, at_once: bool = False
    ) -> float:
        """Let the request be looked at again, at once or after an exponential delay; gives the seconds."""
        failures = self._failures.get(request, 0)
        self._failures[request] = failures + 1
        if at_once:
            self.add(request)
            return 0.0
        grown: float = FIRST_RETRY * 2 ** min(failures, 30)
        delay = max(self.around(min(grown, at_most / (LEAST_SHARE + MORE_SHARE))), at_least)
        self.add(request, after=delay, low=True)
        return delay

    def around(self, seconds: float) -> float:
        """About so many seconds, so that what began together does not go on together."""
        return seconds * (LEAST_SHARE + MORE_SHARE * self._spread())

    def forget(self, request: Request) -> None:
        """Take it that the request went well: the next retry begins with the short delay again."""
        self._failures.pop(request, None)

    def limit(self, cluster: str, syncer: str, *, concurrency: int = 0, writes_per_second: float = 0.0) -> None:
        """Hand out no more requests of a syncer at a time, and none while it has cost too many writes. 0: no limit."""
        under_way = sum((one.cluster, one.syncer) == (cluster, syncer) for one in (*self._waiting, *self._running))
        self._gates[cluster, syncer] = Gate(
            cluster,
            concurrency=concurrency,
            writes_per_second=writes_per_second,
            inside=under_way,
            now=self._clock(),
        )

    def drop(self, cluster: str, syncer: str) -> None:
        """Forget the delays, the failures and the limits of a syncer's requests: it has stopped."""
        gate = self._gates.pop((cluster, syncer), None)
        if gate is not None:
            self._admit(gate, all_of_them=True)
        for known in (self._due, self._failures):
            for request in [one for one in known if (one.cluster, one.syncer) == (cluster, syncer)]:
                del known[request]
                self._due_low.discard(request)

    def failures(self, request: Request) -> int:
        """How often in a row the request has failed."""
        return self._failures.get(request, 0)

    def pause(self, cluster: str) -> None:
        """Hand out no request of a virtual cluster until it is resumed; they are kept."""
        self._lane(cluster).paused = True

    def resume(self, cluster: str) -> None:
        """Hand out the requests of a virtual cluster again."""
        lane = self._lane(cluster)
        lane.paused = False
        self._offer(lane)

    def close(self) -> None:
        """Hand out nothing any more; those who wait are told."""
        self.closed = True
        for timer in (self._wake, *(gate.timer for gate in self._gates.values())):
            if timer:
                timer.cancel()
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)

    # -- what is asked about it ------------------------------------------------------------------------------------

    def depth(self) -> int:
        """How many requests are ready and not yet worked on."""
        return len(self._waiting)

    def depths(self) -> Mapping[str, int]:
        """Return the same by virtual cluster; may be called on any thread."""
        depths = Counter({cluster: len(lane.ready) + len(lane.low) for cluster, lane in list(self._lanes.items())})
        for gate in list(self._gates.values()):
            depths[gate.cluster] += len(gate)
        return depths

    def running(self) -> Mapping[Request, float]:
        """Return the requests being worked on, each with the time when that began."""
        return self._running

    def delayed(self) -> Mapping[Request, float]:
        """Return the requests that wait for a time, each with that time."""
        return self._due

    def holds(self, request: Request) -> bool:
        """Return True if a request is ready or being worked on; not one that waits for its time."""
        return request in self._waiting or request in self._running

    def is_idle(self) -> bool:
        """Return True if nothing is ready and nothing is worked on."""
        return not self._waiting and not self._running

    # -- inside ----------------------------------------------------------------------------------------------------

    def _lane(self, cluster: str) -> Lane:
        lane = self._lanes.get(cluster)
        if lane is None:
            lane = self._lanes[cluster] = Lane(self._weights.get(cluster, 1.0), used=self._now_used)
        return lane

    def _gate(self, request: Request) -> Gate | None:
        return self._gates.get((request.cluster, request.syncer))

    def _put(self, request: Request, *, low: bool) -> None:
        """Let a request wait in its lane, or before the gate to it."""
        gate = self._gate(request) if self._gates else None
        if gate is not None:
            gate.put(request, low=low)
            self._admit(gate)
            return
        lane = self._lane(request.cluster)
        lane.put(request, low=low)
        self._offer(lane)

    def _admit(self, gate: Gate, *, all_of_them: bool = False) -> None:
        """Let in what may be let in now, and come back when more may."""
        now, lane = self._clock(), self._lane(gate.cluster)
        while admitted := gate.admit(now, all_of_them=all_of_them):
            lane.put(admitted[0], low=admitted[1])
            self._offer(lane)
        if gate.timer:
            gate.timer.cancel()
            gate.timer = None
        if len(gate) and gate.opens > now and not self.closed:
            gate.timer = asyncio.get_running_loop().call_later(gate.opens - now, self._admit, gate)

    def _offer(self, lane: Lane) -> None:
        """Put a lane with something ready into the order, and wake somebody who waits for it."""
        if lane.paused or not (lane.ready or lane.low):
            return
        if not lane.listed:
            lane.listed = True
            lane.used = max(lane.used, self._now_used)
            heapq.heappush(self._order, (lane.used, next(self._number), lane))
        self._wake_one()

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _pass_on(self, getter: "asyncio.Future[None]") -> None:
        """A waiter was cancelled: if it had been woken, wake another in its place."""
        if getter.done() and not getter.cancelled():
            self._wake_one()

    def _take(self) -> Request | None:
        while self._order:
            used, _, lane = heapq.heappop(self._order)
            lane.listed = False
            if lane.paused or not (lane.ready or lane.low):
                continue
            if lane.used > used:
                lane.listed = True
                heapq.heappush(self._order, (lane.used, next(self._number), lane))
                continue
            self._now_used = max(self._now_used, used)
            request = lane.next()
            lane.used += EXPECTED_SECONDS / lane.weight
            self._offer(lane)
            return request
        return None

    def _start(self, request: Request) -> float:
        changed = self._waiting.pop(request)
        self._running[request] = self._clock()
        return changed

    def _delay(self, request: Request, due: float, *, low: bool) -> None:
        if request in self._waiting:
            return
        known = self._due.get(request)
        if low and (known is None or request in self._due_low):
            self._due_low.add(request)
        else:
            self._due_low.discard(request)
        if known is not None and known <= due:
            return
        self._due[request] = due
        heapq.heappush(self._timers, (due, next(self._number), request))
        if len(self._timers) > 2 * len(self._due) + SPARE_TIMERS:
            self._timers = [(due, next(self._number), each) for each, due in self._due.items()]
            heapq.heapify(self._timers)
        self._set_timer()

    def _was_due(self, request: Request, *, low: bool) -> bool:
        """It is looked at now, and not later again; whether it is of low priority both now and then."""
        due, due_low = self._due.pop(request, None), request in self._due_low
        self._due_low.discard(request)
        return low and (due is None or due_low)

    def _set_timer(self) -> None:
        if self._wake:
            self._wake.cancel()
            self._wake = None
        if self._timers and not self.closed:
            delay = max(self._timers[0][0] - self._clock(), 0.0)
            self._wake = asyncio.get_running_loop().call_later(delay, self._timers_due)

    def _timers_due(self) -> None:
        now = self._clock()
        while self._timers and self._timers[0][0] <= now:
            due, _, request = heapq.heappop(self._timers)
            if self._due.get(request) == due:
                self.add(request, low=request in self._due_low)
        self._set_timer()
