"""Clusters whose client its owner gives to the cache, and suspicions of users, in virtual time."""

import asyncio
import math

import pytest
from cache_scene import CacheScene, Door, Handler
from fleet_scene import PODS

from syncer.clusters.client import Client
from syncer.clusters.credentials import LoginCredentials
from syncer.multicluster import NotConnected, ProvidedCluster, State
from syncer.testing.objects import pod


def client_of(scene: CacheScene, name: str) -> Client:
    return Client(name, Door(scene.sites, LoginCredentials(scene[name].login())))


async def test_suspected_cluster_is_probed_at_once_and_disconnected_if_that_fails_too() -> None:
    scene = CacheScene("a", "b", probe_interval=math.inf)
    async with scene.running() as cache:
        await asyncio.sleep(3600)
        assert [len(scene[each].at("/")) for each in "ab"] == [1, 1], "no probe by itself"
        cache.suspect("a")
        await asyncio.sleep(0.1)
        assert (len(scene["a"].at("/")), cache.get_status("a").state) == (2, State.CONNECTED)
        scene["a"].refuse("/", count=2)
        cache.suspect("a")
        cache.suspect("unknown")
        await asyncio.sleep(0.1)
        assert [cache.get_status(each).state for each in "ab"] == [State.DISCONNECTED, State.CONNECTED]
        probes = len(scene["a"].at("/"))
        cache.suspect("a")
        await asyncio.sleep(0.1)
        assert len(scene["a"].at("/")) == probes, "who isn't connected waits for its time"
        await asyncio.sleep(10)
        assert cache.get_status("a").state is State.CONNECTED


async def test_statuses_that_count_as_healthy_can_be_chosen_but_for_401() -> None:
    scene = CacheScene("a", "b", "c", answers=lambda status: status < 500)
    for name, status in (("a", 403), ("b", 503), ("c", 401)):
        scene[name].refuse("/", status=status)
    async with scene.running() as cache:
        states = [cache.get_status(each).state for each in "abc"]
        assert states == [State.CONNECTED, State.DISCONNECTED, State.DISCONNECTED]


async def test_client_of_its_owner_is_used_and_never_closed() -> None:
    scene = CacheScene("a", probe_interval=10, probe_threshold=1)
    scene.static.remove("a")
    async with scene.running() as cache:
        scene["a"].server.put(pod("one"))
        client = client_of(scene, "a")
        scene.static.put("a", ProvidedCluster(client=client))
        await asyncio.sleep(0.1)
        assert cache.get_uncached_client("a") is client
        with pytest.raises(NotConnected, match="none of its own"):
            cache.get_connection("a")
        handler = Handler()
        cache.watch("a", "pods", PODS, handler, sticky=True)
        scene["a"].refuse("/", count=1)
        await asyncio.sleep(10)
        assert cache.get_status("a").state is State.DISCONNECTED
        scene["a"].server.put(pod("two"))
        await asyncio.sleep(10)
        assert cache.get_status("a").state is State.CONNECTED
        assert handler.names == ["one", "two"]
        scene.static.remove("a")
        await asyncio.sleep(1)
        assert scene["a"].closed == 0


async def test_another_client_of_the_owner_is_another_connection() -> None:
    scene = CacheScene("a")
    scene.static.remove("a")
    async with scene.running() as cache:
        first, second = client_of(scene, "a"), client_of(scene, "a")
        scene.static.put("a", ProvidedCluster(client=first, version=1))
        await asyncio.sleep(0.1)
        scene.static.put("a", ProvidedCluster(client=second, version=2))
        await asyncio.sleep(0.1)
        assert cache.get_uncached_client("a") is second
        assert scene["a"].closed == 0


async def test_provider_that_gives_neither_a_login_nor_a_client_is_named_as_the_reason() -> None:
    scene = CacheScene()
    async with scene.running() as cache:
        scene.static.put("a", ProvidedCluster())
        await asyncio.sleep(0.1)
        assert "neither a login nor a client" in cache.get_status("a").message
