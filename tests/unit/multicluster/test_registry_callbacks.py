"""Functions that are called with a cluster of a registry: what they raise, how long they take, and where they run."""

import asyncio
import threading

import pytest
from fleet_scene import PATIENCE, PODS, SECRETS, eventually
from registry_scene import Scene, pod_a

from kube_envtest import Rule
from syncer.api import AlreadyExists, Key, NotFound, Obj, Unreachable
from syncer.multicluster import (
    CallbackTimeout,
    CannotStart,
    Cluster,
    ClusterNotFound,
    ClusterRegistry,
    Controller,
    Spawned,
    callbacks,
)
from syncer.multicluster.callbacks import MOST_LEFT
from syncer.testing.objects import pod


async def test_errors_of_a_callback_come_back_unchanged() -> None:
    scene = Scene()
    async with scene.playing() as registry:
        await scene.spawn("eu")
        with pytest.raises(NotFound):
            await registry.with_client("eu", lambda eu: eu.client.get(PODS, Key("shop", "none")))
        mine = RuntimeError("mine")

        async def fail(_: Cluster) -> None:
            raise mine

        with pytest.raises(RuntimeError) as raised:
            await registry.with_client("eu", fail)
        assert raised.value is mine
        with pytest.raises(AlreadyExists):
            await registry.with_client("eu", lambda eu: eu.create(PODS, pod("a")))


async def test_callback_that_hangs_delays_no_other_and_may_use_the_registry() -> None:
    scene = Scene()
    loop = asyncio.get_running_loop()
    async with scene.playing() as registry:
        await scene.spawn("eu")
        await scene.spawn("us")

        async def slow(_: Cluster) -> Obj | None:
            await asyncio.sleep(50)
            await scene.spawn("asia")
            return await registry.with_client("asia", pod_a)

        hanging = asyncio.create_task(registry.with_client("eu", slow))
        await asyncio.sleep(1)
        begun = loop.time()
        assert await registry.with_client("us", pod_a)
        await registry.stop("us")
        await scene.spawn("us")
        assert await registry.with_client("eu", pod_a)
        assert loop.time() - begun < 1
        assert await hanging


async def test_callback_that_never_returns_is_ended_in_time() -> None:
    scene = Scene()
    async with scene.playing() as registry:
        await scene.spawn("eu")
        begun, was_cancelled = asyncio.get_running_loop().time(), False

        async def hang(_: Cluster) -> None:
            nonlocal was_cancelled
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                was_cancelled = True
                raise

        with pytest.raises(CallbackTimeout, match="the callback of eu hasn't returned after 5 s"):
            await registry.with_client("eu", hang, timeout=5.0)
        assert asyncio.get_running_loop().time() - begun == pytest.approx(5.0, abs=0.1)
        assert was_cancelled
        assert await registry.with_client("eu", pod_a, timeout=5.0)


async def test_callback_of_a_stopped_cluster_gets_a_typed_error() -> None:
    scene = Scene()
    async with scene.playing() as registry:
        await scene.spawn("eu")

        async def slow(eu: Cluster) -> None:
            await asyncio.sleep(10)
            await eu.create(PODS, pod("b"))

        using = asyncio.create_task(registry.with_client("eu", slow))
        await asyncio.sleep(1)
        await registry.stop("eu")
        with pytest.raises(ClusterNotFound, match="they were stopped meanwhile") as caught:
            await using
        assert isinstance(caught.value.__cause__, Unreachable)
        await scene.spawn("us")

        async def read(us: Cluster) -> None:
            await us.list(SECRETS)

        scene.sites["us"].server.faults.add(hung := Rule(verb="list", resource="secrets", latency=3600))
        using = asyncio.create_task(registry.with_client("us", read))
        await asyncio.sleep(1)
        await registry.stop("us")
        with pytest.raises(ClusterNotFound, match="they were stopped meanwhile"):
            await using
        scene.sites["us"].server.faults.remove(hung)
        await scene.spawn("us")
        scene.sites["us"].server.faults.add(Rule(reset="before"))
        with pytest.raises(Unreachable):
            await registry.with_client("us", slow)


