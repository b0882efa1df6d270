"""Events about the connections of clusters, for consumers that may be slow."""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple


class Happening(StrEnum):
    """What has happened to the connection of a cluster."""

    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    PROBE_FAILURE = "probeFailure"


class ClusterEvent(NamedTuple):
    """Something has happened to the connection of a cluster; ask the cache for its state now."""

    cluster: str
    happening: Happening


#: Maps a cluster to the requests of a consumer that it concerns.
MapCluster = Callable[[str], Iterable[Hashable]]


class ClusterSource:
    """The events of a consumer: connects, disconnects, and long failures of the probe.

    Of equal events that the consumer hasn't taken yet the last one is kept, so at most three of a
    cluster wait, in the order in which they happened, and a consumer that has stopped delays no
    other.
    """

    def __init__(
        self,
        name: str,
        map_cluster: MapCluster | None,
        probe_failures: Sequence[float],
    ) -> None:
        self.name = name
        self._probe_failures = tuple(probe_failures)
        self._map = map_cluster
        self._waiting: dict[ClusterEvent, None] = {}
        self._some = asyncio.Event()
        #: The time of the last event of each cluster.
        self._stamps: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_mapped(self) -> bool:
        """True if the source has a function that maps clusters to requests."""
        return self._map is not None

    @property
    def stamps(self) -> Mapping[str, float]:
        """The time of the last event, by cluster."""
        return dict(self._stamps)

    async def get(self) -> ClusterEvent:
        """Wait for the next event, and return it."""
        while not self._waiting:
            self._some.clear()
            await self._some.wait()
        event = next(iter(self._waiting))
        del self._waiting[event]
        return event

    async def __aiter__(self) -> AsyncIterator[ClusterEvent]:
        while True:
            yield await self.get()

    async def requests(self) -> AsyncIterator[Any]:
        """Yield what the consumer's function maps the events to.

        Raises:
            ValueError: The source was made without such a function.
        """
        self._must_be_mapped()
        async for event in self:
            for request in self.requests_of(event):
                yield request

    def requests_of(self, event: ClusterEvent) -> Iterable[Any]:
        """Return what the consumer's function maps an event to.

        Raises:
            ValueError: The source was made without such a function.
        """
        return self._must_be_mapped()(event.cluster)

    def _must_be_mapped(self) -> MapCluster:
        if self._map is None:
            raise ValueError(f"source {self.name} maps clusters to nothing: give it a function")
        return self._map

    def repeat(self, event: ClusterEvent) -> None:
        """Add an event that the consumer could not handle, unless an equal one waits."""
        self._waiting.setdefault(event, None)
        self._some.set()

    # -- for the cache -----------------------------------------------------------------------------

    def notify(self, event: ClusterEvent, now: float) -> None:
        """Add an event, in place of an equal one that waits; never wait."""
        self._stamps[event.cluster] = now
        # The last event of a cluster is its state, so it comes last.
        self._waiting.pop(event, None)
        self._waiting[event] = None
        self._some.set()

    def notify_failure(self, cluster: str, *, success: float | None, now: float) -> None:
        """Add an event if the probe's last success is longer ago than a limit, and no event was
        added since then.
        """
        if success is None:
            return
        stamp = self._stamps.get(cluster, float("-inf"))
        if any(stamp < success + limit < now for limit in self._probe_failures):
            self.notify(ClusterEvent(cluster, Happening.PROBE_FAILURE), now)

    def next_failure(self, success: float | None, now: float) -> float | None:
        """Return the seconds until a limit is over; None if there is none to come."""
        if success is None:
            return None
        limits = [success + limit for limit in self._probe_failures]
        return min((limit - now for limit in limits if limit >= now), default=None)

    def forget(self, cluster: str) -> None:
        """Forget a cluster that has left; events that wait are still for the consumer."""
        self._stamps.pop(cluster, None)
