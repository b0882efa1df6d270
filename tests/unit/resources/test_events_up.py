"""Events of the host about our copies appear for the virtual objects."""

from typing import Any, ClassVar

import pytest

from syncer.api import Mirror, Obj, Outcome, References, Resource, SyncDown, Syncer, key_of
from syncer.names import PerNamespace, SingleNamespace
from syncer.plugins import installed
from syncer.resources.events import EventSyncer
from syncer.resources.kinds import SECRETS
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import build, configmap, crd, endpointslice, event, pod, pod_mounting, serviceaccount

COPY = "vc-ns/web-x-shop-x-vc"


@pytest.fixture
def copy(world: World) -> Obj:
    """The copy of a Pod that mounts a ConfigMap."""
    world.given(virtual=[pod_mounting("web", configmap="settings"), serviceaccount("default")])
    world.settle("serviceaccounts", "shop/default")
    world.settle("pods", "shop/web")
    return world.host("Pod", COPY) or {}


def virtual_event(world: World, one: Obj, name: str = "web.17") -> Obj:
    world.given(host=[one]).settle("events", f"shop/{name}")
    return world.virtual("Event", f"shop/{name}") or {}


@pytest.mark.reason("EventUnrelated")
def test_role_leaves_an_event_about_nothing_of_the_tenants(world: World, copy: Obj) -> None:
    syncer: Any = world.syncer("events")
    other = event("other.17", about=merged(copy, {"metadata": {"name": "other", "uid": "another"}}))
    assert syncer.sync_from_host(world.context("events"), other).outcome is Outcome.SKIPPED


def test_event_is_about_the_virtual_object(world: World, copy: Obj) -> None:
    path: dict[str, Any] = {"involvedObject": {"fieldPath": "spec.containers{app}", "resourceVersion": "7"}}
    found = virtual_event(world, event("web-x-shop-x-vc.17", about=copy, **path))
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


@pytest.mark.parametrize("part", ["containers", "initContainers", "ephemeralContainers"])
def test_event_about_a_container_of_the_hosts_does_not_come_up(world: World, copy: Obj, part: str) -> None:
    """Its name, image and trouble are none of the tenant's, even if they give a container of theirs that name."""
    original = world.virtual("Pod", "shop/web") or {}
    world.given(virtual=[merged(original, {"spec": {"ephemeralContainers": [{"name": "proxy", "image": "i"}]}})])
    about: dict[str, Any] = {"involvedObject": {"fieldPath": f"spec.{part}{{proxy}}"}}
    assert virtual_event(world, event("web-x-shop-x-vc.17", about=copy, **about)) == {}
    about = {"involvedObject": {"fieldPath": "spec.initContainers{app}"}}
    assert virtual_event(world, event("web-x-shop-x-vc.17", about=copy, **about)) == {}, "it is in another list"


@pytest.mark.reason("EventOfContainer")
def test_event_about_a_container_does_not_come_up_while_the_pod_has_no_copy(world: World, copy: Obj) -> None:
    world.gone(host=[copy])
    about: dict[str, Any] = {"involvedObject": {"fieldPath": "spec.containers{app}"}}
    assert virtual_event(world, event("web-x-shop-x-vc.17", about=copy, **about)) == {}
    assert virtual_event(world, event("web-x-shop-x-vc.17", about=copy))


def test_names_in_the_message_are_the_virtual_ones(world: World, copy: Obj) -> None:
    message = (
        'MountVolume.SetUp failed: configmap "settings-x-shop-x-vc" not found, object "vc-ns"/"settings-x-shop-x-vc" '
        "not registered for pod vc-ns/web-x-shop-x-vc(web-x-shop-x-vc)"
    )
    assert virtual_event(world, event("web-x-shop-x-vc.17", about=copy, message=message))["message"] == (
        'MountVolume.SetUp failed: configmap "settings" not found, object "shop"/"settings" '
        "not registered for pod shop/web(web)"
    )


def test_repeated_event_updates_the_existing_one(world: World, copy: Obj) -> None:
    first = event("web-x-shop-x-vc.17", about=copy)
    virtual_event(world, first)
    again = merged(first, {"count": 9, "lastTimestamp": "2026-01-01T13:00:00Z"})
    [call] = world.given(host=[again]).settle("events", "shop/web.17")
    assert (call.verb, call.body["count"]) == ("patch", 9)


def test_virtual_event_outlives_the_hosts(world: World, copy: Obj) -> None:
    one = event("web-x-shop-x-vc.17", about=copy)
    virtual_event(world, one)
    world.gone(host=[one])
    assert world.settle("events", "shop/web.17") == []
    assert world.virtual("Event", "shop/web.17")


def test_event_before_its_object_is_matched_by_name(world: World) -> None:
    world.given(virtual=[pod("web")])
    early = event("web-x-shop-x-vc.17", about=pod("web-x-shop-x-vc", namespace="vc-ns"))
    assert virtual_event(world, early)["involvedObject"]["name"] == "web"