async def test_factory_may_be_async_and_one_that_never_returns_ends_the_start_with_its_name() -> None:
    scene, may_end = Scene(), asyncio.Event()

    async def patient(of: Spawned) -> Controller:
        await may_end.wait()
        return scene.pods(of)

    scene.registry = ClusterRegistry(scene.manage.cluster, factories=[patient], start_timeout=20.0)
    async with scene.playing() as registry:
        with pytest.raises(CannotStart, match=r"factory .*patient of cluster eu hasn't returned after 20 s") as raised:
            await scene.spawn("eu")
        assert isinstance(raised.value.__cause__, CallbackTimeout)
        assert asyncio.get_running_loop().time() == pytest.approx(20.0, abs=0.1)
        assert registry.status() == {}
        starting = asyncio.create_task(scene.spawn("us"))
        await asyncio.sleep(5)
        may_end.set()
        await starting
        assert await registry.with_client("us", pod_a)
        await eventually(lambda: [request.cluster for request in scene.pods.requests] == ["us"])


@pytest.mark.real_time
async def test_callbacks_that_hang_in_threads_take_none_from_others() -> None:
    scene, may_end = Scene(), threading.Event()

    def hang(_: Cluster) -> None:
        assert may_end.wait(2 * PATIENCE)

    async with scene.playing() as registry:
        await scene.spawn("eu")
        hanging = [asyncio.create_task(registry.with_client("eu", hang)) for _ in range(100)]
        await asyncio.sleep(0)
        assert await registry.with_client("eu", str, timeout=PATIENCE) == "eu"
        assert not any(task.done() for task in hanging)
        may_end.set()
        await asyncio.gather(*hanging)


@pytest.mark.real_time
async def test_callback_is_not_called_while_too_many_calls_hang() -> None:
    called, may_end = list[str](), threading.Event()

    def hang(_: Cluster) -> str:
        called.append(threading.current_thread().name)
        assert may_end.wait(2 * PATIENCE)
        return "done"

    scene = Scene()
    async with scene.playing() as registry:
        await scene.spawn("eu")
        hanging = [asyncio.create_task(registry.with_client("eu", hang)) for _ in range(MOST_LEFT)]
        await eventually(lambda: len(called) == MOST_LEFT)
        for task in hanging:
            task.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)
        with pytest.raises(CallbackTimeout, match=r"16 calls of .*hang were given up"):
            await registry.with_client("eu", hang)
        assert len(called) == MOST_LEFT
        assert await registry.with_client("eu", str, timeout=PATIENCE) == "eu", "another function is called"
        may_end.set()
        await eventually(lambda: not sum(callbacks._left.values()))
        assert await registry.with_client("eu", hang) == "done"


@pytest.mark.real_time
async def test_errors_of_a_callback_in_a_thread_come_back_unchanged() -> None:
    mine = RuntimeError("mine")

    def fail(_: Cluster) -> None:
        raise mine

    def stop(_: Cluster) -> None:
        raise StopIteration

    scene = Scene()
    async with scene.playing() as registry:
        await scene.spawn("eu")
        with pytest.raises(RuntimeError) as raised:
            await registry.with_client("eu", fail)
        assert raised.value is mine
        with pytest.raises(RuntimeError, match="StopIteration"):  # a future can't have it
            await registry.with_client("eu", stop)


@pytest.mark.real_time
async def test_callback_in_a_thread_is_left_after_its_timeout() -> None:
    scene, may_end = Scene(), threading.Event()

    def blocking(eu: Cluster) -> str:
        assert may_end.wait(30)
        return f"{eu} {threading.current_thread() is threading.main_thread()}"

    async with scene.playing() as registry:
        await scene.spawn("eu")
        with pytest.raises(CallbackTimeout):
            await registry.with_client("eu", blocking, timeout=0.05)
        assert await registry.with_client("eu", pod_a), "the loop goes on"
        may_end.set()
        assert await registry.with_client("eu", blocking, timeout=30.0) == "eu False"
