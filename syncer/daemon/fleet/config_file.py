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
PROCESS = (
    "host",
    "leader_election",
    "metrics",
    "health",
    "page",
    "control",
    "log",
    "workers",
    "grace_period",
)

log = get_logger(__name__)


class ConfigFile:
    """A configuration file; ``load`` returns its present contents, with all that lies over them."""

    def __init__(self, path: Path, load: Callable[[], SyncerConfig]) -> None:
        self._path = path
        self._load = load
        #: The signature of the contents that were read last, or of those that couldn't be used.
        self._known = self._signature()

    async def follow(
        self, config: SyncerConfig, take: Callable[[SyncerConfig, Sequence[VirtualCluster]], None]
    ) -> NoReturn:
        """Call ``take`` with the configuration and its virtual clusters whenever the file has
        changed, until cancelled.

        While the file is missing or wrong, the former configuration applies.
        """
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            signature_now = self._signature()
            if signature_now is None or signature_now == self._known:
                continue
            self._known = signature_now

            try:
                changed, clusters = await asyncio.to_thread(self._read)
            except SyncerError as error:
                text = "the configuration has changed and can't be used, so the former one applies"
                log.error(text, error=str(error))
                continue

            for option in PROCESS:
                if _value(changed, option) != _value(config, option):
                    text = "an option has changed that applies only from the next start on"
                    log.warning(text, option=option)
            log.info("the configuration has changed", clusters=len(clusters))
            take(changed, clusters)

    def _read(self) -> tuple[SyncerConfig, Sequence[VirtualCluster]]:
        """Read the file, and compute what takes long if there are many virtual clusters."""
        config = self._load()
        clusters = config.clusters()
        for each in clusters:
            _ = each.options  # cached
        return config, clusters

    def _signature(self) -> tuple[int, int, int] | None:
        try:
            return signature(self._path)
        except OSError:
            return None


def _value(config: SyncerConfig, option: str) -> object:
    value = getattr(config, option)
    return value.model_dump() if hasattr(value, "model_dump") else value
