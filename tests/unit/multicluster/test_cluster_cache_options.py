"""Filters and options of a cluster cache, each by what it changes, in virtual time."""

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from cache_scene import CacheScene, Door, Site, now, until
from fleet_scene import PODS, SECRETS, running

from kube_envtest import Rule
from syncer.api import Key, Obj, Unreachable
from syncer.clusters import codec
from syncer.clusters.client import PAGE
from syncer.clusters.credentials import Access, LoginCredentials
from syncer.clusters.http_transport import HttpTransport
from syncer.multicluster import (
    NODE_PROVIDER_ID_INDEX,
    ClusterCache,
    ClusterCacheOptions,
    ClusterOptions,
    FieldIndex,
    NotSynced,
    Part,
    State,
    StaticProvider,
)
from syncer.multicluster.cluster_cache import dial
from syncer.multicluster.cluster_informer import ClusterInformer
from syncer.resources.kinds import NODES
from syncer.testing.objects import node, pod, secret


async def test_clusters_without_the_label_are_never_dialled() -> None:
    scene = CacheScene("a", "b", selector={"matchLabels": {"watched": "yes"}})
    scene.static.put("a", scene.member("a", labels={"watched": "yes"}))
    async with scene.running() as cache:
        assert list(cache) == ["a"]
        assert scene["b"].asked == []
        scene.static.put("b", scene.member("b", labels={"watched": "yes"}))
        await asyncio.sleep(0.1)
        assert cache.get_client("b")
        scene.static.put("a", scene.member("a"))
        await asyncio.sleep(0.1)
        assert list(cache) == ["b"]
        assert scene["a"].closed == 1
        scene.static.put("a", scene.member("a", labels={"watched": "yes"}))
        await asyncio.sleep(0.1)
        assert cache.get_client("a")


async def test_filter_function_selects_clusters() -> None:
    scene = CacheScene("a", "b", select=lambda name, member: name != "b" or "on" in member.labels)
    async with scene.running() as cache:
        assert list(cache) == ["a"]
        scene.static.put("b", scene.member("b", labels={"on": ""}))
        await asyncio.sleep(0.1)
        assert cache.get_client("b")


@pytest.mark.parametrize(
    "options",
    [
        {"select": lambda name, member: member.labels["on"] == "yes"},
        {"selector": {"matchExpressions": [{"key": "on"}]}},
    ],
    ids=["function", "selector"],
)
async def test_filter_that_raises_selects_nothing_and_costs_no_other_cluster(
    options: dict[str, Any], capsys: Any
) -> None:
    scene = CacheScene("a", "b", **options)
    scene.static.put("b", scene.member("b", labels={"on": "yes"}))
    async with scene.running() as cache:
        assert list(cache) == (["b"] if "select" in options else [])
        scene.static.put("a", scene.member("a", labels={"on": "no"}))
        assert "a" not in cache
        scene.static.put("b", scene.member("b"))
        assert "b" not in cache, "it was selected before"
    assert "a filter of clusters raised" in capsys.readouterr().err


async def test_live_resources_are_never_cached() -> None:
    scene = CacheScene("a", clusters=ClusterOptions(disable_for=frozenset([SECRETS])))
    scene["a"].server.put(secret("x", {"a": "b"}))
    async with scene.running() as cache:
        client = cache.get_client("a")
        assert await client.get(SECRETS, Key("shop", "x"))
        assert await client.get(SECRETS, Key("shop", "none")) is None
        assert len(await client.list(SECRETS, selector={"matchLabels": {"app": "web"}})) == 0
        assert len(await client.list(SECRETS)) == 1
        assert list(client.informers()) == []
        scene["a"].server.put(secret("y", {"a": "b"}))
        assert len(await client.list(SECRETS)) == 2
        assert len(await client.list(PODS)) == 0
        assert len(list(client.informers())) == 1


