"""A registry: controllers that are started and stopped in each of several clusters, by name."""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
from fleet_scene import PODS, SECRETS, Site, eventually, leaving_nothing
from registry_scene import A, Pods, Scene, pod_a

from kube_envtest import Rule
from syncer.api import ConfigError, Key, NotFound, Obj, SyncerError, Unreachable
from syncer.multicluster import (
    CannotStart,
    Client,
    Cluster,
    ClusterNameTaken,
    ClusterNotFound,
    ClusterRegistry,
    ConnectionSettings,
    Controller,
    Request,
    Spawned,
    StackState,
    StillRunning,
)
from syncer.testing.objects import pod, secret

# -- spawn and stop ------------------------------------------------------------------------------------


async def test_spawned_cluster_has_started_and_its_controllers_reach_the_management_cluster() -> None:
    scene = Scene()
    async with scene.playing() as registry:
        await scene.spawn("eu")
        assert registry.status()["eu"] == (StackState.RUNNING, None)
        before = len(scene.sites["eu"].server.requests)
        assert await registry.with_client("eu", pod_a), "the caches are filled"
        assert len(scene.sites["eu"].server.requests) == before
        await eventually(lambda: scene.manage.server.get("secrets", Key("seen", "eu-a")))
        assert [(of.name, of.manage is scene.manage.cluster) for of in scene.pods.spawned] == [("eu", True)]
        assert await registry.with_client("eu", lambda eu: eu.client.get(PODS, A)), "a client without caches"
    assert registry.status() == {}


async def test_spawn_of_a_live_name_is_refused_also_while_it_starts() -> None:
    scene = Scene()
    async with scene.playing():
        scene.sites["eu"].server.faults.add(Rule(latency=3.0))
        starting = asyncio.create_task(scene.spawn("eu"))
        await asyncio.sleep(1)
        with pytest.raises(ClusterNameTaken, match="controllers of cluster eu have already been started"):
            await scene.spawn("eu")
        with pytest.raises(ClusterNotFound, match="Starting"):
            await scene.registry.with_client("eu", pod_a)
        await starting
        with pytest.raises(SyncerError) as wrapped:
            await scene.spawn("eu")
        assert isinstance(wrapped.value, ClusterNameTaken)
        assert wrapped.value.cluster == "eu"


async def test_unknown_names_do_not_exist() -> None:
    registry = Scene().registry
    with pytest.raises(ClusterNotFound, match="controllers of cluster eu don't exist"):
        await registry.stop("eu")
    with pytest.raises(ClusterNotFound, match="eu"):
        await registry.with_client("eu", pod_a)


async def test_spawn_that_fails_leaves_nothing(tmp_path: Path) -> None:
    scene = Scene()
    async with scene.playing() as registry:
        with pytest.raises(ConfigError):
            await registry.spawn("eu", ConnectionSettings(str(tmp_path / "none")))
        scene.sites["eu"].server.faults.add(down := Rule(reset="before"))
        with pytest.raises(Unreachable):
            await scene.spawn("eu")
        scene.sites["eu"].server.faults.remove(down)
        scene.sites["eu"].server.faults.add(half := Rule(verb="list", resource="pods", status=503))
        with pytest.raises(CannotStart, match=r"cluster eu: caches aren't filled after 20 s: .*pods"):
            await scene.spawn("eu")
        scene.sites["eu"].server.faults.remove(half)

        def broken(of: Spawned) -> Controller:
            raise ValueError(f"nothing for {of.name}")

        registry.add(broken)
        with pytest.raises(CannotStart, match="a controller can't be made: nothing for eu"):
            await scene.spawn("eu")
        registry._factories.remove(broken)
        assert registry.status() == {}
        with pytest.raises(ClusterNotFound):
            await registry.with_client("eu", pod_a)
        await scene.spawn("eu")
        assert scene.sites["eu"].server.open_watches == 1


async def test_stop_ends_the_controllers_and_the_name_can_be_used_again() -> None:
    scene = Scene()
    async with scene.playing() as registry:
        await scene.spawn("eu")
        await registry.stop("eu")
        assert scene.sites["eu"].server.open_watches == 0
        with pytest.raises(ClusterNotFound):
            await registry.with_client("eu", pod_a)
        scene.sites["eu"].server.put(pod("b"))
        await asyncio.sleep(10)
        assert "b" not in {each.name for each in scene.pods.requests}
        await scene.spawn("eu")
        first, second = scene.pods.spawned
        assert first.cluster.client is not second.cluster.client
        await eventually(lambda: "b" in {each.name for each in scene.pods.requests})


async def test_stop_honours_its_timeout_and_can_be_repeated() -> None:
    scene = Scene()
    async with scene.playing() as registry:
        scene.pods.stubborn = True
        await scene.spawn("eu")
        await eventually(lambda: scene.pods.requests)
        begun = asyncio.get_running_loop().time()
        with pytest.raises(StillRunning, match="haven't ended after 5 s"):
            await registry.stop("eu", timeout=5.0)
        assert asyncio.get_running_loop().time() - begun == pytest.approx(5.0, abs=0.1)
        assert registry.status()["eu"].state is StackState.STOPPING
        with pytest.raises(ClusterNameTaken):
            await scene.spawn("eu")
        scene.pods.stubborn = False
        await registry.stop("eu")
        assert registry.status() == {}


