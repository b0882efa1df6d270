"""Pods that need objects of kinds that may not be synced."""

import pytest

from syncer.api import Mirror, Obj, Refused
from syncer.resources.kinds import PERSISTENT_VOLUME_CLAIMS, RESOURCE_CLAIM_TEMPLATES
from syncer.resources.pods.syncer import PodSyncer
from syncer.testing import World
from syncer.testing.objects import pod

CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "db"}}
SCRATCH = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}


class Claims(Mirror):
    """Copies PersistentVolumeClaims."""

    name = "claims"
    resource = PERSISTENT_VOLUME_CLAIMS
    down = ("spec",)


class Templates(Mirror):
    """Copies ResourceClaimTemplates."""

    name = "templates"
    resource = RESOURCE_CLAIM_TEMPLATES
    down = ("spec",)


def world_with(spec: Obj, *more: type[Mirror]) -> World:
    return World([PodSyncer, *more]).given(virtual=[pod("web", spec=spec)])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"volumes": [CLAIM]}, r"spec.volumes\[0\]: needs the PersistentVolumeClaim db, and .*persistentvolumeclaims"),
        ({"volumes": [{"name": "e", "emptyDir": {}}, SCRATCH]}, r"spec.volumes\[1\]: needs .* for its volume scratch"),
        ({"resourceClaims": [{"name": "gpu", "resourceClaimName": "one"}]}, "needs the ResourceClaim one"),
        (
            {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}]},
            "needs the ResourceClaimTemplate one",
        ),
    ],
)
@pytest.mark.reason("NotSynced")
def test_pod_with_unsynced_claim_is_not_sent(spec: Obj, message: str) -> None:
    with pytest.raises(Refused, match=message) as refused:
        world_with(spec).decide("pods", "shop/web")
    assert refused.value.reason == "NotSynced"


@pytest.mark.parametrize(
    ("spec", "syncer"),
    [
        ({"volumes": [CLAIM, SCRATCH]}, Claims),
        ({"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}]}, Templates),
    ],
)
def test_pod_goes_where_a_plugin_syncs_the_kind(spec: Obj, syncer: type[Mirror]) -> None:
    world = world_with(spec, syncer)
    assert "create host pods vc-ns/web-x-shop-x-vc" in map(str, world.settle("pods", "shop/web"))


def test_class_that_the_host_has_by_the_same_name_needs_no_syncer() -> None:
    world = world_with({"runtimeClassName": "gvisor", "priorityClassName": "high"})
    world.settle("pods", "shop/web")
    assert (world.host("Pod", "vc-ns/web-x-shop-x-vc") or {})["spec"]["runtimeClassName"] == "gvisor"


def test_pod_that_runs_already_stays() -> None:
    copied = world_with({"volumes": [CLAIM]}, Claims)
    copied.settle("pods", "shop/web")
    found = [copied.virtual("Pod", "shop/web"), copied.host("Pod", "vc-ns/web-x-shop-x-vc")]
    assert all(found)
    world = World([PodSyncer]).given(virtual=found[:1], host=found[1:])  # type: ignore[arg-type]
    assert world.settle("pods", "shop/web") == []
