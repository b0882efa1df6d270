"""A cache of clusters for tests of its consumers: connected to those clusters that it is given."""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from syncer.api.errors import NotConnected
from syncer.clusters.client import Client
from syncer.multicluster.cluster import Cluster
from syncer.multicluster.cluster_events import ClusterEvent, ClusterSource, Happening
from syncer.multicluster.cluster_status import Health
from syncer.multicluster.controller import Controller


class FakeClusterCache:
    """Stands in for a :class:`~syncer.multicluster.ClusterCache`: connected to exactly the given clusters.

    Any other raises :class:`~syncer.api.errors.NotConnected`; so does every cluster of an empty fake. Watches of
    the names in ``watches`` do nothing, others are recorded in ``watched``. Events are those that a test tells.
    """

    def __init__(self, clusters: Mapping[str, Cluster] | None = None, *watches: str) -> None:
        self.clusters = dict(clusters or {})
        #: The watches that were begun: cluster, name, and the further arguments.
        self.watched: dict[tuple[str, str], tuple[Any, ...]] = {}
        self._known = frozenset(watches)
        self._sources: list[ClusterSource] = []

    def tell(self, cluster: str, happening: Happening) -> None:
        """Give all sources an event."""
        for source in self._sources:
            source.tell(ClusterEvent(cluster, happening), asyncio.get_running_loop().time())

    def add(self, controller: Controller) -> None:
        """Engage a controller in the clusters."""
        for cluster in self.clusters.values():
            controller.engage(cluster)

    def get_client(self, name: str) -> Cluster:
        """Return a cluster.

        Raises:
            NotConnected: It is none of those given.
        """
        try:
            return self.clusters[name]
        except KeyError:
            raise NotConnected(f"cluster {name} is not connected", cluster=name) from None

    get_reader = get_client

    def get_uncached_client(self, name: str) -> Client:
        """Return the live client of a cluster.

        Raises:
            NotConnected: It is none of those given.
        """
        return self.get_client(name).client

    def get_health(self, name: str) -> Health:
        """Return the health of a cluster, which nobody probes."""
        return Health()

    def get_last_probe_success(self, name: str) -> float | None:
        """Return None, as nobody probes."""
        return self.get_health(name).last_success

    def watch(self, name: str, watch: str, *rest: Any, **options: Any) -> None:
        """Record a watch, unless it is one that does nothing.

        Raises:
            NotConnected: The cluster is none of those given.
        """
        self.get_client(name)
        if watch not in self._known:
            self.watched.setdefault((name, watch), (*rest, options))

    def source(self, name: str, map_cluster: Any = None, *, probe_failures: Collection[float] = ()) -> ClusterSource:
        """Return a queue of the events that :meth:`tell` gives."""
        made = ClusterSource(name, map_cluster, sorted(probe_failures))
        self._sources.append(made)
        return made