async def test_stop_ends_a_start_that_hangs() -> None:
    scene = Scene()
    async with scene.playing() as registry:
        scene.sites["eu"].server.freeze()
        starting = asyncio.create_task(scene.spawn("eu"))
        await asyncio.sleep(1)
        await registry.stop("eu", timeout=5.0)
        with pytest.raises(ClusterNotFound, match="before they had started"):
            await starting
        assert asyncio.get_running_loop().time() < 2


async def test_client_is_that_of_the_spawn() -> None:
    scene = Scene()
    async with scene.playing() as registry:
        deputy = Client("eu", scene.sites["eu"].server.transport("deputy"))
        await registry.spawn("eu", deputy)
        await registry.with_client("eu", lambda eu: eu.create(SECRETS, secret("new")))
        assert {one.user for one in scene.sites["eu"].server.requests} == {"deputy"}


async def test_requests_to_each_cluster_are_limited_whatever_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, settings = Scene(), list[ConnectionSettings]()
    registry = ClusterRegistry(scene.manage.cluster, qps=10.0, burst=5)

    def opened(given: ConnectionSettings, **_: object) -> Client:
        settings.append(given)
        return scene.sites["us"].new_client()

    monkeypatch.setattr("syncer.multicluster.registry.client", opened)

    async def busy(cluster: Cluster) -> float:
        begun = asyncio.get_running_loop().time()
        await asyncio.gather(*(cluster.client.list(PODS) for _ in range(25)))
        return asyncio.get_running_loop().time() - begun

    async with registry:
        mine = scene.sites["eu"].new_client()
        await registry.spawn("eu", mine)
        assert await registry.with_client("eu", busy) == pytest.approx(2.0, abs=0.5)
        begun = asyncio.get_running_loop().time()
        await asyncio.gather(*(mine.list(PODS) for _ in range(25)))
        assert asyncio.get_running_loop().time() == begun, "the client that was given stays as it is"
        await registry.spawn("us", ConnectionSettings())
        await registry.spawn("asia", ConnectionSettings(qps=3.0, burst=4))
    assert settings == [ConnectionSettings(qps=10.0, burst=5), ConnectionSettings(qps=3.0, burst=4)]


async def test_watches_in_the_management_cluster_end_with_the_controllers_and_leave_it_running() -> None:
    scene, manage = Scene(), Site("manage").cluster

    def factory(of: Spawned) -> Controller:
        controller = scene.pods(of)
        controller.watch_map_func(of.manage, SECRETS, lambda obj: [Request(of.name, "", obj["metadata"]["name"])])
        return controller

    manage.use(scene.manage.new_client())
    secrets = manage.informer(SECRETS)
    client = scene.sites["eu"].new_client()
    async with ClusterRegistry(manage, factories=[factory]) as registry:
        await registry.spawn("eu", client)
        assert not manage.is_running, "it is run by its owner"
        running_manage = asyncio.create_task(manage.run())
        await eventually(lambda: Request("eu", "", "s") in scene.pods.requests)
        await registry.stop("eu")
        assert secrets.handlers.map_functions == []
        assert manage.is_running
        with pytest.raises(Unreachable):
            await client.get(PODS, A)

        def second(of: Spawned) -> Controller:
            raise ValueError(of.name)

        registry.add(second)
        with pytest.raises(CannotStart):
            await registry.spawn("eu", scene.sites["eu"].new_client())
        assert secrets.handlers.map_functions == []
        running_manage.cancel()


# -- many clusters -------------------------------------------------------------------------------------


async def test_clusters_have_controllers_of_the_same_kind_and_those_added_later() -> None:
    scene, later = Scene(), Pods()
    async with scene.playing() as registry:
        await scene.spawn("eu")
        registry.add(later)
        await scene.spawn("us")
        await scene.spawn("asia")
        await eventually(lambda: {each.cluster for each in scene.pods.requests} == {"eu", "us", "asia"})
        await eventually(lambda: {each.cluster for each in later.requests} == {"us", "asia"})
        assert scene.sites["us"].requests("list", PODS) == ["/api/v1/pods"]


async def test_spawned_controllers_serve_no_port_and_elect_no_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, listening = Scene(), Mock()
    monkeypatch.setattr(socket.socket, "listen", listening)
    async with scene.playing():
        await scene.spawn("eu")
        await eventually(lambda: scene.pods.requests)
        await asyncio.sleep(60)
        everything = [one for site in scene.sites.values() for one in [*site.server.requests]]
        assert "leases" not in {one.resource for one in everything}
        assert "pods" in {one.resource for one in everything}
    listening.assert_not_called()


