"""Async code of users that blocks the event loop is named in the log, by a thread."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping

import pytest
from cache_scene import CacheScene
from fleet_scene import PODS, Site, eventually, running
from registry_scene import Scene

from syncer.multicluster import (
    CallableProvider,
    Cluster,
    ClusterRegistry,
    Controller,
    ControllerOptions,
    PatrolOptions,
    PeriodicTask,
    ProvidedCluster,
    Request,
    Spawned,
    watchdog,
)
from syncer.multicluster.watchdog import PATIENCE, Watchdog
from syncer.testing.objects import pod

#: Seconds after which a test that waits for a thread gives up.
GIVEN_UP = 60.0


class Lines:
    """A log: the blocked code and its seconds, as they are told."""

    def __init__(self) -> None:
        self.reported: list[tuple[str, float]] = []
        self.locations: list[str] = []
        self.has_reported = threading.Event()

    def warning(self, message: str, *, what: str, seconds: float, at: str) -> None:
        assert message == "async code blocks the event loop"
        self.reported.append((what, seconds))
        self.locations.append(at)
        self.has_reported.set()


class Time:
    """A clock that is set by the test, and the watchdog that reads it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.log = 0.0, Lines()
        self.dog = Watchdog(clock=lambda: self.now, log=self.log)
        monkeypatch.setattr(watchdog, "WATCHDOG", self.dog)

    def pass_while_blocked(self, seconds: float) -> None:
        """Let time pass, and the watchdog look, while whoever calls this blocks the event loop."""
        self.now += seconds
        self.dog.look()


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    return Time(monkeypatch)


async def test_reconciler_that_blocks_is_named_with_its_request_the_seconds_and_its_line(time: Time) -> None:
    async def reconcile(request: Request) -> None:
        await asyncio.sleep(0)
        time.pass_while_blocked(3.0)
        await asyncio.sleep(0)

    site = Site("eu", pod("a"))
    controller = Controller(reconcile, ControllerOptions(name="greeter"))
    controller.watch_object(site.cluster, PODS)
    async with running(site, controller):
        await eventually(lambda: time.log.reported)
    assert time.log.reported == [("controller greeter: reconcile of eu: shop/a", 3.0)]
    assert time.dog.steps == {}


async def test_reconciler_that_waits_is_not_named_however_long(time: Time) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def reconcile(_: Request) -> None:
        begun.set()
        await may_end.wait()

    site = Site("eu", pod("a"))
    controller = Controller(reconcile)
    controller.watch_object(site.cluster, PODS)
    async with running(site, controller):
        await begun.wait()
        time.pass_while_blocked(1000.0)
        may_end.set()
        await eventually(lambda: controller.results().get(("eu", "success")))
    assert time.log.reported == []


async def test_lasting_block_is_reported_whenever_its_time_has_doubled(time: Time) -> None:
    async def block() -> None:
        for _ in range(64):
            time.pass_while_blocked(0.125)

    await time.dog.steps_of(block(), "it")
    assert [seconds for _, seconds in time.log.reported] == [PATIENCE, 2 * PATIENCE, 4 * PATIENCE, 8 * PATIENCE]
    assert all(location.startswith(watchdog.__file__) for location in time.log.locations)


