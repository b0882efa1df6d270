"""The event NotCopied is about what a tenant has written, never about what the daemon has."""

from typing import Any

import pytest
from sampled import MADE, sync_of

from syncer.api import Obj, annotations_of, metadata_key
from syncer.resources.kinds import PERSISTENT_VOLUME_CLAIMS
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import build, pod, service
from syncer.testing.samples import Sample

BIND = "pv.kubernetes.io/bind-completed"
UNHELPED = {"serviceAccounts": {"enabled": False}, "podTokens": {"enabled": False}}


def risen(sample: Sample) -> Obj:
    """Return the labels and annotations that a kind brings up, as a merge patch."""
    found: dict[str, Any] = {}
    for path in sample.syncer.up:
        if key := metadata_key(path):
            found = merged(found, {"metadata": {key[0]: {key[1]: "by the host"}}})
    return found


def reported(world: World, syncer: str, patch: Obj) -> None:
    """Let the host report on a copy, and bring that up."""
    copy = world.copy_of(syncer, "shop/x")
    assert copy
    world.given(host=[merged(copy, patch)])
    world.settle(syncer, "shop/x")


@pytest.mark.parametrize("name", MADE)
def test_fields_that_came_up_are_not_missed_on_the_host(name: str) -> None:
    sample = MADE[name]
    world = World(config={"sync": sync_of()}).given(virtual=[sample.object("x")])
    world.settle(name, "shop/x")
    for patch in (*(sample.reports or ()), risen(sample)):
        reported(world, name, patch)
    assert world.left_out(name, "shop/x") == ()


def test_fields_a_running_pod_gets_are_not_reported() -> None:
    world = World(config={"networking": {"dns": {"service": ""}}, "sync": {"toHost": UNHELPED}})
    world.given(virtual=[pod("x")])
    world.settle("pods", "shop/x")
    reported(world, "pods", {"spec": {"nodeName": "n1"}, "status": {"phase": "Running"}})
    assert world.left_out("pods", "shop/x") == ()


def test_bound_claim_lacks_nothing_on_the_host() -> None:
    world = World().given(virtual=[build(PERSISTENT_VOLUME_CLAIMS, "x", spec={"storageClassName": "fast"})])
    world.settle("persistentvolumeclaims", "shop/x")
    reported(world, "persistentvolumeclaims", {"metadata": {"annotations": {BIND: "yes"}}})
    original = world.virtual("PersistentVolumeClaim", "shop/x")
    assert original
    assert annotations_of(original)[BIND] == "yes"
    assert world.left_out("persistentvolumeclaims", "shop/x") == ()


def test_annotation_that_a_patch_has_written_up_is_not_missed_either() -> None:
    key = "metallb.io/ip-allocated-from-pool"
    patch = {"path": f"/metadata/annotations/{key.replace('/', '~1')}", "op": "add", "value": "public"}
    world = World(config={"sync": {"toHost": {"services": {"patches": {"up": [patch]}}}}})
    world.given(virtual=[service("x")])
    world.settle("services", "shop/x")
    reported(world, "services", {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}})
    original = world.virtual("Service", "shop/x")
    assert original
    assert annotations_of(original)[key] == "public"
    assert world.left_out("services", "shop/x") == ()


def test_annotation_of_the_tenant_is_missed() -> None:
    world = World().given(virtual=[service("x", metadata={"annotations": {"metallb.io/address-pool": "public"}})])
    assert world.left_out("services", "shop/x") == ("metadata.annotations[metallb.io/address-pool]",)
