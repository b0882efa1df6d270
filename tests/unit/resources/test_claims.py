"""PersistentVolumeClaims: sizes, and volumes that are lost."""

import pytest
from claim_scene import NAME, asked, bound, claim, copy_in, original_in, request_on_host

from syncer.api import Refused, Side, Verb, annotations_of
from syncer.testing import World
from syncer.testing.merge import merged


@pytest.mark.parametrize(
    ("given", "capacity", "wanted", "there"),
    [
        ("20Gi", "1Gi", "3Gi", "3Gi"),
        ("20Gi", "1Gi", "1025Mi", "1025Mi"),
        ("20Gi", "1Gi", "30Gi", "30Gi"),
        ("20Gi", "3Gi", "3Gi", "20Gi"),
        ("20Gi", "3Gi", "3072Mi", "20Gi"),
        ("20Gi", "5Gi", "3Gi", "20Gi"),
        ("20Gi", None, "3Gi", "20Gi"),
    ],
)
def test_request_shrinks_to_the_volumes_size(given: str, capacity: str | None, wanted: str, there: str) -> None:
    world = World().given(virtual=[claim()])
    bound(world, "1Gi", capacity)
    asked(world, given)
    assert request_on_host(world) == given
    decision = asked(world, wanted)
    assert request_on_host(world) == there
    if there == wanted:
        assert decision.warning is None
    else:
        why = f"a volume can't shrink, so where Pods run the claim still asks for {given}"
        assert decision.warning == ("RequestKept", f"{why}: ask for more than its capacity")


def test_request_that_the_host_has_made_larger_stays_while_the_volume_grows() -> None:
    world = World().given(virtual=[claim("1Gi")])
    bound(world, "5Gi", "1Gi")
    assert request_on_host(world) == "5Gi"


def lost(policy: str | None) -> World:
    """Return a world in which the host has lost the copy of a bound claim."""
    config = {"sync": {"toHost": {"persistentVolumeClaims": {"onHostDeletion": policy}}}} if policy else {}
    world = World(config=config).given(virtual=[claim()])
    bound(world, "1Gi", "1Gi")
    return world.gone(host=[copy_in(world)])


@pytest.mark.parametrize("policy", [None, "report", "recreate"])
def test_bound_claim_with_lost_copy_reports_lost_data(policy: str | None) -> None:
    world = lost(policy)
    with pytest.raises(Refused, match="its copy was deleted on the host, and with it") as caught:
        world.decide(NAME, "shop/data")
    assert caught.value.reason == "HostCopyDeleted"
    assert "delete this claim and create it again" in str(caught.value)


def test_bound_claim_with_lost_copy_is_deleted_with_propagate() -> None:
    [write] = lost("propagate").decide(NAME, "shop/data").writes
    assert (write.side, write.verb) == (Side.VIRTUAL, Verb.DELETE)


def test_record_of_another_claims_copy_is_ignored() -> None:
    """A backup that was restored elsewhere has the record, too."""
    world = lost("report")
    original = original_in(world)
    assert "vsyncer.dev/copied" in annotations_of(original)
    world.given(virtual=[merged(original, {"metadata": {"uid": "u-restored"}})])
    with pytest.raises(Refused, match=r"spec\.volumeName: a claim can't choose a volume of the host"):
        world.decide(NAME, "shop/data")
