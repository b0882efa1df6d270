"""A tenant whose objects are more than the daemon has memory for: what is served goes on, in that namespace, too."""

import asyncio

import pytest
from clusters_scene import World, clusters_named, states
from harness import host_path, namespace, until
from noise import noise

from kube_envtest import Rule
from syncer.daemon.process import Process
from syncer.daemon.start import connecting
from syncer.testing import ApiServer
from syncer.testing.objects import configmap

#: Bytes of a large ConfigMap, and how many are too many for the 1 MB that each virtual cluster may take.
SIZE, MANY = 100_000, 12
HOME = "vcs"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World("bank", "shop")
    made.servers["shop"].put(namespace("quiet"))
    made.servers["shop"].put(configmap("small"))
    monkeypatch.setattr(connecting, "_connect", made.connect)
    return made


def fill(server: ApiServer) -> None:
    """Create more objects in the namespace "shop" than there is room for."""
    for number in range(MANY):
        server.put(configmap(f"big{number}", {"k": noise(SIZE)}))


def copied(world: World) -> set[str]:
    """Return the names of the large objects that have copies."""
    return {f"big{number}" for number in range(MANY) if world.has_copy("shop", f"big{number}")}


def parked(process: Process) -> dict[str, str]:
    return {request.key.name: status.reason for request, status in process.statuses.troubles()}


def has_copy_of_quiet(world: World, name: str) -> bool:
    return world.host.get("configmaps", f"{HOME}/{name}-x-quiet-x-shop") is not None


async def test_one_namespace_takes_no_room_of_others_and_its_deletions_go_through(world: World) -> None:
    async with world.served(*clusters_named("bank", "shop", every={"maxMegabytes": 1})) as (process, _):
        shop = world.servers["shop"]
        await until(lambda: world.has_copy("shop", "small"))
        fill(shop)
        await asyncio.sleep(60)
        assert states(process) == {"bank": "served", "shop": "served"}
        whole = copied(world)
        assert 0 < len(whole) < MANY
        assert parked(process).keys() == {f"big{number}" for number in range(MANY)} - whole
        assert all("no room for its" in why and "maxMegabytes" in why for why in parked(process).values())

        shop.put(configmap("late", {"k": noise(10_000)}, namespace="quiet"))
        assert await until(lambda: has_copy_of_quiet(world, "late")) < 1
        shop.delete("configmaps", "shop/small")
        assert await until(lambda: not world.has_copy("shop", "small")) < 1
        shop.put(configmap("x", {"color": "red"}))
        copy = host_path("x", "shop", HOME)
        assert await until(lambda: (world.host.get("configmaps", copy) or {})["data"] == {"color": "red"}) < 1


async def test_object_that_was_copied_and_grows_keeps_its_copy_until_it_is_deleted(world: World) -> None:
    async with world.served(*clusters_named("shop", every={"maxMegabytes": 1})) as (process, _):
        shop, copy = world.servers["shop"], host_path("x", "shop", HOME)
        await until(lambda: world.has_copy("shop"))
        before = world.host.get("configmaps", copy)
        shop.put(configmap("x", {"k": noise(500_000)}))
        await until(lambda: "x" in parked(process))
        await asyncio.sleep(600)
        assert world.host.get("configmaps", copy) == before
        shop.delete("configmaps", "shop/x")
        await until(lambda: not world.has_copy("shop"))
        assert not parked(process)


async def test_objects_that_were_left_out_are_synced_once_there_is_room(world: World) -> None:
    async with world.served(*clusters_named("shop", every={"maxMegabytes": 1})) as (process, fleet):
        fill(world.servers["shop"])
        await until(lambda: len(parked(process)) > 3)
        left = sorted({f"big{number}" for number in range(MANY)} - copied(world))
        await asyncio.sleep(60)
        read = [one.path for one in world.servers["shop"].requests if one.verb == "get"]
        assert not [path for path in read if "/big" in path], "nothing is read while there is no room"
        gone = min(copied(world))
        world.servers["shop"].delete("configmaps", f"shop/{gone}")
        await until(lambda: len(copied(world) & set(left)) == 1)
        fleet.update(clusters_named("shop", every={"maxMegabytes": 8}))
        await until(lambda: copied(world) == {f"big{number}" for number in range(MANY)} - {gone})
        assert not parked(process)


async def test_large_objects_in_work_take_a_share_of_the_memory(world: World) -> None:
    async with world.served(*clusters_named("shop", every={"maxMegabytes": 32})) as (process, fleet):
        await until(lambda: world.has_copy("shop", "small"))
        world.host.faults.add(Rule(verb="create", latency=1))
        assert await most_in_work(world, process, "few") == 2
        fleet.update(clusters_named("shop", every={"maxMegabytes": 128}))
        assert await most_in_work(world, process, "many") > 4


async def most_in_work(world: World, process: Process, name: str) -> int:
    """Create ConfigMaps of 18 KB, and return how many of them are in work at a time at most."""
    names = {f"{name}{number}" for number in range(MANY)}
    for each in names:
        world.servers["shop"].put(configmap(each, {"k": noise(18_000)}))
    most = 0
    while not all(world.has_copy("shop", each) for each in names):
        most = max(most, sum(each.key.name in names for each in process.queue.running()))
        await asyncio.sleep(0.05)
    return most


async def test_copies_stay_if_a_daemon_starts_and_there_is_no_room_for_their_objects(world: World) -> None:
    fill(world.servers["shop"])
    async with world.served(*clusters_named("shop")) as (process, _):
        await until(lambda: len(copied(world)) == MANY)
    async with world.served(*clusters_named("shop", every={"maxMegabytes": 2})) as (process, _):
        await until(lambda: bool(parked(process)))
        await asyncio.sleep(600)
        assert len(copied(world)) == MANY
        assert states(process) == {"shop": "served"}
        for number in range(MANY):
            world.servers["shop"].delete("configmaps", f"shop/big{number}")
        await until(lambda: not copied(world))
