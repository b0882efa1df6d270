"""Patches of built-in kinds: applied once, then at rest; a failure parks a single object."""

from typing import Any

import pytest

from syncer.api import Obj, Refused
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, pod, pod_mounting, service, serviceaccount

POD = "vc-ns/web-x-shop-x-vc"
MIRROR = {"path": "spec.containers[].image", "cel": "'mirror.example/' + value"}
SIDECAR = {"op": "add", "path": "/spec/containers/-", "value": {"name": "log", "image": "log:1"}}
TEAM = {"op": "add", "path": "/metadata/labels/team", "value": "red"}


def patched(world: World, kind: str, *, down: tuple[Obj, ...] = (), up: tuple[Obj, ...] = ()) -> World:
    patches = {"down": list(down), "up": list(up)}
    return world.configure({"sync": {"toHost": {kind: {"patches": patches}}}})


def calls(world: World, kind: str, key: str) -> list[str]:
    return [str(sent) for sent in world.settle(kind, key)]


def test_patched_object_is_at_rest_and_reverts_without_its_patch(world: World) -> None:
    patched(world, "services", down=(TEAM, {"path": "spec.sessionAffinity", "cel": "'ClientIP'"}))
    world.given(virtual=[service("web")])
    assert calls(world, "services", "shop/web") == ["create host services vc-ns/web-x-shop-x-vc"]
    copy: Any = world.copy_of("services", "shop/web")
    assert (copy["metadata"]["labels"]["team"], copy["spec"]["sessionAffinity"]) == ("red", "ClientIP")

    patched(world, "services")
    assert calls(world, "services", "shop/web") == ["patch host services vc-ns/web-x-shop-x-vc"]
    copy = world.copy_of("services", "shop/web")
    assert "team" not in copy["metadata"]["labels"]
    assert "sessionAffinity" not in copy["spec"]


def test_status_is_patched_on_its_way_up(world: World) -> None:
    hidden = {"path": "status.loadBalancer.ingress[].ip", "cel": "value.replace('10.', '192.')"}
    patched(world, "services", up=(hidden,))
    world.given(virtual=[service("web")]).settle("services", "shop/web")
    copy = world.copy_of("services", "shop/web") or {}
    world.given(host=[merged(copy, {"status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}})])
    assert calls(world, "services", "shop/web") == ["patch virtual services/status shop/web"]
    virtual: Any = world.virtual("Service", "shop/web")
    assert virtual["status"] == {"loadBalancer": {"ingress": [{"ip": "192.0.0.1"}]}}


def test_data_that_is_owned_as_a_whole_is_patched_as_a_whole(world: World) -> None:
    down = ({"op": "add", "path": "/data/added", "value": "1"}, {"op": "remove", "path": "/data/color"})
    patched(world, "configMaps", down=down)
    world.given(
        virtual=[configmap("settings", {"color": "blue", "size": "3"}), pod_mounting("p", configmap="settings")]
    )
    assert len(calls(world, "configmaps", "shop/settings")) == 1
    copy: Any = world.copy_of("configmaps", "shop/settings")
    assert copy["data"] == {"size": "3", "added": "1"}


def test_pod_is_patched_when_it_is_made_and_where_it_changes(world: World) -> None:
    patched(world, "pods", down=(MIRROR, SIDECAR, TEAM))
    world.given(virtual=[serviceaccount("default")]).settle("serviceaccounts", "shop/default")
    world.given(virtual=[pod("web", spec={"containers": [{"name": "app", "image": "app:1"}]})])
    assert calls(world, "pods", "shop/web") == [f"create host pods {POD}"]
    assert _images(world) == ["mirror.example/app:1", "log:1"]

    change: Obj = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": "app:2"}]}}
    world.given(virtual=[merged(world.virtual("Pod", "shop/web") or {}, change)])
    assert calls(world, "pods", "shop/web") == [f"patch host pods {POD}"]
    assert _images(world) == ["mirror.example/app:2", "log:1"]
    host: Any = world.host("Pod", POD)
    assert host["metadata"]["labels"].items() >= {"app": "web", "team": "red"}.items()


def _images(world: World) -> list[str]:
    host: Any = world.host("Pod", POD)
    return [container["image"] for container in host["spec"]["containers"]]


def test_patch_that_fails_parks_its_object_and_no_other(world: World) -> None:
    patched(world, "services", down=({"op": "test", "path": "/metadata/labels/team", "value": "red"},))
    world.given(virtual=[service("web"), service("db", metadata={"labels": {"team": "red"}})])
    with pytest.raises(Refused) as caught:
        world.decide("services", "shop/web")
    option = "sync.toHost.services.patches.down[0] (test /metadata/labels/team)"
    assert str(caught.value) == f"{option}: there is nothing at /metadata/labels/team"
    assert calls(world, "services", "shop/db") == ["create host services vc-ns/db-x-shop-x-vc"]


def test_copy_with_failing_patch_is_deleted_with_its_original(world: World) -> None:
    world.given(virtual=[service("web")]).settle("services", "shop/web")
    patched(world, "services", down=({"path": "spec.nothing.there", "cel": "value.at.all"},))
    gone = world.virtual("Service", "shop/web")
    assert gone is not None
    world.gone(virtual=[gone])
    assert calls(world, "services", "shop/web") == ["delete host services vc-ns/web-x-shop-x-vc"]