async def test_cluster_that_dies_ends_nothing_else_and_is_seen() -> None:
    scene = Scene()
    async with scene.playing() as registry:
        await scene.spawn("eu")
        await scene.spawn("us")
        scene.sites["eu"].server.faults.add(down := Rule(reset="before"))
        scene.sites["eu"].server.cut_watches()
        await eventually(lambda: registry.status()["eu"].error)
        assert registry.status()["us"] == (StackState.RUNNING, None)
        scene.sites["us"].server.put(pod("b"))
        await eventually(lambda: "b" in {each.name for each in scene.pods.requests})
        scene.sites["eu"].server.faults.remove(down)
        await eventually(lambda: registry.status()["eu"].error is None)


async def test_controllers_that_end_by_themselves_are_failed_and_can_be_stopped() -> None:
    scene = Scene()
    async with scene.playing() as registry:
        await scene.spawn("eu")
        await scene.spawn("us")
        task = registry._stacks["eu"].task
        assert task is not None
        task.cancel()
        await eventually(lambda: registry.status()["eu"].state is StackState.FAILED)
        with pytest.raises(ClusterNotFound, match="Failed"):
            await registry.with_client("eu", pod_a)
        assert await registry.with_client("us", pod_a)
        await registry.stop("eu")
        await scene.spawn("eu")


async def test_controllers_of_a_moved_cluster_start_once_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    eu = scene.sites["eu"]
    moves: list[Callable[[], None]] = []

    def opened(_: ConnectionSettings, *, moved: Callable[[], None], **__: object) -> Client:
        moves.append(moved)
        return eu.new_client("eu")

    monkeypatch.setattr("syncer.multicluster.registry.client", opened)
    async with scene.playing() as registry:
        await registry.spawn("eu", ConnectionSettings())
        eu.server.faults.add(down := Rule(reset="before"))
        moves[-1]()
        await eventually(lambda: registry.status()["eu"].state is StackState.FAILED)
        assert isinstance(registry.status()["eu"].error, Unreachable)
        with pytest.raises(ClusterNotFound, match="Failed"):
            await registry.with_client("eu", pod_a)
        await eventually(lambda: len(moves) > 3, "attempts go on")
        eu.server.faults.remove(down)
        await eventually(lambda: registry.status()["eu"] == (StackState.RUNNING, None))
        assert await registry.with_client("eu", pod_a)
        moves[-1]()
        await asyncio.sleep(0)
        await registry.stop("eu")
        assert eu.server.open_watches == 0


# -- desired clusters ----------------------------------------------------------------------------------


def kubeconfig(folder: Path, name: str, site: Site) -> ConnectionSettings:
    return ConnectionSettings(str(site.server.kubeconfig(folder / f"{name}.kubeconfig")))


def test_desired_clusters_are_spawned_again_after_a_restart_and_each_failure_is_its_own(tmp_path: Path) -> None:
    async def scene() -> None:
        scene = Scene()
        sites = [scene.sites[name] for name in ("eu", "us", "asia")]
        for site in sites:
            await site.server.start()
        eu, us, asia = (kubeconfig(tmp_path, site.cluster.name, site) for site in sites)
        desired = {"eu": eu, "us": us, "lost": ConnectionSettings(str(tmp_path / "lost"))}
        for _ in range(2):  # the second is the restarted process
            async with ClusterRegistry(scene.manage.cluster, factories=[scene.pods]) as registry:
                failures = await registry.converge(desired)
                assert list(failures) == ["lost"]
                assert set(registry.status()) == {"eu", "us"}
                assert await registry.with_client("us", pod_a)
                assert await registry.converge({"eu": eu, "us": us}) == {}
                kept = scene.pods.spawned[-2:]
                assert await registry.converge({"eu": us, "asia": asia}) == {}
                assert set(registry.status()) == {"eu", "asia"}
                assert {of.name for of in scene.pods.spawned[-2:]} == {"eu", "asia"}
                assert kept != scene.pods.spawned[-2:]
        for site in sites:
            await site.server.stop()

    asyncio.run(leaving_nothing(scene()))


def test_controllers_follow_a_kubeconfig_to_another_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncer.clusters.credentials.CHECK_SECONDS", 0.05)

    async def scene() -> None:
        scene = Scene()
        eu, us = scene.sites["eu"], scene.sites["us"]
        for site in (eu, us):
            await site.server.start()
        us.server.put(pod("moved"))
        async with ClusterRegistry(scene.manage.cluster, factories=[scene.pods]) as registry:
            await registry.spawn("eu", kubeconfig(tmp_path, "eu", eu))
            kubeconfig(tmp_path, "eu", us)

            async def there(cluster: Cluster) -> Obj | None:
                with contextlib.suppress(NotFound):
                    return await cluster.client.get(PODS, Key("shop", "moved"))
                return None

            found = None
            async with asyncio.timeout(30):
                while not found or eu.server.open_watches:  # of the controllers before
                    await asyncio.sleep(0.1)
                    with contextlib.suppress(ClusterNotFound):
                        found = await registry.with_client("eu", there)
        for site in (eu, us):
            await site.server.stop()

    asyncio.run(leaving_nothing(scene()))
