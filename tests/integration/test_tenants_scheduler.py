"""A scheduler of the tenant's own beside the host's, both Kubernetes' own programs, and simulated kubelets."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from api import Api, Loop, eventually
from scene import Scene

from hack.kubelet import Kubelet
from hack.planes import HOST_CONTROLLERS, SCHEDULED_CONTROLLERS
from kube_envtest import ControlPlane, Programs, start_all
from syncer.api import Key, Obj, Side, annotations_of, dig
from syncer.resources.kinds import (
    CSI_CAPACITIES,
    CSI_DRIVERS,
    CSI_NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PRIORITY_CLASSES,
    STORAGE_CLASSES,
)
from syncer.testing.objects import build, pod

FAKE = "example.org/fake"
EAST, WEST, HIDDEN = "east", "west", "hidden"
#: The host namespace of the drivers, and one of them.
DRIVERS = "kube-system"
DISK = "disk.example.org"
#: Where the scheduler wants the volume of a claim to be.
SELECTED_NODE = "volume.kubernetes.io/selected-node"


@pytest.fixture(scope="module")
def both(control_plane_programs: Programs, loop: Loop) -> Iterator[tuple[Api, Api]]:
    """Two clusters with a scheduler each: virtual, host."""
    if not control_plane_programs.has("kube-scheduler"):
        pytest.skip("these programs have no kube-scheduler")
    host = ControlPlane("scheduled-host", programs=control_plane_programs, controllers=HOST_CONTROLLERS, scheduler=True)
    virtual = ControlPlane(
        "scheduled",
        programs=control_plane_programs,
        controllers=SCHEDULED_CONTROLLERS,
        scheduler=True,
        service_range="10.97.0.0/16",
    )
    start_all(host, virtual)
    apis = Api(loop, virtual, Side.VIRTUAL), Api(loop, host, Side.HOST)
    yield apis
    for api in apis:
        api.close()
    host.stop()
    virtual.stop()


@pytest.fixture(scope="module")
def placing(both: tuple[Api, Api], loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A virtual cluster that two of three nodes appear in, and a daemon without a right too many."""
    scene = Scene(*both, Path(tmp_path_factory.mktemp("placing")))
    names = (EAST, WEST, HIDDEN)
    kubelets = []
    for name in names:
        kubelet = Kubelet(scene.host.cluster, scene.host_namespace, node=name, schedules=False)
        kubelets.append(loop.start(kubelet.run()))
    eventually(lambda: all(scene.host.get("Node", Key("", name)) for name in names), "the host has its nodes")
    for name in names:
        labels = {"pool": "none" if name == HIDDEN else "tenants", "kubernetes.io/hostname": name}
        scene.host.patch("Node", Key("", name), {"metadata": {"labels": labels}, "spec": {"taints": []}})
    sync: dict[str, Any] = {
        "toHost": {"pods": {"scheduler": "virtual"}},
        "fromHost": {
            "nodes": {"enabled": True, "nodeSelector": {"pool": "tenants"}},
            "storageClasses": {"enabled": True},
            "csiDrivers": {"enabled": True},
            "csiNodes": {"enabled": True},
            "csiStorageCapacities": {"enabled": True, "namespaces": [DRIVERS]},
        },
        "fake": {"persistentVolumes": {"nodeAffinity": True}},
    }
    daemon = scene.daemon(scene.config(user="daemon", sync=sync))
    scene.grant(daemon, "daemon")
    daemon.start()
    for name in (EAST, WEST):
        eventually(partial(_has_no_taints, scene, name), "it can be used")
    yield scene
    loop.end(*kubelets)
    scene.close()


