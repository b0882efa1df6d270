"""Custom resources that begin on the host appear in the virtual cluster, read-only."""

from typing import Any

import pytest
from custom_kinds import CLASS, CLASSES, MONITOR, MONITORS, world_of

from syncer.api import Key, Obj, Outcome, Refused, Side, selectors
from syncer.resources.kinds import NAMESPACES
from syncer.rights.rbac import needed
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import build, namespace

CLUSTER_WIDE = {CLASS: {"direction": "fromHost"}}
MAPPED = {MONITOR: {"direction": "fromHost", "namespaces": {"monitoring": "platform", "vc-ns": "mine"}}}


def gold(**parts: Any) -> Obj:
    return build(CLASSES, "gold", **merged({"spec": {"size": 1}, "status": {"ready": True}}, parts))


def shown(world: World) -> Obj:
    found = world.virtual("Class", "gold")
    assert found
    return found


def test_object_appears_with_all_fields_of_the_host() -> None:
    world = world_of(CLUSTER_WIDE).given(host=[gold()])
    world.settle(CLASS, "gold")
    assert (shown(world)["spec"], shown(world)["status"]) == ({"size": 1}, {"ready": True})


def test_object_that_a_tenant_changes_or_deletes_is_restored() -> None:
    world = world_of(CLUSTER_WIDE).given(host=[gold()])
    world.settle(CLASS, "gold")
    world.woken()
    world.given(virtual=[merged(shown(world), {"spec": {"size": 7, "mine": 1}, "status": {"ready": False}})])
    assert (CLASS, Key("", "gold")) in {(one.syncer, one.key) for one in world.woken()}
    world.settle(CLASS, "gold")
    assert (shown(world)["spec"], shown(world)["status"]) == ({"size": 1}, {"ready": True})
    world.gone(virtual=[gold()])
    assert world.settle(CLASS, "gold")


def test_virtual_object_is_deleted_with_the_hosts() -> None:
    world = world_of(CLUSTER_WIDE).given(host=[gold()])
    world.settle(CLASS, "gold")
    world.gone(host=[gold()])
    world.settle(CLASS, "gold")
    assert world.virtual("Class", "gold") is None


def test_object_of_the_tenants_own_is_left_alone() -> None:
    world = world_of(CLUSTER_WIDE).given(virtual=[gold(spec={"size": 7})], host=[gold()])
    with pytest.raises(Refused, match="the virtual cluster has a Class gold that is not ours"):
        world.apply(world.decide(CLASS, "gold"))
    assert shown(world)["spec"] == {"size": 7}


def test_host_is_never_written_to() -> None:
    world = world_of(CLUSTER_WIDE).given(host=[gold()])
    world.settle(CLASS, "gold")
    granted = needed([world.syncer(CLASS)], settings=world.settings)
    assert {(str(right.side), *right.verbs) for right in granted if right.resource == CLASSES} == {
        ("host", "get", "list", "watch"),
        ("virtual", "get", "list", "watch", "create", "patch", "delete"),
        ("virtual", "patch"),
    }


def test_namespaces_are_mapped_and_others_do_not_appear() -> None:
    host = [build(MONITORS, "web", namespace=each, spec={}) for each in ("monitoring", "vc-ns", "kube-system")]
    world = world_of(MAPPED).given(virtual=[namespace("platform"), namespace("mine")], host=host)
    for key in ("platform/web", "mine/web"):
        assert world.settle(MONITOR, key)
    syncer: Any = world.syncer(MONITOR)
    assert [syncer.virtual_key(world.context(MONITOR), obj) for obj in host] == [
        Key("platform", "web"),
        Key("mine", "web"),
        None,
    ]
    assert syncer.host_namespaces(world.settings) == ("monitoring", "vc-ns")
    assert syncer.host_key(world.settings, Key("platform", "web")) == Key("monitoring", "web")


