"""The virtual clusters of a replica that shares the fleet with others."""

import asyncio

from syncer.daemon.fleet.fleet import ServedFleet
from syncer.daemon.pages import status
from syncer.daemon.process import Process
from syncer.daemon.unserved import NOT_BEGUN
from syncer.leaderelection.shards import Shards


class SharedFleet:
    """Works on the virtual clusters of the shards that this replica leads, and serves those that it keeps."""

    def __init__(self, process: Process, fleet: ServedFleet, shards: Shards) -> None:
        """``process`` leads, and writes until, as ``shards`` say."""
        self._process, self._fleet, self._shards = process, fleet, shards
        fleet.serve_only(shards.keeps)

    async def run(self) -> None:
        """Take part until cancelled; then hand over all shards, when what is in work has ended."""
        await self._shards.run(self)

    def begin(self, shard: int) -> None:
        """Work on the virtual clusters of a shard."""
        for name in self._served(shard):
            self._process.served[name].lead()

    async def end(self, shard: int) -> None:
        """Begin nothing more on the virtual clusters of a shard, and return when nothing is in work."""
        await asyncio.gather(*(self._process.served[name].stand_by() for name in self._served(shard)))

    def assigned(self) -> None:
        """Serve what this replica keeps from now on."""
        self._fleet.assign()

    def is_warm(self, shard: int) -> bool:
        """Return True if the caches of a shard's virtual clusters are filled, except for those that fail."""
        kept = self._fleet.wanted
        if kept is None:
            return False
        unfilled = status.unfilled(self._process)
        absent = self._process.unserved.clusters
        served = self._process.served
        return all(
            (name in served and name not in unfilled) or absent.get(name, NOT_BEGUN) is not NOT_BEGUN
            for name in kept
            if self._shards.shard(name) == shard
        )

    def may_serve(self, cluster: str) -> bool:
        """Return True if a virtual cluster is in the configuration, or it isn't known yet whether it is."""
        return self._fleet.has(cluster)

    def _served(self, shard: int) -> list[str]:
        return [name for name in self._process.served if self._shards.shard(name) == shard]
