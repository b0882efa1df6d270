"""The configuration file of a running daemon, read again when it changes."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from syncer.api.errors import SyncerError
from syncer.clusters.login import signature
from syncer.config import SyncerConfig, VirtualCluster
from syncer.observe.logs import get_logger

#: Seconds between two looks at the file.
LOOK_SECONDS = 10.0

#: The options that a process takes over only at its start.
PROCESS = ("host", "leader_election", "metrics", "health", "control", "log", "workers", "grace_period")

log = get_logger(__name__)


class ConfigFile:
    """A configuration file; ``load`` returns what it says now, with all that lies over it."""

    def __init__(self, path: Path, load: Callable[[], SyncerConfig]) -> None:
        self._path, self._load = path, load
        self._seen = self._signature()

    async def follow(
        self, config: SyncerConfig, take: Callable[[SyncerConfig, Sequence[VirtualCluster]], None]
    ) -> NoReturn:
        """Hand on the configuration and its virtual clusters whenever the file has changed, until cancelled.

        While it is missing or wrong, what it said before holds.
        """
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            seen = self._signature()
            if seen is None or seen == self._seen:
                continue
            self._seen = seen
            try:
                now, clusters = await asyncio.to_thread(self._read)
            except SyncerError as error:
                log.error("the configuration has changed and can't be used, so the former one holds", error=str(error))
                continue
            for option in (name for name in PROCESS if _value(now, name) != _value(config, name)):
                log.warning("an option has changed that holds only from the next start on", option=option)
            log.info("the configuration has changed", clusters=len(clusters))
            take(now, clusters)

    def _read(self) -> tuple[SyncerConfig, Sequence[VirtualCluster]]:
        """Return what the file says, with all that takes long, as many virtual clusters do."""
        config = self._load()
        clusters = config.clusters()
        for each in clusters:
            _ = each.options
        return config, clusters

    def _signature(self) -> tuple[int, int, int] | None:
        try:
            return signature(self._path)
        except OSError:
            return None


def _value(config: SyncerConfig, option: str) -> object:
    value = getattr(config, option)
    return value.model_dump() if hasattr(value, "model_dump") else value