async def test_watched_code_gets_results_errors_and_cancellations_as_if_it_were_not(time: Time) -> None:
    async def work(reached: list[str]) -> str:
        with pytest.raises(OSError, match="mine"):
            await failing()
        reached.append(await asyncio.wait_for(asyncio.sleep(1, "slept"), 5))
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            reached.append("cancelled")
            raise
        return "never"

    async def failing() -> None:
        await asyncio.sleep(0)
        raise OSError("mine")

    async def give() -> str:
        await asyncio.sleep(1)
        return "given"

    reached: list[str] = []
    task = asyncio.create_task(time.dog.steps_of(work(reached), "it"))
    await asyncio.sleep(2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert reached == ["slept", "cancelled"]
    assert await time.dog.steps_of(give(), "it") == "given"
    done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    done.set_result("future")
    assert await time.dog.steps_of(done, "it") == "future"


async def of_a_callback(block: Callable[[], None]) -> None:
    async def use(_: Cluster) -> None:
        block()

    scene = Scene()
    async with scene.playing() as registry:
        await scene.spawn("eu")
        await registry.with_client("eu", use)


async def of_a_factory(block: Callable[[], None]) -> None:
    def pods_controller(of: Spawned) -> Controller:
        block()
        return Scene().pods(of)

    scene = Scene()
    scene.registry = ClusterRegistry(scene.manage.cluster, factories=[pods_controller])
    async with scene.playing():
        await scene.spawn("eu")


async def of_a_setup(block: Callable[[], None]) -> None:
    async def reconcile(_: Request) -> None:
        pass

    controller = Controller(reconcile, ControllerOptions(name="greeter"))
    controller.engage(Site("eu").cluster)
    controller.for_every_cluster(lambda cluster: block())


async def of_a_map_function(block: Callable[[], None]) -> None:
    async def reconcile(_: Request) -> None:
        reached.set()

    def requests(_: object) -> list[Request]:
        block()
        return [Request("eu", "shop", "x")]

    site, reached = Site("eu", pod("a")), asyncio.Event()
    controller = Controller(reconcile, ControllerOptions(name="greeter"))
    controller.watch_map_func(site.cluster, PODS, requests)
    async with running(site, controller):
        await reached.wait()


async def of_a_patrol(block: Callable[[], None]) -> None:
    async def patrol() -> None:
        block()

    async with running(PeriodicTask(patrol, PatrolOptions(name="nightly"))):
        await asyncio.sleep(1)


async def of_a_provider(block: Callable[[], None]) -> None:
    async def members() -> Mapping[str, ProvidedCluster]:
        block()
        return {}

    async with CacheScene(providers=[CallableProvider(members, name="mine")]).running():
        await asyncio.sleep(1)


NAMES: list[tuple[Callable[[Callable[[], None]], Awaitable[None]], str]] = [
    (of_a_callback, "the callback of eu"),
    (of_a_factory, "factory of_a_factory.<locals>.pods_controller of cluster eu"),
    (of_a_setup, "controller greeter: setup of eu"),
    (of_a_map_function, "controller greeter: the map function of pods of eu"),
    (of_a_patrol, "patroller nightly"),
    (of_a_provider, "of_a_provider.<locals>.members of provider mine"),
]


@pytest.mark.parametrize(("scene", "name"), NAMES, ids=[scene.__name__ for scene, _ in NAMES])
async def test_code_of_users_is_named_wherever_it_blocks(
    time: Time, scene: Callable[[Callable[[], None]], Awaitable[None]], name: str
) -> None:
    await scene(lambda: time.pass_while_blocked(2.0))
    assert [name_of_work for name_of_work, _ in time.log.reported][:1] == [name]
    assert time.dog.steps == {}


def test_thread_looks_while_the_event_loop_is_blocked_and_ends_with_the_last_controller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = Lines()
    monkeypatch.setattr(watchdog, "WATCHDOG", Watchdog(patience=0.01, log=log))

    async def reconcile(_: Request) -> None:
        assert log.has_reported.wait(GIVEN_UP)  # nothing but another thread can end it

    async def main() -> set[threading.Thread]:
        site = Site("eu", pod("a"))
        controllers = [Controller(reconcile, ControllerOptions(name=name)) for name in ("one", "two")]
        for controller in controllers:
            controller.watch_object(site.cluster, PODS)
        async with running(site, *controllers):
            await eventually(log.has_reported.is_set)
            return {thread for thread in threading.enumerate() if thread.name == "watchdog"}

    dogs = asyncio.run(main())
    assert len(dogs) == 1
    for dog in dogs:
        dog.join(GIVEN_UP)
        assert not dog.is_alive()
    assert log.reported[0][0] in [f"controller {name}: reconcile of eu: shop/a" for name in ("one", "two")]
    assert all(":" in location for location in log.locations)