@pytest.fixture(autouse=True)
def tidy(placing: Scene) -> Iterator[None]:
    """Take off what a test has given the Nodes."""
    yield
    for name in (EAST, WEST):
        spec = {"spec": {"taints": [], "unschedulable": None}, "metadata": {"labels": {"disk": None}}}
        placing.virtual.patch("Node", Key("", name), spec)
        placing.virtual.patch("Node", Key("", name), {"status": {"capacity": {FAKE: None}}}, subresource="status")
        placing.host.patch("Node", Key("", name), {"spec": {"taints": []}})


def virtual_node(scene: Scene, name: str) -> Obj:
    return scene.virtual.get("Node", Key("", name)) or {}


def _has_no_taints(scene: Scene, name: str) -> bool:
    return dig(virtual_node(scene, name), "spec.taints") in (None, [])


def _has_one_fake(scene: Scene, name: str) -> bool:
    return bool(dig(virtual_node(scene, name), "status.allocatable").get(FAKE) == "1")


def on(scene: Scene, key: Key) -> tuple[Any, Any]:
    """Return the nodes of a Pod and of its copy once it is Ready."""
    virtual = scene.ready(key)
    return virtual["spec"]["nodeName"], scene.copied("Pod", key)["spec"]["nodeName"]


def test_pod_goes_by_labels_and_taints_that_only_the_virtual_nodes_have(placing: Scene) -> None:
    ns = placing.namespace()
    placing.virtual.patch("Node", Key("", WEST), {"metadata": {"labels": {"disk": "fast"}}})
    placing.virtual.create(pod("labelled", namespace=ns, spec={"nodeSelector": {"disk": "fast"}}))
    assert on(placing, Key(ns, "labelled")) == (WEST, WEST)
    taint = {"key": "team", "value": "a", "effect": "NoSchedule"}
    placing.virtual.patch("Node", Key("", WEST), {"spec": {"taints": [taint]}})
    placing.virtual.create(pod("kept-off", namespace=ns))
    assert on(placing, Key(ns, "kept-off")) == (EAST, EAST)
    tolerations = [{"key": "team", "operator": "Exists"}]
    selector = {"disk": "fast"}
    spec = {"nodeSelector": selector, "tolerations": tolerations}
    placing.virtual.create(pod("tolerating", namespace=ns, spec=spec))
    assert on(placing, Key(ns, "tolerating")) == (WEST, WEST)
    host = placing.host.get("Node", Key("", WEST)) or {}
    assert "disk" not in host["metadata"]["labels"]
    assert not dig(host, "spec.taints")
    placing.must_be_content()


def test_pod_of_a_higher_priority_evicts_a_pod_of_the_same_tenant_alone(placing: Scene) -> None:
    ns = placing.namespace()
    value = 1000
    placing.virtual.create(build(PRIORITY_CLASSES, f"high-{ns}", value=value))
    for name in (EAST, WEST):
        placing.virtual.patch("Node", Key("", name), {"status": {"capacity": {FAKE: "1"}}}, subresource="status")
        eventually(partial(_has_one_fake, placing, name), "it can be used")
    others = pod("others", namespace=placing.host_namespace, spec={"nodeName": WEST})
    placing.host.create(others)
    resources = {"limits": {FAKE: "1"}, "requests": {FAKE: "1"}}
    containers = [{"name": "app", "image": "app", "resources": resources}]
    for name in ("first", "second"):
        placing.virtual.create(pod(name, namespace=ns, spec={"containers": containers}))
    nodes = {on(placing, Key(ns, name)) for name in ("first", "second")}
    assert nodes == {(EAST, EAST), (WEST, WEST)}
    spec = {"containers": containers, "priorityClassName": f"high-{ns}"}
    placing.virtual.create(pod("high", namespace=ns, spec=spec))
    node, of_copy = on(placing, Key(ns, "high"))
    assert node == of_copy
    left = {each["metadata"]["name"] for each in placing.virtual.list("Pod", namespace=ns)}
    assert len(left) == 2
    assert "high" in left
    copy = placing.copied("Pod", Key(ns, "high"))
    assert copy["spec"]["priority"] == 0
    assert FAKE not in dig(copy, "spec.containers")[0]["resources"].get("requests", {})
    assert placing.host.get("Pod", Key(placing.host_namespace, "others"))
    placing.host.delete("Pod", Key(placing.host_namespace, "others"))
    placing.virtual.delete("PriorityClass", Key("", f"high-{ns}"))
    placing.must_be_content()


