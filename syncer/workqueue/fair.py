"""The fair queue: each request once, and fair between virtual clusters.

A request is never in two workers; a request that is added while it is worked on is handed out again
afterwards. Each virtual cluster has a lane. The next request is taken from the lane that has used
the least worker time for its weight (start-time fair queueing), so a tenant that floods the queue,
or sends slow requests, delays others by no more than its requests in work. Requests of low
priority wait in the same lane, after its others; one in every few requests is of low priority
nevertheless, so that no flood starves them. Requests of a syncer with its own limits wait at a gate
before they enter the lane.

**Workers in use.** A worker that waits for a slow API server is in use, too. Each lane has a share
of the workers by its weight among the lanes that aren't paused, at least one worker. Within its
share it may take any free worker. Beyond it, only while more than a reserve is free: a quarter of
the workers, or three quarters if the requests of the lane are slow. So a lane that becomes busy
finds workers, even while all others wait for a server that doesn't answer. The only virtual
cluster of a daemon has all workers as its share.

**Time of the event loop.** All workers share one thread, and each may take a request in a turn of
the event loop, so requests that compute for long would delay everybody by the sum of them. When
those of a turn have taken some milliseconds together, none is handed out until the next turn, after
other tasks have run. So a change that wakes many objects delays a request of another lane by a few
of them, not by one for each worker.

**Memory in use.** A worker holds the objects of its request until the API server has answered,
several times their JSON. A large request of a lane without room for it in its memory is put aside
until there is some; others of the lane go on.

**Cost.** Lanes with ready requests are in a heap, so a request costs O(log n) for n of them,
whatever the number of idle lanes. Deficit round robin would be O(1), but only with a quantum as
long as the longest request, and the cost of a request is known only afterwards; and a lane that
becomes busy waits there for the quanta of all others. Here it is the next one, and no lane is ahead
of another by more than its requests in work. Lanes that may not take a worker are kept outside of
the heap. Each has a request in work, so there are at most as many as workers, and they are only
looked through while more than the reserve is free.
"""

import asyncio
import heapq
import itertools
import math
from collections import Counter, deque
from collections.abc import Callable, Mapping

from syncer.api.objects import SyncRequest
from syncer.byte_budget import ByteBudget
from syncer.workqueue.gate import Gate
from syncer.workqueue.lane import Lane

#: Worker seconds that a lane is charged in advance for a request, until its real cost is known.
EXPECTED_SECONDS = 0.005
#: A lane that has used up its share gets another worker while more than this part of them is free.
RESERVE = 0.25
#: The same for a lane with slow requests.
SLOW_RESERVE = 0.75
#: Seconds of a turn of the event loop, since its first request was handed out, after which no
#: further one is until the next turn.
TURN_SECONDS = 0.005


class QueueClosed(Exception):
    """The queue is closed."""


def uncounted(_cluster: str) -> None:
    """Count no added request."""


