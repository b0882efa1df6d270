"""Downward, upward, and what the patroller would find, without a cluster."""

import pytest
from hypothesis import strategies as st
from vsyncer_foo.foos import FOOS, FooSyncer

from syncer.api import Decision, Obj, Outcome
from syncer.testing import World, strategies
from syncer.testing.laws import laws_for
from syncer.testing.objects import build

FOO = build(FOOS, "web", spec={"replicas": 3})
COPY = "vc-ns/web-x-shop-x-vc"


@pytest.fixture
def in_step() -> World:
    world = World([FooSyncer]).given(virtual=[FOO])
    world.settle(FooSyncer, "shop/web")
    return world


def changed(obj: Obj | None, **parts: Obj) -> Obj:
    assert obj is not None
    return obj | parts


def decided(world: World) -> Decision:
    return world.decide(FooSyncer, "shop/web")


def test_a_foo_is_created_on_the_host() -> None:
    [write] = decided(World([FooSyncer]).given(virtual=[FOO])).writes
    assert (write.obj["metadata"]["name"], write.obj["spec"]) == (
        "web-x-shop-x-vc",
        {"replicas": 3},
    )


def test_the_status_of_a_foo_comes_back(in_step: World) -> None:
    copy = in_step.host("Foo", COPY)
    in_step.given(host=[changed(copy, status={"availableReplicas": 2})])
    [sent] = in_step.settle(FooSyncer, "shop/web")
    assert str(sent) == "patch virtual foos.samplecontroller.k8s.io/status shop/web"
    assert changed(in_step.virtual("Foo", "shop/web"))["status"] == {"availableReplicas": 2}


def test_the_patroller_finds_nothing_while_both_sides_are_in_step(in_step: World) -> None:
    decision = decided(in_step)
    assert (decision.outcome, in_step.apply(decision)) == (Outcome.IN_STEP, [])


def test_the_patroller_repairs_a_change_made_on_the_host(in_step: World) -> None:
    in_step.given(host=[changed(in_step.host("Foo", COPY), spec={"replicas": 9})])
    assert [sent.verb for sent in in_step.settle(FooSyncer, "shop/web")] == ["patch"]
    assert changed(in_step.host("Foo", COPY))["spec"] == {"replicas": 3}


def test_the_copy_of_a_foo_that_is_gone_goes_too(in_step: World) -> None:
    in_step.gone(virtual=[FOO])
    in_step.settle(FooSyncer, "shop/web")
    assert in_step.host("Foo", COPY) is None


SPECS = strategies.some({"replicas": st.integers(0, 9), "deploymentName": strategies.NAMES})
TestLaws = laws_for(
    FooSyncer,
    objects=strategies.objects(
        FOOS, strategies.some({"spec": SPECS, "status": {"availableReplicas": 1}})
    ),
)