def test_taint_of_the_hosts_holds_for_a_pod_that_names_its_node(placing: Scene) -> None:
    ns = placing.namespace()
    taint = {"key": "dedicated", "effect": "NoSchedule"}
    placing.host.patch("Node", Key("", WEST), {"spec": {"taints": [taint]}})
    eventually(lambda: dig(virtual_node(placing, WEST), "spec.unschedulable"), "it appears cordoned")
    assert not dig(virtual_node(placing, WEST), "spec.taints")
    placing.virtual.create(pod("chosen", namespace=ns))
    assert on(placing, Key(ns, "chosen")) == (EAST, EAST)
    placing.virtual.create(pod("forced", namespace=ns, spec={"nodeName": WEST}))
    copy = placing.copied("Pod", Key(ns, "forced"))
    assert annotations_of(copy)["vsyncer.dev/bound-to"] == WEST

    def is_refused() -> bool:
        found = placing.copy("Pod", Key(ns, "forced")) or {}
        conditions = dig(found, "status.conditions") or ()
        return any(one.get("reason") == "Unschedulable" for one in conditions)

    eventually(is_refused, "the host's scheduler has no node for it")
    placing.host.patch("Node", Key("", WEST), {"spec": {"taints": []}})
    assert on(placing, Key(ns, "forced")) == (WEST, WEST)
    placing.must_be_content()


@pytest.mark.parametrize("name", [HIDDEN, "guessed"])
def test_pod_that_names_a_node_that_is_not_shown_ends(placing: Scene, name: str) -> None:
    ns = placing.namespace()
    placing.virtual.create(pod("web", namespace=ns, spec={"nodeName": name}))
    eventually(lambda: placing.virtual.get("Pod", Key(ns, "web")) is None, "it has ended")
    assert placing.copy("Pod", Key(ns, "web")) is None

    def reasons() -> set[str]:
        return {each["reason"] for each in placing.virtual.list("Event", namespace=ns)}

    eventually(lambda: "NodeGone" in reasons(), "its owner knows why")


# -- limits and capacities of storage --------------------------------------------------------------


@pytest.fixture
def stored(placing: Scene) -> Iterator[Scene]:
    """A driver of the host with capacities for each node, of which one appears to have room."""
    late = {"provisioner": DISK, "volumeBindingMode": "WaitForFirstConsumer"}
    made = [
        build(CSI_DRIVERS, DISK, spec={"attachRequired": True, "storageCapacity": True}),
        build(STORAGE_CLASSES, "local", **late),
        _room(EAST, "0"),
        _room(WEST, "10Gi"),
        _room(HIDDEN, "0"),
    ]
    for each in made:
        placing.host.create(each)
    shown = [_shown(EAST), _shown(WEST)]
    eventually(lambda: all(placing.virtual.get("CSIStorageCapacity", each) for each in shown), "capacities appear")
    eventually(lambda: placing.virtual.get("CSIDriver", Key("", DISK)), "the driver appears")
    yield placing
    for each in made:
        placing.host.delete(each["kind"], Key(each["metadata"].get("namespace", ""), each["metadata"]["name"]))
    eventually(lambda: not placing.virtual.list("CSIStorageCapacity", namespace=DRIVERS), "capacities are gone")


def _room(node: str, capacity: str) -> Obj:
    topology = {"matchLabels": {"kubernetes.io/hostname": node}}
    parts = {"storageClassName": "local", "nodeTopology": topology, "capacity": capacity}
    return build(CSI_CAPACITIES, f"csisc-{node}", namespace=DRIVERS, **parts)


