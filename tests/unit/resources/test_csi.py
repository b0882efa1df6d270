"""CSINodes and capacities of the host: what makes them come and go, their names, and the rights that they take."""

from typing import Any

import pytest
from class_rows import CSI, STORAGE, capacity, csi_node, fast, zoned

from syncer.api import LONGEST_NAME, Key, Obj, Side
from syncer.resources.csi import HOME, CsiCapacitySyncer
from syncer.resources.kinds import CSI_CAPACITIES, NODES
from syncer.rights.rbac import needed
from syncer.testing import World
from syncer.testing.merge import merged

CAPACITY = f"csistoragecapacities {HOME}/{STORAGE}.x"
NODE = "csinodes n1"
ZONE_B = zoned("n1", "b")


def world(**sections: Any) -> World:
    return World(config={"sync": {"fromHost": merged(dict(CSI), sections)}})


def woken(found: World) -> set[str]:
    return {str(each) for each in found.woken()} & {CAPACITY, NODE}


def shown(found: World) -> Obj | None:
    found.settle("csistoragecapacities", f"{HOME}/{STORAGE}.x")
    return found.virtual("CSIStorageCapacity", Key(HOME, f"{STORAGE}.x"))


def test_capacity_comes_and_goes_with_its_class_and_the_nodes_that_reach_it() -> None:
    found = world().given(host=[capacity("x"), fast()])
    assert woken(found) == {CAPACITY}
    assert shown(found) is None
    found.given(host=[zoned("n1")])
    assert woken(found) == {CAPACITY}
    assert shown(found) is not None
    found.given(host=[ZONE_B])
    assert woken(found) == {CAPACITY}
    assert shown(found) is None
    found.given(host=[zoned("n1")])
    shown(found)
    found.woken()
    found.gone(host=[fast()])
    assert woken(found) == {CAPACITY}
    assert shown(found) is None


def test_capacity_goes_with_its_namespace_in_the_configuration() -> None:
    before = world().given(host=[capacity("x"), fast(), zoned("n1")])
    made = shown(before)
    assert made is not None
    after = world(csiStorageCapacities={"namespaces": ["other"]}).given(virtual=[made], host=[capacity("x")])
    assert shown(after) is None
    none = world(csiStorageCapacities={"namespaces": []}).given(virtual=[made])
    assert shown(none) is None


def test_heartbeat_of_a_node_asks_for_no_capacity() -> None:
    found = world().given(host=[capacity("x"), fast(), csi_node("n1"), zoned("n1")])
    found.woken()
    beat = {
        "status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:05:00Z"}]}
    }
    found.given(host=[merged(zoned("n1"), beat)])
    assert woken(found) == set()


@pytest.mark.parametrize("change", ["loses its label", "is gone"])
def test_csinode_goes_with_its_node(change: str) -> None:
    found = world(nodes={"nodeSelector": {"pool": "tenants"}})
    pooled = merged(zoned("n1"), {"metadata": {"labels": {"pool": "tenants"}}})
    found.given(host=[csi_node("n1"), pooled]).settle("csinodes", "n1")
    assert found.virtual("CSINode", "n1")
    found.woken()
    if change == "is gone":
        found.gone(host=[pooled])
    else:
        found.given(host=[merged(pooled, {"metadata": {"labels": {"pool": "system"}}})])
    assert woken(found) == {NODE}
    found.settle("csinodes", "n1")
    assert found.virtual("CSINode", "n1") is None


def test_capacity_with_a_name_too_long_for_two_does_not_appear() -> None:
    name = "x" * LONGEST_NAME
    found = world().given(host=[capacity(name), fast(), zoned("n1")])
    assert not [each for each in found.woken() if each.syncer == "csistoragecapacities"]


def test_key_of_a_capacity_leads_back_to_the_host() -> None:
    settings = world().settings
    syncer = CsiCapacitySyncer()
    assert syncer.host_key(settings, Key(HOME, "storage.csisc.a")) == Key("storage", "csisc.a")
    assert syncer.host_key(settings, Key("shop", "storage.csisc-a")).namespace == ""
    assert syncer.host_key(settings, Key(HOME, "own")).namespace == ""


def test_rights_are_those_in_the_listed_namespaces() -> None:
    found = world(csiStorageCapacities={"namespaces": ["a", "b"]})
    granted = needed([CsiCapacitySyncer()], settings=found.settings)
    [right] = [each for each in granted if (each.side, each.resource) == (Side.HOST, CSI_CAPACITIES)]
    assert (right.verbs, right.namespaces) == (("get", "list", "watch"), ("a", "b"))
    assert any((each.side, each.resource) == (Side.HOST, NODES) for each in granted)
    none = world(csiStorageCapacities={"namespaces": []})
    granted = needed([CsiCapacitySyncer()], settings=none.settings)
    assert not [each for each in granted if (each.side, each.resource) == (Side.HOST, CSI_CAPACITIES)]