async def test_parts_limit_caches_on_the_server() -> None:
    parts = {PODS: Part(namespace="shop", selector="app=web", fields="spec.nodeName=n1")}
    scene = CacheScene("a", clusters=ClusterOptions(by_object=parts))
    web = {"labels": {"app": "web"}}
    scene["a"].server.put(pod("good", metadata=web, spec={"nodeName": "n1"}))
    scene["a"].server.put(pod("other-node", metadata=web, spec={"nodeName": "n2"}))
    scene["a"].server.put(pod("other-label", spec={"nodeName": "n1"}))
    scene["a"].server.put(pod("other-place", namespace="bank", metadata=web, spec={"nodeName": "n1"}))
    async with scene.running() as cache:
        found = await cache.get_client("a").list(PODS)
        assert [each["metadata"]["name"] for each in found] == ["good"]


async def test_transform_of_a_resource_wins_over_that_of_all() -> None:
    def without(field: str) -> Any:
        return lambda obj: {name: value for name, value in obj.items() if name != field}

    options = ClusterOptions(transform=without("spec"), transforms={SECRETS: without("type")})
    scene = CacheScene("a", clusters=options)
    scene["a"].server.put(pod("x"))
    scene["a"].server.put(secret("x", {"a": "b"}))
    async with scene.running() as cache:
        [found] = await cache.get_client("a").list(PODS)
        assert "spec" not in found
        [found] = await cache.get_client("a").list(SECRETS)
        assert "type" not in found
        assert "data" in found


def test_object_that_a_watch_shows_is_stored_as_its_transform_leaves_it() -> None:
    def without_data(obj: Obj) -> Obj:
        return {name: value for name, value in obj.items() if name != "data"}

    cache = ClusterInformer(
        "a", SECRETS, namespace="", selector="", transform=without_data, clock=lambda: 0.0, ordered=lambda: True
    )
    shown = secret("x", {"a": "b"}, metadata={"uid": "u1", "resourceVersion": "1"})
    cache.event("ADDED", codec.encode(shown))
    for _ in range(2):  # the first reader gets the object that was decoded from the event
        assert cache.get(Key("shop", "x")) == without_data(shown)


async def test_indexes_are_filled_before_a_cluster_counts_as_connected_also_again() -> None:
    by_node = FieldIndex(PODS, "node", lambda obj: [obj["spec"].get("nodeName")])
    scene = CacheScene("a", indexes=[NODE_PROVIDER_ID_INDEX, by_node])
    scene["a"].server.put(node("n1", spec={"providerID": "aws:///i-1"}))
    scene["a"].server.put(node("n2"))
    scene["a"].server.put(pod("x", spec={"nodeName": "n1"}))
    async with scene.running() as cache:
        client = cache.get_client("a")
        assert len(await client.by_index(NODES, "spec.providerID", "aws:///i-1")) == 1
        assert len(await client.by_index(PODS, "node", "n1")) == 1
        scene["a"].refuse()
        await until(51)
        scene["a"].server.put(node("n2", spec={"providerID": "aws:///i-2"}))
        scene["a"].refusals.clear()
        await until(81)
        assert len(await cache.get_client("a").by_index(NODES, "spec.providerID", "aws:///i-2")) == 1


def test_provider_id_index_leaves_empty_ids_out_and_other_kinds_are_an_error() -> None:
    values = NODE_PROVIDER_ID_INDEX.values
    assert list(values({"kind": "Node", "spec": {"providerID": "x"}})) == ["x"]
    assert list(values({"kind": "Node", "spec": {"providerID": ""}})) == []
    assert list(values({"kind": "Node"})) == []
    with pytest.raises(TypeError, match="not for Pod"):
        values({"kind": "Pod"})


async def test_requests_are_limited_and_probes_are_not() -> None:
    scene = CacheScene("a", qps=1.0, burst=2, timeout=1000.0)
    async with scene.running() as cache:
        client = cache.get_uncached_client("a")
        begun = now()
        await asyncio.gather(*(client.list(PODS) for _ in range(20)))
        assert now() - begun >= 17
        assert scene["a"].at("/")[:2] == [0.0, 10.0]


