"""Finalizers: added and removed once, in the version that was read, and those of others stay."""

import pytest
from fleet_scene import PODS, Site

from syncer.api import Conflict, Key, Obj
from syncer.multicluster import add_finalizer, has_finalizer, remove_finalizer
from syncer.testing.objects import pod

OWN, OTHER = "example.org/own", "example.org/other"


async def read(site: Site) -> Obj:
    return await site.cluster.client.get(PODS, Key("shop", "a"))


async def test_finalizer_is_added_and_removed_once_beside_those_of_others() -> None:
    site = Site("eu", pod("a", metadata={"finalizers": [OTHER]}))
    obj = await add_finalizer(site.cluster.client, PODS, await read(site), OWN)
    assert (await read(site))["metadata"]["finalizers"] == [OTHER, OWN]
    assert await add_finalizer(site.cluster.client, PODS, obj, OWN) is obj
    obj = await remove_finalizer(site.cluster.client, PODS, obj, OWN)
    assert (await read(site))["metadata"]["finalizers"] == [OTHER]
    assert await remove_finalizer(site.cluster.client, PODS, obj, OWN) is obj
    assert not has_finalizer(obj, OWN)
    assert len(site.requests("patch", PODS)) == 2


async def test_finalizer_of_an_object_that_has_changed_meanwhile_is_a_conflict() -> None:
    site = Site("eu", pod("a"))
    former = await read(site)
    await site.cluster.client.patch(PODS, Key("shop", "a"), {"metadata": {"finalizers": [OTHER]}})
    with pytest.raises(Conflict):
        await add_finalizer(site.cluster.client, PODS, former, OWN)
    assert (await read(site))["metadata"]["finalizers"] == [OTHER]
