"""Commands that decide by themselves, as no daemon answers."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from syncer.cli.loading import selected
from syncer.config import Loaded, SyncerConfig, VirtualCluster
from syncer.observe.logs import configure

T = TypeVar("T")


def decided_here(
    found: Loaded, decide: Callable[[SyncerConfig, VirtualCluster], Coroutine[Any, Any, T]]
) -> T:
    """Return what a function finds out about the virtual cluster that a command is about.

    The log has no more than errors, unless the configuration asks for more than usual.

    Raises:
        ConfigError: There is no such virtual cluster, or there are several and none is selected.
        SyncerError: A cluster can't be reached, or the function raises it.
    """
    log = found.config.log
    configure("error" if log.level == "info" else log.level, log.format)

    async def decided() -> T:
        cluster = await selected(found)
        return await decide(found.config, cluster)

    return asyncio.run(decided())
