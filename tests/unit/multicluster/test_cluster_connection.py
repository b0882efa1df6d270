"""The state machine of a cluster's connection, and its credentials, in virtual time."""

import asyncio
import dataclasses
import itertools
from pathlib import Path
from typing import Any

import pytest
from cache_scene import GOOD, CacheScene, Handler, now, until, waiting
from fleet_scene import PODS, SECRETS, eventually

from kube_envtest import Rule
from syncer.clusters.login import Login
from syncer.multicluster import (
    NODE_PROVIDER_ID_INDEX,
    ClusterEvent,
    Happening,
    Health,
    NotSynced,
    ProvidedCluster,
    Reason,
    State,
)
from syncer.multicluster.cluster_connection import requeue
from syncer.resources.kinds import NODES
from syncer.testing.objects import pod

UP, DOWN, FAILING = Happening.CONNECTED, Happening.DISCONNECTED, Happening.PROBE_FAILURE


# -- the state machine ---------------------------------------------------------------------------------------------


async def test_cluster_that_is_not_ready_is_dialled_only_when_it_is() -> None:
    scene = CacheScene("a")
    scene.static.put("a", scene.member("a", ready=False))
    async with scene.running() as cache:
        await until(1000)
        assert scene["a"].asked == []
        assert cache.get_status("a").reason == Reason.NOT_READY
        scene.static.put("a", scene.member("a"))
        await asyncio.sleep(0.1)
        assert cache.get_client("a")


async def test_login_that_cannot_be_read_is_asked_for_again_after_ten_seconds_and_is_no_failed_probe() -> None:
    scene = CacheScene("a")
    times: list[float] = []

    async def read() -> Login:
        times.append(now())
        if len(times) < 4:
            raise OSError("the management cluster is away")
        return scene["a"].login()

    scene.static.put("a", ProvidedCluster(read=read))
    async with scene.running() as cache:
        await until(29)
        assert times == [0.0, 10.0, 20.0]
        assert cache.get_status("a").reason == Reason.UNREADABLE
        assert cache.get_health("a") == Health()
        await until(31)
        assert cache.get_client("a")


async def test_connect_checks_the_login_before_it_fills_caches() -> None:
    environ = {"POD_NAMESPACE": "shop", "POD_NAME": "me", "POD_UID": "u"}
    scene = CacheScene("a", environ=environ, indexes=[NODE_PROVIDER_ID_INDEX])
    async with scene.running() as cache:
        paths = [path for _, path in scene["a"].asked]
        order = ["/", "/api/v1", "/api/v1/namespaces/shop/pods/me", "/version", "/api/v1/nodes"]
        assert paths[: len(order)] == order
        assert cache.get_client("a").informer(NODES).synced


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("/", 401, Reason.UNAUTHORIZED),
        ("/", 403, Reason.UNREACHABLE),
        ("/api/v1", 401, Reason.UNAUTHORIZED),
        ("/api/v1", 503, Reason.UNREACHABLE),
    ],
)
async def test_refused_connect_has_its_reason(path: str, status: int, reason: Reason) -> None:
    scene = CacheScene("a")
    scene["a"].refuse(path, status=status)
    async with scene.running() as cache:
        assert cache.get_status("a").reason == reason
        assert scene["a"].closed == 1


async def test_failed_connect_is_not_repeated_before_the_drawn_delay_whatever_happens() -> None:
    scene = CacheScene("a")
    scene["a"].is_reachable = False
    async with scene.running() as cache:
        for second in range(6, 157):
            await until(second)
            scene.static.put("a", scene.member("a", labels={"second": str(second)}))
        delays = [late - early - 5 for early, late in itertools.pairwise(scene["a"].at("/"))]
        assert delays == [2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0], "and 5 s until nobody has answered"
        assert cache.get_status("a").state is State.CONNECTING


async def test_delays_to_reconnect_grow_with_the_failures_in_a_row_and_are_never_under_a_second() -> None:
    scene = CacheScene("a")
    drawn: list[tuple[float, float]] = []

    def vary(a: float, b: float) -> float:
        drawn.append((a, b))
        return a

    scene.cache._vary = vary
    scene["a"].refuse(count=3)
    async with scene.running() as cache:
        await until(3.5)
        assert scene["a"].at("/") == [0.0, 1.0, 2.0, 3.0]
        assert drawn == [(0.0, 2.0), (0.0, 4.0), (0.0, 8.0)]
        assert cache.get_client("a")
        scene["a"].tokens = set()
        await until(13.5)
        assert scene["a"].at("/")[4:] == [13.0, 13.0], "at once after a refusal, but once"
        assert drawn[3:] == [(0.0, 4.0)], "counted again since the connect"


