"""Errors of reconciles: of clusters that have left or lost their connection, and of reconciles that take too long."""

import asyncio
from typing import Any

import pytest
from cache_scene import CacheScene
from fleet_scene import PODS, Site, eventually, in_virtual_time, running

from syncer.multicluster import (
    ClusterNotFound,
    Controller,
    ControllerOptions,
    NotConnected,
    Request,
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
def test_request_whose_own_cluster_is_lost_is_dropped_and_comes_with_the_next_change(error: Exception) -> None:
    @in_virtual_time
    async def main() -> None:
        site, controller, requests = failing(error)
        async with running(site, controller):
            await eventually(lambda: requests)
            await asyncio.sleep(600)
            assert len(requests) == 1
            site.server.put(pod("a", metadata={"labels": {"new": "yes"}}))
            await eventually(lambda: len(requests) == 2)

    main()


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
def test_request_is_retried_if_another_cluster_is_lost_or_the_options_say_so(
    error: Exception, options: dict[str, Any]
) -> None:
    @in_virtual_time
    async def main() -> None:
        site, controller, requests = failing(error, **options)
        async with running(site, controller):
            await eventually(lambda: len(requests) > 3)

    main()


@in_virtual_time
async def test_request_whose_cluster_is_disconnected_meanwhile_comes_again_when_it_is_back() -> None:
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


@in_virtual_time
async def test_request_whose_cluster_was_disconnected_and_is_back_already_is_not_lost() -> None:
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


@in_virtual_time
async def test_cluster_that_is_not_engaged_is_not_found() -> None:
    site, controller, _ = failing(ValueError("a bug"))
    assert controller.cluster("eu") is site.cluster
    with pytest.raises(ClusterNotFound, match="there is no cluster 'us' in controller") as caught:
        controller.cluster("us")
    assert caught.value.cluster == "us"