def _shown(node: str) -> Key:
    return Key("kube-system", f"{DRIVERS}.csisc-{node}")


def _wants(scene: Scene, ns: str, name: str) -> None:
    """Let the tenant create a Pod with a claim."""
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = build(PERSISTENT_VOLUME_CLAIMS, name, namespace=ns, spec={**size, "storageClassName": "local"})
    scene.virtual.create(claim)
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
    scene.virtual.create(pod(name, namespace=ns, spec={"volumes": volumes}))


def _selected(scene: Scene, ns: str, name: str) -> str:
    claim = scene.virtual.get("PersistentVolumeClaim", Key(ns, name)) or {}
    return annotations_of(claim).get(SELECTED_NODE, "")


def test_volume_is_put_where_the_host_has_room_for_it(stored: Scene) -> None:
    ns = stored.namespace()
    assert stored.virtual.get("CSIStorageCapacity", _shown(HIDDEN)) is None
    _wants(stored, ns, "first")
    eventually(lambda: _selected(stored, ns, "first") == WEST, "it goes where there is room")
    for node, capacity in ((WEST, "0"), (EAST, "10Gi")):
        stored.host.patch("CSIStorageCapacity", Key(DRIVERS, f"csisc-{node}"), {"capacity": capacity})
        wanted = partial(_has_room, stored, node, capacity)
        eventually(wanted, "the tenant's scheduler can learn of it")
    _wants(stored, ns, "second")
    eventually(lambda: _selected(stored, ns, "second") == EAST, "it goes where there is room now")
    for name in ("first", "second"):
        stored.virtual.delete("Pod", Key(ns, name))
        stored.virtual.delete("PersistentVolumeClaim", Key(ns, name))
    stored.must_be_content()


def _has_room(scene: Scene, node: str, capacity: str) -> bool:
    found = scene.virtual.get("CSIStorageCapacity", _shown(node)) or {}
    return found.get("capacity") == capacity


def test_node_that_takes_no_volume_of_a_driver_gets_none(stored: Scene) -> None:
    ns = stored.namespace()
    stored.host.patch("CSIStorageCapacity", Key(DRIVERS, f"csisc-{EAST}"), {"capacity": "10Gi"})
    eventually(lambda: _has_room(stored, EAST, "10Gi"), "both nodes have room")
    driver = {"name": DISK, "nodeID": "i-0123", "allocatable": {"count": 0}}
    full = build(CSI_NODES, WEST, spec={"drivers": [driver]})
    stored.host.create(full)
    shown = eventually(lambda: stored.virtual.get("CSINode", Key("", WEST)), "the CSINode appears")
    assert dig(shown, "spec.drivers")[0]["nodeID"] == WEST
    for name in ("first", "second"):
        _wants(stored, ns, name)
        eventually(partial(_is_selected, stored, ns, name, EAST), "it goes to the other node")
    changed = {"spec": {"drivers": [{**driver, "allocatable": {"count": 7}}]}}
    stored.host.delete("CSINode", Key("", WEST))
    stored.host.create({**full, **changed})

    def follows() -> bool:
        now = stored.virtual.get("CSINode", Key("", WEST)) or {}
        return bool(now and dig(now, "spec.drivers")[0]["allocatable"] == {"count": 7})

    eventually(follows, "the CSINode is replaced, as an API server refuses to change its drivers")
    stored.host.delete("CSINode", Key("", WEST))
    eventually(lambda: stored.virtual.get("CSINode", Key("", WEST)) is None, "it goes with that of the host")
    for name in ("first", "second"):
        stored.virtual.delete("Pod", Key(ns, name))
        stored.virtual.delete("PersistentVolumeClaim", Key(ns, name))
    stored.must_be_content()


def _is_selected(scene: Scene, ns: str, name: str, node: str) -> bool:
    return _selected(scene, ns, name) == node
