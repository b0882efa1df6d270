"""A daemon with several virtual clusters: a fault of one delays no other."""

import asyncio
import contextlib
from collections import Counter
from dataclasses import replace
from typing import Never

import clusters_scene
import pytest
from clusters_scene import HOME, World, clusters_named, states
from harness import admin, built_in, play, until
from prometheus_client import generate_latest

from kube_envtest import Rule
from syncer.api import Key, Refused, Side, SyncRequest
from syncer.api.errors import Problem
from syncer.api.networking import ApiServerAddress
from syncer.clusters.kubeconfig import NoKubeconfig
from syncer.config import config_with
from syncer.daemon.fleet import fleet_memory
from syncer.daemon.fleet.fleet import LAST_DELAY
from syncer.daemon.fleet.fleet_memory import DEFAULT_BYTES
from syncer.daemon.pages.control import selection
from syncer.daemon.pages.endpoints import _caches, _up, _virtual
from syncer.daemon.pages.status import ClusterState, clusters, unfilled
from syncer.daemon.start import api_server, connecting, startup
from syncer.daemon.unserved import NOT_BEGUN
from syncer.engine.controllers.lifecycle import LAST_LOOK
from syncer.engine.stores import identity
from syncer.names import SingleNamespace
from syncer.testing.objects import configmap


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World("bank", "pets", "shop")
    monkeypatch.setattr(connecting, "_connect", made.connect)
    return made


#: So many objects that there is no room for them in 1 MB, not even without their contents.
TOO_MANY = 900


def put_too_many(world: World) -> None:
    for number in range(TOO_MANY):
        world.servers["shop"].put(configmap(f"many{number}", {"k": "x" * 5_000}))


def delete_them(world: World) -> None:
    for number in range(TOO_MANY):
        world.servers["shop"].delete("configmaps", f"shop/many{number}")


async def test_each_virtual_cluster_is_served_in_one_namespace(world: World) -> None:
    async with world.served(*clusters_named("bank", "pets", "shop")) as (process, _):
        await until(lambda: all(map(world.has_copy, world.servers)))
        assert states(process) == dict.fromkeys(world.servers, "served")


async def test_each_is_asked_only_once_at_a_start_and_the_host_once_for_all(world: World) -> None:
    """Apart from the lists, which are each cluster's own."""
    async with world.served(*clusters_named("bank", "pets", "shop")):
        await until(lambda: all(map(world.has_copy, world.servers)))
        for server in (world.host, *world.servers.values()):
            asked = Counter(one.path for one in server.requests if one.verb == "get")
            assert set(asked.values()) == {1}, asked
            assert {"/version", "/api", "/apis", f"/api/v1/namespaces/{HOME}"} <= asked.keys()
        foreign = [one for one in world.host.requests if one.verb == "list"]
        assert len(foreign) == 2 * len(world.servers)


async def test_silent_cluster_is_served_once_it_answers_and_delays_no_other(world: World) -> None:
    world.cut.add("pets")
    async with world.served(*clusters_named("bank", "pets", "shop")) as (process, _):
        assert await until(lambda: world.has_copy("bank") and world.has_copy("shop")) < 5
        assert states(process)["pets"] == "starting"
        await until(lambda: process.unserved.clusters["pets"] is not NOT_BEGUN, within=200)
        assert "refused" in process.unserved.clusters["pets"].message
        assert _up(process)["pets", "virtual"] == 0
        world.cut.clear()
        await until(lambda: world.has_copy("pets"), within=200)
        assert states(process) == dict.fromkeys(world.servers, "served")
        assert not process.unserved.clusters


async def test_cluster_lost_later_is_silent_and_the_others_go_on(world: World) -> None:
    async with world.served(*clusters_named("bank", "pets", "shop")) as (process, _):
        await until(lambda: all(map(world.has_copy, world.servers)))
        world.cut.add("pets")
        world.servers["pets"].cut_watches()
        await until(lambda: states(process)["pets"] == "silent")
        world.servers["bank"].put(configmap("later"))
        await until(lambda: world.has_copy("bank", "later"))
        assert states(process) == {"bank": "served", "pets": "silent", "shop": "served"}


