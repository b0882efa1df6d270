"""Limits of reconciles; and their errors about clusters that have left or lost their connection."""

import asyncio
import threading
from typing import Any
from unittest.mock import Mock

import pytest
from cache_scene import CacheScene, now
from fleet_scene import PODS, Site, eventually, running

from syncer.multicluster import (
    ClusterNotFound,
    Controller,
    ControllerOptions,
    NotConnected,
    Request,
    Result,
)
from syncer.testing.objects import pod


def failing(error: Exception, **options: Any) -> tuple[Site, Controller, list[Request]]:
    """Return a controller whose reconciles all fail."""
    requests: list[Request] = []

    async def reconcile(request: Request) -> None:
        requests.append(request)
        raise error

    site, controller = Site("eu", pod("a")), Controller(reconcile, ControllerOptions(**options))
    controller.watch_object(site.cluster, PODS)
    return site, controller, requests


@pytest.mark.parametrize("error", [NotConnected("down", cluster="eu"), ClusterNotFound("eu")], ids=["down", "left"])
async def test_request_of_a_lost_cluster_is_dropped_until_the_next_change(error: Exception) -> None:
    site, controller, requests = failing(error)
    async with running(site, controller):
        await eventually(lambda: requests)
        await asyncio.sleep(600)
        assert len(requests) == 1
        site.server.put(pod("a", metadata={"labels": {"new": "yes"}}))
        await eventually(lambda: len(requests) == 2)


@pytest.mark.parametrize(
    ("error", "options"),
    [
        (NotConnected("down", cluster="us"), {}),
        (ClusterNotFound("us"), {}),
        (NotConnected("down", cluster="eu"), {"ignore_lost_clusters": False}),
        (ClusterNotFound("eu"), {"ignore_lost_clusters": False}),
    ],
    ids=["another is down", "another has left", "down", "left"],
)
async def test_request_is_retried_if_another_cluster_is_lost_or_by_option(
    error: Exception, options: dict[str, Any]
) -> None:
    site, controller, requests = failing(error, **options)
    async with running(site, controller):
        await eventually(lambda: len(requests) > 3)


async def test_request_of_a_disconnected_cluster_comes_again_after_the_reconnect() -> None:
    scene, tried = CacheScene("a"), 0
    scene["a"].server.put(pod("x"))
    is_seen, got = asyncio.Event(), list[Request]()

    async def reconcile(request: Request) -> None:
        nonlocal tried
        tried += 1
        if tried == 1:
            await is_seen.wait()
        scene.cache.get_client(request.cluster)
        got.append(request)

    controller = Controller(reconcile)
    controller.for_every_cluster(lambda cluster: controller.watch_object(cluster, PODS))
    scene.cache.add(controller)
    async with scene.running() as cache, running(controller):
        await eventually(lambda: tried == 1)
        scene["a"].refuse()
        await eventually(lambda: not controller.is_ready("a"))
        is_seen.set()
        await asyncio.sleep(100)
        assert (tried, got) == (1, [])
        scene["a"].refusals.clear()
        await eventually(lambda: got)
        assert cache.get_client("a")
        assert got == [Request("a", "shop", "x")]


async def test_request_of_a_cluster_that_is_back_already_is_not_lost() -> None:
    scene, got = CacheScene("a"), list[Request]()
    scene["a"].server.put(pod("x"))
    tried = asyncio.Event()

    async def reconcile(request: Request) -> None:
        if not tried.is_set():
            tried.set()
            await asyncio.sleep(30)  # in which the cluster is lost and found again
            raise NotConnected("it was down", cluster=request.cluster)
        got.append(request)

    controller = Controller(reconcile)
    controller.for_every_cluster(lambda cluster: controller.watch_object(cluster, PODS))
    scene.cache.add(controller)
    async with scene.running(), running(controller):
        await tried.wait()
        scene["a"].refuse(status=401, count=1)
        await eventually(lambda: got)


async def test_reconcile_that_never_returns_is_ended_in_time_and_retried() -> None:
    site, log, at = Site("eu", pod("a")), Mock(), list[float]()

    async def reconcile(request: Request) -> None:
        at.append(now())
        await asyncio.Event().wait()

    controller = Controller(reconcile, ControllerOptions(timeout=20.0, log=log))
    controller.watch_object(site.cluster, PODS)
    async with running(site, controller):
        await eventually(lambda: len(at) == 2)
        assert at[1] - at[0] == pytest.approx(20.0, abs=0.2)
        [call] = log.warning.mock_calls
        assert call.kwargs["error"].endswith("eu: shop/a hasn't returned after 20 s")


async def test_timeout_of_ones_own_is_an_error_like_others() -> None:
    log = Mock()
    site, controller, requests = failing(TimeoutError("mine"), timeout=20.0, log=log)
    async with running(site, controller):
        await eventually(lambda: len(requests) > 1)
    assert isinstance(log.error.mock_calls[0].kwargs["exc_info"], TimeoutError)


@pytest.mark.real_time
async def test_reconcile_that_is_not_async_runs_in_a_thread() -> None:
    site, threads = Site("eu", pod("a")), list[threading.Thread]()

    def reconcile(request: Request) -> Result | None:
        threads.append(threading.current_thread())
        return Result(requeue=True) if len(threads) == 1 else None

    controller = Controller(reconcile)
    controller.watch_object(site.cluster, PODS)
    async with running(site, controller):
        await eventually(lambda: len(threads) == 2)
    assert threading.main_thread() not in threads


async def test_cluster_that_is_not_engaged_is_not_found() -> None:
    site, controller, _ = failing(ValueError("a bug"))
    assert controller.cluster("eu") is site.cluster
    with pytest.raises(ClusterNotFound, match="there is no cluster 'us' in controller") as caught:
        controller.cluster("us")
    assert caught.value.cluster == "us"


async def test_reconciles_a_second_are_limited_and_clusters_share_them() -> None:
    sites = [Site("many", *(pod(f"p{number}") for number in range(300))), Site("few", *(pod(name) for name in "abcde"))]
    at: list[tuple[float, str]] = []

    async def reconcile(request: Request) -> None:
        at.append((now(), request.cluster))

    controller = Controller(reconcile, ControllerOptions(rate=10.0))
    for site in sites:
        controller.watch_object(site.cluster, PODS)
    async with running(*sites):
        await eventually(lambda: all(len(site.cluster.informer(PODS)) for site in sites))
        begun = now()
        async with running(controller):
            await asyncio.sleep(20)
        times = [time - begun for time, _ in at]
        assert len(times) == pytest.approx(210, abs=2), "ten at once, and ten a second"
        assert all(sum(start <= time < start + 1 for time in times) <= 11 for start in range(1, 19))
        assert max(time for time, name in at if name == "few") - begun < 3
        async with running(controller):
            await eventually(lambda: len(at) >= 305)
