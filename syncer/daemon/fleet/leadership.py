"""Leadership: the Leases of a configuration, also held by commands while they write."""

import math
import os
import socket
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import MappingProxyType

from syncer.api.objects import Key
from syncer.clusters.client import SideClient
from syncer.config import SyncerConfig
from syncer.leaderelection.lease import Lease
from syncer.leaderelection.members import labels_of_fleet
from syncer.leaderelection.rendezvous import shard_of
from syncer.leaderelection.shards import Shards, lease_name
from syncer.leaderelection.uninstalls import LOOKS, uninstall_name, uninstalling


def lease_of(host: SideClient, config: SyncerConfig) -> Lease | None:
    """Return the Lease of this configuration; None without leader election, or if a fleet is
    shared.
    """
    election = config.leader_election
    if not election.enabled or election.shards > 1:
        return None
    return _lease(host, config, config.lease_name)


def shards_of(host: SideClient, config: SyncerConfig) -> Shards | None:
    """Return the shards of this configuration; None if there is a single leader, or none."""
    election = config.leader_election
    if not election.enabled or election.shards == 1:
        return None
    return Shards(
        host,
        fleet=Key(config.lease_namespace, config.lease_name),
        number=election.shards,
        identity=_identity(),
        duration=election.lease_duration,
        renew_deadline=election.renew_deadline,
        retry_period=election.retry_period,
    )


def lease_names(config: SyncerConfig, clusters: Iterable[str]) -> list[str]:
    """Return the names of the Leases that give the right to write for these virtual clusters."""
    shards = config.leader_election.shards
    if shards == 1:
        return [config.lease_name]
    of_clusters = {shard_of(cluster, shards) for cluster in clusters}
    return [lease_name(config.lease_name, shard) for shard in sorted(of_clusters)]


@asynccontextmanager
async def leading(
    host: SideClient, config: SyncerConfig, clusters: Iterable[str]
) -> AsyncIterator[Callable[[], float] | None]:
    """Hold the Leases of these virtual clusters while the block runs, so that no daemon writes for
    them meanwhile.

    Yields what returns the time, by the loop's clock, until which may be written, as
    :attr:`.lease.Lease.until`; None without leader election.

    Raises:
        AnotherLeads: A daemon holds a Lease.
        LeaseLost: A Lease was lost, which ends the block.
    """
    if not config.leader_election.enabled:
        yield None
        return

    leases = [_lease(host, config, name) for name in lease_names(config, clusters)]

    def until() -> float:
        return min(lease.until for lease in leases)

    async with AsyncExitStack() as stack:
        for lease in leases:
            await stack.enter_async_context(lease.holding())
        yield until


class CommandTerm:
    """Until when a command may write: without a bound until it competes for the Leases, then while
    it holds them.
    """

    def __init__(self) -> None:
        self._competes = False
        #: Until when may be written for the virtual clusters with a Lease that is held.
        self._until: dict[str, Callable[[], float]] = {}

    def until(self, cluster: str) -> float:
        """Return the time, by the loop's clock, until which may be written for a virtual cluster;
        ``-inf``: never.
        """
        if cluster in self._until:
            return self._until[cluster]()
        if self._competes:
            return -math.inf
        return math.inf

    @asynccontextmanager
    async def leading(
        self,
        host: SideClient,
        config: SyncerConfig,
        clusters: Collection[str],
    ) -> AsyncIterator[None]:
        """Hold the Leases as :func:`leading` does. Where that fails, nothing may be written any
        more.

        Raises:
            AnotherLeads: A daemon holds a Lease.
            LeaseLost: A Lease was lost, which ends the block.
        """
        self._competes = True
        async with leading(host, config, clusters) as until:
            self._until |= dict.fromkeys(clusters, until or _unbounded)
            yield


def _unbounded() -> float:
    return math.inf


@asynccontextmanager
async def alone_with(
    host: SideClient,
    config: SyncerConfig,
    cluster: str,
) -> AsyncIterator[Callable[[], float] | None]:
    """Hold what an uninstall of a virtual cluster needs, as :func:`leading` does.

    Replicas that share a fleet go on with the other virtual clusters, if this one is no longer in
    their configuration.

    Raises:
        AnotherLeads: A daemon holds the Lease, or another uninstall is under way.
        StillServed: A replica may write for it.
        LeaseLost: A Lease was lost, which ends the block.
        ClusterError: A request failed.
    """
    election = config.leader_election
    if not election.enabled or election.shards == 1:
        async with leading(host, config, (cluster,)) as until:
            yield until
        return

    fleet = Key(config.lease_namespace, config.lease_name)
    lease = _lease(host, config, uninstall_name(fleet.name, cluster), labels_of_fleet(fleet.name))
    [shard] = lease_names(config, (cluster,))
    pause = election.retry_period
    patience = 2 * election.lease_duration + LOOKS * pause
    async with uninstalling(
        host,
        lease,
        fleet=fleet,
        cluster=cluster,
        shard=shard,
        patience=patience,
        pause=pause,
    ):
        yield lambda: lease.until


def _identity() -> str:
    """Return the name of the pod, after its namespace if that is known, and a random part."""
    pod = os.environ.get("POD_NAME") or socket.gethostname()
    namespace = os.environ.get("POD_NAMESPACE")
    random_part = uuid.uuid4().hex[:8]
    if namespace:
        return f"{namespace}/{pod}_{random_part}"
    return f"{pod}_{random_part}"


def _lease(
    host: SideClient,
    config: SyncerConfig,
    name: str,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> Lease:
    election = config.leader_election
    return Lease(
        host,
        key=Key(config.lease_namespace, name),
        identity=_identity(),
        duration=election.lease_duration,
        renew_deadline=election.renew_deadline,
        retry_period=election.retry_period,
        labels=labels,
    )
