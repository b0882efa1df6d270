"""Watches of a cluster cache, and the events of its sources, in virtual time."""

import asyncio

import pytest
from cache_scene import GOOD, CacheScene, Handler, now, until, waiting
from fleet_scene import PODS, eventually

from kube_envtest import Rule
from syncer.api import Key, NotConnected, Obj
from syncer.multicluster import (
    ClusterCacheCollector,
    ClusterEvent,
    ClusterOptions,
    ClusterSource,
    Controller,
    Happening,
    Request,
    State,
)
from syncer.steps import STEP_OBJECTS
from syncer.testing.objects import pod

UP, DOWN, FAILING = Happening.CONNECTED, Happening.DISCONNECTED, Happening.PROBE_FAILURE


# -- watches -------------------------------------------------------------------------------------------------------


async def test_watch_of_a_name_begins_once_and_shows_existing_objects() -> None:
    scene = CacheScene("a")
    scene["a"].server.put(pod("x"))
    first, second = Handler(), Handler()
    async with scene.running() as cache:
        with pytest.raises(ValueError, match="needs a name"):
            cache.watch("a", "", PODS, first)
        for handler in (first, second):
            cache.watch("a", "pods", PODS, handler)
        await eventually(lambda: first.names == ["x"])
        late = Handler()
        cache.watch("a", "late", PODS, late)
        await eventually(lambda: late.names == ["x"])
        assert second.names == []
        assert sum(one.verb == "watch" for one in scene["a"].server.requests) == 1


@pytest.mark.parametrize("ends", ["watch", "cluster", "cache"])
async def test_watch_that_is_shown_objects_ends_with_connection_cluster_or_cache(ends: str) -> None:
    scene, handler = CacheScene("a"), Handler()
    for number in range(10 * STEP_OBJECTS):
        scene["a"].server.put(pod(f"p{number}"))
    async with scene.running() as cache:
        cache.watch("a", "first", PODS, Handler(), sticky=True)
        await eventually(lambda: cache.get_client("a").informer(PODS).synced)
        cache.watch("a", "pods", PODS, handler)
        await asyncio.sleep(0)
        if ends == "watch":
            cache._connections["a"]._disconnect("", "a test")
        elif ends == "cluster":
            scene.static.remove("a")
        if ends != "cache":
            await asyncio.sleep(10)
    assert len(handler.names) < 10 * STEP_OBJECTS


async def test_handler_that_raises_is_shown_the_rest_and_named_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    scene, received = CacheScene("a"), list[str]()
    for name in ("x", "y", "z"):
        scene["a"].server.put(pod(name))

    def handler(key: Key, _: Obj) -> None:
        received.append(key.name)
        raise RuntimeError("a bug")

    async with scene.running() as cache:
        cache.watch("a", "first", PODS, Handler())
        await eventually(lambda: cache.get_client("a").informer(PODS).synced)
        cache.watch("a", "pods", PODS, handler)
        await eventually(lambda: len(received) == 3)
    assert "the handler of a watch raised" in capsys.readouterr().err


async def test_watch_that_cannot_begin_can_be_tried_again() -> None:
    scene = CacheScene("a", clusters=ClusterOptions(namespace="shop"))
    handler = Handler()
    async with scene.running() as cache:
        with pytest.raises(ValueError, match="caches namespace shop alone"):
            cache.watch("a", "pods", PODS, handler, namespace="bank")
        cache.watch("a", "pods", PODS, handler)
        scene["a"].server.put(pod("x"))
        await eventually(lambda: handler.names == ["x"])


async def test_watch_ends_with_its_connection_and_can_be_begun_again() -> None:
    scene = CacheScene("a")
    handler = Handler()
    async with scene.running() as cache:
        cache.watch("a", "pods", PODS, handler)
        scene["a"].refuse()
        await until(61)
        with pytest.raises(NotConnected):
            cache.watch("a", "pods", PODS, handler)
        scene["a"].refusals.clear()
        await until(91)
        assert cache.get_client("a")
        scene["a"].server.put(pod("x"))
        await asyncio.sleep(5)
        assert handler.names == []
        cache.watch("a", "pods", PODS, handler)
        await eventually(lambda: handler.names == ["x"])


