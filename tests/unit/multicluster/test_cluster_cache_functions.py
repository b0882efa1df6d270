"""Functions that run in each cluster of a cache while it is connected, in virtual time."""

import asyncio

import pytest
from cache_scene import GOOD, CacheScene, now, until

from syncer.multicluster import Cluster, State, cluster_cache


class Runs:
    """A function that records its begins and ends, and raises or returns when a test says so."""

    def __init__(self) -> None:
        self.happened: list[str] = []
        #: When it began, by cluster.
        self.begun: dict[str, list[float]] = {}
        #: Seconds after which it raises or returns, by cluster.
        self.raises_after: dict[str, float] = {}
        self.returns_after: dict[str, float] = {}

    async def __call__(self, cluster: Cluster) -> None:
        name = cluster.name
        self.happened.append(f"begin {name}")
        self.begun.setdefault(name, []).append(now())
        try:
            if name in self.raises_after:
                await asyncio.sleep(self.raises_after[name])
                raise RuntimeError("a bug")
            if name in self.returns_after:
                await asyncio.sleep(self.returns_after[name])
                return
            await asyncio.Event().wait()
        finally:
            self.happened.append(f"end {name}")


async def test_function_runs_in_each_cluster_while_it_is_connected_now_and_later() -> None:
    scene = CacheScene("a", "b", "c")
    scene["b"].is_reachable = False
    scene.static.remove("c")
    runs = Runs()
    async with scene.running() as cache:
        cache.for_every_cluster(runs)
        await until(1)
        assert runs.happened == ["begin a"]
        scene.static.put("c", scene.member("c"))
        scene["b"].is_reachable = True
        await until(30)
        assert runs.happened == ["begin a", "begin c", "begin b"]
        scene.static.remove("c")
        await cache.removed("c")
        assert runs.happened[3:] == ["end c"]
    assert sorted(runs.happened[4:]) == ["end a", "end b"]


async def test_function_ends_with_a_connection_and_begins_with_the_next_one() -> None:
    scene = CacheScene("a")
    runs = Runs()
    scene.cache.for_every_cluster(runs)
    async with scene.running() as cache:
        await until(5)
        scene["a"].tokens = set()
        await until(11)
        assert cache.get_status("a").state is State.DISCONNECTED
        assert runs.happened == ["begin a", "end a"]
        scene["a"].tokens = {GOOD}
        await until(30)
        assert runs.happened == ["begin a", "end a", "begin a"]
        assert cache.get_client("a")


async def test_function_that_raises_is_called_again_with_growing_delays_and_delays_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logged: list[object] = []
    monkeypatch.setattr(cluster_cache.log, "error", lambda text, **about: logged.append(about["cluster"]))
    scene = CacheScene("a", "b")
    runs = Runs()
    runs.raises_after["a"] = 1.0
    scene.cache.for_every_cluster(runs)
    async with scene.running() as cache:
        await until(20)
        assert runs.begun == {"a": [0.0, 3.0, 8.0, 17.0], "b": [0.0]}, "delays of 2, 4 and 8 s"
        assert logged == ["a"] * 4
        assert cache.get_client("a"), "its connection stays"


async def test_function_that_returns_is_called_again_with_the_next_connection_alone() -> None:
    scene = CacheScene("a")
    runs = Runs()
    runs.returns_after["a"] = 1.0
    scene.cache.for_every_cluster(runs)
    async with scene.running():
        await until(60)
        assert runs.happened == ["begin a", "end a"]
        scene.static.put("a", scene.member("a", "other"))
        scene["a"].tokens = {"other"}
        await until(120)
        assert runs.happened == ["begin a", "end a"], "a renewed login is no new connection"
        scene["a"].tokens = set()
        await until(140)
        scene["a"].tokens = {"other"}
        await until(200)
        assert runs.happened == ["begin a", "end a"] * 2
