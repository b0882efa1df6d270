"""One error for a cluster that isn't there, and the field's names for the answers of an API server."""

import pytest
from cache_scene import CacheScene
from fleet_scene import PODS, Site

from syncer.api import Key
from syncer.multicluster import (
    AlreadyExists,
    ClusterNotFound,
    ClusterRegistry,
    Controller,
    NotConnected,
    NotFound,
    Request,
)
from syncer.testing.objects import pod


async def reconcile(request: Request) -> None:
    """Do nothing."""


async def test_taken_and_unknown_names_of_objects_raise_exported_errors() -> None:
    site = Site("eu", pod("a"))
    with pytest.raises(AlreadyExists):
        await site.cluster.create(PODS, pod("a"))
    with pytest.raises(NotFound):
        await site.cluster.delete(PODS, Key("shop", "none"))


async def test_one_except_catches_every_unknown_cluster() -> None:
    home = Site("home")
    registry = ClusterRegistry(home.cluster)
    controller = Controller(reconcile)
    scene = CacheScene("a")
    async with scene.running() as cache:
        for find in (controller.cluster, cache.get_client, cache.get_reader, cache.get_uncached_client):
            with pytest.raises(NotConnected) as caught:
                find("none")
            assert isinstance(caught.value, ClusterNotFound)
            assert caught.value.cluster == "none"
    with pytest.raises(NotConnected) as of_registry:
        await registry.with_client("none", lambda cluster: cluster)
    assert of_registry.value.cluster == "none"
