"""The engine's queue: like client-go's rate limiting queue, a delaying queue that remembers
failures.

The retries of a syncer in a virtual cluster have a budget: if all of its objects fail, however
many, a bounded number a second is tried again (:mod:`syncer.workqueue.retries`).
"""

import asyncio
import math
import random
from collections.abc import Callable, Iterable, Mapping

from syncer.api.objects import SyncRequest
from syncer.workqueue.delaying import DelayingQueue
from syncer.workqueue.retries import MOST_FAILURES, PATIENCE, RETRIES_PER_SECOND, Retries

#: Seconds before the first retry of a request, doubled for each further one.
FIRST_RETRY = 0.05
#: Default maximum delay of a retry, in seconds.
LAST_RETRY = 60.0
#: A delay is multiplied by a random factor of this range.
JITTER = (0.75, 1.25)


class Queue(DelayingQueue):
    """The engine's queue: failed requests wait exponentially longer, with low priority."""

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        weights: Mapping[str, float] | None = None,
        workers: float = math.inf,
        spread: Callable[[], float] = random.random,
        added: Callable[[str], None] = lambda cluster: None,
    ) -> None:
        super().__init__(clock=clock, weights=weights, workers=workers, added=added)
        self._spread = spread
        self._failures: dict[SyncRequest, int] = {}
        #: By virtual cluster and syncer, for those with retries.
        self._retries: dict[tuple[str, str], Retries] = {}

    def retry(
        self,
        request: SyncRequest,
        *,
        at_least: float = 0.0,
        at_most: float = LAST_RETRY,
        at_once: bool = False,
    ) -> float:
        """Queue a failed request again, at once or after an exponential delay.

        Return the delay in seconds; the budget of its syncer may prolong it.
        """
        failures = self._failures.get(request, 0)
        self._failures[request] = failures + 1
        self._failed(request)
        if at_once:
            self.add(request)
            return 0.0
        delay = max(self.backoff(failures, at_most=at_most), at_least)
        self.add(request, after=delay, low=True)
        return delay

    def backoff(self, failures: int, *, at_most: float = LAST_RETRY) -> float:
        """Return the seconds before another retry after so many failed ones, randomly varied."""
        grown: float = FIRST_RETRY * 2 ** min(failures, 30)
        return self.around(min(grown, at_most / JITTER[1]))

    def park(self, request: SyncRequest, seconds: float) -> None:
        """Queue a failed request again after about so many seconds; that doesn't count as one more
        failure.
        """
        self._failed(request)
        self.add(request, after=self.around(seconds), low=True)

    def around(self, seconds: float) -> float:
        """Return about so many seconds, randomly varied, so that simultaneous failures don't retry
        together.
        """
        least, most = JITTER
        return seconds * (least + (most - least) * self._spread())

    def forget(self, request: SyncRequest) -> None:
        """Forget the failures of a request that succeeded: its next retry begins with the short
        delay again.
        """
        self._failures.pop(request, None)
        if self._retries:
            retries = self._retries.get((request.cluster, request.syncer))
            if retries is not None and retries.succeeded(request):
                self._next_retries(retries)

    def drop(self, cluster: str, syncer: str) -> None:
        """Forget the limits, the delays and the failures of a syncer that has stopped."""
        super().drop(cluster, syncer)
        self._forget_retries([(cluster, syncer)])
        for request in [one for one in self._failures if (one.cluster, one.syncer) == (cluster, syncer)]:
            del self._failures[request]

    def leave(self, cluster: str) -> None:
        """Forget a virtual cluster that has gone, with the failures of its requests too."""
        super().leave(cluster)
        self._forget_retries([place for place in self._retries if place[0] == cluster])
        for request in [one for one in self._failures if one.cluster == cluster]:
            del self._failures[request]

    def close(self) -> None:
        """Hand out no more requests, and wake the waiting workers."""
        super().close()
        self._forget_retries(list(self._retries))

    def failures(self, request: SyncRequest) -> int:
        """Return the number of consecutive failures of a request."""
        return self._failures.get(request, 0)

    # -- the budget of retries ---------------------------------------------------------------------

    def _failed(self, request: SyncRequest) -> None:
        retries = self._retries.get((request.cluster, request.syncer))
        if retries is not None:
            retries.failed(request)

    def _delay_over(self, request: SyncRequest) -> None:
        """Let a retry wait for its budget; other delayed requests are ready."""
        if request not in self._due_low:
            super()._delay_over(request)
            return
        now = self._clock()
        of = (request.cluster, request.syncer)
        retries = self._retries.get(of)
        if retries is None:
            retries = self._retries[of] = Retries(now)
        failures = min(
            self._failures.get(request, MOST_FAILURES),
            MOST_FAILURES,
        )  # a parked one comes last
        self._due[request] = place = now + PATIENCE * failures
        retries.put(place, request, self._due)
        self._next_retries(retries)

    def _next_retries(self, retries: Retries) -> None:
        """Let the retries begin that may, and come back when more may."""
        while (request := retries.next(self._clock(), self._due)) is not None:
            self.add(request, low=request in self._due_low)
        if retries.timer is not None:
            retries.timer.cancel()
            retries.timer = None
        if len(retries) and not self.closed:
            loop = asyncio.get_running_loop()
            retries.timer = loop.call_later(1 / RETRIES_PER_SECOND, self._next_retries, retries)

    def _forget_retries(self, places: Iterable[tuple[str, str]]) -> None:
        for place in places:
            retries = self._retries.pop(place, None)
            if retries is not None and retries.timer is not None:
                retries.timer.cancel()
