"""A manager: each cache once, nothing waits for a cluster that isn't needed, and one of several processes works."""

import asyncio
import os
import signal
from contextlib import AbstractAsyncContextManager

import pytest
from cache_scene import CacheScene
from fleet_scene import PODS, SECRETS, Site, eventually, running

from kube_envtest import Rule
from syncer.api import Key
from syncer.clusters.transport import HttpRequest, HttpResponse, Stream, Transport
from syncer.leaderelection.lease import Lease
from syncer.multicluster import (
    Cluster,
    ClusterNameTaken,
    Controller,
    ControllerOptions,
    Manager,
    NotRunning,
    Request,
    State,
)
from syncer.testing.objects import pod, secret


class Recorded:
    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def __call__(self, request: Request) -> None:
        self.requests.append(request)


async def test_caches_shared_by_controllers_and_aliases_are_filled_once() -> None:
    site, manager, recorded = Site("eu", pod("a")), Manager(), Recorded()
    for name in ("eu", "agent", "eu"):
        controller = Controller(recorded)
        controller.watch_object(site.cluster.alias(name), PODS)
        manager.add(controller)
    async with running(manager):
        await eventually(lambda: len(recorded.requests) == 3)
        assert len(site.requests("list", PODS)) == 1
        with pytest.raises(NotRunning):
            await manager.run()
    assert not site.cluster.is_running


async def test_unreachable_cluster_blocks_no_controller_elsewhere_and_is_taken_up_when_it_answers() -> None:
    hung, good, manager, recorded = Site("hung", pod("a")), Site("good", pod("b")), Manager(), Recorded()
    hung.server.freeze()
    for resources in ((PODS,), (PODS, SECRETS)):
        controller = Controller(recorded)
        for resource in resources:
            for site in (hung, good):
                controller.watch_object(site.cluster, resource)
        manager.add(controller)
    async with running(manager):
        await eventually(lambda: len(recorded.requests) == 2)
        assert asyncio.get_running_loop().time() < 1
        assert {each.cluster for each in recorded.requests} == {"good"}
        await asyncio.sleep(300)
        hung.server.thaw()
        await eventually(lambda: len(recorded.requests) == 4)


async def test_third_of_a_hundred_clusters_that_hang_delays_none_of_the_others() -> None:
    manager, recorded = Manager(), Recorded()
    controller = Controller(recorded)
    controller.for_every_cluster(lambda cluster: controller.watch_object(cluster, PODS))
    manager.add(controller)
    sites = [Site(f"c{number}", pod("a")) for number in range(100)]
    for number, site in enumerate(sites):
        if number % 3 == 0:
            site.server.freeze()
        manager.engage(site.cluster)
    async with running(manager):
        await eventually(lambda: len(recorded.requests) == 66)
        assert asyncio.get_running_loop().time() < 1
        await asyncio.sleep(600)
        assert len(recorded.requests) == 66
        for site in sites:
            site.server.thaw()
        await eventually(lambda: len(recorded.requests) == 100)


async def test_controller_begins_when_its_own_caches_are_filled_not_those_of_another() -> None:
    site, manager, quick, slow = Site("eu", pod("a"), secret("s")), Manager(), Recorded(), Recorded()
    site.server.faults.add(Rule(verb="list", resource="secrets", status=503))
    for recorded, resource in ((quick, PODS), (slow, SECRETS)):
        controller = Controller(recorded)
        controller.watch_object(site.cluster, resource)
        manager.add(controller)
    async with running(manager):
        await eventually(lambda: quick.requests)
        assert slow.requests == []


