"""A daemon whose patroller scans only on demand, changes that no watch shows, and the results of a scan."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from harness import ALL, Daemon, Tenant, Two, between, configured, writes
from prometheus_client import generate_latest
from rules_scene import edit
from shop_scene import settled

from kube_envtest import Rule
from syncer.api import Obj
from syncer.engine.patrol.findings import Scan
from syncer.engine.patrol.patroller import Patroller
from syncer.engine.patrol.patrollers import METRICS, readings, stopped_deletions
from syncer.testing.objects import configmap

PAST = 70.0  # seconds after which a bookmark has told every watch that it is past all that was dropped
#: Data of ConfigMaps: a tenant's, and what somebody makes of it.
BLUE, RED = {"color": "blue"}, {"color": "red"}


def patroller(daemon: Daemon) -> Patroller:
    """Return the only one that it has."""
    [found] = daemon.process.patrollers()
    return found


@contextlib.asynccontextmanager
async def patrolled(two: Two, kinds: Mapping[str, Any] = ALL, **patrol: Any) -> AsyncIterator[Daemon]:
    """Yield a daemon with all built-in syncers and these options of its patroller, which scans only
    when asked to.
    """
    config = configured(Tenant(two.virtual, options=kinds))
    options = type(config.patrol).model_validate({"interval": "10h", "fresh": "10h", **patrol})
    config = config.model_copy(update={"patrol": options})
    async with between(two.host, [(config, two.virtual)]) as daemon:
        yield daemon


def in_step(two: Two, kinds: Mapping[str, Any] = ALL, **patrol: Any) -> AbstractAsyncContextManager[Daemon]:
    """Return the same, once it has put both sides in step."""
    return settled(patrolled(two, kinds, **patrol))


async def put_in_step(two: Two) -> None:
    """Let a daemon put both sides in step, and end."""
    async with in_step(two):
        """No longer than that."""


async def scanned(daemon: Daemon, syncer: str = "configmaps", *, fresh: bool = True) -> Scan:
    """Scan a syncer's kind, from fresh lists or from what the stores have."""
    [pair] = daemon.process.pairs.values()
    return await patroller(daemon).scan(pair.controllers[syncer], fresh=fresh)


def outcomes(scan: Scan) -> list[tuple[str, str, str]]:
    """Return the drift of a scan: object, side and outcome."""
    return [(one.drift.kind, str(one.drift.side), one.outcome.value) for one in scan.findings]


def shown(daemon: Daemon) -> dict[str, float]:
    """Return the patroller's metrics."""
    ask = daemon.process.metrics.ask
    for name in METRICS:
        ask(name, functools.partial(readings, daemon.process.patrollers(), name))
    ask("syncer_deletions_held", lambda: stopped_deletions(daemon.process.pairs.values()))
    rows = generate_latest(daemon.process.metrics.registry).decode().splitlines()
    return {name: float(value) for name, _, value in (row.rpartition(" ") for row in rows if row[0] != "#")}


def deletions(two: Two, since: int = 0) -> list[str]:
    """Return the deletions that the host was asked for."""
    return [line for line in writes(two.host, since) if line.startswith("delete")]


def blind(two: Two) -> None:
    """Let no watch show anything any more."""
    for server in (two.virtual, two.host):
        server.faults.add(Rule(verb="watch", drop=True))


async def edit_unseen(two: Two, patch: Obj | None = None, name: str = "x") -> None:
    """Change the copy of a ConfigMap where no watch shows it, and the watches are past it."""
    blind(two)
    edit(two, "host", "configmaps", patch or {"data": RED}, name)
    await asyncio.sleep(PAST)


@contextlib.asynccontextmanager
async def drifted(two: Two, patch: Obj | None = None) -> AsyncIterator[Daemon]:
    """Yield a daemon that had a blue ConfigMap in step until a user changed its copy unseen."""
    two.virtual.put(configmap("x", BLUE))
    async with in_step(two) as daemon:
        await edit_unseen(two, patch)
        yield daemon
