"""Copies of custom objects end with their objects, after an operator's clean-up, or never."""

import pytest
from custom_kinds import CERT_MANAGER, CERTIFICATE, world_of
from custom_kinds import certificate as cert

from syncer.api import Outcome, annotations_of
from syncer.testing import World
from syncer.testing.merge import merged


def in_step(world: World, syncer: str, key: str) -> None:
    """Carry out, and see that nothing is left to do."""
    world.settle(syncer, key)


def test_copy_goes_with_the_virtual_object() -> None:
    world = world_of(CERT_MANAGER).given(virtual=[cert()])
    in_step(world, CERTIFICATE, "shop/db")
    world.gone(virtual=[cert()])
    world.settle(CERTIFICATE, "shop/db")
    assert world.copy_of(CERTIFICATE, "shop/db") is None


def test_new_object_waits_while_an_operator_cleans_up_after_the_old_one() -> None:
    world = world_of(CERT_MANAGER).given(virtual=[cert()])
    in_step(world, CERTIFICATE, "shop/db")
    copy = world.copy_of(CERTIFICATE, "shop/db")
    assert copy
    world.given(host=[merged(copy, {"metadata": {"finalizers": ["cert-manager.io/cleanup"]}})])
    world.gone(virtual=[cert()])
    world.settle(CERTIFICATE, "shop/db")
    ending = world.copy_of(CERTIFICATE, "shop/db")
    assert ending
    assert "deletionTimestamp" in ending["metadata"]
    world.given(virtual=[cert(metadata={"uid": "the-next-one"})])
    decision = world.decide(CERTIFICATE, "shop/db")
    assert (decision.outcome, decision.writes) == (Outcome.PENDING, ())
    world.gone(host=[copy])
    in_step(world, CERTIFICATE, "shop/db")
    found = world.copy_of(CERTIFICATE, "shop/db")
    assert found
    assert annotations_of(found)["vsyncer.dev/virtual-uid"] == "the-next-one"


@pytest.mark.reason("OriginalEnds")
def test_tenants_own_finalizers_are_theirs() -> None:
    mine = cert(metadata={"finalizers": ["example.org/mine"]})
    world = world_of(CERT_MANAGER).given(virtual=[mine])
    in_step(world, CERTIFICATE, "shop/db")
    copy = world.copy_of(CERTIFICATE, "shop/db")
    assert copy
    assert "finalizers" not in copy["metadata"]
    world.given(virtual=[merged(mine, {"metadata": {"deletionTimestamp": "2026-01-01T12:00:00Z"}})])
    world.settle(CERTIFICATE, "shop/db")
    assert world.copy_of(CERTIFICATE, "shop/db") is None
    found = world.virtual("Certificate", "shop/db")
    assert found
    assert found["metadata"]["finalizers"] == ["example.org/mine"]


RETAINED = {CERTIFICATE: {"onDelete": "retain"}}


@pytest.mark.reason("CopyRetained")
def test_retained_copy_stays_when_the_virtual_object_goes() -> None:
    world = world_of(RETAINED).given(virtual=[cert()])
    in_step(world, CERTIFICATE, "shop/db")
    going = cert(metadata={"deletionTimestamp": "2026-01-01T12:00:00Z", "finalizers": ["example.org/mine"]})
    world.given(virtual=[going])
    assert "is being deleted, and" in world.decide(CERTIFICATE, "shop/db").reason
    world.gone(virtual=[cert()])
    decision = world.decide(CERTIFICATE, "shop/db")
    assert (decision.outcome, decision.reason) == (
        Outcome.SKIPPED,
        "the virtual object is gone, and sync.custom.certificates.cert-manager.io.onDelete is retain",
    )
    assert world.copy_of(CERTIFICATE, "shop/db")


def test_retained_copy_is_taken_over_by_the_next_object_of_its_name() -> None:
    world = world_of(RETAINED).given(virtual=[cert()])
    in_step(world, CERTIFICATE, "shop/db")
    before = world.copy_of(CERTIFICATE, "shop/db")
    world.gone(virtual=[cert()]).given(virtual=[cert(to="new", metadata={"uid": "the-next-one"})])
    in_step(world, CERTIFICATE, "shop/db")
    after = world.copy_of(CERTIFICATE, "shop/db")
    assert before
    assert after
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["secretName"] == "new"
    assert annotations_of(after)["vsyncer.dev/virtual-uid"] == "the-next-one"


def test_retained_copy_deleted_on_the_host_is_recreated() -> None:
    world = world_of(RETAINED).given(virtual=[cert()])
    in_step(world, CERTIFICATE, "shop/db")
    copy = world.copy_of(CERTIFICATE, "shop/db")
    assert copy
    world.given(host=[merged(copy, {"metadata": {"deletionTimestamp": "2026-01-01T12:00:00Z", "finalizers": ["a/b"]}})])
    assert world.decide(CERTIFICATE, "shop/db").outcome is Outcome.PENDING
    world.gone(host=[copy])
    assert world.settle(CERTIFICATE, "shop/db")


def test_object_that_is_being_deleted_gets_no_copy() -> None:
    going = cert(metadata={"deletionTimestamp": "2026-01-01T12:00:00Z", "finalizers": ["example.org/mine"]})
    world = world_of(RETAINED).given(virtual=[going])
    assert world.decide(CERTIFICATE, "shop/db").outcome is Outcome.SKIPPED
