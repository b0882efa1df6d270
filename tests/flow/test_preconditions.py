"""An API server that shows an older state causes no deletion of wanted objects."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from harness import ALL, Daemon, Two, built_in, until, writes

from syncer.api import Obj, uid_of
from syncer.daemon.pages.status import degraded
from syncer.resources.pods.lifecycle import has_started
from syncer.testing import ApiServer
from syncer.testing.objects import configmap, pod

MAPS = built_in("configmaps")


async def copied(two: Two, daemon: Daemon, plural: str = "configmaps") -> Obj:
    """Return the copy of x, once it is there."""
    await until(lambda: two.copy(plural, "x"))
    await daemon.settled()
    copy = two.copy(plural, "x")
    assert copy
    return copy


def deletions(server: ApiServer) -> list[str]:
    return [line for line in writes(server) if line.startswith("delete")]


async def in_step(two: Two, daemon: Daemon, copy: Obj) -> None:
    """Wait for rest, and check that all is as it should be and the copy is the one that was there before."""
    await daemon.settled(patience=30)
    found = two.copy("configmaps", "x")
    assert found
    assert uid_of(found) == uid_of(copy)
    assert daemon.requests("configmaps") == []
    assert degraded(daemon.process) == {}


async def first_copy(two: Two, options: Mapping[str, Any] = ALL) -> Obj:
    """Run a daemon until x has a copy; return the copy."""
    async with two.daemon(MAPS, options=options) as daemon:
        return await copied(two, daemon)


@contextlib.asynccontextmanager
async def started_behind(
    two: Two, revision: int, *, seconds: float, options: Mapping[str, Any] = ALL
) -> AsyncIterator[Daemon]:
    """Yield a daemon that has begun with an older state of the virtual cluster, which has ended now.

    For these seconds it has deleted nothing on the host.
    """
    lag = two.virtual.lag(revision)
    async with two.daemon(MAPS, options=options) as daemon:
        await daemon.settled()
        await asyncio.sleep(seconds)
        assert deletions(two.host) == []

        lag.end()
        yield daemon


async def test_start_from_an_older_state_deletes_no_copy(two: Two) -> None:
    before = two.virtual.revision
    two.virtual.put(configmap("x"))
    copy = await first_copy(two)
    async with started_behind(two, before, seconds=700) as daemon:
        await in_step(two, daemon, copy)


async def test_older_labels_delete_no_copy(two: Two) -> None:
    selected = configmap("x", metadata={"labels": {"tier": "gold"}})
    options = {"configMaps": {"all": True, "selector": {"matchLabels": {"tier": "gold"}}}}
    two.virtual.put(configmap("x"))
    before = two.virtual.revision
    two.virtual.put(selected)
    copy = await first_copy(two, options)
    async with started_behind(two, before, seconds=0, options=options) as daemon:
        await in_step(two, daemon, copy)
        two.virtual.put(configmap("x"))
        await until(lambda: deletions(two.host))
        await daemon.settled()
        assert two.copy("configmaps", "x") is None


async def test_new_list_of_an_older_state_deletes_no_copy(two: Two) -> None:
    before = two.virtual.revision
    async with two.daemon(MAPS) as daemon:
        two.virtual.put(configmap("x"))
        copy = await copied(two, daemon)
        lag = two.virtual.lag(before, relist=True)
        await asyncio.sleep(700)
        assert deletions(two.host) == []
        lag.end()
        await in_step(two, daemon, copy)


async def test_older_object_of_the_name_deletes_no_copy_of_the_later_one(two: Two) -> None:
    two.virtual.put(configmap("x", {"color": "old"}))
    before = two.virtual.revision
    two.virtual.delete("configmaps", "shop/x")
    two.virtual.put(configmap("x", {"color": "new"}))
    copy = await first_copy(two)
    async with started_behind(two, before, seconds=60) as daemon:
        await in_step(two, daemon, copy)
        assert (two.copy("configmaps", "x") or {})["data"] == {"color": "new"}


async def test_end_of_an_older_object_of_the_name_deletes_no_copy_of_the_later_one(two: Two) -> None:
    """The watch shows how the older one went, but not yet that there is another one."""
    two.virtual.put(configmap("x", {"color": "old"}))
    with_older = two.virtual.revision
    two.virtual.delete("configmaps", "shop/x")
    with_none = two.virtual.revision
    two.virtual.put(configmap("x", {"color": "new"}))
    copy = await first_copy(two)
    lag = two.virtual.lag(with_older)
    async with two.daemon(MAPS) as daemon:
        await daemon.settled()
        await asyncio.sleep(60)
        later = two.virtual.lag(with_none)
        lag.end()
        await asyncio.sleep(60)
        assert deletions(two.host) == []
        later.end()
        await in_step(two, daemon, copy)


async def test_host_that_shows_an_older_state_costs_no_virtual_pod(two: Two) -> None:
    """A Pod that went on the host goes on the virtual side, too; this one didn't."""
    async with two.daemon() as daemon:
        await daemon.settled()
        before = two.host.revision
        two.virtual.put(pod("x"))
        copy = await copied(two, daemon, "pods")
        original = two.original("pods", "x")
        assert original
    lag = two.host.lag(before)
    async with two.daemon() as daemon:
        await daemon.settled()
        await asyncio.sleep(700)
        assert [line for line in deletions(two.virtual) + deletions(two.host) if "/pods/" in line] == []
        lag.end()
        await daemon.settled(patience=30)
        for now, then in ((two.copy("pods", "x"), copy), (two.original("pods", "x"), original)):
            assert now
            assert uid_of(now) == uid_of(then)


async def test_end_of_an_older_copy_costs_no_virtual_pod(two: Two) -> None:
    """The watch on the host shows how the copy of an earlier Pod went, but not yet the copy of this one."""
    two.virtual.put(pod("x"))
    async with two.daemon() as daemon:
        await copied(two, daemon, "pods")
        with_older = two.host.revision
        two.virtual.delete("pods", "shop/x")
        await until(lambda: not two.copy("pods", "x"))
        with_none = two.host.revision
        started = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
        two.virtual.put(pod("x"))
        await copied(two, daemon, "pods")
        two.host.put({**(two.copy("pods", "x") or {}), "status": started})
        await until(lambda: has_started(two.original("pods", "x") or {}))
        await daemon.settled()
    lag = two.host.lag(with_older)
    async with two.daemon() as daemon:
        await daemon.settled()
        await asyncio.sleep(60)
        before = len(writes(two.virtual))
        later = two.host.lag(with_none)
        lag.end()
        await asyncio.sleep(60)
        assert [line for line in writes(two.virtual)[before:] if line.startswith("delete")] == []
        later.end()
        await daemon.settled(patience=30)
        assert two.original("pods", "x")
        assert two.copy("pods", "x")


@pytest.mark.parametrize("how", ["while away", "while watching"])
async def test_counterpart_of_an_object_that_really_went_is_deleted(two: Two, how: str) -> None:
    two.virtual.put(configmap("x"))
    async with two.daemon(MAPS, options=ALL) as daemon:
        await copied(two, daemon)
        if how == "while watching":
            two.virtual.delete("configmaps", "shop/x")
            await until(lambda: not two.copy("configmaps", "x"), within=1)
            return
    two.virtual.delete("configmaps", "shop/x")
    async with two.daemon(MAPS, options=ALL):
        await until(lambda: not two.copy("configmaps", "x"), within=2)
