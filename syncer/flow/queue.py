"""Step 3: requests that need a look, each once, delayed where told to, and fair between virtual clusters.

A request is never in two workers; one that is added while it is worked on is worked on again. Each virtual cluster has
a lane. The next request is taken from the lane that has used the least worker time for its weight (start-time fair
queueing), so a tenant that floods the queue, or whose requests are slow, delays itself. Retries wait in the same lane.
"""

import asyncio
import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from syncer.api.objects import Request

#: Seconds before the first retry of a request, doubled each time.
FIRST_RETRY = 0.05
#: Seconds beyond which the delay of a retry does not grow.
LAST_RETRY = 60.0
#: Timers that were overtaken by a change and may wait for their time beside those that count.
SPARE_TIMERS = 100
#: Worker seconds that a lane is charged in advance for a request, until it is known what it took.
EXPECTED_SECONDS = 0.005


class QueueClosed(Exception):
    """There will be no more requests."""


@dataclass(slots=True)
class _Lane:
    """The requests of one virtual cluster."""

    weight: float
    ready: deque[Request] = field(default_factory=deque)
    used: float = 0.0
    paused: bool = False
    listed: bool = False


class Queue:
    """The one queue of the engine. ``clock`` gives seconds; ``weights`` gives a lane more than its share of 1."""

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        weights: Mapping[str, float] | None = None,
        spread: Callable[[], float] = random.random,
        added: Callable[[], None] = lambda: None,
    ) -> None:
        self._clock, self._weights, self._spread = clock, weights or {}, spread
        self._count_added = added
        self._lanes: dict[str, _Lane] = {}
        self._order: list[tuple[float, int, _Lane]] = []
        self._number = itertools.count()
        self._waiting: dict[Request, float] = {}  # ready, with the time of the first change that is not yet looked at
        self._running: dict[Request, float] = {}
        self._again: dict[Request, float] = {}  # changed while running
        self._timers: list[tuple[float, int, Request]] = []
        self._due: dict[Request, float] = {}
        self._failures: dict[Request, int] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._wake: asyncio.TimerHandle | None = None
        self._now_used = 0.0
        self.closed = False

    # -- what the flow does ----------------------------------------------------------------------------------------

    def add(self, request: Request, *, after: float = 0.0) -> None:
        """Let the request be looked at, now or after so many seconds (the earliest time asked for counts)."""
        if after > 0:
            self._delay(request, self._clock() + after)
            return
        self._due.pop(request, None)
        now = self._clock()
        if request in self._running:
            self._again.setdefault(request, now)
        elif request not in self._waiting:
            self._count_added()
            self._waiting[request] = now
            self._lane(request.cluster).ready.append(request)
            self._offer(self._lane(request.cluster))

    async def get(self) -> tuple[Request, float]:
        """The next request and the time of the first change behind it; :class:`QueueClosed` after :meth:`close`."""
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

    def done(self, request: Request, *, seconds: float = 0.0) -> None:
        """End the work on a request that took so many seconds of a worker."""
        del self._running[request]
        lane = self._lane(request.cluster)
        lane.used += max(seconds - EXPECTED_SECONDS, -EXPECTED_SECONDS) / lane.weight
        changed = self._again.pop(request, None)
        if changed is not None:
            self._due.pop(request, None)  # it is looked at now; no need to do so again later
            self._waiting[request] = changed
            lane.ready.append(request)
            self._offer(lane)

    def retry(self, request: Request, *, at_least: float = 0.0, at_once: bool = False) -> float:
        """Let the request be looked at again, at once or after an exponential delay; gives the seconds."""
        failures = self._failures.get(request, 0)
        self._failures[request] = failures + 1
        grown: float = FIRST_RETRY * 2 ** min(failures, 30)
        delay = 0.0 if at_once else max(min(grown, LAST_RETRY) * (0.75 + self._spread() / 2), at_least)
        self.add(request, after=delay)
        return delay

    def forget(self, request: Request) -> None:
        """Take it that the request went well: the next retry begins with the short delay again."""
        self._failures.pop(request, None)

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
        if self._wake:
            self._wake.cancel()
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)

    # -- what is asked about it ------------------------------------------------------------------------------------

    def depth(self) -> int:
        """How many requests are ready and not yet worked on."""
        return len(self._waiting)

    def running(self) -> Mapping[Request, float]:
        """The requests being worked on, each with the time when that began."""
        return self._running

    def delayed(self) -> Mapping[Request, float]:
        """The requests that wait for a time, each with that time."""
        return self._due

    def is_idle(self) -> bool:
        """Whether nothing is ready and nothing is worked on."""
        return not self._waiting and not self._running

    # -- inside ----------------------------------------------------------------------------------------------------

    def _lane(self, cluster: str) -> _Lane:
        lane = self._lanes.get(cluster)
        if lane is None:
            lane = self._lanes[cluster] = _Lane(self._weights.get(cluster, 1.0), used=self._now_used)
        return lane

    def _offer(self, lane: _Lane) -> None:
        """Put a lane with something ready into the order, and wake somebody who waits for it."""
        if lane.paused or not lane.ready:
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
            if lane.paused or not lane.ready:
                continue
            if lane.used > used:
                lane.listed = True
                heapq.heappush(self._order, (lane.used, next(self._number), lane))
                continue
            self._now_used = max(self._now_used, used)
            request = lane.ready.popleft()
            lane.used += EXPECTED_SECONDS / lane.weight
            self._offer(lane)
            return request
        return None

    def _start(self, request: Request) -> float:
        changed = self._waiting.pop(request)
        self._running[request] = self._clock()
        return changed

    def _delay(self, request: Request, due: float) -> None:
        known = self._due.get(request)
        if request in self._waiting or (known is not None and known <= due):
            return
        self._due[request] = due
        heapq.heappush(self._timers, (due, next(self._number), request))
        if len(self._timers) > 2 * len(self._due) + SPARE_TIMERS:
            self._timers = [(due, next(self._number), each) for each, due in self._due.items()]
            heapq.heapify(self._timers)
        self._set_timer()

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
                self.add(request)
        self._set_timer()
