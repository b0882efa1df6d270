"""The memory of virtual clusters that are brought in step once: one that takes too much ends
alone.
"""

import asyncio
from contextlib import AbstractContextManager
from functools import partial

from syncer.config import VirtualCluster
from syncer.daemon.fleet.fleet_memory import ClusterMemory, FleetMemory
from syncer.daemon.process import Process
from syncer.observe.logs import get_logger

log = get_logger(__name__)


class RunMemory:
    """The memory that the virtual clusters of a run may take, as those of a daemon may.

    Without :meth:`keep`, none ends for its stored objects.
    """

    def __init__(self, *, is_alone: bool) -> None:
        self._memory = FleetMemory(is_alone=is_alone)
        #: Those that take too much and haven't ended yet, by name.
        self._over: dict[str, VirtualCluster] = {}
        self._changed = asyncio.Event()

    def joined(self, cluster: VirtualCluster) -> AbstractContextManager[ClusterMemory]:
        """Have room for a virtual cluster during the block.

        Raises:
            OverBudget: There is no room for it.
        """
        return self._memory.joined(cluster, partial(self._ends, cluster))

    def _ends(self, cluster: VirtualCluster) -> None:
        self._over[cluster.name] = cluster
        self._changed.set()

    async def keep(self, process: Process, failed: dict[str, str]) -> None:
        """End those that take too much, until cancelled, and add the reasons to ``failed``."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self._over:
                name, cluster = self._over.popitem()
                if name in process.served:
                    failed[name] = self._memory.reason(cluster)
                    log.warning("a virtual cluster ends", cluster=name, error=failed[name])
                    await process.end(name)