async def test_another_login_is_tried_at_once_even_during_an_attempt() -> None:
    scene = CacheScene("a", "b")
    scene["a"].is_reachable = False
    async with scene.running() as cache:
        await until(1)
        scene.static.put("a", scene.member("b"))
        await asyncio.sleep(0.1)
        assert cache.get_status("a").state is State.CONNECTED
        assert cache.get_connection("a").endpoint.host == "b"


async def test_failed_connect_is_a_failed_probe_and_a_connect_a_successful_one() -> None:
    scene = CacheScene("a")
    scene["a"].is_reachable = False
    async with scene.running() as cache:
        await until(6)
        assert cache.get_health("a") == Health(5.0, None, 1)
        await until(13)
        assert cache.get_health("a") == Health(12.0, None, 2)
        scene["a"].is_reachable = True
        await until(17)
        assert cache.get_health("a") == Health(16.0, 16.0, 0)
        await until(25)
        assert scene["a"].at("/")[-1] == 16.0
        await until(27)
        assert scene["a"].at("/")[-1] == 26.0


async def test_probe_is_a_get_of_the_root_that_must_be_answered_with_200_in_time() -> None:
    scene = CacheScene("a", probe_timeout=3.0)
    async with scene.running() as cache:
        await until(10.5)
        assert scene["a"].at("/") == [0.0, 10.0]
        scene["a"].refuse(status=403)
        await until(20.5)
        assert cache.get_health("a") == Health(20.0, 10.0, 1)
        scene["a"].refusals.clear()
        scene["a"].server.freeze()
        await until(34)
        assert cache.get_health("a") == Health(33.0, 10.0, 2), "30 s and the timeout"
        scene["a"].server.thaw()


async def test_fifth_failure_in_a_row_disconnects_and_a_success_between_resets_the_count() -> None:
    scene = CacheScene("a")
    async with scene.running() as cache:
        await until(1)
        scene["a"].refuse(count=4)
        await until(41)
        assert cache.get_health("a").failures == 4
        assert cache.get_client("a")
        await until(51)
        assert cache.get_health("a").failures == 0
        scene["a"].refuse()
        await until(91)
        assert cache.get_client("a")
        await until(101)
        assert cache.get_status("a").reason == Reason.UNREACHABLE
        assert cache.get_health("a") == Health(100.0, 50.0, 5)
        asked = len(scene["a"].at("/"))
        await until(129)
        assert len(scene["a"].at("/")) == asked, "nobody probes a disconnected cluster"


async def test_refused_probe_reconnects_at_once_with_a_login_read_afresh() -> None:
    scene = CacheScene("a")
    tokens = ["one", "two"]

    async def read() -> Login:
        return scene["a"].login(tokens[0])

    scene["a"].tokens = {"one"}
    scene.static.put("a", ProvidedCluster(read=read))
    source = scene.cache.source("me")
    async with scene.running() as cache:
        await until(5)
        tokens.pop(0)
        scene["a"].tokens = {"two"}
        await until(10.1)
        assert cache.get_connection("a").token == "two"
        assert cache.get_health("a") == Health(10.0, 10.0, 0)
        assert waiting(source) == [ClusterEvent("a", DOWN), ClusterEvent("a", UP)]
        scene["a"].tokens = set()
        await until(21)
        assert cache.get_status("a").reason == Reason.UNAUTHORIZED
        assert scene["a"].at("/")[-2:] == [20.0, 20.0], "one try at once, then the delay"


async def test_news_of_a_connected_cluster_neither_probe_nor_connect() -> None:
    scene = CacheScene("a")
    async with scene.running() as cache:
        client = cache.get_uncached_client("a")
        for second in range(1, 9):
            await until(second)
            scene.static.put("a", scene.member("a", labels={"second": str(second)}))
        assert scene["a"].at("/") == [0.0]
        assert cache.get_uncached_client("a") is client


def test_requeue_is_the_least_delay_given_and_else_ten_seconds() -> None:
    assert requeue() == 10.0
    assert requeue(None) == 10.0
    assert requeue(30.0, None) == 30.0
    assert requeue(30.0, 12.0) == 12.0
    assert requeue(-1.0) == 0.0


async def test_disconnect_closes_the_client_and_ends_watches_and_unused_caches() -> None:
    scene = CacheScene("a")
    async with scene.running() as cache:
        cluster = cache.get_client("a")
        await cluster.list(PODS)
        cache.watch("a", "secrets", SECRETS, Handler())
        scene["a"].refuse()
        await until(61)
        assert scene["a"].closed >= 1
        assert list(cluster.informers()) == []
        assert not cluster.is_running
        connection = cache._connections["a"]
        connection._disconnect(Reason.UNREACHABLE, "again")
        assert connection.health.last_success == 0.0


