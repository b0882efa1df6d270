"""Workers on a queue in virtual time, whose requests take as long, and fail as often, as their cluster says."""

import asyncio
import contextlib
import statistics
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Mapping

from hack.side_tasks import helped_by
from syncer.api import Key, SyncRequest
from syncer.workqueue.queue import Queue

#: Workers of a daemon by default.
WORKERS = 32


def request(name: str, cluster: str = "vc", syncer: str = "configmaps") -> SyncRequest:
    """Return a request about an object of the shop."""
    return SyncRequest(cluster, syncer, Key("shop", name))


class Scene:
    """A queue with workers.

    ``seconds`` gives the seconds of a cluster's requests, and ``failing`` has clusters whose requests fail. With
    ``endless`` each request comes again when it has ended, so that the cluster is never idle.
    """

    def __init__(self, *, workers: int = WORKERS, endless: bool = False) -> None:
        self.loop = asyncio.get_running_loop()
        self.count, self.endless = workers, endless
        self.queue = Queue(clock=self.loop.time, workers=workers, spread=lambda: 0.5)
        self.seconds: dict[str, Callable[[], float]] = {}
        self.failing: set[str] = set()
        #: Seconds of workers, and requests in work now and at the most, by cluster.
        self.worked: Counter[str] = Counter()
        self.busy: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        #: Seconds from the change to the end of each request that succeeded, by cluster.
        self.latencies: defaultdict[str, list[float]] = defaultdict(list)
        self.tried: Counter[str] = Counter()

    def join(self, *clusters: str, seconds: float | Callable[[], float] = 0.01, weight: float = 1.0) -> None:
        """Add clusters whose requests take so long."""
        for cluster in clusters:
            self.seconds[cluster] = seconds if callable(seconds) else lambda: seconds
            self.queue.join(cluster, weight=weight)

    def flood(self, cluster: str, count: int) -> None:
        """Request so many objects of a cluster."""
        for number in range(count):
            self.queue.add(request(f"n{number}", cluster))

    @contextlib.asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Let the workers work while the block runs."""
        async with helped_by(*(self._work() for _ in range(self.count))):
            yield

    async def _work(self) -> None:
        while True:
            taken, changed = await self.queue.get()
            cluster, begun = taken.cluster, self.loop.time()
            self.busy[cluster] += 1
            self.most[cluster] = max(self.most[cluster], self.busy[cluster])
            self.tried[cluster] += 1
            try:
                await asyncio.sleep(self.seconds[cluster]())
            finally:
                seconds = self.loop.time() - begun
                self.worked[cluster] += seconds  # type: ignore[assignment]
                self.busy[cluster] -= 1
                if cluster in self.failing:
                    self.queue.retry(taken)
                else:
                    self.queue.forget(taken)
                    self.latencies[cluster].append(self.loop.time() - changed)
                    if self.endless:
                        self.queue.add(taken)
                self.queue.done(taken, seconds=seconds, writes=1)

    async def shares(self, seconds: float) -> Mapping[str, float]:
        """Return each cluster's part of the time that workers were in use during so many seconds."""
        before = self.worked.copy()
        async with self.working():
            await asyncio.sleep(seconds)
        used = {cluster: self.worked[cluster] - before[cluster] for cluster in self.seconds}
        return {cluster: each / sum(used.values()) for cluster, each in used.items()}

    def mean(self, *clusters: str) -> float:
        """Return the mean latency of the requests of clusters, in seconds."""
        return statistics.fmean(seconds for cluster in clusters for seconds in self.latencies[cluster])
