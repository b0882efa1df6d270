"""Explain an object without a daemon: decide once, from fresh lists of both sides."""

from typing import Any

from syncer.config import SyncerConfig, VirtualCluster
from syncer.daemon.pages.control import explain
from syncer.daemon.patrol_once import filled
from syncer.daemon.process import Process
from syncer.daemon.runner import prepared
from syncer.engine.controllers.pair import ClusterPair


async def explain_once(
    config: SyncerConfig, cluster: VirtualCluster, *, kind: str, key: str
) -> list[dict[str, Any]]:
    """Return the explanations of an object of a virtual cluster; nothing is written.

    Raises:
        Refused: No synced kind has this name.
        SyncerError: A cluster can't be reached.
    """
    async with prepared(config, cluster, dry_run=True) as (process, pair):
        return await explain_here(process, pair, kind=kind, key=key)


async def explain_here(
    process: Process, pair: ClusterPair, *, kind: str, key: str
) -> list[dict[str, Any]]:
    """Return the explanations of an object by a process that has no workers.

    Raises:
        Refused: No synced kind has this name.
    """
    async with process.running():
        await filled(process)
        return await explain(process, cluster=pair.name, kind=kind, key=key)
