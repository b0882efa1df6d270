"""Print the pods of several clusters, as clusters and pods come and go.

The kubeconfigs of the clusters, ``NAME.kubeconfig``, are in a folder.

$ python examples/multicluster/fleet.py --folder clusters/
"""

import argparse
import asyncio
import contextlib

from syncer.api import NotConnected
from syncer.multicluster import (
    PODS,
    ClusterCache,
    ClusterCacheOptions,
    ClusterSource,
    Controller,
    FolderProvider,
    Request,
)


class Pods:
    """Prints each pod with its phase, as the caches have it."""

    def __init__(self, cache: ClusterCache) -> None:
        self._cache = cache
        self.controller = Controller(self.reconcile)
        self.controller.for_every_cluster(
            lambda cluster: self.controller.watch_object(cluster, PODS)
        )
        cache.add(self.controller)

    async def reconcile(self, request: Request) -> None:
        """Print a pod.

        A cluster that is lost meanwhile is left alone, as its requests come again.
        """
        with contextlib.suppress(NotConnected):
            pod = await self._cache.get_client(request.cluster).get(PODS, request.key)
            phase = (pod.get("status") or {}).get("phase", "Unknown") if pod else "gone"
            print(f"{request.cluster} / {request.namespace} / {request.name}: {phase}", flush=True)


async def tell(source: ClusterSource) -> None:
    """Print which clusters connect, and which are lost."""
    async for event in source:
        print(f"{event.cluster} {event.happening}", flush=True)


async def main() -> None:
    """Run until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", required=True, help="a folder of kubeconfigs")
    options = parser.parse_args()

    cache = ClusterCache(
        [FolderProvider(options.folder, interval=1.0)], ClusterCacheOptions(user_agent="fleet")
    )
    pods = Pods(cache)
    async with asyncio.TaskGroup() as tasks:
        for work in (cache.run(), pods.controller.run(), tell(cache.source("fleet"))):
            tasks.create_task(work)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