async def test_cluster_claimed_by_another_host_namespace_fails_alone(world: World) -> None:
    await identity.claim(
        admin(world.servers["pets"], Side.VIRTUAL),
        replace(clusters_named("pets")[0], host_namespace="other").settings(),
        translator="single-namespace",
        host=admin(world.host, Side.HOST),
        copied=(),
    )
    async with world.served(*clusters_named("bank", "pets", "shop")) as (process, _):
        await until(lambda: world.has_copy("bank") and world.has_copy("shop"))
        await asyncio.sleep(30)
        [pets] = [each for each in clusters(process) if each.cluster == "pets"]
        assert (pets.state, "other" in pets.reason) == (ClusterState.FAILING, True)
        with pytest.raises(Refused, match=r"virtual cluster pets can't be served at present: .*other"):
            selection(process, cluster="pets")
        assert not world.has_copy("pets")


async def test_joining_and_leaving_clusters_disturb_no_other(world: World) -> None:
    bank, pets, shop = clusters_named("bank", "pets", "shop")
    async with world.served(bank, pets) as (process, fleet):
        await until(lambda: world.has_copy("bank") and world.has_copy("pets"))
        before = len(world.servers["bank"].requests)
        fleet.update([bank, shop])
        await until(lambda: world.has_copy("shop") and "pets" not in process.pairs)
        world.servers["pets"].put(configmap("late"))
        await asyncio.sleep(60)
        assert states(process) == {"bank": "served", "shop": "served"}
        assert world.has_copy("pets")
        assert not world.has_copy("pets", "late")
        lists = [one for one in list(world.servers["bank"].requests)[before:] if one.verb == "list"]
        assert lists == []
        assert "pets" not in str(process.queue.depths())


async def test_cluster_with_changed_options_restarts_alone(world: World) -> None:
    bank, shop = clusters_named("bank", "shop")
    off = {"sync": {"toHost": {"configMaps": {"all": True, "enabled": False}}}}
    async with world.served(bank, shop) as (process, fleet):
        await until(lambda: world.has_copy("bank") and world.has_copy("shop"))
        untouched = process.pairs["bank"]
        fleet.update([bank, clusters_named("shop", **off)[0]])
        await until(lambda: "shop" in process.pairs and not process.pairs["shop"].controllers)
        world.servers["shop"].put(configmap("late"))
        await asyncio.sleep(30)
        assert process.pairs["bank"] is untouched
        assert not world.has_copy("shop", "late")


async def test_cluster_with_the_kubeconfig_of_another_server_restarts_alone(world: World) -> None:
    async with world.served(*clusters_named("bank", "shop")) as (process, _):
        await until(lambda: world.has_copy("bank") and world.has_copy("shop"))
        bank, shop = process.pairs["bank"], process.pairs["shop"]
        world.moved["shop"]()
        await until(lambda: process.pairs.get("shop") not in (None, shop) and not unfilled(process))
        assert process.pairs["bank"] is bank
        world.servers["shop"].put(configmap("later"))
        await until(lambda: world.has_copy("shop", "later"))


async def test_health_page_names_no_host_namespace_while_a_cache_is_not_filled(world: World) -> None:
    world.servers["bank"].faults.add(Rule(verb="list", resource="configmaps", latency=20.0))
    world.host.faults.add(Rule(verb="list", resource="configmaps", latency=20.0))
    async with world.served(*clusters_named("bank")) as (process, _):
        await until(lambda: "host configmaps" in (_caches(process).get("bank") or ""))
        assert clusters_scene.HOME not in (_caches(process)["bank"] or "")


