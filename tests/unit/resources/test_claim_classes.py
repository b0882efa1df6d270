"""With a selector, a claim has no class on the host but those that appear in the virtual cluster."""

from dataclasses import replace
from typing import Any

import pytest
from claim_scene import NAME, asked, bound, claim, copy_in, original_in, request_on_host

from syncer.api import Key, Obj, Refused, Resource, Side, dig
from syncer.resources import classes
from syncer.resources.claims import ClaimSyncer
from syncer.resources.classes import StorageClassSyncer, VolumeAttributesClassSyncer
from syncer.resources.kinds import STORAGE_CLASSES, VOLUME_ATTRIBUTES_CLASSES
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import build

SHOWN = {"labels": {"tenants": "yes"}}
DEFAULT = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
SELECTED = {"enabled": True, "selector": {"matchLabels": {"tenants": "yes"}}}


def storage(name: str, **metadata: Any) -> Obj:
    return build(STORAGE_CLASSES, name, provisioner="disk.example.org", metadata=metadata)


def attributes(name: str, **metadata: Any) -> Obj:
    return build(VOLUME_ATTRIBUTES_CLASSES, name, driverName="disk.example.org", metadata=metadata)


def test_class_that_does_not_appear_is_waited_for_with_an_event() -> None:
    world = World(config={"sync": {"fromHost": {"storageClasses": SELECTED}}})
    world.given(virtual=[claim(storageClassName="gold")], host=[storage("gold")])
    decision = world.decide(NAME, "shop/data")
    assert decision.writes == ()
    assert decision.warning == (
        "ClassNotListed",
        "the host has no StorageClass gold for this virtual cluster: name one that is listed",
    )


@pytest.mark.parametrize("labelled", [True, pytest.param(False, marks=pytest.mark.reason("DefaultClassNotListed"))])
def test_claim_without_a_class_gets_the_default_of_the_host_if_that_appears(labelled: bool) -> None:
    world = World(config={"sync": {"fromHost": {"storageClasses": SELECTED}}})
    default = storage("basic", **DEFAULT, **(SHOWN if labelled else {}))
    world.given(virtual=[claim()], host=[default, storage("fast", **SHOWN)])
    decision = world.decide(NAME, "shop/data")
    if labelled:
        assert [dig(write.obj, "spec.storageClassName") for write in decision.writes] == ["basic"]
        return
    assert (decision.writes, decision.after) == ((), 60.0)
    assert decision.warning
    assert decision.warning.message.endswith("isn't for this virtual cluster: name one that is listed")


def test_newest_of_several_defaults_counts() -> None:
    world = World(config={"sync": {"fromHost": {"storageClasses": SELECTED}}})
    older = storage("older", **DEFAULT, **SHOWN, creationTimestamp="2025-01-01T00:00:00Z")
    newer = storage("newer", **DEFAULT, creationTimestamp="2026-01-01T00:00:00Z")
    world.given(virtual=[claim()], host=[older, newer])
    assert world.decide(NAME, "shop/data").writes == ()
    world.given(host=[merged(newer, {"metadata": SHOWN})])
    assert [dig(write.obj, "spec.storageClassName") for write in world.decide(NAME, "shop/data").writes] == ["newer"]


@pytest.mark.parametrize("shown", [{}, {"storageClasses": {"enabled": True}}])
def test_without_a_selector_the_host_gives_a_claim_its_class(shown: Obj) -> None:
    world = World(config={"sync": {"fromHost": shown}})
    world.given(virtual=[claim()], host=[storage("basic", **DEFAULT)])
    assert [dig(write.obj, "spec.storageClassName") for write in world.decide(NAME, "shop/data").writes] == [None]


def test_copy_stays_as_it_is_once_its_class_does_not_appear_any_more() -> None:
    world = World(config={"sync": {"fromHost": {"storageClasses": SELECTED, "volumeAttributesClasses": SELECTED}}})
    shown = [storage("fast", **SHOWN), attributes("gold", **SHOWN)]
    world.given(virtual=[claim(storageClassName="fast", volumeAttributesClassName="gold")], host=shown)
    bound(world, "1Gi", "1Gi")
    world.given(host=[storage("fast", labels={}), attributes("gold", labels={})])
    asked(world, "2Gi")
    assert request_on_host(world) == "2Gi"


def test_change_to_a_class_that_does_not_appear_waits_and_the_status_comes_up() -> None:
    world = World(config={"sync": {"fromHost": {"volumeAttributesClasses": SELECTED}}})
    world.given(virtual=[claim()], host=[attributes("platinum"), attributes("gold", **SHOWN)])
    bound(world, "1Gi", "1Gi")
    world.given(
        virtual=[merged(original_in(world), {"spec": {"volumeAttributesClassName": "platinum"}})],
        host=[merged(copy_in(world), {"status": {"capacity": {"storage": "2Gi"}}})],
    )
    decision = world.decide(NAME, "shop/data")
    world.apply(decision)
    assert decision.warning
    assert decision.warning.message.startswith("the host has no VolumeAttributesClass platinum for this virtual")
    assert dig(copy_in(world), "spec.volumeAttributesClassName") is None
    assert dig(original_in(world), "status.capacity.storage") == "2Gi"
    world.given(virtual=[merged(original_in(world), {"spec": {"volumeAttributesClassName": "gold"}})])
    world.settle(NAME, "shop/data")
    assert dig(copy_in(world), "spec.volumeAttributesClassName") == "gold"


class _WithoutClasses:
    """A reader of a host that doesn't serve VolumeAttributesClasses."""

    def get(self, side: Side, resource: Resource, key: Key) -> Obj | None:
        raise KeyError(resource)


def test_claims_are_synced_where_the_host_has_no_such_kind_of_classes() -> None:
    world = World(config={"sync": {"fromHost": {"storageClasses": SELECTED, "volumeAttributesClasses": SELECTED}}})
    sources = ClaimSyncer().reads_with(world.settings)
    assert [(each.resource, bool(each.optional_with)) for each in sources] == [
        (STORAGE_CLASSES, False),
        (VOLUME_ATTRIBUTES_CLASSES, True),
    ]
    ctx = replace(world.context(ClaimSyncer), reader=_WithoutClasses())
    assert not classes.appears(ctx, VolumeAttributesClassSyncer, "gold")
    with pytest.raises(KeyError):
        classes.appears(ctx, StorageClassSyncer, "gold")


def test_empty_class_of_an_allowed_annotation_is_refused() -> None:
    key = "volume.beta.kubernetes.io/storage-class"
    allowed = {"metadata": {"annotations": {"allow": ["*", key]}}}
    world = World(config={"sync": {"toHost": {"persistentVolumeClaims": allowed}}})
    world.given(virtual=[merged(claim(), {"metadata": {"annotations": {key: ""}}})])
    with pytest.raises(Refused, match="a claim without a class would be bound to any host volume"):
        world.decide(NAME, "shop/data")
