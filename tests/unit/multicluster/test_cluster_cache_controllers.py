"""Controllers whose clusters are those of a cluster cache, in virtual time."""

import asyncio
from typing import Any

import pytest
from cache_scene import CacheScene, waiting
from fleet_scene import CONFIG_MAPS, PODS, Site, eventually, running

from syncer.api import Key
from syncer.multicluster import ClusterEvent, ClusterSource, Controller, Happening, Manager, Request
from syncer.testing.objects import pod


class Requests:
    """Notes what it is asked for, and reads it from the caches of the cluster."""

    def __init__(self, scene: CacheScene, **parts: Any) -> None:
        self.scene, self.got = scene, list[Request]()
        self.controller = Controller(self.reconcile, **parts)
        self.controller.for_every_cluster(lambda cluster: self.controller.watch_object(cluster, PODS))

    async def reconcile(self, request: Request) -> None:
        await self.scene.cache.get_client(request.cluster).get(PODS, request.key)
        self.got.append(request)

    def names(self) -> list[str]:
        return [f"{one.cluster}/{one.name}" for one in self.got]


def watches(scene: CacheScene, name: str) -> int:
    return sum(one.verb == "watch" for one in scene[name].server.requests)


async def test_controller_gets_every_cluster_of_the_cache_now_and_later_on_its_own_caches() -> None:
    scene = CacheScene("a", "b")
    for name, site in scene.sites.items():
        site.server.put(pod(f"in-{name}"))
    scene["b"].is_reachable = False
    requests = Requests(scene)
    async with scene.running() as cache, running(requests.controller):
        cache.watch("a", "pods", PODS, lambda key, obj: None)
        cache.add(requests.controller)
        await eventually(lambda: requests.names() == ["a/in-a"])
        assert list(requests.controller.clusters) == ["a"]
        assert requests.controller.clusters["a"] is cache.get_client("a")
        scene["b"].is_reachable = True
        await eventually(lambda: requests.names() == ["a/in-a", "b/in-b"])
        cache.put("c", scene.member("a"))
        await eventually(lambda: "c/in-a" in requests.names())
        assert watches(scene, "a") == 2  # a's, which it shares with the watch by name, and that of c
        assert requests.controller.clusters["c"].informers() == cache.get_client("c").informers()


async def test_requests_wait_while_a_cluster_is_disconnected_and_missed_changes_and_deletions_come_after() -> None:
    scene = CacheScene("a")
    for name in ("stays", "goes"):
        scene["a"].server.put(pod(name))
    requests = Requests(scene)
    async with scene.running() as cache, running(requests.controller):
        cache.add(requests.controller)
        await eventually(lambda: len(requests.got) == 2)
        scene["a"].refuse()
        await eventually(lambda: not requests.controller.is_ready("a"))
        assert list(requests.controller.clusters) == ["a"]
        requests.got.clear()
        requests.controller.clusters["a"].informer(PODS).show(Key("shop", "stays"))
        scene["a"].server.delete("pods", Key("shop", "goes"))
        scene["a"].server.put(pod("new"))
        await asyncio.sleep(20)
        assert requests.got == []
        scene["a"].refusals.clear()
        await eventually(lambda: sorted(requests.names()) == ["a/goes", "a/new", "a/stays"])


async def test_clusters_that_leave_the_cache_leave_its_controllers_also_while_disconnected() -> None:
    scene = CacheScene("a", "b")
    requests = Requests(scene)
    async with scene.running() as cache, running(requests.controller):
        cache.add(requests.controller)
        await eventually(lambda: set(requests.controller.clusters) == {"a", "b"})
        scene["b"].refuse()
        await eventually(lambda: not requests.controller.is_ready("b"))
        for name in ("a", "b"):
            cache.remove(name)
            assert name not in requests.controller.clusters
        await eventually(lambda: scene["a"].server.open_watches == 0)
        cache.put("a", scene.member("a"))
        scene["a"].server.put(pod("x"))
        await eventually(lambda: requests.names() == ["a/x"])
    assert requests.controller.clusters == {}


async def test_controller_that_cannot_be_engaged_costs_neither_the_connection_nor_another_controller() -> None:
    scene, another = CacheScene("a"), Site("a")
    broken, requests = Requests(scene), Requests(scene)
    broken.controller.engage(another.cluster)
    scene.cache.add(broken.controller)
    scene.cache.add(requests.controller)
    async with scene.running() as cache, running(requests.controller):
        scene["a"].server.put(pod("x"))
        await eventually(lambda: requests.names() == ["a/x"])
        assert cache.get_client("a")
        assert broken.controller.clusters == {"a": another.cluster}


async def test_manager_of_the_controller_leaves_the_clusters_of_the_cache_to_it_also_while_disconnected() -> None:
    scene = CacheScene("a")
    requests, manager = Requests(scene), Manager()
    manager.add(requests.controller)
    scene.cache.add(requests.controller)
    async with scene.running() as cache, running(manager):
        await eventually(lambda: requests.controller.is_ready("a"))
        scene["a"].refuse()
        await eventually(lambda: not requests.controller.is_ready("a"))
        await asyncio.sleep(1)
        manager.add(Controller(requests.reconcile))  # looks for clusters to be run
        assert not requests.controller.clusters["a"].is_running
        scene["a"].refusals.clear()
        scene["a"].server.put(pod("x"))
        await eventually(lambda: requests.names() == ["a/x"])
        assert cache.get_client("a").is_running


async def test_source_of_a_controller_maps_connects_and_disconnects_to_requests() -> None:
    def owners(cluster: str) -> list[Request]:
        if cluster == "odd":
            raise RuntimeError("a cluster that nobody knows")
        return [Request("home", "fleet", cluster), Request("elsewhere", "fleet", cluster)]

    scene, home = CacheScene("a", "odd"), Site("home", controllers=False)
    requests: list[Request] = []

    async def reconcile(request: Request) -> None:
        requests.append(request)

    controller = Controller(reconcile)
    controller.watch_object(home.cluster, CONFIG_MAPS)
    controller.watch_source(scene.cache.source("first", owners))
    async with running(home, controller), scene.running() as cache:
        wanted = Request("home", "fleet", "a")  # those of clusters that aren't engaged are dropped
        await eventually(lambda: requests == [wanted])
        scene["a"].refuse()
        await eventually(lambda: requests == [wanted] * 2)
        later = cache.source("later", lambda cluster: [Request("home", "later", cluster)])
        controller.watch_source(later)
        scene["a"].refusals.clear()
        await eventually(lambda: set(requests) == {wanted, Request("home", "later", "a")})
        with pytest.raises(ValueError, match="source bare maps clusters to nothing"):
            controller.watch_source(cache.source("bare"))


def test_events_that_wait_come_in_the_order_in_which_they_last_happened() -> None:
    source = ClusterSource("me", None, ())
    for happening in (Happening.CONNECTED, Happening.DISCONNECTED, Happening.CONNECTED):
        source.notify(ClusterEvent("eu", happening), now=0.0)
    assert [event.happening for event in waiting(source)] == [Happening.DISCONNECTED, Happening.CONNECTED]