async def test_watch_is_refused_from_the_very_event_of_a_disconnect_on() -> None:
    scene = CacheScene("a")
    source, refused = scene.cache.source("me"), []

    async def consume() -> None:
        async for event in source:
            if event.happening is DOWN:
                try:
                    scene.cache.watch("a", "late", PODS, Handler())
                except NotConnected:
                    refused.append(now())

    async with scene.running():
        consuming = asyncio.create_task(consume())
        scene["a"].refuse()
        await until(51)
        assert refused == [50.0]
        consuming.cancel()


async def test_sticky_watch_comes_back_by_itself_with_the_deletes_that_were_missed() -> None:
    scene = CacheScene("a")
    server = scene["a"].server
    for number in range(100):
        server.put(pod(f"gone{number}"))
    server.put(pod("stays"))
    handler = Handler()
    async with scene.running() as cache:
        cache.watch("a", "pods", PODS, handler, sticky=True)
        await eventually(lambda: len(handler.names) == 101)
        scene["a"].refuse()
        await until(55)
        assert cache.get_status("a").state is State.DISCONNECTED
        handler.names.clear()
        for number in range(100):
            server.delete("pods", Key("shop", f"gone{number}"))
        server.put(pod("new"))
        assert handler.names == []
        scene["a"].refusals.clear()
        await until(81)
        assert sorted(set(handler.names) - {"stays"}) == sorted([*(f"gone{number}" for number in range(100)), "new"])
        assert len([name for name in handler.names if name.startswith("gone")]) == 100


async def test_cluster_that_comes_back_is_connected_when_its_caches_are_listed_again() -> None:
    scene = CacheScene("a")
    server = scene["a"].server
    async with scene.running() as cache:
        handler = Handler()
        cache.watch("a", "pods", PODS, handler, sticky=True)
        await until(5)
        scene["a"].refuse()
        await until(55)
        server.put(pod("new"))
        server.faults.add(Rule(verb="list", resource="pods", latency=4.0))
        scene["a"].refusals.clear()
        await eventually(lambda: cache.get_status("a").state is State.CONNECTED)
        assert handler.names == ["new"]


async def test_sticky_watch_may_be_declared_before_the_first_connect() -> None:
    scene = CacheScene("a")
    scene["a"].is_reachable = False
    scene["a"].server.put(pod("x"))
    handler = Handler()
    async with scene.running() as cache:
        cache.watch("a", "pods", PODS, handler, sticky=True)
        with pytest.raises(NotConnected):
            cache.watch("nobody", "pods", PODS, handler, sticky=True)
        scene["a"].is_reachable = True
        await eventually(lambda: handler.names == ["x"])


async def test_controller_that_is_engaged_goes_on_over_reconnects_with_the_deletes_that_were_missed() -> None:
    scene = CacheScene("a")
    scene["a"].server.put(pod("gone"))
    received: list[Request] = []

    async def reconcile(request: Request) -> None:
        received.append(request)

    controller = Controller(reconcile)
    controller.for_every_cluster(lambda cluster: controller.watch_object(cluster, PODS))
    source = scene.cache.source("controller")
    async with scene.running() as cache:
        working = asyncio.create_task(controller.run())
        event = await source.get()
        controller.engage(cache.get_client(event.cluster))
        await eventually(lambda: Request("a", "shop", "gone") in received)
        scene["a"].refuse()
        await until(51)
        received.clear()
        scene["a"].server.delete("pods", Key("shop", "gone"))
        scene["a"].refusals.clear()
        await until(81)
        controller.engage(cache.get_client("a"))
        await eventually(lambda: Request("a", "shop", "gone") in received)
        scene["a"].server.put(pod("new"))
        await eventually(lambda: Request("a", "shop", "new") in received)
        working.cancel()


# -- events --------------------------------------------------------------------------------------------------------


