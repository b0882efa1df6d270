"""A single scan of everything from fresh lists, by a command rather than the daemon."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from syncer.config import SyncerConfig, VirtualCluster
from syncer.daemon.fleet.leadership import CommandTerm
from syncer.daemon.pages import status
from syncer.daemon.pages.control import selection
from syncer.daemon.process import Process
from syncer.daemon.runner import prepared
from syncer.daemon.served_cluster import LOOK
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.patrol.patrollers import alone, report
from syncer.leaderelection.lease import AnotherLeads

#: Seconds without progress after which the remaining lists are not awaited.
PATIENCE = 60.0


async def patrol_once(
    config: SyncerConfig,
    cluster: VirtualCluster,
    *,
    kinds: Sequence[str] = (),
    confirm: bool = False,
) -> dict[str, Any]:
    """Scan the kinds of a virtual cluster, repair as the policies say, and return the report.

    Args:
        config: The configuration.
        cluster: The virtual cluster.
        kinds: The kinds to scan; empty for all.
        confirm: Hold no deletions.

    Nothing is repaired while a daemon leads, which does so itself.

    Raises:
        SyncerError: A cluster can't be reached, or the scan fails.
    """
    term = CommandTerm()
    async with (
        prepared(config, cluster, until=term.until) as (process, pair),
        AsyncExitStack() as stack,
    ):
        reason = None
        try:
            await stack.enter_async_context(term.leading(process.host, config, (pair.name,)))
        except AnotherLeads as error:
            reason = f"{error.holder or 'another daemon'} leads, and repairs what it finds"

        def hands_off() -> str | None:
            return reason

        return await scan_once(process, pair, kinds=kinds, confirm=confirm, hands_off=hands_off)


async def scan_once(
    process: Process,
    pair: ClusterPair,
    *,
    kinds: Sequence[str],
    confirm: bool,
    hands_off: Callable[[], str | None],
) -> dict[str, Any]:
    """Scan with a process that has no workers."""
    async with process.running():
        await filled(process)
        if confirm:
            pair.policies.breaker.limits = None
        patroller = alone(
            process,
            pair,
            process.served[pair.name].silent,
            process.workers.handle,
            hands_off,
        )
        assert patroller is not None, "every configuration says how to patrol"
        chosen = selection(process, cluster=pair.name, kinds=kinds or ("",)).syncers

        def is_chosen(name: str) -> bool:
            return name in chosen

        for scan in await patroller.scan_all(is_chosen):
            await patroller.try_again(scan)
        return report(pair, patroller) | {"reportedOnly": hands_off() or ""}


async def filled(process: Process) -> None:
    """Wait until everything is listed.

    Kinds that an API server keeps failing to list are left out, and their reports say so.
    """
    before = status.unfilled(process)
    since = process.clock()
    while unfilled := status.unfilled(process):
        if unfilled != before:
            before = unfilled
            since = process.clock()
        elif process.clock() - since > PATIENCE:
            return
        await asyncio.sleep(LOOK)
