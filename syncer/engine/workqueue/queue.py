"""The engine's queue: like client-go's rate limiting queue, a delaying queue that remembers failures."""

import random
from collections.abc import Callable, Mapping

from syncer.api.objects import Request
from syncer.engine.workqueue.delaying import DelayingQueue

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
        spread: Callable[[], float] = random.random,
        added: Callable[[str], None] = lambda cluster: None,
    ) -> None:
        super().__init__(clock=clock, weights=weights, added=added)
        self._spread = spread
        self._failures: dict[Request, int] = {}

    def retry(
        self, request: Request, *, at_least: float = 0.0, at_most: float = LAST_RETRY, at_once: bool = False
    ) -> float:
        """Queue a failed request again, at once or after an exponential delay.

        Return the delay in seconds.
        """
        failures = self._failures.get(request, 0)
        self._failures[request] = failures + 1
        if at_once:
            self.add(request)
            return 0.0
        grown: float = FIRST_RETRY * 2 ** min(failures, 30)
        delay = max(self.around(min(grown, at_most / JITTER[1])), at_least)
        self.add(request, after=delay, low=True)
        return delay

    def around(self, seconds: float) -> float:
        """Return about so many seconds, randomly varied, so that simultaneous failures don't retry
        together.
        """
        least, most = JITTER
        return seconds * (least + (most - least) * self._spread())

    def forget(self, request: Request) -> None:
        """Forget the failures of a request that succeeded: its next retry begins with the short
        delay again.
        """
        self._failures.pop(request, None)

    def drop(self, cluster: str, syncer: str) -> None:
        """Forget the limits, the delays and the failures of a syncer that has stopped."""
        super().drop(cluster, syncer)
        for request in [one for one in self._failures if (one.cluster, one.syncer) == (cluster, syncer)]:
            del self._failures[request]

    def failures(self, request: Request) -> int:
        """Return the number of consecutive failures of a request."""
        return self._failures.get(request, 0)
