"""Syncers that are told of clusters which come and go, with parts that each may leave out."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator

import pytest
from cache_scene import CacheScene
from fleet_scene import PODS, SECRETS, Site, eventually, leaving_nothing, running

from kube_envtest import Rule
from syncer.api import AlreadyExists, Conflict, Key, NotFound, Resource
from syncer.multicluster import (
    Cluster,
    ClusterNotFound,
    Controller,
    ControllerListener,
    ListenedClusters,
    MultiClusterSyncer,
    PatrolOptions,
    PeriodicTask,
    Request,
    State,
    WatchOptions,
)
from syncer.testing.objects import crd, pod, secret

FOOS = Resource("example.org/v1", "Foo", "foos")
CRD = crd("foos.example.org")


def foo(name: str, namespace: str = "shop", **parts: object) -> dict[str, object]:
    return {"apiVersion": "example.org/v1", "kind": "Foo", "metadata": {"name": name, "namespace": namespace}} | parts


class Foos(MultiClusterSyncer):
    """Copies the spec down, and the status up."""

    resource = FOOS
    patrols = 0

    async def reconcile(self, request: Request) -> None:
        obj = await self.cluster(request.cluster).get(FOOS, request.key)
        copy = Key(f"vc-{request.cluster}", request.name)
        if obj is None or obj["metadata"]["uid"] != request.uid:
            with contextlib.suppress(NotFound):
                await self.host.delete(FOOS, copy)
            return
        with contextlib.suppress(AlreadyExists):
            await self.host.create(FOOS, foo(copy.name, copy.namespace, spec=obj.get("spec", {})))

    async def back_populate(self, request: Request) -> None:
        copy = await self.host.get(FOOS, request.key)
        if copy and copy.get("status"):
            cluster = self.cluster(request.namespace.removeprefix("vc-"))
            await cluster.patch(FOOS, Key("shop", request.name), {"status": copy["status"]}, subresource="status")

    async def patrol(self) -> None:
        self.patrols += 1


class Scene:
    def __init__(self) -> None:
        self.host = Site("host", CRD, secret("s", namespace="vc-eu"), secret("s", namespace="vc-us"))
        self.eu, self.us = (Site(name, CRD, foo("a", spec={"from": name})) for name in ("eu", "us"))
        self.foos = Foos(self.host.cluster, patrol_options=PatrolOptions(period=50.0))
        self.clusters = ListenedClusters([self.foos.listener])

    def copy(self, cluster: str, name: str = "a") -> dict[str, object] | None:
        return self.host.server.get("foos.example.org", Key(f"vc-{cluster}", name))

    @contextlib.asynccontextmanager
    async def playing(self) -> AsyncIterator[None]:
        async with running(self.host, self.foos):
            try:
                yield
            finally:
                await self.clusters.close()


async def test_syncer_copies_custom_resources_of_clusters_that_come_and_go() -> None:
    scene = Scene()
    async with scene.playing():
        scene.clusters.add(scene.eu.cluster)
        await eventually(lambda: scene.copy("eu"))
        scene.clusters.add(scene.us.cluster)
        scene.clusters.add(scene.us.cluster)
        await eventually(lambda: scene.copy("us"))
        status = {"phase": "Ready"}
        await scene.host.new_client().patch(FOOS, Key("vc-us", "a"), {"status": status}, subresource="status")
        await eventually(
            lambda: (scene.us.server.get("foos.example.org", Key("shop", "a")) or {}).get("status") == status
        )
        scene.clusters.remove("us")
        scene.clusters.remove("us")
        with pytest.raises(ClusterNotFound):
            scene.foos.cluster("us")
        await eventually(lambda: scene.us.server.open_watches == 0)
        scene.eu.server.put(foo("b"))
        scene.us.server.put(foo("b"))
        await eventually(lambda: scene.copy("eu", "b"))
        assert scene.copy("us", "b") is None
        assert scene.foos.cluster("eu").informer(FOOS).synced


async def test_clusters_of_a_cache_begin_when_they_are_connected_and_end_when_they_have_left() -> None:
    """While one is disconnected its requests wait; what was made or deleted meanwhile is seen."""
    scene, cached = Scene(), CacheScene("eu", "us", probe_interval=1, probe_threshold=1)
    for name, site in cached.sites.items():
        site.server.put(CRD)
        site.server.put(foo("a", spec={"from": name}))
    async with scene.playing(), cached.running():
        following = asyncio.create_task(scene.clusters.follow(cached.cache))
        await eventually(lambda: scene.copy("eu") and scene.copy("us"))
        cached["eu"].refuse("/", count=2)
        engaged = scene.foos.downward._engaged["eu"]
        await eventually(lambda: engaged.is_on_hold)
        assert cached.cache.get_status("eu").state is not State.CONNECTED
        cached["eu"].server.put(foo("b"))
        cached["eu"].server.delete("foos.example.org", Key("shop", "a"))
        await eventually(lambda: scene.copy("eu", "b"))
        await eventually(lambda: scene.copy("eu") is None)
        assert scene.foos.downward._engaged["eu"] is engaged, "it was held, and not removed"
        assert not engaged.is_on_hold
        cached.static.remove("us")
        await eventually(lambda: "us" not in scene.foos.downward.clusters)
        cached["us"].server.put(foo("b"))
        await asyncio.sleep(60)
        assert scene.copy("us", "b") is None
        assert set(scene.foos.downward.clusters) == {"eu"}
        following.cancel()


async def test_cluster_begins_when_its_caches_are_filled_and_others_do_not_wait() -> None:
    calls: list[tuple[str, str, bool]] = []

    class Listener:
        def add_cluster(self, cluster: object) -> None:
            calls.append(("add", str(cluster), cluster.informer(FOOS).synced))  # type: ignore[attr-defined]

        def watch_cluster(self, cluster: object) -> None:
            calls.append(("watch", str(cluster), cluster.informer(FOOS).synced))  # type: ignore[attr-defined]
            raise ValueError("the others are told nevertheless")

        def remove_cluster(self, cluster: object) -> None:
            calls.append(("remove", str(cluster), True))

    scene = Scene()
    scene.clusters = ListenedClusters([Listener(), scene.foos.listener])
    scene.eu.server.faults.add(Rule(reset="before"))
    async with scene.playing():
        scene.clusters.add(scene.eu.cluster)
        scene.clusters.add(scene.us.cluster)
        await eventually(lambda: scene.copy("us"))
        assert calls == [("add", "eu", False), ("add", "us", False), ("watch", "us", True)]
        scene.clusters.remove("eu")
        assert calls[3:] == [("remove", "eu", True)]


async def test_cluster_that_cannot_be_run_is_named_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    scene = Scene()
    async with scene.playing(), running(scene.eu):
        scene.clusters.add(scene.eu.cluster)
        scene.clusters.add(scene.us.cluster)
        await eventually(lambda: scene.copy("us"))
        assert scene.copy("eu") is None
    output = capsys.readouterr().err
    assert "a cluster has ended by itself" in output
    assert "cluster eu runs already" in output


async def test_workers_wait_for_the_hosts_cache() -> None:
    scene = Scene()
    scene.host.server.faults.add(slow := Rule(verb="list", resource="foos", status=503))
    async with scene.playing():
        scene.clusters.add(scene.eu.cluster)
        await asyncio.sleep(60)
        assert scene.copy("eu") is None
        assert scene.foos.patrols == 0
        scene.host.server.faults.remove(slow)
        await eventually(lambda: scene.copy("eu"))
        assert scene.foos.patrols >= 1


async def test_object_and_its_successor_of_the_same_name_are_two_requests() -> None:
    site, requests = Site("eu"), []

    async def reconcile(request: Request) -> None:
        requests.append(request)

    for attach_uid in (True, False):
        controller = Controller(reconcile)
        listener = ControllerListener(controller, SECRETS, WatchOptions(namespaces=("shop",)), attach_uid=attach_uid)
        listener.add_cluster(site.cluster)
        async with running(site):
            await site.cluster.informer(SECRETS).filled()
            listener.watch_cluster(site.cluster)
            site.server.put(secret("a"))
            await site.cluster.informer(SECRETS).filled()
            await eventually(lambda: len(site.cluster.informer(SECRETS)) == 1)
            site.server.delete("secrets", Key("shop", "a"))
            site.server.put(secret("a"))
            await asyncio.sleep(1)
            site.server.delete("secrets", Key("shop", "a"))
            async with running(controller):
                await eventually(lambda: requests)
                await asyncio.sleep(5)
            listener.remove_cluster(site.cluster)
        assert len(requests) == (2 if attach_uid else 1)
        assert len({each.uid for each in requests}) == len(requests)
        assert all(bool(each.uid) is attach_uid for each in requests)
        requests.clear()


async def test_each_part_can_be_tried_once_on_clusters_with_faults() -> None:
    scene = Scene()
    scene.foos.listener.watch_cluster(scene.eu.cluster)
    async with running(scene.host, scene.eu):
        uid = (await scene.eu.cluster.list(FOOS))[0]["metadata"]["uid"]
        await scene.host.cluster.list(FOOS)
        scene.host.server.faults.add(Rule(verb="create", resource="foos", status=409, count=1))
        with pytest.raises(Conflict):
            await scene.foos.reconcile(Request("eu", "shop", "a", uid))
        await scene.foos.reconcile(Request("eu", "shop", "a", uid))
        assert [one.verb for one in scene.host.server.requests if one.verb not in ("get", "list", "watch")] == [
            "create"
        ] * 2
        assert scene.copy("eu")


class Idle(MultiClusterSyncer):
    resource = PODS


async def test_parts_that_are_not_overridden_do_nothing() -> None:
    host, site = Site("host"), Site("eu", pod("a"))
    idle = Idle(host.cluster)
    clusters = ListenedClusters([idle.listener])
    async with running(host, idle):
        clusters.add(site.cluster)
        await asyncio.sleep(200)
        assert idle.upward.clusters == {}
        assert await idle.back_populate(Request("host", "", "x")) is None
        await idle.patrol()
        await clusters.close()
    assert {one.verb for one in (*host.server.requests, *site.server.requests)} <= {"get", "list", "watch"}


async def test_patroller_has_a_period_and_survives_its_errors() -> None:
    times: list[float] = []

    async def patrol() -> None:
        times.append(asyncio.get_running_loop().time())
        raise ValueError("a bug")

    patroller = PeriodicTask(patrol, PatrolOptions(name="foos", period=20.0))
    async with running(patroller):
        await asyncio.sleep(100)
    assert times[0] == 0
    assert 5 <= len(times) <= 6
    assert PeriodicTask(patrol).period == PeriodicTask(patrol, PatrolOptions(period=0)).period == 60.0
    assert patroller.name == "foos"


async def test_syncer_without_a_resource_and_patroller_without_a_function_are_refused() -> None:
    with pytest.raises(TypeError, match="MultiClusterSyncer has no `resource`"):
        MultiClusterSyncer(Site("host").cluster)
    with pytest.raises(TypeError, match="needs a function"):
        PeriodicTask(None)  # type: ignore[arg-type]


async def test_definition_that_comes_later_is_taken_up() -> None:
    scene = Scene()
    late = Site("us")
    async with scene.playing():
        scene.clusters.add(late.cluster)
        scene.clusters.add(scene.eu.cluster)
        await eventually(lambda: scene.copy("eu"))
        late.server.put(CRD)
        late.server.put(foo("a"))
        await eventually(lambda: scene.copy("us"))


async def test_patrol_that_hangs_is_ended_in_time_and_the_next_begins() -> None:
    begun: list[float] = []

    async def patrol() -> None:
        begun.append(asyncio.get_running_loop().time())
        await asyncio.Event().wait()

    async with running(PeriodicTask(patrol, PatrolOptions(period=20.0, timeout=5.0))):
        await asyncio.sleep(100)
    assert 3 <= len(begun) <= 5


def test_patrol_that_is_not_async_runs_in_a_thread() -> None:
    threads: list[threading.Thread] = []

    async def main() -> None:
        async with running(PeriodicTask(lambda: threads.append(threading.current_thread()))):
            await eventually(lambda: threads)

    asyncio.run(leaving_nothing(main()))
    assert threads[0] is not threading.main_thread()


class Broken:
    """Raises whenever it is told something."""

    def add_cluster(self, cluster: Cluster) -> None:
        if cluster.name == "bad":
            raise ValueError("no place for it")

    def watch_cluster(self, cluster: Cluster) -> None:
        raise ValueError("no beginning")

    def remove_cluster(self, cluster: Cluster) -> None:
        raise ValueError("no end")

    def hold_cluster(self, cluster: Cluster) -> None:
        raise ValueError("no wait")

    def resume_cluster(self, cluster: Cluster) -> None:
        raise ValueError("no way on")


async def test_listener_that_raises_keeps_clusters_and_news_from_no_other() -> None:
    scene, cached = Scene(), CacheScene("bad", "eu", "us", probe_interval=1, probe_threshold=1)
    clusters = ListenedClusters([Broken(), scene.foos.listener])
    for name, site in cached.sites.items():
        site.server.put(CRD)
        site.server.put(foo("a", spec={"from": name}))
    async with scene.playing(), cached.running():
        following = asyncio.create_task(clusters.follow(cached.cache))
        await eventually(lambda: scene.copy("eu") and scene.copy("us"))
        assert scene.copy("bad") is None
        cached["eu"].refuse("/", count=2)
        engaged = scene.foos.downward._engaged["eu"]
        await eventually(lambda: engaged.is_on_hold)
        await eventually(lambda: not engaged.is_on_hold)
        cached.static.remove("us")
        await eventually(lambda: set(scene.foos.downward.clusters) == {"eu"})
        following.cancel()
        await clusters.close()


async def test_host_object_of_a_departed_cluster_is_populated_back_once_when_the_cluster_returns() -> None:
    scene = Scene()
    tries = []
    populate = scene.foos.back_populate

    async def counted(request: Request) -> None:
        tries.append(request)
        await populate(request)

    scene.foos.back_populate = counted  # type: ignore[method-assign]
    async with scene.playing():
        scene.clusters.add(scene.us.cluster)
        await eventually(lambda: scene.copy("us"))
        scene.clusters.remove("us")
        await asyncio.sleep(60)
        tries.clear()
        status = {"phase": "Ready"}
        await scene.host.new_client().patch(FOOS, Key("vc-us", "a"), {"status": status}, subresource="status")
        await asyncio.sleep(600)
        assert len(tries) == 1
        scene.clusters.add(scene.us.cluster)
        await eventually(
            lambda: (scene.us.server.get("foos.example.org", Key("shop", "a")) or {}).get("status") == status
        )
