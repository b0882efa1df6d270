"""What a daemon would write now, or under another configuration. Nothing is written."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from syncer.api.errors import Refused
from syncer.config import SyncerConfig, VirtualCluster
from syncer.daemon.pages.control import selection
from syncer.daemon.patrol_once import filled
from syncer.daemon.process import Process
from syncer.daemon.runner import prepared
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.patrol.survey import Effects, Survey, beyond, present, survey


class Configured(NamedTuple):
    """A configuration, and the virtual cluster of it that a command is about."""

    config: SyncerConfig
    cluster: VirtualCluster


async def diff_once(configured: Configured, *, kinds: Sequence[str] = (), key: str = "") -> Effects:
    """Return what each object of a virtual cluster needs now. Nothing is written.

    ``kinds`` are the only kinds, empty for all; ``key`` is the only virtual or host key, ``""`` for
    all.

    Raises:
        SyncerError: A cluster can't be reached or is not ours, or nothing is called so.
    """
    async with _running(configured) as (process, pair):
        return present(await _surveyed(process, pair, kinds, key))


async def effects_once(
    old: Configured, new: Configured, *, kinds: Sequence[str] = (), key: str = ""
) -> Effects:
    """Return what a new configuration would do beyond an old one.

    Both decide from caches that are filled at the same time. The other arguments and the errors are
    those of :func:`diff_once`.
    """
    async with _running(old) as (old_process, old_pair), _running(new) as (process, pair):
        found = await _surveyed(process, pair, kinds, key)
        try:
            before = await _surveyed(old_process, old_pair, kinds, key)
        except Refused:
            before = Survey()  # kinds that are new
        return beyond(before, found)


@asynccontextmanager
async def _running(configured: Configured) -> AsyncIterator[tuple[Process, ClusterPair]]:
    """Yield a process without workers, with filled caches, that writes nothing."""
    async with (
        prepared(configured.config, configured.cluster, dry_run=True) as (process, pair),
        process.running(),
    ):
        await filled(process)
        yield process, pair


async def _surveyed(process: Process, pair: ClusterPair, kinds: Sequence[str], key: str) -> Survey:
    chosen = selection(process, cluster=pair.name, kinds=kinds or ("",)).syncers
    controllers = [
        controller
        for controller in pair.controllers.values()
        if controller.name in chosen and controller.direction.syncs
    ]
    found = await survey(pair, controllers, key=key)
    if not kinds:
        found.problems |= process.served[pair.name].waiting()
    return found