async def test_series_and_requests_of_a_leaving_cluster_are_removed(world: World) -> None:
    bank, shop = clusters_named("bank", "shop")
    async with world.served(bank, shop) as (process, fleet):
        await until(lambda: world.has_copy("bank") and world.has_copy("shop"))
        stores = process.pairs["shop"].informers
        fleet.update([bank])
        await until(lambda: "shop" not in process.pairs)
        assert stores.budget.used == 0
        assert await process.workers.handle(SyncRequest("shop", "configmaps", Key("shop", "x")), 0.0) == (0, 0.0)
        text = generate_latest(process.metrics.registry).decode()
        assert ('cluster="bank"' in text, 'cluster="shop"' in text) == (True, False)


async def test_cluster_with_too_large_objects_is_not_served_until_they_shrink(world: World) -> None:
    async with world.served(*clusters_named("bank", "shop", every={"maxMegabytes": 1})) as (process, _):
        await until(lambda: world.has_copy("bank") and world.has_copy("shop"))
        put_too_many(world)
        await until(lambda: states(process)["shop"] == "failing")
        [shop] = [each for each in clusters(process) if each.cluster == "shop"]
        assert "more than 1 MB of the daemon's memory (maxMegabytes)" in shop.reason
        before = len(world.servers["shop"].requests)
        await asyncio.sleep(600)
        assert len(world.servers["shop"].requests) - before < 600  # it is tried again, and not all the time
        world.servers["bank"].put(configmap("later"))
        assert await until(lambda: world.has_copy("bank", "later")) < 1
        delete_them(world)
        await until(lambda: states(process) == {"bank": "served", "shop": "served"}, within=200)
        world.servers["shop"].put(configmap("later"))
        await until(lambda: world.has_copy("shop", "later"))


async def test_memory_has_a_limit_by_default_if_there_are_several(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_memory, "memory_limit", lambda: 0)
    bank, shop = clusters_named("bank", "shop")
    async with world.served(bank) as (process, fleet):
        await until(lambda: world.has_copy("bank"))
        assert process.pairs["bank"].informers.budget.most == 0
        fleet.update([bank, shop])
        await until(lambda: world.has_copy("shop"))
        most = {name: pair.informers.budget.most for name, pair in process.pairs.items()}
        assert most == dict.fromkeys(("bank", "shop"), DEFAULT_BYTES)


async def test_cluster_that_leaves_before_its_answer_leaves_nothing_running(world: World) -> None:
    bank, shop = clusters_named("bank", "shop")
    world.servers["shop"].faults.add(Rule(reset="before"))
    async with world.served(bank) as (_, fleet):
        await until(lambda: world.has_copy("bank"))
        await asyncio.sleep(20)
        tasks = len(asyncio.all_tasks())
        fleet.update([bank, shop])
        await asyncio.sleep(20)
        assert world.servers["shop"].requests
        fleet.update([bank])
        await asyncio.sleep(120)
        assert len(asyncio.all_tasks()) == tasks


async def test_only_cluster_with_too_large_objects_is_served_again_after_they_shrink(world: World) -> None:
    async with world.served(*clusters_named("shop", every={"maxMegabytes": 1})) as (process, _):
        await until(lambda: world.has_copy("shop"))
        put_too_many(world)
        await until(lambda: states(process)["shop"] == "failing")
        delete_them(world)
        await until(lambda: states(process) == {"shop": "served"}, within=200)


async def test_only_cluster_may_take_half_of_the_containers_memory(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_memory, "memory_limit", lambda: 512 << 20)
    async with world.served(*clusters_named("bank")) as (process, _):
        await until(lambda: world.has_copy("bank"))
        assert process.pairs["bank"].informers.budget.most == 256 << 20


async def test_only_cluster_that_is_cut_off_during_its_start_is_retried(world: World) -> None:
    world.servers["shop"].faults.add(Rule(path="/apis*", reset="before", count=2))
    async with world.served(*clusters_named("shop")) as (process, _):
        await until(lambda: world.has_copy("shop"))
        assert states(process) == {"shop": "served"}