@pytest.mark.reason("LeftOut")
def test_role_leaves_out_an_object_of_another_namespace() -> None:
    world = world_of(MAPPED)
    syncer: Any = world.syncer(MONITOR)
    other = build(MONITORS, "web", namespace="kube-system", spec={})
    assert syncer.sync_from_host(world.context(MONITOR), other).outcome is Outcome.SKIPPED


@pytest.mark.reason("NoNamespace")
def test_host_object_waits_for_the_namespace_to_appear_in() -> None:
    world = world_of(MAPPED).given(host=[build(MONITORS, "web", namespace="monitoring", spec={})])
    decision = world.decide(MONITOR, "platform/web")
    assert (decision.outcome, decision.reason) == (
        Outcome.PENDING,
        "the virtual cluster has no namespace platform yet",
    )
    assert (Side.VIRTUAL, NAMESPACES, Key("", "platform")) in decision.on


def test_host_object_waits_while_its_namespace_is_being_deleted() -> None:
    ending = {"deletionTimestamp": "2026-01-01T12:00:00Z", "finalizers": ["kubernetes"]}
    world = world_of(MAPPED).given(host=[build(MONITORS, "web", namespace="monitoring", spec={})])
    world.given(virtual=[merged(namespace("platform"), {"metadata": ending})])
    decision = world.decide(MONITOR, "platform/web")
    assert (decision.outcome, decision.writes) == (Outcome.PENDING, ())
    assert decision.reason == "the virtual namespace platform is being deleted"
    assert (Side.VIRTUAL, NAMESPACES, Key("", "platform")) in decision.on


def test_rights_are_asked_for_the_mapped_namespaces() -> None:
    world = world_of(MAPPED)
    granted = needed([world.syncer(MONITOR)], settings=world.settings)
    assert ("monitoring", "vc-ns") in {right.namespaces for right in granted if right.resource == MONITORS}


def test_copies_of_tenants_objects_do_not_appear() -> None:
    """One in a mapped namespace, whosever it is: it would show one tenant what another has."""
    theirs = build(MONITORS, "web", namespace="vc-ns", metadata={"labels": {"vsyncer.dev/cluster": "other"}})
    world = world_of(MAPPED).given(virtual=[namespace("mine")], host=[theirs])
    assert world.decide(MONITOR, "mine/web").writes == ()


def test_objects_appear_and_are_watched_only_if_selected() -> None:
    entry = {"direction": "fromHost", "selector": {"matchLabels": {"public": "true"}}}
    world = world_of({CLASS: entry}).given(host=[gold()])
    assert world.decide(CLASS, "gold").writes == ()
    world.given(host=[gold(metadata={"labels": {"public": "true"}})])
    assert world.settle(CLASS, "gold")
    syncer: Any = world.syncer(CLASS)
    assert syncer.host_selector(world.settings) == "public=true"


def test_paths_that_are_listed_come_up_and_other_fields_are_left() -> None:
    entry = {"direction": "fromHost", "up": ["spec.size"], "exact": []}
    world = world_of({CLASS: entry}).given(host=[gold(spec={"secret": "x"})])
    world.settle(CLASS, "gold")
    assert (shown(world)["spec"], "status" in shown(world)) == ({"size": 1}, False)
    world.given(virtual=[merged(shown(world), {"spec": {"note": "mine"}})])
    assert world.settle(CLASS, "gold") == []


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ({}, ""),
        ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
        (
            {
                "matchExpressions": [
                    {"key": "a", "operator": "In", "values": ["1", "2"]},
                    {"key": "b", "operator": "NotIn", "values": ["3"]},
                    {"key": "c", "operator": "Exists"},
                    {"key": "d", "operator": "DoesNotExist"},
                ]
            },
            "a in (1,2),b notin (3),c,!d",
        ),
    ],
)
def test_selector_is_written_as_a_list_request_takes_it(selector: Obj, text: str) -> None:
    assert selectors.written(selector) == text