async def test_clusters_and_controllers_come_and_go_while_it_runs() -> None:
    eu, us, manager, pods, secrets = (
        Site("eu", pod("a")),
        Site("us", pod("b"), secret("s")),
        Manager(),
        Recorded(),
        Recorded(),
    )
    first, second = Controller(pods), Controller(secrets)
    first.for_every_cluster(lambda cluster: first.watch_object(cluster, PODS))
    second.for_every_cluster(lambda cluster: second.watch_object(cluster, SECRETS))
    manager.engage(eu.cluster)
    manager.add(first)
    async with running(manager):
        await eventually(lambda: len(pods.requests) == 1)
        manager.engage(us.cluster)
        await eventually(lambda: len(pods.requests) == 2)
        manager.add(second)
        await eventually(lambda: secrets.requests == [Request("us", "shop", "s")])
        manager.disengage("us")
        await eventually(lambda: not us.cluster.is_running)
        assert eu.cluster.is_running
        us.server.put(pod("c"))
        eu.server.put(pod("d"))
        await eventually(lambda: len(pods.requests) == 3)
        assert pods.requests[-1] == Request("eu", "shop", "d")
        manager.engage(us.cluster)
        await eventually(lambda: Request("us", "shop", "c") in pods.requests)


async def test_cluster_that_another_owner_runs_is_left_to_it() -> None:
    site, manager, recorded = Site("eu", pod("a")), Manager(), Recorded()
    controller = Controller(recorded)
    controller.watch_object(site.cluster, PODS)
    manager.add(controller)
    async with running(site):
        await asyncio.sleep(1)
        async with running(manager):
            await eventually(lambda: recorded.requests)
        assert site.cluster.is_running


async def test_only_the_holder_of_the_lease_reconciles_and_the_others_keep_caches_filled() -> None:
    site = Site("eu", pod("a"), secret("s", namespace="leases"))
    worlds = []
    for name in ("one", "two"):
        recorded, cluster = Recorded(), Cluster("eu", site.new_client())
        controller = Controller(recorded)
        controller.watch_object(cluster, PODS)
        manager = Manager(lease=Lease(site.new_client(), key=Key("leases", "copies"), identity=name))
        manager.add(controller)
        worlds.append((manager, cluster, recorded))
    (first, _, ours), (second, _, theirs) = worlds
    async with running(second, first):
        await eventually(lambda: theirs.requests or ours.requests)
        leader, other = (theirs, ours) if theirs.requests else (ours, theirs)
        await asyncio.sleep(60)
        assert other.requests == []
        assert all(cluster.informer(PODS).synced for _, cluster, _ in worlds)
    assert len(leader.requests) == 1
    async with running(first if other is ours else second):
        await eventually(lambda: other.requests, "the other one takes over")


async def test_name_taken_by_a_cache_leaves_nothing_engaged() -> None:
    kept, site, manager = Site("eu"), Site("eu", pod("a")), Manager()
    kept.cluster.keep()
    first, second, third = (Controller(Recorded()) for _ in range(3))
    first.for_every_cluster(lambda cluster: first.watch_object(cluster, PODS))
    second.engage(kept.cluster)
    third.engage(kept.cluster)
    manager.add(first)
    manager.add(second)
    async with running(manager):
        with pytest.raises(ClusterNameTaken):
            manager.engage(site.cluster)
        await asyncio.sleep(1)
        assert first.clusters == {}
        assert second.clusters == {"eu": kept.cluster}, "it stays the cache's"
        assert not site.cluster.is_running
        assert site.cluster.informer(PODS).handlers.map_functions == []
        second.disengage("eu")
        manager.engage(site.cluster)
        assert list(first.clusters) == list(second.clusters) == ["eu"]
        with pytest.raises(ClusterNameTaken):
            manager.add(third)
        manager.disengage("eu")
        assert first.clusters == second.clusters == {}
        manager.engage(site.cluster)
        assert third.clusters == {"eu": kept.cluster}, "it was not added"


async def test_manager_ends_with_the_first_error_of_a_controller() -> None:
    class Broken(Controller):
        async def run(self) -> None:
            await asyncio.sleep(30)
            raise OSError("a bug")

    site, manager, recorded = Site("eu", pod("a")), Manager(), Recorded()
    good = Controller(recorded)
    good.watch_object(site.cluster, PODS)
    for controller in (good, Broken(recorded), Broken(recorded)):
        manager.add(controller)
    with pytest.raises(OSError, match="a bug"):
        await manager.run()
    assert asyncio.get_running_loop().time() == pytest.approx(30.0)
    assert len(recorded.requests) == 1
    assert not site.cluster.is_running
    async with running(good):
        with pytest.raises(NotRunning, match="runs already"):
            await manager.run()


