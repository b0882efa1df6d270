"""Explain an object without a daemon: decide once, from fresh lists of both sides."""

from typing import Any

from syncer.config import SyncerConfig, VirtualCluster
from syncer.daemon.pages.control import explain
from syncer.daemon.patrol_once import filled
from syncer.daemon.runner import prepared


async def explain_once(
    config: SyncerConfig, cluster: VirtualCluster, *, kind: str, key: str
) -> list[dict[str, Any]]:
    """Return the explanations of an object of a virtual cluster; nothing is written.

    Raises:
        Refused: No synced kind has this name.
        SyncerError: A cluster can't be reached.
    """
    async with prepared(config, cluster, dry_run=True) as (process, pair):
        async with process.running():
            await filled(process)
            return await explain(process, cluster=pair.name, kind=kind, key=key)