class FairQueue:
    """The requests that are ready.

    ``clock`` returns seconds; ``weights`` gives a lane another weight than 1, above 0. ``workers``
    is the number of requests that are worked on at a time; without it, a lane may have any number
    in work.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        weights: Mapping[str, float] | None = None,
        workers: float = math.inf,
        added: Callable[[str], None] = uncounted,
    ) -> None:
        self._clock = clock
        self._weights = {} if weights is None else weights
        self._workers = workers
        self._count_added = added
        self._lanes: dict[str, Lane] = {}
        #: By virtual cluster and syncer, for those with limits.
        self._gates: dict[tuple[str, str], Gate] = {}
        self._order: list[tuple[float, int, Lane]] = []
        #: Lanes with ready requests that may not take a worker now.
        self._limited: dict[Lane, None] = {}
        #: The weight of all lanes that aren't paused.
        self._weight = 0.0
        self._number = itertools.count()
        #: Ready requests, with the time of the first unprocessed change.
        self._waiting: dict[SyncRequest, float] = {}
        self._running: dict[SyncRequest, float] = {}
        #: The bytes of the objects of running requests that hold some, and of those that are put
        #: aside when they end.
        self._weighed: dict[SyncRequest, int] = {}
        self._too_heavy: dict[SyncRequest, int] = {}
        #: Requests that changed while they were worked on: since when, and whether only with low
        #: priority.
        self._again: dict[SyncRequest, tuple[float, bool]] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        #: Waiters that have been woken, and haven't looked for a request since.
        self._woken = 0
        self._now_used = 0.0
        #: When this turn of the event loop hands out no more; infinite before its first request.
        self._turn_ends = math.inf
        self.closed = False

    # -- for workers -------------------------------------------------------------------------------

    def add(self, request: SyncRequest, *, low: bool = False) -> None:
        """Queue the request.

        With ``low`` it comes after the others of its virtual cluster, unless it is also added
        without ``low``.
        """
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

    async def get(self) -> tuple[SyncRequest, float]:
        """Return the next request, and the time of the first change behind it.

        Raises:
            QueueClosed: The queue is closed.
        """
        was_woken = False
        while True:
            if self.closed:
                raise QueueClosed
            if self._clock() >= self._turn_ends:
                await self._next_turn(was_woken)
                continue
            if was_woken:
                self._woken -= 1
            taken = self._take()
            if taken is not None:
                return taken
            getter = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                self._pass_on(getter)
                raise
            was_woken = True

    def absorb(self, request: SyncRequest) -> None:
        """Let the reconcile that begins now cover the additions of its request up to now."""
        if self._again:
            self._again.pop(request, None)

    def may_hold(self, request: SyncRequest, size: int) -> bool:
        """Return True if a running request may take so many bytes of memory.

        Otherwise it must end now, and is handed out again when there is room for it.
        """
        lane = self._lanes.get(request.cluster)
        if lane is None or request not in self._running:
            return True
        had = self._weighed.get(request, 0)
        if not lane.has_room(size, had):
            self._too_heavy[request] = size
            return False
        lane.memory.give_back(had)
        lane.memory.take(size)
        self._weighed[request] = size
        if lane.let_in == request:
            lane.let_in = None
        self._let_in(lane)
        return True

    def done(self, request: SyncRequest, *, seconds: float = 0.0, writes: int = 0) -> None:
        """Finish a request that took so many seconds of a worker and so many writes."""
        del self._running[request]
        weighed = 0
        if self._weighed:
            weighed = self._weighed.pop(request, 0)
        too_heavy = 0
        if self._too_heavy:
            too_heavy = self._too_heavy.pop(request, 0)
        lane = self._lanes.get(request.cluster)
        if lane is not None:
            if weighed:
                lane.memory.give_back(weighed)
            lane.ended(seconds, charged=EXPECTED_SECONDS)
            if lane.let_in == request:
                lane.let_in = None
            if too_heavy:
                self._waiting[request] = self._clock()
                lane.heavy.append((request, too_heavy))
            if lane.heavy:
                self._let_in(lane)
        if self._limited:
            self._release(lane)
        if too_heavy:
            return  # it is still within the limits of its syncer
        gate = self._gate(request) if self._gates else None
        if gate is not None:
            gate.leave(writes, self._clock())
        again = self._again.pop(request, None) if self._again else None
        if again is not None:
            self._waiting[request], low = again
            self._put(request, low=low)
        if gate is not None:
            self._admit(gate)

    # -- virtual clusters and syncers --------------------------------------------------------------

    def limit(
        self,
        cluster: str,
        syncer: str,
        *,
        concurrency: int = 0,
        writes_per_second: float = 0.0,
    ) -> None:
        """Limit a syncer's concurrent requests, and its writes per second. 0 is no limit."""
        inside = 0
        for request in (*self._waiting, *self._running):
            if request.cluster == cluster and request.syncer == syncer:
                inside += 1
        self._gates[cluster, syncer] = Gate(
            cluster,
            concurrency=concurrency,
            writes_per_second=writes_per_second,
            inside=inside,
            now=self._clock(),
        )

    def drop(self, cluster: str, syncer: str) -> None:
        """Forget the limits of a syncer that has stopped."""
        gate = self._gates.pop((cluster, syncer), None)
        if gate is not None:
            self._admit(gate, all_of_them=True)

    def join(self, cluster: str, *, weight: float, memory: ByteBudget | None = None) -> None:
        """Give a virtual cluster its share of the workers, before it has any request.

        ``weight`` is above 0. ``memory`` is for the objects in work, None without a limit.
        """
        lane = self._lane(cluster)
        if memory is not None:
            memory.take(lane.memory.used)
            lane.memory = memory
        if not lane.paused:
            self._weight += weight - lane.weight
        lane.weight = weight

    def pause(self, cluster: str, why: str = "") -> None:
        """Hand out no requests of a virtual cluster until it is resumed.

        If it is paused for several reasons, it must be resumed for each of them.
        """
        lane = self._lane(cluster)
        lane.reasons.add(why)
        if lane.paused:
            return
        lane.paused = True
        self._weight -= lane.weight
        if lane in self._limited:
            del self._limited[lane]
            lane.listed = False

    def resume(self, cluster: str, why: str = "") -> None:
        """Hand out the requests of a virtual cluster again.

        If it is paused for other reasons, too, it stays paused.
        """
        lane = self._lane(cluster)
        lane.reasons.discard(why)
        if lane.reasons:
            return
        if lane.paused:
            lane.paused = False
            self._weight += lane.weight
        if not lane.is_empty:
            self._offer(lane)

    def leave(self, cluster: str) -> None:
        """Forget a virtual cluster that was removed: its requests and its limits.

        Running requests are finished as usual, and not handed out again.
        """
        lane = self._lanes.pop(cluster, None)
        if lane is not None:
            lane.ready.clear()
            lane.low.clear()
            lane.memory.give_back(lane.memory.used)
            self._limited.pop(lane, None)
            if not lane.paused:
                self._weight -= lane.weight

        for key in [key for key in self._gates if key[0] == cluster]:
            gate = self._gates.pop(key)
            if gate.timer:
                gate.timer.cancel()
        for requests in (self._waiting, self._again):
            for request in [one for one in requests if one.cluster == cluster]:
                del requests[request]

    def close(self) -> None:
        """Hand out no more requests, and wake the waiting workers."""
        self.closed = True
        for gate in self._gates.values():
            if gate.timer:
                gate.timer.cancel()
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)

    # -- state -------------------------------------------------------------------------------------

    def depth(self) -> int:
        """Return the number of ready requests."""
        return len(self._waiting)

    def depths(self) -> Mapping[str, int]:
        """Return the number of ready requests by virtual cluster. Thread-safe."""
        depths = Counter({cluster: lane.depth for cluster, lane in list(self._lanes.items())})
        for gate in list(self._gates.values()):
            depths[gate.cluster] += len(gate)
        return depths

    def running(self) -> Mapping[SyncRequest, float]:
        """Return the running requests, each with its start time."""
        return self._running

    def holds(self, request: SyncRequest) -> bool:
        """Return True if a request is ready or running, but not if it is only delayed."""
        return request in self._waiting or request in self._running

    def held(self) -> list[SyncRequest]:
        """Return the requests that are ready or running, but not those that are only delayed."""
        return [*self._waiting, *self._running]

    def is_idle(self) -> bool:
        """Return True if no request is ready or running."""
        return not self._waiting and not self._running

    # -- inside ------------------------------------------------------------------------------------

    def _lane(self, cluster: str) -> Lane:
        lane = self._lanes.get(cluster)
        if lane is None:
            # A cluster that has left and come back may have running requests.
            running = [one for one in self._running if one.cluster == cluster]
            lane = Lane(self._weights.get(cluster, 1.0), used=self._now_used, running=len(running))
            lane.memory.take(sum(self._weighed.get(one, 0) for one in running))
            self._lanes[cluster] = lane
            self._weight += lane.weight
        return lane

    def _gate(self, request: SyncRequest) -> Gate | None:
        return self._gates.get((request.cluster, request.syncer))

    def _put(self, request: SyncRequest, *, low: bool) -> None:
        """Put a request into its lane, or to the gate before it."""
        gate = self._gate(request) if self._gates else None
        if gate is not None:
            gate.put(request, low=low)
            self._admit(gate)
            return
        lane = self._lane(request.cluster)
        lane.put(request, low=low)
        self._offer(lane)

    def _admit(self, gate: Gate, *, all_of_them: bool = False) -> None:
        """Admit the requests that may enter now, and set a timer for the next ones."""
        now = self._clock()
        lane = self._lane(gate.cluster)
        while admitted := gate.admit(now, all_of_them=all_of_them):
            lane.put(admitted[0], low=admitted[1])
            self._offer(lane)
        if gate.timer:
            gate.timer.cancel()
            gate.timer = None
        if len(gate) and gate.opens > now and not self.closed:
            gate.timer = asyncio.get_running_loop().call_later(gate.opens - now, self._admit, gate)

    def _offer(self, lane: Lane) -> None:
        """List a lane with a ready request, and wake a waiting worker."""
        if lane.paused:
            return
        if not lane.listed:
            lane.used = max(lane.used, self._now_used)
            self._list(lane)
        if lane not in self._limited:
            self._wake_one()

    def _list(self, lane: Lane) -> None:
        """Put a lane into the order, or keep it outside if it may not take a worker."""
        lane.listed = True
        if self._may_take(lane):
            heapq.heappush(self._order, (lane.used, next(self._number), lane))
        else:
            self._limited[lane] = None

    def _may_take(self, lane: Lane) -> bool:
        """Return True if a lane may take a worker.

        It uses less than its share, or more workers are free than the reserve.
        """
        if lane.running * self._weight < self._workers * lane.weight:
            return True
        reserve = SLOW_RESERVE if lane.is_slow else RESERVE
        return self._workers - len(self._running) > self._workers * reserve

    def _release(self, ended: Lane | None) -> None:
        """Put lanes that may take a worker back into the order, after a request has ended.

        These are the lane of the request, and of the others the one that has used the least.
        """
        if ended in self._limited and self._may_take(ended):
            self._put_back(ended)
        if self._workers - len(self._running) > self._workers * RESERVE:
            others = [lane for lane in self._limited if self._may_take(lane)]
            if others:
                self._put_back(min(others, key=lambda lane: lane.used))

    def _put_back(self, lane: Lane) -> None:
        del self._limited[lane]
        heapq.heappush(self._order, (lane.used, next(self._number), lane))
        self._wake_one()

    def _let_in(self, lane: Lane) -> None:
        """Make the first request ready that waits for memory, if there is room for it.

        The one before it must have its objects first.
        """
        if lane.heavy and lane.let_in is None and lane.has_room(lane.heavy[0][1]):
            lane.let_in, _ = lane.heavy.popleft()
            lane.ready.appendleft(lane.let_in)
            self._offer(lane)

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                self._woken += 1
                return

    def _pass_on(self, getter: "asyncio.Future[None]") -> None:
        """Handle a cancelled waiter: if it had been woken, wake another one instead."""
        if getter.done() and not getter.cancelled():
            self._woken -= 1
            self._wake_one()

    async def _next_turn(self, was_woken: bool) -> None:
        """Let other tasks run; if this is cancelled, another waiter is woken instead."""
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            if was_woken:
                self._woken -= 1
            self._wake_one()
            raise

    def _end_turn(self) -> None:
        self._turn_ends = math.inf

    def _take(self) -> tuple[SyncRequest, float] | None:
        """Start the next request, and return it with the time of its first change.

        Return None if no lane has one that may be started.
        """
        while self._order:
            used, _, lane = heapq.heappop(self._order)
            lane.listed = False
            if lane.paused or lane.is_empty:
                continue
            if lane.used > used or not self._may_take(lane):
                self._list(lane)
                continue
            self._now_used = max(self._now_used, used)
            request = lane.next()
            lane.used += EXPECTED_SECONDS / lane.weight
            lane.running += 1
            now = self._clock()
            self._running[request] = now
            if self._turn_ends == math.inf:
                self._turn_ends = now + TURN_SECONDS
                asyncio.get_running_loop().call_soon(self._end_turn)
            changed = self._waiting.pop(request)
            if not lane.is_empty:
                self._list(lane)
            if self._order and not self._woken:
                self._wake_one()  # a waiter that was woken earlier wakes the next one itself
            return request, changed
        return None