async def test_controllers_are_engaged_in_the_clusters_of_a_cache_which_runs_as_long_as_the_manager() -> None:
    cached, more, manager, recorded = CacheScene("eu", "us"), CacheScene("asia"), Manager(), Recorded()
    for scene in (cached, more):
        for name, site in scene.sites.items():
            site.server.put(pod(name))
    early, late = (Controller(recorded, ControllerOptions(name=name)) for name in ("early", "late"))
    early.for_every_cluster(lambda cluster: early.watch_object(cluster, PODS))
    late.for_every_cluster(lambda cluster: late.watch_object(cluster, PODS))
    manager.add(early)
    manager.add(cached.cache)
    cached.cache.add(early)  # as it is already
    async with running(manager):
        await eventually(lambda: len(recorded.requests) == 2)
        manager.add(late)
        await eventually(lambda: len(recorded.requests) == 4)
        manager.add(more.cache)
        await eventually(lambda: recorded.requests.count(Request("asia", "shop", "asia")) == 2)
        cached.static.remove("us")
        await eventually(lambda: set(early.clusters) == set(late.clusters) == {"eu", "asia"})
    assert list(cached.cache) == list(more.cache) == []


async def test_manager_without_controllers_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    manager, idle = Manager(), Manager()
    manager.engage(Site("eu").cluster)
    manager.add(cache := CacheScene("us").cache)
    manager.add(cache)  # as it is already
    idle.add(CacheScene("us").cache)  # a program may take its events alone
    signalled = [asyncio.create_task(each.run_until_signalled()) for each in (manager, idle)]
    await eventually(lambda: cache.get_status("us").state is State.CONNECTED)
    for task in signalled:
        task.cancel()
    await asyncio.wait(signalled)
    assert capsys.readouterr().err.count("a manager without controllers does nothing") == 1


async def test_manager_refuses_arguments_of_other_types() -> None:
    manager = Manager()
    with pytest.raises(TypeError, match="added to a manager must be a Controller or ClusterCache or Cluster, not"):
        manager.add(lambda request: None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="what is engaged must be a Cluster, not 'eu'"):
        manager.engage("eu")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="added to a cache of clusters must be a Controller"):
        CacheScene().cache.add(manager)  # type: ignore[arg-type]


async def test_cache_runs_once_and_engages_a_controller_once_however_often_they_are_added() -> None:
    cached, manager, controller = CacheScene("eu"), Manager(), Controller(Recorded())
    engaged: list[str] = []
    controller.for_every_cluster(lambda cluster: engaged.append(cluster.name))
    for _ in range(2):
        manager.add(cached.cache)
        cached.cache.add(controller)
    manager.add(controller)
    async with running(manager):
        await eventually(lambda: cached.cache.get_status("eu").state is State.CONNECTED)
        with pytest.raises(NotRunning, match="the cache of clusters runs already"):
            await cached.cache.run()
        assert "eu" in cached.cache, "the other run has not ended with it"
    assert engaged == ["eu"]


class Slow:
    """A reconcile that takes a minute."""

    def __init__(self, seconds: float = 60.0) -> None:
        self._seconds = seconds
        self.begun: list[Request] = []
        self.ended: list[Request] = []

    async def __call__(self, request: Request) -> None:
        self.begun.append(request)
        await asyncio.sleep(self._seconds)
        self.ended.append(request)


@pytest.mark.parametrize(("grace_period", "is_ended"), [(90.0, True), (30.0, False), (0.0, False)])
async def test_reconcile_in_work_at_sigterm_has_the_grace_period(grace_period: float, is_ended: bool) -> None:
    site = Site("eu", pod("a"))
    manager = Manager(grace_period=grace_period)
    slow = Slow()
    controller = Controller(slow)
    controller.watch_object(site.cluster, PODS)
    manager.add(controller)
    task = asyncio.create_task(manager.run_until_signalled())
    await eventually(lambda: slow.begun)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.sleep(1)
    site.server.put(pod("b"))
    await task
    assert [each.name for each in slow.begun] == ["a"]
    assert bool(slow.ended) is is_ended
    assert asyncio.get_running_loop().time() < 90