async def test_cluster_with_unfilled_caches_is_not_connected() -> None:
    scene = CacheScene("a", indexes=[NODE_PROVIDER_ID_INDEX], initial_sync=60.0)
    rule = Rule(verb="list", resource="nodes", status=500)
    scene["a"].server.faults.add(rule)
    async with scene.running() as cache:
        await until(59)
        assert cache.get_status("a").state is State.CONNECTING
        await until(61)
        assert cache.get_status("a").reason == Reason.NOT_SYNCED
        assert "nodes of a" in cache.get_status("a").message
        asked = len(scene["a"].asked)
        await until(61.9)
        assert len(scene["a"].asked) == asked, "the caches are stopped"
        scene["a"].server.faults.remove(rule)
        await until(63)
        assert cache.get_client("a")


async def test_cached_read_that_is_not_filled_ends_in_time() -> None:
    scene = CacheScene("a")
    async with scene.running() as cache:
        scene["a"].server.faults.add(Rule(verb="list", resource="pods", latency=3600))
        begun = now()
        with pytest.raises(NotSynced):
            await cache.get_client("a").list(PODS)
        assert now() - begun <= 10.0


@pytest.fixture
def in_a_pod(tmp_path: Path, monkeypatch: Any) -> dict[str, str]:
    """The environment of a Pod ``me``, whose uid is to be set; its API server is at the host ``inside``."""
    from syncer.clusters import kubeconfig

    for name in ("token", "ca.crt"):
        (tmp_path / name).write_text("x")
    real = kubeconfig.in_cluster
    monkeypatch.setattr(kubeconfig, "in_cluster", lambda environ: real(environ, directory=tmp_path))
    monkeypatch.setattr("syncer.clusters.login.Material.read", lambda self: b"")
    monkeypatch.setattr("syncer.clusters.credentials.LoginCredentials._context", lambda self: None)
    return {
        "POD_NAMESPACE": "shop",
        "POD_NAME": "me",
        "POD_UID": "mine",
        "KUBERNETES_SERVICE_HOST": "inside",
        "KUBERNETES_SERVICE_PORT": "443",
    }


async def test_new_token_of_the_own_cluster_keeps_the_connection(in_a_pod: dict[str, str]) -> None:
    scene = CacheScene("a", "inside", environ=in_a_pod)
    in_a_pod["POD_UID"] = scene["a"].server.put(pod("me"))["metadata"]["uid"]
    scene.static.remove("inside")
    site = scene["inside"]
    async with scene.running() as cache:
        client, closed = cache.get_uncached_client("a"), site.closed
        for number in range(10):
            site.tokens = {f"token-{number}"}
            scene.static.put("a", scene.member("a", f"token-{number}"))
            await asyncio.sleep(30)
            assert cache.get_connection("a").endpoint.host == "inside"
            assert cache.get_connection("a").token == f"token-{number}"
        assert cache.get_uncached_client("a") is client
        assert site.closed == closed
        assert len(site.used_tokens) > 5, "the probes had the new tokens"


async def test_process_that_runs_in_the_cluster_uses_its_inner_address_with_the_given_credentials(
    in_a_pod: dict[str, str],
) -> None:
    environ = in_a_pod
    scene = CacheScene("a", "b", "inside", environ=environ)
    environ["POD_UID"] = scene["a"].server.put(pod("me"))["metadata"]["uid"]
    scene["b"].server.put(pod("other"))
    assert scene["b"].server.put(pod("me"))["metadata"]["uid"] != environ["POD_UID"]
    scene.static.remove("inside")
    async with scene.running() as cache:
        assert cache.get_connection("a").endpoint.host == "inside"
        assert cache.get_connection("a").token == GOOD
        assert cache.get_connection("b").endpoint.host == "b"


async def test_process_that_cannot_look_for_its_own_pod_is_not_connected() -> None:
    scene = CacheScene("a", environ={"POD_NAMESPACE": "shop", "POD_NAME": "me", "POD_UID": "u"})
    scene["a"].server.faults.add(Rule(verb="get", resource="pods", status=500))
    async with scene.running() as cache:
        assert "our own Pod" in cache.get_status("a").message


async def test_delays_to_reconnect_are_spread_over_the_whole_interval() -> None:
    scene = CacheScene(*(f"c{number}" for number in range(60)), vary=True, dials=1000)
    async with scene.running():
        for site in scene.sites.values():
            site.refuse()
        await until(81)
        again = sorted(site.at("/")[6] - 50 for site in scene.sites.values())  # after a connect and five probes
        assert again[0] < 3.5
        assert again[-1] > 24.0
        assert max(sum(1 for each in again if start <= each < start + 3) for start in range(28)) < 20


