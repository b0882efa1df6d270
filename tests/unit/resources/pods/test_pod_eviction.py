"""Which copies programs that empty a node of the host may evict: those that the tenant's cluster makes others of.

The rules of these programs, as their sources have them:

- ``kubectl drain``, ``k8s.io/kubectl/pkg/drain/filters.go`` of v0.36.3, ``unreplicatedFilter``: without ``--force`` a
  running Pod must have a controller (``metav1.GetControllerOf``), of any kind. One of the kind DaemonSet must exist.
- The Cluster Autoscaler, ``cluster-autoscaler/simulator/drainability/rules``: a Pod of a DaemonSet may be drained, and
  one with ``daemonset-pod: "true"`` counts as one (``utils/pod``, ``IsDaemonSetPod``); then one with ``safe-to-evict:
  "true"``. Others need a controller, by default (``--skip-nodes-with-custom-controller-pods``) of a kind that it knows,
  and must have no local storage (``--skip-nodes-with-local-storage``; ``utils/drain``, ``isLocalVolume``): no
  ``hostPath``, and no ``emptyDir`` that isn't in memory.
- Karpenter, ``pkg/utils/pod/scheduling.go``: asks for no controller, only for the kinds DaemonSet and Node.
"""

from typing import Any

import pytest

from syncer.api import Obj, annotations_of
from syncer.testing import World
from syncer.testing.objects import pod

SAFE = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}
OF_DAEMON_SET = {"cluster-autoscaler.kubernetes.io/daemonset-pod": "true"}
DISK = {"name": "data", "emptyDir": {}}
MEMORY = {"name": "fast", "emptyDir": {"medium": "Memory"}}
FOLDER = {"name": "logs", "hostPath": {"path": "/var/log"}}
CONFIG = {"name": "conf", "configMap": {"name": "c", "optional": True}}
#: A Pod that waits for nothing.
ALONE = {"serviceAccounts": {"enabled": False}, "podTokens": {"enabled": False}}


def owner(kind: str, *, controller: bool = True) -> Obj:
    return {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": "u-web", "controller": controller}


REPLICA_SET = [owner("ReplicaSet")]


def decided(world: World, owners: list[Obj], volumes: list[Obj], **options: Any) -> tuple[bool, dict[str, str]]:
    """Return whether its namespace controls the copy, and its annotations for the Cluster Autoscaler."""
    world.configure({"sync": {"toHost": {**ALONE, "pods": {"podSecurity": "privileged", **options}}}})
    world.given(virtual=[pod("web", metadata={"ownerReferences": owners}, spec={"volumes": volumes})])
    [write] = world.decide("pods", "shop/web").writes
    found = annotations_of(write.obj)
    marks = {name: value for name, value in found.items() if name.startswith("cluster-autoscaler")}
    return write.controlled_by_namespace, marks


@pytest.mark.parametrize(
    ("owners", "volumes", "is_controlled", "annotations"),
    [
        ([], [], False, {}),
        ([owner("Order", controller=False)], [], False, {}),
        (REPLICA_SET, [], True, SAFE),
        ([owner("Order", controller=False), owner("Cluster")], [], True, SAFE),
        (REPLICA_SET, [CONFIG, MEMORY], True, SAFE),
        (REPLICA_SET, [CONFIG, DISK], True, {}),
        (REPLICA_SET, [FOLDER], True, {}),
        ([owner("DaemonSet")], [FOLDER], True, OF_DAEMON_SET),
    ],
)
def test_pod_with_a_controller_may_be_evicted(
    world: World, owners: list[Obj], volumes: list[Obj], is_controlled: bool, annotations: dict[str, str]
) -> None:
    assert decided(world, owners, volumes) == (is_controlled, annotations)


@pytest.mark.parametrize("owners", [[], REPLICA_SET])
def test_operator_allows_all_or_none(world: World, owners: list[Obj]) -> None:
    assert decided(world, owners, [], evictable="all") == (True, SAFE)
    assert decided(world, owners, [], evictable="none") == (False, {})


def test_running_copy_gets_and_loses_the_annotation(world: World) -> None:
    decided(world, REPLICA_SET, [])
    world.settle("pods", "shop/web")
    for evictable, annotations in (("none", {}), ("controlled", SAFE)):
        world.configure({"sync": {"toHost": {"pods": {"evictable": evictable}}}})
        world.settle("pods", "shop/web")
        found = annotations_of(world.copy_of("pods", "shop/web") or {"metadata": {}})
        assert {name: value for name, value in found.items() if name in SAFE} == annotations


def test_tenants_own_annotation_prevails_where_it_may_cross(world: World) -> None:
    [name] = SAFE
    allowed = {"annotations": {"allow": ["*", name]}}
    world.configure({"sync": {"toHost": {**ALONE, "pods": {"metadata": allowed}}}})
    metadata = {"ownerReferences": REPLICA_SET, "annotations": {name: "false"}}
    world.given(virtual=[pod("web", metadata=metadata)])
    [write] = world.decide("pods", "shop/web").writes
    assert annotations_of(write.obj)[name] == "false"
