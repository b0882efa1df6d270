"""A cache of clusters: getters, names of providers, and the fake, in virtual time."""

import asyncio
import threading
import time
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from cache_scene import GOOD, CacheScene, Door, Handler, Site, now, until, waiting
from fleet_scene import CONFIG_MAPS, PATIENCE, PODS, SECRETS, eventually
from fleet_scene import Site as Fleet

from kube_envtest import Rule
from syncer.api import Key, NotConnected, Unreachable
from syncer.clusters.credentials import LoginCredentials
from syncer.clusters.transport import Transport
from syncer.multicluster import (
    ClusterCacheOptions,
    ClusterEvent,
    Clusters,
    Controller,
    Happening,
    ProvidedCluster,
    State,
    StaticProvider,
)
from syncer.multicluster.cluster_connection import ClusterConnection
from syncer.testing.fake_cluster_cache import FakeClusterCache
from syncer.testing.objects import pod

UP, DOWN, FAILING = Happening.CONNECTED, Happening.DISCONNECTED, Happening.PROBE_FAILURE


# -- getters -------------------------------------------------------------------------------------------------------


async def test_getters_raise_not_connected_for_unknown_and_for_disconnected_clusters() -> None:
    scene = CacheScene("a", private_keys=True)
    scene["a"].is_reachable = False
    async with scene.running() as cache:
        await until(6)
        for name in ("a", "nobody"):
            for get in (cache.get_client, cache.get_reader, cache.get_uncached_client, cache.get_connection):
                with pytest.raises(NotConnected, match=rf"get .*cluster {name}"):
                    get(name)
            with pytest.raises(NotConnected, match="not generated yet"):
                cache.get_private_key(name)
            with pytest.raises(NotConnected, match="watch pods"):
                cache.watch(name, "pods", PODS, Handler())


async def test_getters_answer_while_the_event_loop_is_in_a_dial() -> None:
    """They need neither the event loop nor anything that a dial holds."""
    scene = CacheScene("good", "hole")
    scene["hole"].is_reachable = False
    scene.static.remove("hole")
    answers: list[str] = []

    def ask() -> None:
        for _ in range(100):
            answers.append(str(scene.cache.get_client("good")))
            with pytest.raises(NotConnected):
                scene.cache.get_client("hole")

    def dialling(credentials: LoginCredentials, options: ClusterCacheOptions) -> Transport:
        if credentials.login.endpoint.host == "hole":
            asking = threading.Thread(target=ask, daemon=True)
            asking.start()
            asking.join(PATIENCE)
        return usual(credentials, options)

    usual, scene.cache._dial = scene.cache._dial, dialling
    async with scene.running() as cache:
        assert cache.get_client("good")
        scene.static.put("hole", scene.member("hole"))
        await until(2)
        assert cache.get_status("hole").state is State.CONNECTING
        assert answers == ["good"] * 100


async def test_getters_may_be_called_by_handlers_and_filters_of_the_cache_itself() -> None:
    def select(name: str, _: ProvidedCluster) -> bool:
        return scene.cache.get_status(name).state is not None

    scene = CacheScene("a", select=select)
    found: list[object] = []
    async with scene.running() as cache:
        cache.watch("a", "pods", PODS, lambda key, obj: found.append(cache.get_client("a")))
        scene["a"].server.put(pod("x"))
        await eventually(lambda: found)
        assert found == [cache.get_client("a")]


async def test_getters_give_cached_uncached_and_readers_of_a_connected_cluster() -> None:
    scene = CacheScene("a")
    scene["a"].server.put(pod("x"))
    async with scene.running() as cache:
        assert await cache.get_client("a").get(PODS, Key("shop", "x"))
        assert await cache.get_reader("a").list(PODS)
        assert await cache.get_uncached_client("a").get(PODS, Key("shop", "x"))
        assert cache.get_connection("a").token == GOOD
        assert list(cache) == ["a"]
        assert "a" in cache


@pytest.mark.parametrize("leaves", [True, False])
async def test_clients_of_a_cluster_that_is_lost_meanwhile_are_not_connected(leaves: bool) -> None:
    scene = CacheScene("a")
    async with scene.running() as cache:
        client, cluster = cache.get_uncached_client("a"), cache.get_client("a")
        scene["a"].is_reachable = False
        with pytest.raises(Unreachable):
            await client.list(PODS)
        await until(70.5)
        waiting = asyncio.create_task(client.list(PODS))
        if leaves:
            scene.static.remove("a")
        await until(76)  # after the fifth probe
        with pytest.raises(NotConnected, match="the connection to cluster a was closed") as caught:
            await waiting
        assert caught.value.cluster == "a"
        for write in (client.create(PODS, pod("x")), cluster.create(PODS, pod("x"))):
            with pytest.raises(NotConnected):
                await write
        with pytest.raises(NotConnected):
            async with client.watch(PODS, resource_version="1"):
                pass