async def test_request_ends_at_the_timeout_of_the_options() -> None:
    scene = CacheScene("a", timeout=7.0)
    async with scene.running() as cache:
        scene["a"].server.faults.add(Rule(verb="get", resource="pods", latency=3600))
        begun = now()
        with pytest.raises(Unreachable):
            await cache.get_uncached_client("a").get(PODS, Key("shop", "x"))
        assert now() - begun == pytest.approx(7.0, abs=0.1)


@pytest.mark.parametrize(("own", "seconds"), [(None, 20.0), (3.0, 3.0)])
async def test_cached_read_ends_at_the_timeout_of_the_options_unless_its_cluster_has_one(
    own: float | None, seconds: float
) -> None:
    scene = CacheScene("a", timeout=20.0, clusters=ClusterOptions(sync_timeout=own))
    for number in range(PAGE + 1):
        scene["a"].server.put(pod(f"p{number}"))
    async with scene.running() as cache:
        client = cache.get_client("a")
        scene["a"].server.faults.add(Rule(verb="list", resource="pods", latency=15.0))  # of each page
        client.add_index(PODS, "all", lambda obj: ["yes"])
        begun = now()
        reads = [client.get(PODS, Key("shop", "x")), client.list(PODS), client.by_index(PODS, "all", "yes")]
        for ended in await asyncio.gather(*reads, return_exceptions=True):
            assert isinstance(ended, NotSynced)
        assert now() - begun == pytest.approx(seconds, abs=0.1)


async def test_probe_options_change_path_and_time_of_probes() -> None:
    scene = CacheScene("a", probe_path="/readyz", probe_interval=3.0, probe_threshold=2, max_retry_delay=4.0)
    async with scene.running() as cache:
        await until(7)
        assert scene["a"].at("/readyz") == [0.0, 3.0, 6.0]
        scene["a"].refuse("/readyz")
        await until(12.5)
        assert cache.get_status("a").state is State.DISCONNECTED
        await until(17)
        assert scene["a"].at("/readyz")[3:] == [9.0, 12.0, 16.0]


def test_user_agent_is_required() -> None:
    with pytest.raises(ValueError, match="user_agent is required"):
        ClusterCacheOptions(user_agent="")


async def test_user_agent_is_in_the_head_of_each_request() -> None:
    transport = dial(LoginCredentials(Site("a").login()), ClusterCacheOptions(user_agent="my-controller/1.0"))
    assert isinstance(transport, HttpTransport)
    assert "User-Agent: my-controller/1.0\r\n" in transport.dialer.fixed_head(Access())


async def test_every_option_is_read_while_a_cluster_connects_is_read_from_and_is_lost() -> None:
    whole, clusters = noting(ClusterCacheOptions), noting(ClusterOptions)
    options = whole.made(
        user_agent="test",
        clusters=clusters.made(),
        select=lambda name, member: True,
        selector={"matchLabels": {}},
        private_keys=True,
    )
    site = Site("a")

    def door(credentials: LoginCredentials, given: ClusterCacheOptions) -> Door:
        dial(credentials, given)
        return Door({"a": site}, credentials)

    whole.read.clear()  # what is looked at to be refused isn't used
    cache = ClusterCache([StaticProvider({"a": site.login()})], options, environ={}, clock=now, dial=door)
    async with running(cache):
        await until(1)
        await cache.get_client("a").list(PODS)
        site.refuse()
        await until(100)
    for noted, kind in ((whole, ClusterCacheOptions), (clusters, ClusterOptions)):
        assert {each.name for each in dataclasses.fields(kind)} - noted.read == set()


class Noting(NamedTuple):
    """Options whose reads are noted."""

    made: Callable[..., Any]
    read: set[str]


def noting(options: type) -> Noting:
    read: set[str] = set()

    class Noted(options):  # type: ignore[misc]
        __slots__ = ()

        def __getattribute__(self, name: str) -> object:
            read.add(name)
            return super().__getattribute__(name)

    return Noting(Noted, read)
