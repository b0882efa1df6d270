"""Texts that come up, in Events and statuses of any kind, name no object of the host."""

import pytest

from syncer.api import Key, NameTranslator, Obj, Resource, key_of
from syncer.names import PerNamespace, SingleNamespace, VclusterCompat
from syncer.resources.kinds import PERSISTENT_VOLUME_CLAIMS
from syncer.testing import World
from syncer.testing.objects import build, event, namespace, pod, secret, serviceaccount

WIDGETS = Resource("example.org/v1", "Widget", "widgets")
CLAIM = build(PERSISTENT_VOLUME_CLAIMS, "data", spec={"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"})
TRANSLATORS = [SingleNamespace, PerNamespace, VclusterCompat]


@pytest.fixture(params=TRANSLATORS, ids=lambda translator: translator.__name__)
def world(request: pytest.FixtureRequest) -> World:
    config = {"sync": {"toHost": {"secrets": {"all": True}}, "custom": {"widgets.example.org": {}}}}
    world = World(config=config, translator=request.param, serves=[WIDGETS])
    if request.param is PerNamespace:
        world.given(virtual=[namespace("shop")]).settle("namespaces", "shop")
    return world


def copy_of(world: World, kind: str, obj: Obj) -> Obj:
    """Return the host copy of a virtual object."""
    world.given(virtual=[obj])
    if kind == "pods":
        world.given(virtual=[serviceaccount("default")]).settle("serviceaccounts", "shop/default")
    world.settle(kind, key_of(obj))
    copy = world.copy_of(kind, key_of(obj))
    assert copy is not None
    return copy


def text_about(copy: Obj) -> str:
    """Return a text of the host that names an object."""
    host_key = key_of(copy)
    return f'waiting for "{host_key.name}" in {host_key}, object "{host_key.namespace}"/"{host_key.name}"'


def virtual_text(name: str) -> str:
    return f'waiting for "{name}" in shop/{name}, object "shop"/"{name}"'


def test_event_names_an_object_that_its_own_object_does_not_refer_to(world: World) -> None:
    claim = copy_of(world, "persistentvolumeclaims", CLAIM)
    other = copy_of(world, "pods", pod("web"))
    name = claim["metadata"]["name"]
    world.given(host=[event(f"{name}.17", about=claim, type="Normal", message=text_about(other))])
    world.settle("events", "shop/data.17")
    found = world.virtual("Event", "shop/data.17")
    assert found is not None
    assert found["message"] == virtual_text("web")


def test_ambiguous_name_is_found_by_its_copy(world: World) -> None:
    claim = copy_of(world, "persistentvolumeclaims", CLAIM)
    long = "x" * 240
    other = copy_of(world, "secrets", secret(long))
    name = claim["metadata"]["name"]
    world.given(host=[event(f"{name}.17", about=claim, message=text_about(other))])
    world.settle("events", "shop/data.17")
    found = world.virtual("Event", "shop/data.17")
    assert found is not None
    assert found["message"] == virtual_text(long)


@pytest.mark.parametrize("kind", ["persistentvolumeclaims", "widgets.example.org"])
def test_texts_in_the_status_of_any_kind_have_virtual_names(world: World, kind: str) -> None:
    original = CLAIM if kind == "persistentvolumeclaims" else build(WIDGETS, "data", spec={})
    copy = copy_of(world, kind, original)
    other = copy_of(world, "pods", pod("web"))
    status: Obj = {"conditions": [{"type": "Ready", "status": "False", "message": text_about(other)}]}
    if kind != "persistentvolumeclaims":
        status["lastError"] = text_about(copy)
    world.given(host=[copy | {"status": status}])
    world.settle(kind, "shop/data")
    found = world.virtual(original["kind"], "shop/data")
    assert found is not None
    assert found["status"]["conditions"][0]["message"] == virtual_text("web")
    if kind != "persistentvolumeclaims":
        assert found["status"]["lastError"] == virtual_text("data")


def test_object_of_another_tenant_stays_unknown() -> None:
    translator: NameTranslator = SingleNamespace(cluster="bank", namespace="vc-ns")
    theirs = translator.to_host(PERSISTENT_VOLUME_CLAIMS, Key("shop", "data"))
    world = World()
    claim = copy_of(world, "persistentvolumeclaims", CLAIM)
    world.given(host=[event("data-x-shop-x-vc.17", about=claim, message=f"{theirs} is larger")])
    world.settle("events", "shop/data.17")
    found = world.virtual("Event", "shop/data.17")
    assert found is not None
    assert found["message"] == "<host> is larger"