async def test_cached_read_that_is_not_filled_before_its_cluster_is_lost_is_not_connected() -> None:
    scene = CacheScene("a")
    async with scene.running() as cache:
        cluster = cache.get_client("a")
        scene["a"].server.put(pod("x"))
        cluster.add_index(PODS, "all", lambda obj: ["yes"])
        assert await cluster.list(PODS)
        scene["a"].server.faults.add(Rule(verb="list", resource="secrets", latency=3600))
        reading = asyncio.create_task(cluster.list(SECRETS))
        await until(1)
        scene.static.put("a", scene.member("a", ready=False))
        scene["a"].tokens = set()
        await until(10.5)
        begun = now()
        with pytest.raises(NotConnected, match="secrets of a"):
            await reading
        with pytest.raises(NotConnected):
            await cluster.get(CONFIG_MAPS, Key("shop", "x"))
        assert now() == begun
        assert await cluster.list(PODS), "what was filled can be read"
        scene["a"].server.faults.add(Rule(verb="list", resource="configmaps", status=500))
        scene["a"].tokens = {GOOD}
        scene.static.put("a", scene.member("a"))
        await asyncio.sleep(1)
        assert cache.get_client("a"), "it isn't waited for what was only read"


async def test_last_probe_success_is_none_for_unknown_clusters_and_stays_over_a_disconnect() -> None:
    scene = CacheScene("a")
    async with scene.running() as cache:
        assert cache.get_last_probe_success("nobody") is None
        await until(10.5)
        scene["a"].refuse()
        await until(61)
        assert cache.get_status("a").state is State.DISCONNECTED
        assert cache.get_last_probe_success("a") == 10.0


async def test_private_key_is_made_once_and_stays_over_a_reconnect() -> None:
    scene = CacheScene("a", private_keys=True)
    async with scene.running() as cache:
        while cache._connections["a"].key is None:  # another thread makes it; virtual time passes meanwhile
            await asyncio.to_thread(time.sleep, 0.01)
        key = cache.get_private_key("a")
        assert key.key_size == 2048
        scene.static.put("a", scene.member("a", "other"))
        scene["a"].tokens = {"other"}
        await asyncio.sleep(60)
        assert cache.get_private_key("a") is key
    plain = CacheScene("a")
    with pytest.raises(ValueError, match="set private_keys"):
        plain.cache.get_private_key("a")


async def test_private_key_is_made_off_the_event_loop(monkeypatch: Any) -> None:
    import threading

    from syncer.multicluster import cluster_connection

    threads: list[object] = []
    monkeypatch.setattr(cluster_connection, "_new_key", lambda: threads.append(threading.current_thread()))
    scene = CacheScene("a", private_keys=True)
    async with scene.running():
        while not threads:
            await asyncio.to_thread(lambda: None)
        assert threads[0] is not threading.main_thread()


# -- removal -------------------------------------------------------------------------------------------------------


async def test_removed_cluster_that_is_put_again_is_connected_to_once_the_former_connection_has_ended() -> None:
    scene = CacheScene("a", "b")
    closed: list[float] = []

    class Slow(Door):
        async def close(self) -> None:
            await asyncio.sleep(5)
            await super().close()
            closed.append(now())

    scene.cache._dial = lambda credentials, _: Slow(scene.sites, credentials)
    async with scene.running() as cache:
        await until(1)
        scene.static.remove("a")
        scene.static.remove("b")
        scene.static.put("a", scene.member("a"))
        await until(2)
        assert cache.get_status("a").state is State.UNKNOWN
        await cache.removed("b")
        assert closed == [6.0, 6.0]
        assert "b" not in cache
        await cache.removed("a")
        await cache.removed("unknown")
        assert now() == 6.0
        await cache.attempted("a")
        assert cache.get_client("a")
        assert scene["a"].at("/") == [0.0, 6.0]


async def test_whoever_waits_for_a_cluster_goes_on_when_it_is_removed_before_it_has_begun() -> None:
    scene = CacheScene("a")
    async with scene.running() as cache:
        cache.remove("a")
        cache.put("a", scene.member("a"))
        attempted = asyncio.create_task(cache.attempted("a"))
        dialled = asyncio.create_task(cache.dialled("a"))
        await asyncio.sleep(0)
        assert scene["a"].at("/") == [0.0], "the former connection is ending"
        cache.remove("a")
        assert (await attempted).state is State.UNKNOWN
        await dialled
        await cache.removed("a")
        assert scene["a"].at("/") == [0.0]


