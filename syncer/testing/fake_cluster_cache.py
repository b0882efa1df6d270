"""A cache of clusters for tests of its consumers: connected to those clusters that it is given."""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from syncer.api.errors import NotConnected
from syncer.api.objects import Resource
from syncer.cache.handlers import Handler
from syncer.clusters.client import Client
from syncer.clusters.login import Login
from syncer.clusters.transport import Endpoint
from syncer.multicluster.cluster import Cluster
from syncer.multicluster.cluster_events import ClusterEvent, ClusterSource, Happening, MapCluster
from syncer.multicluster.cluster_status import ClusterStatus, Health, State
from syncer.multicluster.controller import Controller


class FakeClusterCache:
    """Stands in for a :class:`~syncer.multicluster.ClusterCache`: connected to exactly the given
    clusters.

    Any other raises :class:`~syncer.api.errors.NotConnected`; so does every cluster of an empty
    fake. Watches of the names in ``watches`` do nothing, others are recorded in ``watched``. Events
    are those of :meth:`notify`. Connections and namespaces are those in ``logins`` and
    ``namespaces``, by cluster.

    It has the methods of a cache that its consumers use: let these take
    :class:`~syncer.multicluster.Clusters`.
    """

    def __init__(self, clusters: Mapping[str, Cluster] | None = None, *watches: str) -> None:
        self.clusters = dict(clusters or {})
        #: The watches that were begun: cluster, name, and the further arguments.
        self.watched: dict[tuple[str, str], tuple[Any, ...]] = {}
        self.logins: dict[str, Login] = {}
        self.namespaces: dict[str, frozenset[str]] = {}
        self._known = frozenset(watches)
        self._controllers: list[Controller] = []
        self._keys: dict[str, RSAPrivateKey] = {}
        self._sources: list[ClusterSource] = []

    def notify(self, cluster: str, happening: Happening) -> None:
        """Give all sources an event."""
        for source in self._sources:
            source.notify(ClusterEvent(cluster, happening), asyncio.get_running_loop().time())

    def add(self, controller: Controller) -> None:
        """Engage a controller in the clusters."""
        self._controllers.append(controller)
        for cluster in self.clusters.values():
            controller.engage(cluster)

    def remove(self, name: str) -> None:
        """Remove a cluster, also from the controllers; unknown names are ignored."""
        if self.clusters.pop(name, None) is not None:
            for controller in self._controllers:
                controller.disengage(name)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self.clusters))

    def __contains__(self, name: object) -> bool:
        return name in self.clusters

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

    def get_connection(self, name: str) -> Login:
        """Return the login of a cluster, of an address that doesn't exist unless ``logins`` has
        one.

        Raises:
            NotConnected: It is none of those given.
        """
        self.get_client(name)
        return self.logins.get(name) or Login(Endpoint(f"{name}.invalid", 443, source="a test"))

    def get_private_key(self, name: str) -> RSAPrivateKey:
        """Return the key of a cluster: always the same.

        Raises:
            NotConnected: It is none of those given.
        """
        self.get_client(name)
        if name not in self._keys:
            self._keys[name] = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        return self._keys[name]

    def get_status(self, name: str) -> ClusterStatus:
        """Return the state of a cluster: connected if it is one of those given, else unknown."""
        return ClusterStatus(
            State.CONNECTED if name in self.clusters else State.UNKNOWN,
            "",
            "",
            self.get_health(name),
        )

    def get_namespaces(self, name: str) -> frozenset[str]:
        """Return the host namespaces of a cluster in ``namespaces``; none for others."""
        return self.namespaces.get(name, frozenset())

    def get_health(self, name: str) -> Health:
        """Return the health of a cluster without any probe."""
        return Health()

    def get_last_probe_success(self, name: str) -> float | None:
        """Return None, as there are no probes."""
        return self.get_health(name).last_success

    def watch(
        self,
        name: str,
        watch: str,
        resource: Resource,
        handler: Handler,
        *,
        namespace: str = "",
        selector: str = "",
        fields: str = "",
        sticky: bool = False,
    ) -> None:
        """Record a watch, unless it is one that does nothing.

        Raises:
            NotConnected: The cluster is none of those given.
        """
        self.get_client(name)
        options = {"namespace": namespace, "selector": selector, "fields": fields, "sticky": sticky}
        if watch not in self._known:
            self.watched.setdefault((name, watch), (resource, handler, options))

    def source(
        self,
        name: str,
        map_cluster: MapCluster | None = None,
        *,
        probe_failures: Collection[float] = (),
    ) -> ClusterSource:
        """Return a queue of the events that :meth:`notify` gives."""
        made = ClusterSource(name, map_cluster, sorted(probe_failures))
        self._sources.append(made)
        return made

    def leave(self, source: ClusterSource) -> None:
        """Remove a source, which gets no more events."""
        self._sources.remove(source)
