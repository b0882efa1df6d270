"""The delaying queue."""

import asyncio
import heapq
import math
from collections.abc import Callable, Mapping

from syncer.api.objects import SyncRequest
from syncer.workqueue.fair import FairQueue, uncounted

#: Obsolete timers that may stay beside the current ones.
SPARE_TIMERS = 100


class DelayingQueue(FairQueue):
    """A queue with delays; the earliest requested time of a request wins."""

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        weights: Mapping[str, float] | None = None,
        workers: float = math.inf,
        added: Callable[[str], None] = uncounted,
    ) -> None:
        super().__init__(clock=clock, weights=weights, workers=workers, added=added)
        self._timers: list[tuple[float, int, SyncRequest]] = []
        self._due: dict[SyncRequest, float] = {}
        self._due_low: set[SyncRequest] = set()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, request: SyncRequest, *, after: float = 0.0, low: bool = False) -> None:
        """Queue the request, now or after so many seconds (the earliest requested time wins).

        With ``low`` it comes after the others of its virtual cluster, unless it is also added
        without ``low``.
        """
        if after > 0:
            self._delay(request, self._clock() + after, low=low)
            return
        if self._due and request in self._due:
            low = self._cancel_timer(request, low=low)
        super().add(request, low=low)

    def done(self, request: SyncRequest, *, seconds: float = 0.0, writes: int = 0) -> None:
        """Finish a request that took so many seconds of a worker, and so many writes."""
        if self._again and request in self._again:
            since, low = self._again[request]
            self._again[request] = since, self._cancel_timer(request, low=low)
        super().done(request, seconds=seconds, writes=writes)

    def drop(self, cluster: str, syncer: str) -> None:
        """Forget the limits and the delays of a syncer that has stopped."""
        super().drop(cluster, syncer)
        for request in list(self._due):
            if request.cluster == cluster and request.syncer == syncer:
                del self._due[request]
                self._due_low.discard(request)

    def leave(self, cluster: str) -> None:
        """Forget a virtual cluster that was removed, and its delayed requests."""
        super().leave(cluster)
        for request in list(self._due):
            if request.cluster == cluster:
                del self._due[request]
                self._due_low.discard(request)

    def close(self) -> None:
        """Hand out no more requests, and wake the waiting workers."""
        super().close()
        if self._timer:
            self._timer.cancel()

    def delayed(self) -> Mapping[SyncRequest, float]:
        """Return the delayed requests, each with its time."""
        return self._due

    def _delay(self, request: SyncRequest, due: float, *, low: bool) -> None:
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
            current = {}
            for timer in self._timers:
                due_at, _, timed = timer
                if self._due.get(timed) == due_at:
                    current[timed] = timer
            self._timers = list(current.values())
            heapq.heapify(self._timers)
        self._set_timer()

    def _cancel_timer(self, request: SyncRequest, *, low: bool) -> bool:
        """Remove the timer of a request that is handed out now.

        Return True if the request is of low priority, with ``low`` and by its timer.
        """
        due = self._due.pop(request, None)
        due_low = request in self._due_low
        self._due_low.discard(request)
        return low and (due is None or due_low)

    def _set_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._timers and not self.closed:
            delay = max(self._timers[0][0] - self._clock(), 0.0)
            self._timer = asyncio.get_running_loop().call_later(delay, self._timers_due)

    def _timers_due(self) -> None:
        now = self._clock()
        while self._timers and self._timers[0][0] <= now:
            due, _, request = heapq.heappop(self._timers)
            if self._due.get(request) == due:
                self._delay_over(request)
        self._set_timer()

    def _delay_over(self, request: SyncRequest) -> None:
        """Handle the end of a request's delay."""
        self.add(request, low=request in self._due_low)