async def test_sources_get_each_connect_and_disconnect() -> None:
    scene = CacheScene("a")
    one, two = scene.cache.source("one"), scene.cache.source("two", lambda cluster: [f"machine-of-{cluster}"])
    async with scene.running():
        assert await one.get() == ClusterEvent("a", UP)
        scene["a"].refuse()
        await until(51)
        assert await one.get() == ClusterEvent("a", DOWN)
        requests = two.requests()
        assert [await anext(requests) for _ in range(2)] == ["machine-of-a", "machine-of-a"]
        with pytest.raises(ValueError, match="maps clusters to nothing"):
            await anext(one.requests())


async def test_source_that_is_not_read_keeps_few_events_and_delays_no_other() -> None:
    scene = CacheScene("a", max_retry_delay=1.0)
    idle, read = scene.cache.source("idle", probe_failures=[1]), scene.cache.source("read")
    received: list[ClusterEvent] = []

    async def consume() -> None:
        while True:
            received.append(await read.get())

    async with scene.running() as cache:
        consuming = asyncio.create_task(consume())
        for _ in range(20):
            scene["a"].tokens = {"none"}
            await asyncio.sleep(11)
            scene["a"].tokens = {GOOD}
            await asyncio.sleep(2)
        assert len(received) == 41
        assert len(idle) <= 3
        cache.leave(idle)
        consuming.cancel()


@pytest.mark.parametrize(
    ("last_event", "limit", "expected"),
    [(40, 5, False), (40, 21, True), (40, 30, True), (40, 120, False), (39, 21, False), (None, 21, True)],
)
async def test_probe_failure_is_an_event_once_a_limit_is_over_and_no_event_came_since(
    last_event: float | None, limit: float, expected: bool
) -> None:
    source = ClusterSource("me", None, [limit])
    moment = 1000.0
    if last_event is not None:
        source.notify(ClusterEvent("a", DOWN), moment - last_event)
        await source.get()
    source.notify_failure("a", success=moment - 60, now=moment)
    assert waiting(source) == ([ClusterEvent("a", FAILING)] if expected else [])
    source.notify_failure("a", success=moment - 60, now=moment + 1)
    assert len(source) == int(expected), "one for each outage"


async def test_probe_failure_comes_when_each_limit_is_over_however_long_the_outage() -> None:
    scene = CacheScene("a")
    source = scene.cache.source("me", probe_failures=[25.0, 300.0])
    times: list[tuple[float, Happening]] = []

    async def consume() -> None:
        while True:
            happening = (await source.get()).happening
            times.append((round(now()), happening))

    async with scene.running():
        consuming = asyncio.create_task(consume())
        scene["a"].refuse()
        await until(1000)
        consuming.cancel()
        assert times == [(0, UP), (25, FAILING), (50, DOWN), (300, FAILING)]


async def test_stamps_and_series_of_a_cluster_go_with_it() -> None:
    scene = CacheScene("a", "b")
    source = scene.cache.source("me")
    collector = ClusterCacheCollector(scene.cache)

    def series() -> dict[tuple[str, tuple[str, ...]], float]:
        return {
            (each.name, tuple(each.labels.values())): each.value
            for family in collector.collect()
            for each in family.samples
        }

    async with scene.running():
        scene["b"].refuse()
        await until(55)
        assert series() == {
            ("cluster_cache_connection_up", ("a",)): 1.0,
            ("cluster_cache_connection_up", ("b",)): 0.0,
            ("cluster_cache_healthcheck", ("a",)): 1.0,
            ("cluster_cache_healthcheck", ("b",)): 0.0,
            ("cluster_cache_healthchecks_total", ("a", "success")): 5.0,
            ("cluster_cache_healthchecks_total", ("b", "error")): 5.0,
        }
        assert source.stamps.keys() == {"a", "b"}
        scene.static.remove("b")
        await asyncio.sleep(0.1)
        assert {labels[0] for _, labels in series()} == {"a"}
        assert source.stamps.keys() == {"a"}
        scene.static.remove("a")
        await asyncio.sleep(0.1)
        assert series() == {}