def test_event_about_a_foreign_object_does_not_appear(world: World, copy: Obj) -> None:
    theirs = pod("theirs", namespace="vc-ns", metadata={"uid": "t"})
    earlier = merged(copy, {"metadata": {"uid": "an earlier pod of this name"}})
    of_a_node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    copied = configmap("web-x-shop-x-vc", namespace="vc-ns")
    ctx = world.context("events")
    syncer = world.syncer("events")
    for about in (theirs, earlier, of_a_node, copied):
        assert syncer.virtual_key(ctx, event("web-x-shop-x-vc.17", about=about)) is None  # type: ignore[attr-defined]


# A published Service is no copy, and stands in a namespace of which the daemon reads no Events.
DOWN = [
    syncer for syncer in installed().syncers() if issubclass(syncer, SyncDown) and syncer.name != "published-services"
]
TOKEN = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}
MOUNTING = {"spec": {"volumes": [{"name": "t", "projected": {"sources": [TOKEN]}}]}}


@pytest.mark.parametrize("syncer", DOWN, ids=lambda syncer: syncer.name)
def test_event_about_a_copy_of_any_built_in_kind_appears(syncer: type[Syncer]) -> None:
    direction, section = syncer.section.split(".")
    options: dict[str, Any] = {"enabled": True}
    options |= {"all": True} if syncer.name in ("configmaps", "secrets") else {}
    options |= {"names": ["things.example.org"]} if syncer.name == "tenant-crds" else {}
    special = {
        "tenant-crds": crd("things.example.org"),
        "pods": pod("x"),
        "pod-tokens": merged(pod("x"), MOUNTING),
        "endpointslices": endpointslice("x"),
    }
    given = special.get(syncer.name) or build(syncer.resource, "x")
    translator = PerNamespace if syncer.name == "namespaces" else SingleNamespace
    world = World(config={"sync": {direction: {section: options}}}, translator=translator)
    world.given(virtual=[given, serviceaccount("default")]).settle("serviceaccounts", "shop/default")
    world.settle(syncer.name, key_of(given))
    copy = world.copy_of(syncer.name, key_of(given))
    assert copy
    name = copy["metadata"]["name"]
    world.given(host=[event(f"{name}.17", about=copy, message=f"{name} is in trouble")])
    space = given["metadata"].get("namespace")
    virtual_event = f"{given['metadata']['name']}.17"
    world.settle("events", f"{space or 'default'}/{virtual_event}")
    found = world.virtual("Event", f"{space or 'default'}/{virtual_event}")
    assert found, "no event comes up"
    expected = {part: given[part] for part in ("apiVersion", "kind")}
    original = world.virtual(given["kind"], key_of(given)) or {}
    metadata = {part: original["metadata"][part] for part in ("name", "namespace", "uid") if part in given["metadata"]}
    assert found["involvedObject"] == expected | metadata | {"uid": original["metadata"]["uid"]}
    assert found["message"] == f"{given['metadata']['name']} is in trouble"


VIRTUAL = Resource("tenant.example.org/v2", "Database", "databases")


class Databases(Mirror):
    """A kind that is another one on the host, with a place of its own there."""

    name = "databases"
    resource = VIRTUAL
    host_resource = Resource("host.example.org/v1", "Instance", "instances")
    down = ("spec",)
    references: ClassVar[References] = {"spec.password.name": SECRETS}


def test_event_about_a_plugins_copy_has_virtual_names() -> None:
    world = World([Databases, EventSyncer]).given(virtual=[build(VIRTUAL, "db", spec={"password": {"name": "root"}})])
    world.settle("databases", "shop/db")
    copy = world.copy_of("databases", "shop/db")
    assert copy
    name, secret = copy["metadata"]["name"], copy["spec"]["password"]["name"]
    assert secret != "root"
    message = f'instance vc-ns/{name}: secret "{secret}" not found'
    found = virtual_event(world, event(f"{name}.17", about=copy, message=message), "db.17")
    about = found["involvedObject"]
    assert (about["apiVersion"], about["kind"], about["name"]) == ("tenant.example.org/v2", "Database", "db")
    assert found["message"] == 'instance shop/db: secret "root" not found'


def test_event_about_the_copy_of_a_custom_resource_appears() -> None:
    kind = Resource("example.org/v1", "Widget", "widgets")
    world = World([EventSyncer], config={"sync": {"custom": {"widgets.example.org": {}}}}, serves=[kind])
    world.given(virtual=[build(kind, "w", spec={})]).settle("widgets.example.org", "shop/w")
    copy = world.host("Widget", "vc-ns/w-x-shop-x-vc")
    assert copy
    assert virtual_event(world, event("w-x-shop-x-vc.17", about=copy), "w.17")["involvedObject"]["kind"] == "Widget"
    stranger = {**copy, "apiVersion": "other.org/v1"}
    ctx, syncer = world.context("events"), world.syncer("events")
    assert syncer.virtual_key(ctx, event("w-x-shop-x-vc.18", about=stranger)) is None  # type: ignore[attr-defined]
