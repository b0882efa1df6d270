"""The selector of a section is a policy: it decides instead of a role, and of nothing else."""

from typing import Any

import pytest

from syncer.api import (
    AroundReconcile,
    Context,
    Decision,
    Excludes,
    FakeSyncUp,
    Key,
    Mirror,
    Obj,
    Outcome,
    Resource,
    Side,
    Verb,
    skip,
)
from syncer.engine.reconcile.policies.selection import deselect
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import build

WIDGETS = Resource("example.org/v1", "Widget", "widgets")
WIDGET = build(WIDGETS, "w", spec={})
OUT = {"metadata": {"labels": {"tier": "test"}}}
SELECTOR = {"selector": {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["test"]}]}}
REASON = "its labels are not those of sync.toHost.widgets.selector"


class Widgets(Mirror):
    """Goes down."""

    name = "widgets"
    resource = WIDGETS
    down = ("spec",)


class OrFake(Widgets, FakeSyncUp):
    """Goes down, or is faked."""

    def fake_sync_up(self, ctx: Context, key: Key) -> Decision:
        return skip("fake_sync_up")

    def fake_sync(self, ctx: Context, virtual: Obj) -> Decision:
        return skip("fake_sync")


class Picky(Widgets, Excludes, AroundReconcile):
    """Excludes objects, and records its hooks."""

    hooks: list[str]

    def __init__(self) -> None:
        self.hooks = []

    def excluded(self, ctx: Context, side: Side, obj: Obj) -> str | None:
        return "it is excluded" if obj["spec"].get("excluded") else None

    def reconcile_start(self, ctx: Context, key: Key) -> str | None:
        self.hooks.append("start")
        return None

    def reconcile_end(self, ctx: Context, key: Key, error: Exception | None) -> None:
        self.hooks.append("end")


def world_of(syncer: Any, options: dict[str, Any] = SELECTOR) -> World:
    return World([syncer], config={"sync": {"toHost": {"widgets": options}}})


@pytest.mark.parametrize(("options", "expected"), [(SELECTOR, (deselect,)), ({}, ())], ids=["narrows", "empty"])
def test_policy_is_in_the_pipelines_of_a_narrowing_selector(options: dict[str, Any], expected: tuple[Any, ...]) -> None:
    world = world_of(Widgets, options)
    pipelines = world.pair.reconciler.pipelines["widgets"]
    assert (pipelines.requests.role_substitutes, pipelines.scan.role_substitutes) == (expected, expected)


def test_hooks_surround_the_decision_about_a_deselected_object() -> None:
    picky = Picky()
    world = world_of(picky).given(virtual=[merged(WIDGET, OUT)])
    assert world.decide(picky, "shop/w").reason == REASON
    assert picky.hooks == ["start", "end"]


def test_exclusion_of_an_object_precedes_its_deselection() -> None:
    picky = Picky()
    world = world_of(picky).given(virtual=[merged(merged(WIDGET, OUT), {"spec": {"excluded": True}})])
    assert world.decide(picky, "shop/w").reason == "it is excluded"


def test_copy_of_an_earlier_object_goes_before_deselection() -> None:
    world = world_of(Widgets).given(virtual=[WIDGET])
    world.settle(Widgets, "shop/w")
    world.gone(virtual=[WIDGET]).given(virtual=[merged(merged(WIDGET, OUT), {"metadata": {"uid": "another"}})])
    assert "the copy of an earlier object" in world.decide(Widgets, "shop/w").reason


def test_deselected_copy_goes_only_from_an_unchanged_original() -> None:
    world = world_of(Widgets).given(virtual=[WIDGET])
    world.settle(Widgets, "shop/w")
    world.given(virtual=[merged(WIDGET, OUT)])
    decision = world.decide(Widgets, "shop/w")
    original = world.virtual("Widget", "shop/w")
    assert original is not None
    [write] = decision.writes
    assert (write.verb, decision.reason) == (Verb.DELETE, REASON)
    assert write.precondition is not None
    assert write.precondition.version == original["metadata"]["resourceVersion"]


@pytest.mark.reason("Deselected")
def test_deselected_copy_that_is_being_deleted_is_waited_for() -> None:
    class Own(Widgets):
        own_deletion = True

    world = world_of(Own).given(virtual=[WIDGET])
    world.settle(Own, "shop/w")
    copy = world.copy_of(Own, "shop/w")
    assert copy is not None
    going = {"metadata": {"deletionTimestamp": "2026-01-01T12:00:00Z"}}
    world.given(virtual=[merged(WIDGET, OUT)], host=[merged(copy, going)])
    decision = world.decide(Own, "shop/w")
    assert (decision.outcome, decision.reason) == (Outcome.PENDING, f"{REASON}; the host copy is being deleted")


def test_faked_object_is_not_subject_to_the_selector() -> None:
    world = world_of(OrFake)
    marks = {"metadata": {"labels": {world.settings.marks.cluster: world.settings.identity}}}
    world.given(virtual=[merged(merged(WIDGET, OUT), marks)])
    assert world.decide(OrFake, "shop/w").reason == "fake_sync"
