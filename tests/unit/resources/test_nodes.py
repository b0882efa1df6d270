"""Stand-in Nodes: there while a synced Pod needs them."""

from datetime import timedelta

from syncer.api import Obj
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
    assert "nodes n1" in map(str, world.woken())
    assert [str(sent) for sent in world.settle("nodes", "n1")] == ["delete virtual nodes n1"]


def test_node_stays_while_a_virtual_pod_names_it(world: World) -> None:
    copy = running(world)
    world.settle("nodes", "n1")
    bound = merged(world.virtual("Pod", "shop/web") or {}, {"spec": {"nodeName": "n1"}})
    world.given(virtual=[bound])
    world.gone(host=[copy])
    assert world.settle("nodes", "n1") == []
    world.woken()
    world.gone(virtual=[bound])
    assert "nodes n1" in map(str, world.woken())
    assert [str(sent) for sent in world.settle("nodes", "n1")] == ["delete virtual nodes n1"]


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
