"""Mass deletions are held until a person confirms them; intended deletions never are."""

import asyncio
import contextlib

import pytest
from custom_scene import there
from harness import Daemon, Two, host_path, namespace, until
from patrol_scene import (
    PAST,
    blind,
    deletions,
    edit_unseen,
    in_step,
    outcomes,
    patrolled,
    put_in_step,
    scanned,
    shown,
)
from rules_scene import edit
from shop_scene import forget, many, status, the_copy, the_original
from small_syncers import copies

from kube_envtest import Rule
from syncer.api import Obj, Side
from syncer.daemon.pages.status import degraded
from syncer.engine.patrol.patroller import GRACE_SECONDS
from syncer.engine.patrol.patrollers import confirm
from syncer.engine.reconcile.policies.breaker import CircuitBreaker
from syncer.resources.kinds import CONFIG_MAPS
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, pod


def breaker(daemon: Daemon) -> CircuitBreaker:
    """Return the breaker of the pair."""
    return daemon.process.pairs["vc"].policies.breaker


def restored(two: Two, *, without: int, again: int = 0, down: float = 5) -> None:
    """Let the virtual API server come back without so many ConfigMaps, some made again; all
    watches have to list again.
    """
    two.virtual.restart(down=down)
    forget(two, without)
    many(two, again)
    two.virtual.compact()


@pytest.mark.parametrize("how", ["start", "relist", "scan"])
async def test_too_many_deletions_wait_for_confirmation(two: Two, how: str) -> None:
    many(two, 200)
    async with contextlib.AsyncExitStack() as stack:
        daemon = await stack.enter_async_context(in_step(two))
        match how:
            case "start":
                await stack.aclose()
                forget(two, 150)
                daemon = await stack.enter_async_context(patrolled(two))
            case "relist":
                restored(two, without=150)
                await asyncio.sleep(60)
            case "scan":
                blind(two)
                forget(two, 150)
                await asyncio.sleep(PAST)
                scan = await scanned(daemon)
                assert set(outcomes(scan)) == {("orphan", "host", "held")}
                assert len(scan.findings) == 150
        await daemon.settled()
        assert len(copies(two)) == 201 - (two.copy("configmaps", "kube-root-ca.crt") is None)
        assert "held by the deletion breaker: 150 of 20" in status(daemon, "c7").reason
        assert "syncer patrol --confirm" in degraded(daemon.process)["vc", "configmaps"]
        assert shown(daemon)['syncer_deletions_held{cluster="vc",side="host",syncer="configmaps"}'] == 150
        if how != "scan":  # where no watch shows anything
            two.virtual.put(configmap("another"))
            await until(lambda: two.copy("configmaps", "another"))

        [(cluster, stopped)] = confirm(
            daemon.process, daemon.process.pairs.values(), lambda syncer: syncer == "configmaps"
        )
        assert cluster == "vc"
        assert len(stopped.objects) == 150
        store = daemon.process.pairs["vc"].informers.store(Side.VIRTUAL, CONFIG_MAPS)
        breaker(daemon).listed(store)  # a list meanwhile, which shows the same to be missing
        await until(lambda: len(copies(two)) <= 53)
        await daemon.settled()
        assert ("vc", "configmaps") not in degraded(daemon.process)
        assert outcomes(await scanned(daemon)) == []


async def test_deletion_of_an_object_that_returns_is_released(two: Two) -> None:
    many(two, 200)
    await put_in_step(two)
    forget(two, 150)
    async with in_step(two) as daemon:
        assert len(breaker(daemon).stopped) == 1
        many(two, 150)
        for each in range(150):  # as if they had come back with the uids that they had
            uid = the_original(two, "configmaps", f"c{each}")["metadata"]["uid"]
            mark = {"metadata": {"annotations": {"vsyncer.dev/virtual-uid": uid}}}
            edit(two, "host", "configmaps", mark, f"c{each}")
        await daemon.settled()
        assert outcomes(await scanned(daemon)) == []
        assert breaker(daemon).stopped == {}
        assert len(copies(two)) >= 200


async def test_scan_from_before_a_list_permits_no_deletion(two: Two) -> None:
    many(two, 200)
    async with in_step(two) as daemon:
        [pair] = daemon.process.pairs.values()
        await edit_unseen(two, name="c199")
        scanning = asyncio.create_task(scanned(daemon))
        await asyncio.sleep(GRACE_SECONDS / 2)  # it has found the edit, and waits whether that is still there
        two.virtual.faults.clear()
        restored(two, without=150, down=0)
        await scanning
        await asyncio.sleep(400)  # beyond the slow timer of what is parked
        assert deletions(two) == []
        assert "150 of 200 configmaps" in degraded(daemon.process)["vc", "configmaps"]
        assert all(pair.policies.breaker.scanned(pair.controllers["configmaps"], []))
        assert ("vc", "configmaps") in degraded(daemon.process)


