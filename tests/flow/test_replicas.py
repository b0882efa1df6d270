"""Replicas share a fleet: take-over within the Lease, hand-over without two writers."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from clusters_scene import World, clusters_named
from harness import play, until
from replicas_scene import SHARDS, Replicas

from kube_envtest import Rule
from syncer.daemon.pages.status import clusters
from syncer.daemon.start import connecting
from syncer.leaderelection.rendezvous import shard_of
from syncer.testing.objects import configmap

NAMES = ("bank", "pets", "shop", "zoo", "farm", "mill")
#: The most seconds without a leader after one has died: the Lease, an observation of it and an attempt.
GAP = 15 + 2 * 2 + 1


def scene(
    monkeypatch: pytest.MonkeyPatch, scenario: Callable[[Replicas], Coroutine[Any, Any, None]], *names: str
) -> None:
    """Play a scenario with replicas that serve these virtual clusters."""

    async def whole() -> None:
        replicas = Replicas(World(*(names or NAMES)), *clusters_named(*(names or NAMES)))
        monkeypatch.setattr(connecting, "_connect", replicas.connect)
        try:
            await scenario(replicas)
        finally:
            await replicas.end()
        assert replicas.wrong == []

    play(whole)


async def led(replicas: Replicas, *names: str, within: float = 60.0) -> float:
    """Start replicas, and wait until all virtual clusters are led and the objects there are copied."""
    for name in names:
        replicas.join(name)
    return await until(lambda: replicas.is_led() and all(map(replicas.world.has_copy, replicas.world.servers)))


async def settled(replicas: Replicas) -> None:
    await asyncio.sleep(60)
    assert replicas.is_led()


def test_two_replicas_share_the_fleet_and_each_keeps_the_other_part_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(replicas: Replicas) -> None:
        await led(replicas, "ann", "bob")
        await settled(replicas)
        assert {replicas.owner(name).name for name in NAMES} == {"ann", "bob"}
        for each in replicas.live.values():
            assert set(each.process.pairs) == set(NAMES)
            shown = {one.cluster: one.leads for one in clusters(each.process)}
            assert shown == {name: replicas.leaders(name) == [each.name] for name in NAMES}

    scene(monkeypatch, scenario)


def test_owner_is_killed_and_the_standby_takes_over_within_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(replicas: Replicas) -> None:
        await led(replicas, "ann", "bob")
        await settled(replicas)
        owner = replicas.owner("bank")
        await owner.kill()
        replicas.world.servers["bank"].put(configmap("meanwhile"))
        before = len(replicas.world.servers["bank"].requests)
        assert await until(lambda: replicas.world.has_copy("bank", "meanwhile")) < GAP
        after = list(replicas.world.servers["bank"].requests)[before:]
        assert not [one for one in after if (one.verb, one.resource) == ("list", "configmaps")]  # its caches were warm

    scene(monkeypatch, scenario)


def test_owner_that_is_frozen_past_its_lease_sends_nothing_when_it_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(replicas: Replicas) -> None:
        await led(replicas, "ann", "bob")
        await settled(replicas)
        owner = replicas.owner("bank")
        owner.is_open.clear()
        replicas.world.servers["bank"].put(configmap("late"))
        await until(lambda: replicas.leaders("bank") not in ([], [owner.name]))
        await until(lambda: replicas.world.has_copy("bank", "late"))
        replicas.world.servers["bank"].delete("configmaps", "shop/late")
        await until(lambda: not replicas.world.has_copy("bank", "late"))
        owner.is_open.set()  # a create of the copy is under way since before its lease's end
        await asyncio.sleep(10)
        assert not replicas.world.has_copy("bank", "late")
        await settled(replicas)
        assert replicas.owner("bank") is owner  # it is the first of the members again

    scene(monkeypatch, scenario)


def test_replica_that_is_cut_off_from_the_host_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(replicas: Replicas) -> None:
        await led(replicas, "ann", "bob")
        await settled(replicas)
        owner = replicas.owner("bank")
        owner.is_cut = True
        replicas.world.servers["bank"].put(configmap("meanwhile"))
        assert await until(lambda: replicas.world.has_copy("bank", "meanwhile")) < GAP
        assert not owner.shards.leads("bank")

    scene(monkeypatch, scenario)


def test_replica_that_leaves_hands_over_without_waiting_for_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(replicas: Replicas) -> None:
        await led(replicas, "ann", "bob")
        await settled(replicas)
        await replicas.owner("bank").leave()
        assert await until(replicas.is_led) < 8
        names = [one["metadata"]["name"] for one in replicas.world.host.objects("leases.coordination.k8s.io")]
        assert sum("-member-" in name for name in names) == 1

    scene(monkeypatch, scenario)


def test_replica_that_joins_takes_a_shard_once_its_caches_are_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(replicas: Replicas) -> None:
        await led(replicas, "ann", "bob")
        await settled(replicas)
        before = {name: replicas.owner(name).name for name in NAMES}
        for name in NAMES:
            replicas.world.servers[name].faults.add(Rule(verb="list", user="cat", latency=20))
        replicas.join("cat")
        await asyncio.sleep(10)
        assert {name: replicas.owner(name).name for name in NAMES} == before
        await asyncio.sleep(300)
        after = {name: replicas.owner(name).name for name in NAMES}
        moved = {name for name in NAMES if before[name] != after[name]}
        assert moved
        assert {after[name] for name in moved} == {"cat"}
        for name in NAMES:
            assert sum(name in each.process.pairs for each in replicas.live.values()) == 2

    scene(monkeypatch, scenario)


def test_hand_over_finishes_requests_in_work(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(replicas: Replicas) -> None:
        await led(replicas, "ann", "bob")
        await settled(replicas)
        owner = replicas.owner("bank")
        replicas.world.host.faults.add(Rule(verb="create", resource="configmaps", latency=4.0))
        for number in range(100):
            replicas.world.servers["bank"].put(configmap(f"c{number}"))
        await asyncio.sleep(1)
        await owner.leave()
        await until(lambda: all(replicas.world.has_copy("bank", f"c{number}") for number in range(100)), within=120)
        copies = [
            one
            for one in replicas.world.host.requests
            if one.verb == "create" and one.resource == "configmaps" and one.status == 409
        ]
        assert copies == []

    scene(monkeypatch, scenario)


@pytest.mark.parametrize("seed", range(4))
def test_never_two_writers_whatever_happens(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    async def scenario(replicas: Replicas) -> None:
        rng, number = random.Random(seed), 0
        await led(replicas, "r0", "r1")
        for _ in range(25):
            each = rng.choice(list(replicas.live.values()))
            match rng.choice(("join", "kill", "leave", "freeze", "cut", "write", "write")):
                case "join" if len(replicas.live) < 4:
                    number += 1
                    replicas.join(f"r{number + 1}")
                case "kill" if len(replicas.live) > 1:
                    await each.kill()
                case "leave" if len(replicas.live) > 1 and each.is_open.is_set():
                    await each.leave()
                case "freeze":
                    each.is_open.clear()
                    asyncio.get_running_loop().call_later(rng.uniform(1, 40), each.is_open.set)
                case "cut":
                    each.is_cut = not each.is_cut
                case _:
                    replicas.world.servers[rng.choice(NAMES)].put(
                        configmap(f"o{rng.randrange(20)}", {"v": str(rng.random())})
                    )
            await asyncio.sleep(rng.uniform(0, 12))
            assert all(len(replicas.leaders(name)) <= 1 for name in NAMES)
        for each in replicas.live.values():
            each.is_cut = False
            each.is_open.set()
        await asyncio.sleep(120)
        assert replicas.is_led()
        for name in NAMES:
            wanted = {
                one["metadata"]["name"]: one.get("data") for one in replicas.world.servers[name].objects("configmaps")
            }
            assert all(replicas.world.has_copy(name, each) for each in wanted if each == "x" or each.startswith("o"))

    scene(monkeypatch, scenario)


def test_virtual_clusters_of_these_tests_are_in_several_shards() -> None:
    assert len({shard_of(name, SHARDS) for name in NAMES}) > 3
