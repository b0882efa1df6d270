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
    """Finds out which virtual clusters there are: those that are listed, and those of Secrets."""

    def __init__(
        self,
        process: Process,
        config: SyncerConfig,
        take: Callable[[Sequence[VirtualCluster], bool], None],
    ) -> None:
        """Report to ``take`` all virtual clusters, and True if there may be further ones without
        another configuration.
        """
        self._process = process
        self._config = config
        self._take = take
        self._listed: Sequence[VirtualCluster] = config.clusters()
        self._secrets: SecretClusters | None = None
        self._changed = asyncio.Event()

    def update(self, config: SyncerConfig, listed: Sequence[VirtualCluster]) -> None:
        """Follow another configuration from now on, with these virtual clusters in it."""
        self._config = config
        self._listed = listed
        self._changed.set()

    async def run(self) -> NoReturn:
        """Report all changes, until cancelled."""
        try:
            while True:
                self._changed.clear()
                try:
                    retry_after = await self._report()
                except Exception:  # a bug of ours must not freeze the fleet as it is
                    log.exception("finding the virtual clusters failed")
                    retry_after = AGAIN_SECONDS

                try:
                    async with asyncio.timeout(retry_after):
                        await self._changed.wait()
                except TimeoutError:
                    continue
                pause = PAUSE_SECONDS if self._secrets else 0
                await asyncio.sleep(pause)
        finally:
            if self._secrets is not None:
                await self._secrets.close()

    async def _report(self) -> float | None:
        """Report the virtual clusters; return the seconds until the next attempt, None without one.

        There is one while a Secret can't be read.
        """
        listed = self._listed
        config = self._config
        found: Sequence[VirtualCluster] = ()
        is_complete = True
        if self._secrets is None and config.virtual_cluster_secrets:
            # Imported late: it takes a megabyte.
            from syncer.daemon.fleet.secret_clusters import SecretClusters

            self._secrets = SecretClusters(self._process, self._changed.set)
        if self._secrets is not None:
            found, is_complete = await self._secrets.decided(config, listed)

        self._take([*listed, *found], bool(config.virtual_cluster_secrets))
        return None if is_complete else AGAIN_SECONDS
