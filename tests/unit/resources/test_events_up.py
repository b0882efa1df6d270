"""Events of the host about copies of ours are told about the virtual objects."""

from typing import Any

import pytest

from syncer.api import Obj
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, event, pod, pod_mounting, serviceaccount

COPY = "vc-ns/web-x-shop-x-vc"


@pytest.fixture
def copy(world: World) -> Obj:
    """The copy of a Pod that mounts a ConfigMap."""
    world.given(virtual=[pod_mounting("web", configmap="settings"), serviceaccount("default")])
    world.settle("serviceaccounts", "shop/default")
    world.settle("pods", "shop/web")
    return world.host("Pod", COPY) or {}


def told(world: World, one: Obj, name: str = "web.17") -> Obj:
    world.given(host=[one]).settle("events", f"shop/{name}")
    return world.virtual("Event", f"shop/{name}") or {}


def test_it_is_about_the_virtual_object(world: World, copy: Obj) -> None:
    path: dict[str, Any] = {"involvedObject": {"fieldPath": "spec.containers{app}", "resourceVersion": "7"}}
    found = told(world, event("web-x-shop-x-vc.17", about=copy, **path))
    assert found["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "shop",
        "name": "web",
        "uid": (world.virtual("Pod", "shop/web") or {})["metadata"]["uid"],
        "fieldPath": "spec.containers{app}",
    }
    assert (found["reason"], found["count"], found["type"]) == ("BackOff", 1, "Warning")
    assert found["metadata"]["labels"] == {"vsyncer.dev/cluster": "vc.vc-ns"}


def test_names_in_the_message_are_the_virtual_ones(world: World, copy: Obj) -> None:
    message = (
        'MountVolume.SetUp failed: configmap "settings-x-shop-x-vc" not found, object "vc-ns"/"settings-x-shop-x-vc" '
        "not registered for pod vc-ns/web-x-shop-x-vc(web-x-shop-x-vc)"
    )
    assert told(world, event("web-x-shop-x-vc.17", about=copy, message=message))["message"] == (
        'MountVolume.SetUp failed: configmap "settings" not found, object "shop"/"settings" '
        "not registered for pod shop/web(web)"
    )


def test_a_repeated_one_changes_the_one_that_is_there(world: World, copy: Obj) -> None:
    first = event("web-x-shop-x-vc.17", about=copy)
    told(world, first)
    again = merged(first, {"count": 9, "lastTimestamp": "2026-01-01T13:00:00Z"})
    [call] = world.given(host=[again]).settle("events", "shop/web.17")
    assert (call.verb, call.body["count"]) == ("patch", 9)


def test_the_virtual_one_outlives_the_hosts(world: World, copy: Obj) -> None:
    one = event("web-x-shop-x-vc.17", about=copy)
    told(world, one)
    world.gone(host=[one])
    assert world.settle("events", "shop/web.17") == []
    assert world.virtual("Event", "shop/web.17")


def test_one_that_comes_before_its_object_is_seen_is_known_by_name(world: World) -> None:
    world.given(virtual=[pod("web")])
    early = event("web-x-shop-x-vc.17", about=pod("web-x-shop-x-vc", namespace="vc-ns"))
    assert told(world, early)["involvedObject"]["name"] == "web"


def test_others_affairs_are_not_told(world: World, copy: Obj) -> None:
    theirs = pod("theirs", namespace="vc-ns", metadata={"uid": "t"})
    earlier = merged(copy, {"metadata": {"uid": "an earlier pod of this name"}})
    of_a_node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    copied = configmap("web-x-shop-x-vc", namespace="vc-ns")
    ctx = world.context("events")
    syncer = world.syncer("events")
    for about in (theirs, earlier, of_a_node, copied):
        assert syncer.virtual_key(ctx, event("web-x-shop-x-vc.17", about=about)) is None  # type: ignore[attr-defined]
