"""The host's nodes in a virtual cluster on real API servers: a DaemonSet has a pod on each."""

from collections.abc import Iterator

import pytest
from api import PATIENCE, Api, Loop, eventually
from scene import Scene

from hack.kubelet import Kubelet, is_ready
from syncer.api import Key, Obj, dig, key_of
from syncer.resources.nodes import FEATURES

DAEMON_SET = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main, image: agent}]}
"""


@pytest.fixture
def shown(scene: Scene, loop: Loop) -> Iterator[Scene]:
    """A virtual cluster that two nodes of its host appear in, and a daemon without a right too many."""
    names = [f"{side}-{scene.name}" for side in ("east", "west")]
    kubelets = [loop.start(Kubelet(scene.host.cluster, scene.host_namespace, node=name).run()) for name in names]
    eventually(lambda: all(scene.host.get("Node", Key("", name)) for name in names), "the host has both nodes")
    for name in names:
        pool = {"pool": scene.name, "team.example.org/secret": "merger"}
        scene.host.patch("Node", Key("", name), {"metadata": {"labels": pool}, "spec": {"taints": []}})
    nodes = {"enabled": True, "nodeSelector": {"pool": scene.name}}
    running = scene.daemon(scene.config(user="daemon", sync={"fromHost": {"nodes": nodes}}))
    scene.grant(running, "daemon")
    running.start()
    yield scene
    for name in names:
        if scene.host.get("Node", Key("", name)) is not None:
            scene.host.delete("Node", Key("", name))
    loop.end(*kubelets)


def node(api: Api, name: str) -> Obj:
    found = api.get("Node", Key("", name))
    assert found is not None
    return found


def test_daemon_set_has_a_ready_pod_on_each_node_that_appears(shown: Scene) -> None:
    ns, plane = shown.namespace(), shown.virtual.plane
    names = {f"{side}-{shown.name}" for side in ("east", "west")}
    eventually(lambda: all(shown.virtual.get("Node", Key("", name)) for name in names), "both nodes appear")
    plane.kubectl("apply", "--namespace", ns, "-f", "-", stdin=DAEMON_SET)
    plane.kubectl("rollout", "status", "daemonset/agent", "--namespace", ns, f"--timeout={PATIENCE:g}s")
    pods = shown.virtual.list("Pod", namespace=ns)
    assert {each["spec"]["nodeName"] for each in pods} == names
    assert all(is_ready(each) for each in pods)
    for virtual in pods:
        host = shown.copied("Pod", key_of(virtual))
        assert host["spec"]["nodeName"] == virtual["spec"]["nodeName"]
        assert host["spec"]["nodeSelector"] == {"pool": shown.name}
    shown.must_be_content()
    shown.host.delete("Node", Key("", f"west-{shown.name}"))
    plane.kubectl("delete", "daemonset", "agent", "--namespace", ns)
    eventually(lambda: shown.virtual.get("Node", Key("", f"west-{shown.name}")) is None, "its node is gone")


def test_node_follows_taint_and_readiness_without_labels_of_the_host_and_is_never_left_not_ready(shown: Scene) -> None:
    name = f"east-{shown.name}"
    eventually(lambda: shown.virtual.get("Node", Key("", name)), "it appears")
    eventually(
        lambda: not dig(node(shown.virtual, name), "spec.taints"), "the API server's taint of a new Node is gone"
    )
    virtual = node(shown.virtual, name)
    assert is_ready(virtual)
    assert (
        virtual["status"]["declaredFeatures"] == node(shown.host, name)["status"]["declaredFeatures"] == list(FEATURES)
    )
    assert not {"pool", "team.example.org/secret"} & virtual["metadata"]["labels"].keys()
    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
    shown.host.patch("Node", Key("", name), {"spec": {"taints": [taint]}})
    status = {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]}}
    shown.host.patch("Node", Key("", name), status, subresource="status", how="strategic")
    eventually(lambda: dig(node(shown.virtual, name), "spec.taints") == [taint], "it has the taint")
    eventually(lambda: not is_ready(node(shown.virtual, name)), "it is no longer ready")
    shown.host.patch("Node", Key("", name), {"spec": {"taints": []}})
    eventually(lambda: not dig(node(shown.virtual, name), "spec.taints"), "it has no taint any more")
