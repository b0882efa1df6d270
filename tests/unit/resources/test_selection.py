"""The ``selector`` of a section: which virtual objects are synced, whatever their kind."""

from typing import Any

import pytest

from syncer.api import Config, Mirror, Obj, Outcome, Resource, SyncDown, Syncer, Verb, key_of
from syncer.names import PerNamespace, SingleNamespace
from syncer.plugins import installed
from syncer.resources.kinds import CUSTOM_RESOURCE_DEFINITIONS
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import build, configmap, crd, pod, secret, serviceaccount

OUT = {"metadata": {"labels": {"tier": "test"}}}
SELECTOR = {"selector": {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["test"]}]}}
WIDGETS = Resource("example.org/v1", "Widget", "widgets")


class Widgets(Mirror):
    """A kind of no other specialities."""

    name = "widgets"
    resource = WIDGETS
    down = ("spec",)


def world_of(section: str, *syncers: Any, translator: Any = SingleNamespace, **options: Any) -> World:
    direction, _, name = section.partition(".")
    sync = {direction: {name: {**SELECTOR, **options}}}
    return World(syncers or None, config={"sync": sync}, translator=translator)


def test_unselected_object_gets_no_copy_and_the_reason_names_the_option() -> None:
    world = world_of("toHost.widgets", Widgets).given(virtual=[merged(build(WIDGETS, "w", spec={}), OUT)])
    decision = world.decide(Widgets, "shop/w")
    assert (decision.outcome, decision.writes) == (Outcome.SKIPPED, ())
    assert decision.reason == "its labels are not those of sync.toHost.widgets.selector"


def test_copy_goes_when_its_original_is_deselected_and_comes_again() -> None:
    widget = build(WIDGETS, "w", spec={})
    world = world_of("toHost.widgets", Widgets).given(virtual=[widget])
    world.settle(Widgets, "shop/w")
    world.given(virtual=[merged(widget, OUT)])
    [sent] = world.settle(Widgets, "shop/w")
    assert sent.verb == "delete"
    world.given(virtual=[merged(widget, {"metadata": {"labels": {"tier": "gold"}}})])
    assert [sent.verb for sent in world.settle(Widgets, "shop/w")] == ["create"]


def test_copy_that_is_going_already_is_not_deleted_again() -> None:
    world = world_of("toHost.pods").given(virtual=[serviceaccount("default"), pod("w")])
    world.settle("serviceaccounts", "shop/default")
    world.settle("pods", "shop/w")
    host = world.copy_of("pods", "shop/w")
    assert host
    going = {"deletionTimestamp": "2026-01-01T12:00:00Z", "deletionGracePeriodSeconds": 30}
    world.given(virtual=[merged(pod("w"), OUT)], host=[merged(host, {"metadata": going})])
    assert world.decide("pods", "shop/w").writes == ()


@pytest.mark.parametrize("labels", [OUT, {}], ids=["deselected", "selected"])
def test_deletion_of_an_object_is_completed_whatever_its_labels(labels: Obj) -> None:
    """No other program would end a virtual Pod that has no kubelet."""
    going = {"deletionTimestamp": "2026-01-01T12:00:00Z", "deletionGracePeriodSeconds": 30}
    ending = merged(pod("w", metadata=going, spec={"nodeName": "n1"}), labels)
    world = world_of("toHost.pods").given(virtual=[ending])
    assert [write.verb for write in world.decide("pods", "shop/w").writes] == [Verb.DELETE]


def test_object_that_only_deselected_objects_name_is_not_used() -> None:
    mounting = {"spec": {"volumes": [{"name": "v", "secret": {"secretName": "db"}}]}}
    used = merged(pod("w"), mounting)
    world = world_of("toHost.pods").given(virtual=[secret("db"), used])
    assert world.decide("secrets", "shop/db").writes
    world.given(virtual=[merged(used, OUT)])
    assert not world.decide("secrets", "shop/db").writes


def test_deselected_pod_gets_no_tokens() -> None:
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}
    mounting = {"spec": {"volumes": [{"name": "t", "projected": {"sources": [token]}}]}}
    world = world_of("toHost.pods").given(virtual=[serviceaccount("default"), merged(pod("w"), mounting)])
    world.settle("pod-tokens", "shop/w")
    assert world.copy_of("pod-tokens", "shop/w")
    world.given(virtual=[merged(merged(pod("w"), mounting), OUT)])
    world.settle("pod-tokens", "shop/w")
    assert not world.copy_of("pod-tokens", "shop/w")
    assert world.decide("pod-tokens", "shop/w").outcome is Outcome.SKIPPED


@pytest.mark.parametrize(("policy", "left"), [("retain", True), ("delete", False)])
def test_definition_leaves_the_host_by_its_own_rule_only(policy: str, left: bool) -> None:
    name = "widgets.example.org"
    options = {"enabled": True, "names": [name], "onRemoval": policy}
    world = world_of("toHost.customResourceDefinitions", **options).given(virtual=[crd(name)])
    world.settle("tenant-crds", name)
    world.given(virtual=[merged(crd(name), OUT)])
    world.settle("tenant-crds", name)
    assert (world.host(CUSTOM_RESOURCE_DEFINITIONS.kind, name) is not None) is left


@pytest.mark.parametrize("on_delete", ["delete", "retain"])
def test_custom_resource_leaves_the_host_by_its_own_rule_too(on_delete: str) -> None:
    entry = {"widgets.example.org": {**SELECTOR, "onDelete": on_delete}}
    widget = build(WIDGETS, "w", spec={})
    world = World([], config={"sync": {"custom": entry}}, serves=[WIDGETS]).given(virtual=[widget])
    world.settle("widgets.example.org", "shop/w")
    world.given(virtual=[merged(widget, OUT)])
    world.settle("widgets.example.org", "shop/w")
    assert (world.host("Widget", "vc-ns/w-x-shop-x-vc") is not None) is (on_delete == "retain")


BUILT_IN = [syncer for syncer in installed().syncers() if issubclass(syncer, SyncDown)]


@pytest.mark.parametrize("syncer", BUILT_IN, ids=lambda syncer: syncer.name)
def test_selector_works_for_every_built_in_kind_that_goes_down(syncer: type[Syncer]) -> None:
    """Nothing of the kind is asked about what isn't selected."""
    world = world_of(syncer.section, translator=PerNamespace, enabled=True)
    obj = merged(build(syncer.resource, "x"), OUT)
    world.given(virtual=[obj])
    decision = world.decide(syncer.name, key_of(obj))
    assert decision.reason == f"its labels are not those of sync.{syncer.section}.selector"
    assert decision.writes == ()


def test_empty_selector_selects_everything() -> None:
    assert Config().selector.selects(configmap("x"))
    assert not Config().selector
    assert Config.model_validate({"selector": {"matchLabels": {"a": "b"}}}).selector
