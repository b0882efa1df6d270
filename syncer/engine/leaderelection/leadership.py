"""Leadership: the Lease of a configuration, also held by commands while they write."""

import os
import socket
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from syncer.api.objects import Key
from syncer.clusters.client import Cluster
from syncer.config import SyncerConfig
from syncer.engine.leaderelection.lease import Lease


def lease_of(host: Cluster, config: SyncerConfig) -> Lease | None:
    """Return the Lease of this configuration; None without leader election."""
    election = config.leader_election
    if not election.enabled:
        return None
    identity = f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4().hex[:8]}"
    return Lease(
        host,
        key=Key(config.lease_namespace, config.lease_name),
        identity=identity,
        duration=election.lease_duration,
        renew_deadline=election.renew_deadline,
        retry_period=election.retry_period,
    )


@asynccontextmanager
async def leading(host: Cluster, config: SyncerConfig) -> AsyncIterator[Lease | None]:
    """Hold the Lease while the block runs, so that no daemon writes meanwhile.

    Yields None without leader election.

    Raises:
        AnotherLeads: A daemon holds the Lease.
        LeaseLost: The Lease was lost, which ends the block.
    """
    lease = lease_of(host, config)
    if lease is None:
        yield None
        return
    async with lease.held():
        yield lease
