"""The clusters of a cache, as those see them who use them: a cache, or what stands in for it in
tests.
"""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from syncer.api.objects import Json, Key, Obj, Resource
from syncer.cache.handlers import Handler
from syncer.clusters.client import Client
from syncer.clusters.login import Login
from syncer.multicluster.cluster import Cluster
from syncer.multicluster.cluster_events import ClusterSource, MapCluster
from syncer.multicluster.cluster_status import ClusterStatus, Health
from syncer.multicluster.controller import Controller

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey


class ClusterReader(Protocol):
    """Reads from the caches of a cluster, or live where it has none: the methods of
    :class:`Cluster`.
    """

    async def get(self, resource: Resource, key: Key) -> Obj | None:
        """Return a private copy of an object; None if there is none."""

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        selector: Mapping[str, Json] | None = None,
    ) -> Sequence[Obj]:
        """Return private copies of the objects of a namespace (``""``: all) and a LabelSelector."""

    async def by_index(self, resource: Resource, index: str, value: Hashable) -> Sequence[Obj]:
        """Return private copies of the objects that have a value in an index."""


class Clusters(Protocol):
    """The clusters of a :class:`~syncer.multicluster.ClusterCache`, or of the fake that stands in
    for it.

    None of these methods waits. They raise :class:`~syncer.multicluster.NotConnected` for a cluster
    that is unknown or disconnected, where they need its connection.
    """

    def get_client(self, name: str) -> Cluster:
        """Return a cluster, whose reads are from caches and whose writes are live."""
        ...

    def get_reader(self, name: str) -> ClusterReader:
        """Return what reads from the caches of a cluster."""
        ...

    def get_uncached_client(self, name: str) -> Client:
        """Return a client that reads from the API server."""
        ...

    def get_connection(self, name: str) -> Login:
        """Return the address and the credentials in use, for other clients."""
        ...

    def get_private_key(self, name: str) -> "RSAPrivateKey":
        """Return the key of a cluster for client certificates, the same while it is known."""
        ...

    def get_last_probe_success(self, name: str) -> float | None:
        """Return the time of the last probe that succeeded; None for an unknown cluster, or before
        the first.
        """
        ...

    def get_health(self, name: str) -> Health:
        """Return what the probes of a cluster have found."""
        ...

    def get_status(self, name: str) -> ClusterStatus:
        """Return the state of a cluster; unknown ones are ``Unknown``."""
        ...

    def get_namespaces(self, name: str) -> frozenset[str]:
        """Return the host namespaces that a cluster may lead to; none for an unknown cluster."""
        ...

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
        """Call a handler for every change of a resource in a cluster, and for each object that is
        there.
        """
        ...

    def source(
        self,
        name: str,
        map_cluster: MapCluster | None = None,
        *,
        probe_failures: Collection[float] = (),
    ) -> ClusterSource:
        """Return a new queue of connects and disconnects of all clusters, from now on."""
        ...

    def leave(self, source: ClusterSource) -> None:
        """Remove a source, whose consumer needs it no longer."""
        ...

    def add(self, controller: Controller) -> None:
        """Engage a controller in each cluster, now or once it is connected."""
        ...

    def remove(self, name: str) -> None:
        """Remove a cluster; unknown names are ignored."""
        ...

    def __iter__(self) -> Iterator[str]: ...

    def __contains__(self, name: object) -> bool: ...
