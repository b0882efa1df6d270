"""The engine's queue: a delaying queue that remembers failures, like client-go's.

The retries of a syncer in a virtual cluster have a budget: even if all of its objects fail, only a
limited number per second is retried (:mod:`syncer.workqueue.retries`).
"""

import asyncio
import math
import random
from collections.abc import Callable, Iterable, Mapping

from syncer.api.objects import SyncRequest
from syncer.workqueue.delaying import DelayingQueue
from syncer.workqueue.fair import uncounted
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
        added: Callable[[str], None] = uncounted,
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
        """Return the seconds before the next retry after so many failures, randomly varied."""
        grown: float = FIRST_RETRY * 2 ** min(failures, 30)
        return self.around(min(grown, at_most / JITTER[1]))

    def park(self, request: SyncRequest, seconds: float) -> None:
        """Queue a failed request again after about so many seconds.

        This doesn't count as a further failure.
        """
        self._failed(request)
        self.add(request, after=self.around(seconds), low=True)

    def around(self, seconds: float) -> float:
        """Return about so many seconds, randomly varied.

        So simultaneous failures aren't retried at the same time.
        """
        least, most = JITTER
        return seconds * (least + (most - least) * self._spread())

    def forget(self, request: SyncRequest) -> None:
        """Forget the failures of a request that succeeded.

        Its next retry has the shortest delay again.
        """
        if self._failures:
            self._failures.pop(request, None)
        if self._retries:
            retries = self._retries.get((request.cluster, request.syncer))
            if retries is not None and retries.succeeded(request):
                self._next_retries(retries)

    def drop(self, cluster: str, syncer: str) -> None:
        """Forget the limits, the delays and the failures of a syncer that has stopped."""
        super().drop(cluster, syncer)
        self._forget_retries([(cluster, syncer)])
        for request in list(self._failures):
            if request.cluster == cluster and request.syncer == syncer:
                del self._failures[request]

    def leave(self, cluster: str) -> None:
        """Forget a virtual cluster that was removed, and the failures of its requests."""
        super().leave(cluster)
        self._forget_retries([key for key in self._retries if key[0] == cluster])
        for request in list(self._failures):
            if request.cluster == cluster:
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
        key = (request.cluster, request.syncer)
        retries = self._retries.get(key)
        if retries is None:
            retries = Retries(now)
            self._retries[key] = retries

        # A parked request has no failures, and comes last.
        failures = min(self._failures.get(request, MOST_FAILURES), MOST_FAILURES)
        due = now + PATIENCE * failures
        self._due[request] = due
        retries.put(due, request, self._due)
        self._next_retries(retries)

    def _next_retries(self, retries: Retries) -> None:
        """Queue the retries within the budget, and set a timer for the others."""
        while (request := retries.next(self._clock(), self._due)) is not None:
            self.add(request, low=request in self._due_low)
        if retries.timer is not None:
            retries.timer.cancel()
            retries.timer = None
        if len(retries) and not self.closed:
            loop = asyncio.get_running_loop()
            retries.timer = loop.call_later(1 / RETRIES_PER_SECOND, self._next_retries, retries)

    def _forget_retries(self, keys: Iterable[tuple[str, str]]) -> None:
        for key in keys:
            retries = self._retries.pop(key, None)
            if retries is not None and retries.timer is not None:
                retries.timer.cancel()