@pytest.mark.parametrize("half_way", [False, True], ids=["read to its end", "fails half way"])
async def test_objects_of_a_page_are_not_deleted_before_the_list_is_complete(two: Two, half_way: bool) -> None:
    """All virtual objects are there with other uids, as after a restore from manifests; the list comes in pages."""
    many(two, 1200)
    two.virtual.put(configmap("first"))
    await put_in_step(two)
    two.virtual.delete("configmaps", "shop/first")
    async with patrolled(two) as daemon:
        await until(lambda: two.copy("configmaps", "first") is None)  # so what the start listed has been counted
        await daemon.settled()
        sent_before = len(two.host.requests)
        restored(two, without=1200, again=1200)
        pages = two.virtual.faults.add(Rule(verb="list", resource="configmaps", latency=2.0))
        if half_way:
            await until(lambda: pages.hits >= 2)
            await asyncio.sleep(1)
            failing = two.virtual.faults.add(Rule(verb="list", resource="configmaps", status=500))
            await asyncio.sleep(60)
            assert deletions(two, sent_before) == []
            two.virtual.faults.remove(failing)
        await asyncio.sleep(100)
        assert deletions(two, sent_before) == []
        assert "1200 of 1200 configmaps" in degraded(daemon.process)["vc", "configmaps"]


async def test_pause_hides_nothing_from_the_breaker(two: Two) -> None:
    """Deletions go on during a pause by a tenant, and so does the count of them."""

    def pause(value: str | None) -> None:
        mark = {"metadata": {"annotations": {"vsyncer.dev/paused": value}}}
        two.virtual.put(merged(there(two.virtual, "namespaces", "shop"), mark))

    two.virtual.put(namespace("other"))
    two.virtual.put(configmap("z", namespace="other"))
    many(two, 200)
    await put_in_step(two)
    pause("true")
    forget(two, 200)
    two.virtual.delete("configmaps", "other/z")
    sent_before = len(two.host.requests)
    async with in_step(two) as daemon:
        for value in (None, "true"):
            assert len(deletions(two, sent_before)) == 0
            assert "201 of 201 configmaps" in degraded(daemon.process)["vc", "configmaps"]
            pause(value)
            await asyncio.sleep(60)


async def test_deletion_by_a_tenant_is_never_stopped(two: Two) -> None:
    many(two, 200)
    async with in_step(two) as daemon:
        forget(two, 200)
        await until(lambda: len(copies(two)) <= 1)
        many(two, 200)
        await daemon.settled()
        assert outcomes(await scanned(daemon)) == []  # everything has just been listed
        for each in range(200):  # deleted and made again at once
            two.virtual.delete("configmaps", f"shop/c{each}")
            two.virtual.put(configmap(f"c{each}", {"new": "1"}))
        await daemon.settled()
        assert breaker(daemon).stopped == {}
        assert all(the_copy(two, "configmaps", f"c{each}")["data"] == {"new": "1"} for each in range(200))


async def test_few_of_many_and_many_of_few_are_not_stopped(two: Two) -> None:
    many(two, 200)
    await put_in_step(two)
    forget(two, 99)
    async with in_step(two):
        assert len(copies(two)) <= 102
    forget(two, 200, since=99)
    async with in_step(two, breaker={"percent": 100, "count": 10}):
        assert len(copies(two)) <= 1, "no more than all can go"


async def test_pods_that_run_are_not_deleted_because_a_host_comes_back_empty(two: Two) -> None:
    running: Obj = {
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"},
    }
    for each in range(12):
        two.virtual.put(pod(f"p{each}"))
    async with patrolled(two) as daemon:
        await until(lambda: two.copy("pods", "p11"))
        for each in range(12):
            edit(two, "host", "pods", running, f"p{each}")
        await daemon.settled()
    for each in range(12):
        two.host.delete("pods", host_path(f"p{each}"))
    async with in_step(two, breaker={"count": 5}) as daemon:
        assert all(two.original("pods", f"p{each}") for each in range(12))
        assert ("pods", "virtual") in breaker(daemon).stopped
        confirm(daemon.process, daemon.process.pairs.values(), lambda syncer: True)
        await until(lambda: not any(two.original("pods", f"p{each}") for each in range(12)))