async def test_drained_controller_runs_again_and_loses_no_request() -> None:
    site = Site("eu", pod("a"))
    slow = Slow()
    controller = Controller(slow)
    controller.watch_object(site.cluster, PODS)
    async with running(site):
        async with running(controller):
            await eventually(lambda: slow.begun)
            await controller.drain()
            assert len(slow.ended) == 1
            site.server.put(pod("b"))
            await asyncio.sleep(300)
            assert len(slow.begun) == 1
        async with running(controller):
            await eventually(lambda: len(slow.ended) == 2)


async def test_cluster_of_a_cache_with_the_name_of_a_managers_cluster_takes_nothing_from_it() -> None:
    scene = CacheScene("eu")
    mine = Site("eu", pod("mine"))
    recorded = Recorded()
    controller = Controller(recorded)
    controller.for_every_cluster(lambda cluster: controller.watch_object(cluster, PODS))
    manager = Manager()
    manager.add(controller)
    manager.engage(mine.cluster)
    manager.add(scene.cache)
    async with running(manager):
        await eventually(lambda: scene.cache.get_status("eu").state is State.CONNECTED)
        scene.static.remove("eu")
        await eventually(lambda: "eu" not in scene.cache)
        assert controller.cluster("eu").is_alias_of(mine.cluster)
        mine.server.put(pod("later"))
        await eventually(lambda: Request("eu", "shop", "later") in recorded.requests)


async def test_cluster_of_a_cache_is_not_replaced_by_another_of_its_name() -> None:
    scene = CacheScene("eu")
    controller = Controller(Recorded())
    scene.cache.add(controller)
    async with scene.running():
        await eventually(lambda: "eu" in controller.clusters)
        with pytest.raises(ClusterNameTaken, match="need different names"):
            controller.engage(Site("eu").cluster)
        assert controller.cluster("eu").is_kept


async def test_cluster_that_is_only_added_is_run_and_not_engaged() -> None:
    home = Site("home", secret("s"))
    late = Site("late", secret("s"))
    engaged: list[str] = []
    controller = Controller(Recorded())
    controller.for_every_cluster(lambda cluster: engaged.append(cluster.name))
    manager = Manager()
    manager.add(home.cluster)
    manager.add(home.cluster)
    manager.add(controller)
    async with running(manager):
        assert await home.cluster.list(SECRETS)
        manager.add(late.cluster)
        assert await late.cluster.list(SECRETS)
        manager.disengage("another")
        await asyncio.sleep(1)
        assert home.cluster.is_running
        assert engaged == []
    assert not home.cluster.is_running


@pytest.mark.parametrize("leaves_first", [True, False])
async def test_client_that_a_cluster_made_is_closed_when_the_manager_stops_it(leaves_first: bool) -> None:
    given = Site("given")
    made = Site("made")
    made.cluster._caches.owns_client = True
    closed: list[str] = []
    for site in (given, made):
        site.cluster.client.transport = Closing(site.cluster.client.transport, site.cluster.name, closed)
    manager = Manager()
    manager.engage(given.cluster)
    manager.engage(made.cluster)
    async with running(manager):
        await eventually(lambda: made.cluster.is_running)
        if leaves_first:
            manager.disengage("made")
            await eventually(lambda: closed)
    assert closed == ["made"]


class Closing:
    """A transport that notes when it is closed."""

    def __init__(self, inner: Transport, name: str, closed: list[str]) -> None:
        self._inner = inner
        self._name = name
        self._closed = closed

    async def send(self, request: HttpRequest) -> HttpResponse:
        return await self._inner.send(request)

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[Stream]:
        return self._inner.stream(request)

    async def close(self) -> None:
        self._closed.append(self._name)
        await self._inner.close()
