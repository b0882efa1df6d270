"""The labels and annotations of an object on the other side, whatever its kind."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from syncer.api import (
    FieldPath,
    KeyRules,
    MetadataRules,
    Mirror,
    Obj,
    Resource,
    SyncDown,
    Syncer,
    annotations_of,
    key_of,
    labels_of,
)
from syncer.names import PerNamespace, SingleNamespace
from syncer.plugins import installed
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import build, crd, namespace, pod, serviceaccount

WIDGETS = Resource("example.org/v1", "Widget", "widgets")
ADDRESS = "example.org/address"


class Widgets(Mirror):
    """A kind whose address is for the host to say, and some of whose metadata means something there."""

    name = "widgets"
    resource = WIDGETS
    down = ("spec",)
    up: ClassVar[tuple[FieldPath, ...]] = (
        ("metadata", "annotations", ADDRESS),
        "/metadata/labels/zone.example.org~1id",
    )
    metadata = MetadataRules(annotations=KeyRules(deny=("danger.example.org/*",)))


def widget(**metadata: Any) -> Obj:
    return build(WIDGETS, "w", spec={"size": 1}, metadata=metadata)


def world_of(metadata: dict[str, Any] | None = None) -> World:
    return World([Widgets], config={"sync": {"toHost": {"widgets": {"metadata": metadata or {}}}}})


def copy_in(world: World) -> Obj:
    copy = world.copy_of(Widgets, "shop/w")
    assert copy
    return copy


def theirs(found: Mapping[str, str]) -> dict[str, str]:
    """What of labels or annotations bears no mark."""
    return {key: value for key, value in found.items() if not key.startswith("vsyncer.dev/")}


def test_keys_that_stay_behind_are_taken_off_the_copy_when_the_rules_change() -> None:
    given = widget(labels={"a": "1", "b": "1"}, annotations={"a": "1", "danger.example.org/run": "x"})
    world = world_of().given(virtual=[given])
    world.settle(Widgets, "shop/w")
    copy = copy_in(world)
    assert theirs(labels_of(copy)) == {"a": "1", "b": "1"}
    assert theirs(annotations_of(copy)) == {"a": "1"}
    world = world_of({"labels": {"deny": ["a"]}, "annotations": {"allow": ["danger.example.org/run"]}})
    world.given(virtual=[given], host=[copy])
    world.settle(Widgets, "shop/w")
    assert theirs(labels_of(copy_in(world))) == {"b": "1"}
    assert theirs(annotations_of(copy_in(world))) == {"danger.example.org/run": "x"}


def test_annotation_of_the_host_comes_up_and_goes_when_the_host_drops_it() -> None:
    forged = widget(annotations={ADDRESS: "forged", "kept": "1"}, labels={"zone.example.org/id": "forged"})
    world = world_of().given(virtual=[forged])
    world.settle(Widgets, "shop/w")
    copy = copy_in(world)
    assert ADDRESS not in annotations_of(copy), "the host says it"
    assert "zone.example.org/id" not in labels_of(copy)
    found = world.virtual("Widget", "shop/w")
    assert found
    assert (annotations_of(found), labels_of(found)) == ({"kept": "1"}, {}), "the tenant doesn't say it"

    world.given(host=[merged(copy, {"metadata": {"annotations": {ADDRESS: "192.0.2.1"}}})])
    world.settle(Widgets, "shop/w")
    found = world.virtual("Widget", "shop/w")
    assert found
    assert annotations_of(found) == {"kept": "1", ADDRESS: "192.0.2.1"}
    assert annotations_of(copy_in(world))[ADDRESS] == "192.0.2.1"

    world.given(host=[merged(copy_in(world), {"metadata": {"annotations": {ADDRESS: None}}})])
    world.settle(Widgets, "shop/w")
    found = world.virtual("Widget", "shop/w")
    assert found
    assert annotations_of(found) == {"kept": "1"}
    assert ADDRESS not in annotations_of(copy_in(world))


DOWN = [syncer for syncer in installed().syncers() if issubclass(syncer, SyncDown) and syncer.name != "pod-tokens"]


@pytest.mark.parametrize("syncer", DOWN, ids=lambda syncer: syncer.name)
def test_denied_keys_of_built_in_kinds_stay_behind(syncer: type[Syncer]) -> None:
    metadata = {"labels": {"deny": ["out"]}, "annotations": {"allow": ["*", "in"], "deny": ["out"]}}
    options: dict[str, Any] = {"enabled": True, "metadata": metadata}
    options |= {"all": True} if syncer.name in ("configmaps", "secrets") else {}
    special = {"tenant-crds": crd("widgets.example.org"), "pods": pod("x")}
    obj = special.get(syncer.name) or build(syncer.resource, "x")
    options |= {"names": ["widgets.example.org"]} if syncer.name == "tenant-crds" else {}
    obj = merged(obj, {"metadata": {part: {"out": "1", "in": "1"} for part in ("labels", "annotations")}})
    translator = PerNamespace if syncer.name == "namespaces" else SingleNamespace
    place, name = syncer.section.split(".")
    world = World(config={"sync": {place: {name: options}}}, translator=translator)
    world.given(virtual=[obj, serviceaccount("default")])
    world.settle("serviceaccounts", "shop/default")
    [write] = world.decide(syncer.name, key_of(obj)).writes
    assert theirs(labels_of(write.obj)) == {"in": "1"}
    assert theirs(annotations_of(write.obj)) == {"in": "1"}


def test_settings_of_the_control_plane_stay_off_the_host_namespace_unless_they_are_named() -> None:
    enforce, other = "pod-security.kubernetes.io/enforce", "pod-security.kubernetes.io/warn"
    given = namespace("shop", metadata={"labels": {enforce: "baseline", other: "baseline"}, "annotations": {"a": "1"}})
    world = World(translator=PerNamespace).given(virtual=[given])
    [write] = world.decide("namespaces", "/shop").writes
    assert theirs(labels_of(write.obj)) == {}
    assert theirs(annotations_of(write.obj)) == {}
    metadata = {"labels": {"allow": ["*", enforce]}}
    world = World(config={"sync": {"toHost": {"namespaces": {"metadata": metadata}}}}, translator=PerNamespace)
    [write] = world.given(virtual=[given]).decide("namespaces", "/shop").writes
    assert theirs(labels_of(write.obj)) == {enforce: "baseline"}


def test_shown_object_of_the_host_lacks_denied_keys() -> None:
    kind = Resource("example.org/v1", "Class", "classes", namespaced=False)
    entry = {"classes.example.org": {"direction": "fromHost", "metadata": {"labels": {"deny": ["internal/*"]}}}}
    world = World([], config={"sync": {"custom": entry}}, serves=[kind])
    world.given(host=[build(kind, "c", spec={}, metadata={"labels": {"internal/rack": "7", "tier": "gold"}})])
    world.settle("classes.example.org", "/c")
    shown = world.virtual("Class", "/c")
    assert shown
    assert theirs(labels_of(shown)) == {"tier": "gold"}
