"""The queue of the engine: client-go's rate limiting queue, which is a delaying queue with memory of failures."""

import random
from collections.abc import Callable, Mapping

from syncer.api.objects import Request
from syncer.engine.workqueue.delaying import DelayingQueue

#: Seconds before the first retry of a request, doubled each time.
FIRST_RETRY = 0.05
#: Seconds that the delay of a retry never exceeds unless told otherwise.
LAST_RETRY = 60.0
#: A retry's delay is its share of the time by chance: the least, and how much more it may be.
LEAST_SHARE, MORE_SHARE = 0.75, 0.5


class Queue(DelayingQueue):
    """The one queue of the engine: requests that failed wait exponentially longer, with low priority."""

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        weights: Mapping[str, float] | None = None,
        spread: Callable[[], float] = random.random,
        added: Callable[[str], None] = lambda cluster: None,
    ) -> None:
        super().__init__(clock=clock, weights=weights, added=added)
        self._spread = spread
        self._failures: dict[Request, int] = {}

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

    def drop(self, cluster: str, syncer: str) -> None:
        """Forget the limits, the delays and the failures of a syncer that has stopped."""
        super().drop(cluster, syncer)
        for request in [one for one in self._failures if (one.cluster, one.syncer) == (cluster, syncer)]:
            del self._failures[request]

    def failures(self, request: Request) -> int:
        """How often in a row the request has failed."""
        return self._failures.get(request, 0)