async def test_dials_at_the_same_time_are_bounded_and_dead_clusters_delay_the_others_little() -> None:
    dead, alive = [f"d{number}" for number in range(12)], [f"a{number}" for number in range(50)]
    scene = CacheScene(*dead, *alive, dials=4)
    for name in dead:
        scene[name].is_reachable = False
    async with scene.running() as cache:
        await until(0.5)
        assert sum(bool(scene[name].asked) for name in (*dead, *alive)) == 4
        await until(15.5)
        assert all(cache.get_status(name).state is State.CONNECTED for name in alive)


async def test_step_that_raises_ends_no_cluster_and_comes_back() -> None:
    scene = CacheScene("a", "b")
    raised = False

    def select(name: str, member: ProvidedCluster) -> bool:
        return True

    scene.cache.options = dataclasses.replace(scene.cache.options, select=select)
    async with scene.running() as cache:
        connection = cache._connections["a"]
        probe = connection._probe

        async def broken() -> float:
            nonlocal raised
            raised = True
            connection._probe = probe  # type: ignore[method-assign]
            raise RuntimeError("a bug")

        connection._probe = broken  # type: ignore[method-assign]
        await until(11)
        assert raised
        assert cache.get_status("a").state is State.DISCONNECTED
        assert cache.get_client("b")
        await until(21)
        assert cache.get_client("a")


async def test_caches_that_end_by_themselves_are_begun_again_at_once() -> None:
    scene = CacheScene("a")
    source, handler = scene.cache.source("me"), Handler()
    async with scene.running() as cache:
        cache.watch("a", "pods", PODS, handler, sticky=True)
        await source.get()
        ended = cache._connections["a"]._running
        assert ended is not None
        ended.cancel()
        await asyncio.sleep(0.1)
        assert waiting(source) == [ClusterEvent("a", DOWN), ClusterEvent("a", UP)]
        scene["a"].server.put(pod("x"))
        await eventually(lambda: "x" in handler.names)


async def test_logins_that_change_again_and_again_during_an_attempt_end_with_the_last_one() -> None:
    scene = CacheScene("a", "b")
    scene["a"].is_reachable = False
    async with scene.running() as cache:
        for turn in range(50):
            scene.static.put("a", scene.member("a", f"token-{turn}"))
            await asyncio.sleep(0)
        scene.static.put("a", scene.member("b"))
        await asyncio.sleep(0.1)
        assert cache.get_connection("a").endpoint.host == "b"


# -- credentials ---------------------------------------------------------------------------------------------------


async def test_token_is_swapped_with_no_list_no_watch_and_no_event() -> None:
    scene = CacheScene("a")
    site, handler = scene["a"], Handler()
    source = scene.cache.source("me")
    async with scene.running() as cache:
        cache.watch("a", "pods", PODS, handler)
        await eventually(lambda: cache.get_client("a").informer(PODS).synced)
        await source.get()
        before = [(one.verb, one.path) for one in site.server.requests if one.verb in ("list", "watch")]
        for number in range(30):
            token = f"token-{number}"
            site.tokens = {token}
            scene.static.put("a", scene.member("a", token))
            site.server.put(pod(f"p{number}"))
            await asyncio.sleep(2)
        assert list(dict.fromkeys(handler.names)) == [f"p{number}" for number in range(30)]
        assert [(one.verb, one.path) for one in site.server.requests if one.verb in ("list", "watch")] == before
        assert waiting(source) == []
        assert len(site.used_tokens) > 5, "the probes had the new tokens"


async def test_login_to_another_server_reconnects_and_the_caches_follow() -> None:
    scene = CacheScene("a", "b")
    scene["a"].server.put(pod("old"))
    scene["b"].server.put(pod("new"))
    handler = Handler()
    async with scene.running() as cache:
        cache.watch("a", "pods", PODS, handler, sticky=True)
        await eventually(lambda: handler.names == ["old"])
        scene.static.put("a", scene.member("b"))
        await eventually(lambda: sorted(handler.names[1:]) == ["new", "old"])
        assert [each["metadata"]["name"] for each in await cache.get_client("a").list(PODS)] == ["new"]


async def test_changed_login_that_is_unusable_leaves_the_former_in_use() -> None:
    scene = CacheScene("a")

    async def read() -> Login:
        raise OSError("gone")

    async with scene.running() as cache:
        scene.static.put("a", ProvidedCluster(read=read, version="other"))
        await until(15)
        assert cache.get_client("a")
