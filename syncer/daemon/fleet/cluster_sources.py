"""Where the virtual clusters of a daemon come from: its configuration, and Secrets of the host."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

from syncer.config import SyncerConfig, VirtualCluster
from syncer.daemon.process import Process
from syncer.observe.logs import get_logger

if TYPE_CHECKING:
    from syncer.daemon.fleet.secret_clusters import SecretClusters

#: Seconds between a change and the decision, which is made once for what changes together.
PAUSE_SECONDS = 1.0
#: Seconds until a Secret that couldn't be read is read again.
AGAIN_SECONDS = 10.0

log = get_logger(__name__)


class ClusterSources:
    """Tells which virtual clusters there are: those that are listed, and those of Secrets."""

    def __init__(
        self, process: Process, config: SyncerConfig, take: Callable[[Sequence[VirtualCluster], bool], None]
    ) -> None:
        """Tell ``take`` of the virtual clusters, and whether there may be others without another configuration."""
        self._process, self._config, self._take = process, config, take
        self._listed: Sequence[VirtualCluster] = config.clusters()
        self._secrets: SecretClusters | None = None
        self._changed = asyncio.Event()

    def update(self, config: SyncerConfig, listed: Sequence[VirtualCluster]) -> None:
        """Follow another configuration from now on, with these virtual clusters in it."""
        self._config, self._listed = config, listed
        self._changed.set()

    async def run(self) -> NoReturn:
        """Tell of all changes, until cancelled."""
        try:
            while True:
                self._changed.clear()
                try:
                    again = await self._tell()
                except Exception:  # a bug of ours must not freeze the fleet as it is
                    log.exception("the virtual clusters can't be found out")
                    again = AGAIN_SECONDS
                try:
                    async with asyncio.timeout(again):
                        await self._changed.wait()
                except TimeoutError:
                    continue
                await asyncio.sleep(PAUSE_SECONDS if self._secrets else 0)
        finally:
            if self._secrets is not None:
                await self._secrets.close()

    async def _tell(self) -> float | None:
        """Tell which virtual clusters there are; return the seconds until that is to be found out again."""
        listed, config = self._listed, self._config
        found: Sequence[VirtualCluster] = ()
        is_complete = True
        if self._secrets is None and config.virtual_cluster_secrets:
            from syncer.daemon.fleet.secret_clusters import SecretClusters  # imported late: it takes a megabyte

            self._secrets = SecretClusters(self._process, self._changed.set)
        if self._secrets is not None:
            found, is_complete = await self._secrets.decided(config, listed)
        self._take([*listed, *found], bool(config.virtual_cluster_secrets))
        return None if is_complete else AGAIN_SECONDS
