"""A cluster for tests of controllers, whose API server is in this process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from syncer.api.objects import Obj
from syncer.clusters.client import Client
from syncer.multicluster.cluster import Cluster
from syncer.multicluster.cluster_options import ClusterOptions
from syncer.testing.in_process import ApiServer


@asynccontextmanager
async def running_cluster(
    name: str,
    *objects: Obj,
    options: ClusterOptions | None = None,
) -> AsyncIterator[Cluster]:
    """Run a cluster of :mod:`syncer.multicluster` with these objects while the block runs.

    Its API server is an :class:`~syncer.testing.ApiServer`, which is reached through memory.
    """
    server = ApiServer()
    for obj in objects:
        server.put(obj)
    cluster = Cluster(name, Client(name, server.transport()), options=options)
    running = asyncio.create_task(cluster.run())
    try:
        yield cluster
    finally:
        running.cancel()
        await asyncio.wait({running})
        await cluster.close()
