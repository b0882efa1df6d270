"""The virtual clusters of a replica that shares the fleet with others."""

import asyncio

from syncer.daemon.fleet.fleet import ServedFleet
from syncer.daemon.pages import status
from syncer.daemon.process import Process
from syncer.daemon.unserved import NOT_BEGUN
from syncer.leaderelection.shards import Shards


class SharedFleet:
    """Works on the virtual clusters of the shards that this replica leads, and serves those that it
    keeps.
    """

    def __init__(self, process: Process, fleet: ServedFleet, shards: Shards) -> None:
        """``process`` must lead and write as ``shards`` allow."""
        self._process = process
        self._fleet = fleet
        self._shards = shards
        fleet.serve_only(shards.keeps)

    async def run(self) -> None:
        """Take part until cancelled; then hand over all shards, when their requests have ended."""
        await self._shards.run(self)

    def begin(self, shard: int) -> None:
        """Work on the virtual clusters of a shard."""
        for name in self._served(shard):
            self._process.served[name].lead()

    async def end(self, shard: int) -> None:
        """Begin no more work on the virtual clusters of a shard; return when none is under way."""
        served = [self._process.served[name] for name in self._served(shard)]
        await asyncio.gather(*(each.stand_by() for each in served))

    def assigned(self) -> None:
        """Serve what this replica keeps from now on."""
        self._fleet.assign()

    def is_warm(self, shard: int) -> bool:
        """Return True if the caches of a shard's virtual clusters are filled, except for those that
        fail.
        """
        wanted = self._fleet.wanted
        if wanted is None:
            return False

        unfilled = status.unfilled(self._process)
        unserved = self._process.unserved.clusters
        for name in wanted:
            if self._shards.shard(name) != shard:
                continue
            is_filled = name in self._process.served and name not in unfilled
            has_failed = unserved.get(name, NOT_BEGUN) is not NOT_BEGUN
            if not (is_filled or has_failed):
                return False
        return True

    def may_serve(self, cluster: str) -> bool:
        """Return False if a virtual cluster is known not to be in the configuration."""
        return self._fleet.has(cluster)

    def _served(self, shard: int) -> list[str]:
        return [name for name in self._process.served if self._shards.shard(name) == shard]
