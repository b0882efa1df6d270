"""Stand-in Nodes: there while a synced Pod needs them."""

import re
from datetime import timedelta

import pytest
from go_modules import folder_of

from syncer.api import Obj, Side
from syncer.resources.nodes import FEATURES
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import node, pod, serviceaccount


def running(world: World, name: str = "web", where: str = "n1") -> Obj:
    """Return a copy of ours on a node of the host."""
    world.given(virtual=[pod(name), serviceaccount("default")])
    world.settle("serviceaccounts", "shop/default")
    world.settle("pods", f"shop/{name}")
    copy = merged(world.host("Pod", f"vc-ns/{name}-x-shop-x-vc") or {}, {"spec": {"nodeName": where}})
    world.given(host=[copy])
    return copy


def assert_deleted(world: World) -> None:
    """Check that the change just made wakes the request of n1, which deletes the stand-in."""
    assert "nodes n1" in map(str, world.woken())
    assert [str(sent) for sent in world.settle("nodes", "n1")] == ["delete virtual nodes n1"]


def test_node_that_runs_a_copy_has_a_stand_in_that_is_ready(world: World) -> None:
    running(world)
    assert "nodes n1" in map(str, world.woken())
    world.settle("nodes", "n1")
    made = world.virtual("Node", "n1") or {}
    assert made["metadata"]["labels"]["kubernetes.io/hostname"] == "n1"
    assert made["status"]["capacity"] == {"cpu": "16", "memory": "32Gi", "pods": "110"}
    assert {"type": "Ready", "status": "True"}.items() <= made["status"]["conditions"][-1].items()


def test_capacity_of_a_node_can_be_set(world: World) -> None:
    world.configure({"sync": {"fake": {"nodes": {"cpu": "2"}}}})
    running(world)
    world.settle("nodes", "n1")
    assert (world.virtual("Node", "n1") or {})["status"]["allocatable"]["cpu"] == "2"


def test_node_is_deleted_with_the_last_pod(world: World) -> None:
    first, second = running(world), running(world, "db")
    world.settle("nodes", "n1")
    world.gone(host=[first])
    assert world.settle("nodes", "n1") == []
    world.woken()
    world.gone(host=[second])
    assert_deleted(world)


def test_node_stays_while_a_virtual_pod_names_it(world: World) -> None:
    copy = running(world)
    world.settle("nodes", "n1")
    bound = merged(world.virtual("Pod", "shop/web") or {}, {"spec": {"nodeName": "n1"}})
    world.given(virtual=[bound])
    world.gone(host=[copy])
    assert world.settle("nodes", "n1") == []
    world.woken()
    world.gone(virtual=[bound])
    assert_deleted(world)


def test_node_is_made_ready_again_and_time_alone_changes_nothing(world: World) -> None:
    running(world)
    world.settle("nodes", "n1")
    world.now += timedelta(days=1)
    assert world.settle("nodes", "n1") == []
    broken = world.virtual("Node", "n1") or {}
    broken["status"]["conditions"][-1] |= {"status": "Unknown", "lastTransitionTime": "2026-01-02T00:00:00Z"}
    world.given(virtual=[broken]).settle("nodes", "n1")
    ready = (world.virtual("Node", "n1") or {})["status"]["conditions"][-1]
    assert (ready["status"], ready["lastTransitionTime"]) == ("True", "2026-01-02T12:00:00Z")


def test_pods_of_others_need_no_stand_in(world: World) -> None:
    world.given(host=[pod("theirs", namespace="vc-ns", spec={"nodeName": "n1"})])
    forged = {"labels": {"vsyncer.dev/cluster": "vc.vc-ns"}, "annotations": {"vsyncer.dev/virtual-name": "web"}}
    world.given(host=[pod("copy-of-a-copy", namespace="vc-ns", spec={"nodeName": "n1"}, metadata=forged)])
    assert "nodes n1" not in map(str, world.woken())
    assert not world.decide("nodes", "n1").writes


def test_node_of_the_tenant_is_never_touched(world: World) -> None:
    world.given(virtual=[node("n1")])
    assert not world.decide("nodes", "n1").writes
    running(world)
    assert not world.decide("nodes", "n1").writes


def features(world: World, name: str = "n1") -> list[str] | None:
    world.settle("nodes", name)
    status = (world.virtual("Node", name) or {})["status"]
    found: list[str] | None = status.get("declaredFeatures")
    return found


@pytest.mark.parametrize("feature", FEATURES)
def test_stand_in_declares_each_feature_that_an_api_server_asks_for(world: World, feature: str) -> None:
    running(world)
    assert feature in (features(world) or ())
    lost = world.virtual("Node", "n1") or {}
    del lost["status"]["declaredFeatures"]
    assert feature in (features(world.given(virtual=[lost])) or ())
    assert world.settle("nodes", "n1") == []


def test_stand_in_declares_features_in_the_order_that_an_api_server_demands(world: World) -> None:
    running(world)
    assert features(world) == sorted(FEATURES)


@pytest.mark.parametrize("minor", [35, 29, 0])
def test_stand_in_declares_nothing_to_an_api_server_that_would_drop_it(world: World, minor: int) -> None:
    world.minor_versions[Side.VIRTUAL] = minor
    running(world)
    assert features(world) is None


@pytest.mark.parametrize(("minor", "taken"), [(31, True), (30, False), (0, False)])
def test_stand_in_takes_web_sockets_if_the_api_server_of_the_host_does(world: World, minor: int, taken: bool) -> None:
    world.minor_versions[Side.HOST] = minor
    running(world)
    found = features(world) or []
    assert ("ExtendWebSocketsToKubelet" in found) is taken
    assert set(FEATURES) - {"ExtendWebSocketsToKubelet"} <= set(found)


def test_features_are_all_that_the_api_server_of_the_tests_asks_for() -> None:
    """A new version of Kubernetes may have further ones."""
    folder = folder_of("k8s.io/component-helpers") / "nodedeclaredfeatures" / "features"
    registry = (folder / "registry.go").read_text()
    listed = re.findall(r"^\t(\w+)\.\w+,$", registry, re.MULTILINE)
    sources = ""
    for package in set(listed):
        for path in (folder / package).glob("*.go"):
            sources += path.read_text() if not path.stem.endswith("_test") else ""
    constants = dict(re.findall(r"^\s*(?:const )?(\w+)\s*=\s*\"(\w+)\"", sources, re.MULTILINE))
    names = re.findall(r"\) Name\(\) string \{\s*return (\w+)\s*\}", sources)
    assert len(names) == len(listed)
    assert sorted(constants[name] for name in names) == list(FEATURES)
