"""Answer `syncer explain` and `syncer list` without a daemon.

Every object is decided once, from fresh lists of both sides. Nothing is written.
"""

import sys
from collections.abc import Mapping
from typing import Any

from syncer.config import SyncerConfig, VirtualCluster
from syncer.daemon.pages.control import explain, listed
from syncer.daemon.pages.listing import ListPage
from syncer.daemon.patrol_once import filled
from syncer.daemon.process import Process
from syncer.daemon.runner import prepared
from syncer.engine.controllers.pair import ClusterPair


async def explain_once(
    config: SyncerConfig, cluster: VirtualCluster, *, kind: str, key: str
) -> list[dict[str, Any]]:
    """Return the explanations of an object of a virtual cluster.

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


async def list_once(
    config: SyncerConfig, cluster: VirtualCluster, *, query: Mapping[str, str]
) -> ListPage:
    """Return the objects of a virtual cluster that a query for a list asks for, on one page.

    Raises:
        Refused: No synced kind or state has this name.
        SyncerError: A cluster can't be reached.
    """
    async with prepared(config, cluster, dry_run=True) as (process, pair):
        return await list_here(process, pair, query)


async def list_here(process: Process, pair: ClusterPair, query: Mapping[str, str]) -> ListPage:
    """Return the objects of a list by a process that has no workers, on one page.

    Raises:
        Refused: No synced kind or state has this name.
    """
    async with process.running():
        await filled(process)
        return await listed(process, {**query, "cluster": pair.name}, most=sys.maxsize)
