"""The writes and the lag of the last hour, minute by minute, for each virtual cluster."""

import asyncio
import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

from syncer.observe.metrics import Metrics, quantile

#: Seconds between two samples.
SAMPLE_SECONDS = 60.0
#: Samples that are kept of a virtual cluster: an hour.
SAMPLES = 60
#: The numbers of a sample: writes, and the median and 99th percentile of the lag.
_WIDTH = 3


class History:
    """The latest samples of the writes and the lag of each virtual cluster.

    ``names`` returns the virtual clusters that there are.
    """

    def __init__(self, metrics: Metrics, names: Callable[[], Iterable[str]]) -> None:
        self._metrics = metrics
        self._names = names
        #: By virtual cluster: the numbers of the samples one after the other, the oldest first.
        self._rings: dict[str, array[float]] = {}
        self._writes: Mapping[str, int] = metrics.writes()
        self._lags: Mapping[str, Sequence[int]] = metrics.lags()

    async def keep(self) -> NoReturn:
        """Take a sample each minute. Run it as a task."""
        while True:
            await asyncio.sleep(SAMPLE_SECONDS)
            # On a thread, as a fleet has ten thousands of series.
            await asyncio.to_thread(self.sample)

    def sample(self) -> None:
        """Add what has happened since the last sample."""
        writes = self._metrics.writes()
        lags = self._metrics.lags()
        rings: dict[str, array[float]] = {}
        for cluster in self._names():
            ring = self._rings.get(cluster, array("f"))[-_WIDTH * (SAMPLES - 1) :]
            written = writes.get(cluster, 0)
            # Of a virtual cluster that has left and come back, the numbers begin at 0.
            made = written - self._writes.get(cluster, 0)
            ring.append(made if made >= 0 else written)
            counts = _since(lags.get(cluster, ()), self._lags.get(cluster, ()))
            for share in (0.5, 0.99):
                lag = quantile(counts, share)
                ring.append(math.nan if lag is None else lag)
            rings[cluster] = ring
        self._rings = rings
        self._writes = writes
        self._lags = lags

    def of(self, cluster: str) -> dict[str, Any]:
        """Return the samples of a virtual cluster as JSON, the oldest first.

        ``lag50`` and ``lag99`` are in seconds, and None where nothing was written.
        """
        ring = self._rings.get(cluster, array("f"))
        return {
            "seconds": SAMPLE_SECONDS,
            "most": SAMPLES,
            "writes": [int(each) for each in ring[::_WIDTH]],
            "lag50": _known(ring[1::_WIDTH]),
            "lag99": _known(ring[2::_WIDTH]),
        }


def _since(now: Sequence[int], before: Sequence[int]) -> Sequence[int]:
    """Return how much each count has grown; all of it if a count has fallen."""
    if not before or sum(now) < sum(before):
        return now
    return [new - old for new, old in zip(now, before, strict=True)]


def _known(numbers: Iterable[float]) -> list[float | None]:
    return [None if math.isnan(each) else round(each, 4) for each in numbers]