async def test_connection_that_ends_by_a_bug_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = CacheScene("a")
    async with scene.running() as cache:
        with monkeypatch.context() as patched:
            patched.setattr(ClusterConnection, "_notify_failures", Mock(side_effect=RuntimeError("a bug")))
            scene.static.put("a", scene.member("a", labels={"any": "news"}))
            await until(1)
            assert cache.get_status("a").message == "its connection has ended badly"
        await until(5)
        assert cache.get_client("a")


# -- providers' names, and the fake --------------------------------------------------------------------------------


async def test_names_of_clusters_have_that_of_their_provider() -> None:
    site = Site("a")
    providers: list[Any] = [StaticProvider({"a": site.login()}, name=name) for name in ("eu", "us")]
    scene = CacheScene("a", providers=providers)
    async with scene.running() as cache:
        assert sorted(cache) == ["eu#a", "us#a"]
        providers[0].remove("a")
        await asyncio.sleep(0.1)
        assert list(cache) == ["us#a"]
    with pytest.raises(ValueError, match="names of their own"):
        CacheScene(providers=[StaticProvider({}), StaticProvider({})])


async def test_name_that_would_be_that_of_another_providers_cluster_is_left_alone() -> None:
    site = Site("a")
    own, other = StaticProvider({"a": site.login()}, name="eu"), StaticProvider({})
    async with CacheScene("a", providers=[own, other]).running() as cache:
        other.put("eu#a", site.login())
        other.put("b", site.login())
        await asyncio.sleep(0.1)
        assert sorted(cache) == ["b", "eu#a"]
        other.remove("eu#a")
        other.remove("b")
        await asyncio.sleep(0.1)
        assert list(cache) == ["eu#a"]


async def test_provider_that_raises_is_run_again_and_its_clusters_stay() -> None:
    scene = CacheScene("a")

    class Broken:
        name, runs = "", 0

        async def run(self, fleet: Any) -> None:
            self.runs += 1
            fleet.put("a", scene.member("a"))
            await asyncio.sleep(1)
            raise RuntimeError("a bug")

    broken = Broken()
    scene.cache._providers = [broken]
    async with scene.running() as cache:
        await until(30)
        assert broken.runs == 3
        assert cache.get_client("a")


async def test_fake_is_connected_to_the_given_clusters_alone() -> None:
    scene = CacheScene("a")
    async with scene.running() as cache:
        fake = FakeClusterCache({"a": cache.get_client("a")}, "known")
        assert fake.get_client("a") is cache.get_client("a")
        assert fake.get_reader("a")
        assert fake.get_uncached_client("a")
        fake.watch("a", "known", PODS, Handler())
        assert fake.watched == {}
        fake.watch("a", "other", PODS, Handler())
        assert list(fake.watched) == [("a", "other")]
        for get in (fake.get_client, fake.get_reader, fake.get_uncached_client):
            with pytest.raises(NotConnected):
                get("b")
            with pytest.raises(NotConnected):
                getattr(FakeClusterCache(), get.__name__)("a")
        with pytest.raises(NotConnected):
            fake.watch("b", "known", PODS, Handler())
        assert fake.get_last_probe_success("a") is None
        controller = Controller(AsyncMock())
        fake.add(controller)
        assert controller.clusters == {"a": cache.get_client("a")}
        source = fake.source("me")
        fake.notify("a", UP)
        assert await source.get() == ClusterEvent("a", UP)
        fake.leave(source)
        fake.notify("a", DOWN)
        assert waiting(source) == []
        assert (list(fake), "a" in fake, "b" in fake) == (["a"], True, False)
        fake.remove("a")
        fake.remove("b")
        assert (list(fake), controller.clusters) == ([], {})
        with pytest.raises(NotConnected):
            fake.get_client("a")


async def test_fake_has_the_methods_of_the_cache() -> None:
    both: list[Clusters] = [CacheScene().cache, fake := FakeClusterCache({"a": Fleet("a").cluster})]
    names = {name for name in vars(Clusters) if not name.startswith("_")}
    assert all(hasattr(each, name) for each in both for name in names)
    assert fake.get_status("a").state is State.CONNECTED
    assert fake.get_status("b").state is State.UNKNOWN
    assert fake.get_private_key("a") is fake.get_private_key("a")
    assert fake.get_connection("a").endpoint.host == "a.invalid"
    fake.logins["a"] = login = Site("a").login()
    fake.namespaces["a"] = frozenset({"shop"})
    assert fake.get_connection("a") is login
    assert fake.get_namespaces("a") == {"shop"}
    assert fake.get_namespaces("b") == frozenset()
    for get in (fake.get_connection, fake.get_private_key):
        with pytest.raises(NotConnected):
            get("b")