@pytest.mark.parametrize("waits", [True, False])
def test_only_cluster_waits_for_its_kubeconfig_if_configured(
    world: World, monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    async def scenario() -> None:
        monkeypatch.setattr(connecting, "_connect", missing)
        async with world.served(*clusters_named("shop", every={"waitForKubeconfig": waits})) as (process, _):
            await asyncio.sleep(1.0)
            assert waits, "otherwise it ends the daemon"
            assert _virtual(process) == {"shop": "there is no kubeconfig shop.kubeconfig"}
            monkeypatch.setattr(connecting, "_connect", world.connect)
            await asyncio.sleep(2 * LAST_DELAY)
            assert world.has_copy("shop")

    def missing(*_: object) -> Never:
        raise NoKubeconfig(Problem("there is no such file", file="shop.kubeconfig"))

    with contextlib.nullcontext() if waits else pytest.raises(NoKubeconfig):
        play(scenario)


async def test_cluster_that_has_not_begun_is_not_ready(world: World) -> None:
    async with world.served() as (process, fleet):
        fleet.update(clusters_named("bank", "shop"))
        world.cut |= {"bank", "shop"}
        assert [_virtual(process), states(process)] == [{}, {}]
        await asyncio.sleep(0.01)
        assert states(process) == {"bank": "starting", "shop": "starting"}
        assert set(_caches(process)) == {"bank", "shop"}
        assert None not in _caches(process).values()


async def test_address_of_pods_that_the_start_finds_is_given_to_the_virtual_service(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def found(*_: object) -> ApiServerAddress:
        return ApiServerAddress(host="10.96.7.7", port=443)

    monkeypatch.setattr(
        clusters_scene, "MODEL", config_with(built_in("configmaps", "services"), translator=SingleNamespace)
    )
    monkeypatch.setattr(api_server, "is_needed", lambda settings: True)
    monkeypatch.setattr(api_server, "find", found)
    monkeypatch.setattr(startup, "login_to", lambda cluster: None)
    async with world.served(*clusters_named("shop")):
        server = world.servers["shop"]
        await until(lambda: server.get("services", "default/kubernetes")["spec"]["clusterIP"] == "10.96.7.7")  # type: ignore[index]


async def test_limit_of_memory_changes_without_a_restart(world: World) -> None:
    async with world.served(*clusters_named("bank", "shop")) as (process, fleet):
        await until(lambda: world.has_copy("bank") and world.has_copy("shop"))
        before = dict(process.pairs)
        fleet.update(clusters_named("bank", "shop", every={"maxMegabytes": 7}))
        await asyncio.sleep(30)
        assert process.pairs == before
        assert {pair.informers.budget.most for pair in before.values()} == {7 << 20}


async def test_discovery_of_the_host_is_shared(world: World) -> None:
    """Also by those that look again and again, as a kind that they wait for isn't served."""
    waiting = {"sync": {"toHost": {"configMaps": {"all": True}}, "custom": {"widgets.example.org": {}}}}

    def looks() -> int:
        return sum(one.path == "/apis" for one in world.host.requests)

    async with world.served(*clusters_named("bank", "pets", "shop", **waiting)):
        await until(lambda: all(map(world.has_copy, world.servers)))
        assert looks() == 1
        await asyncio.sleep(3600)
        assert looks() < 3600 / LAST_LOOK + 20


async def test_cluster_that_leaves_finishes_its_requests_in_work(world: World) -> None:
    bank, shop = clusters_named("bank", "shop")

    def working() -> list[SyncRequest]:
        return [request for request in process.queue.running() if request.cluster == "shop"]

    async with world.served(bank, shop) as (process, fleet):
        await until(lambda: world.has_copy("bank") and world.has_copy("shop"))
        world.host.faults.add(Rule(verb="create", resource="configmaps", latency=5.0))
        world.servers["shop"].put(configmap("late"))
        await until(working)
        fleet.update([bank])
        await until(lambda: "shop" not in process.pairs)
        assert working() == []
        assert world.has_copy("shop", "late")
