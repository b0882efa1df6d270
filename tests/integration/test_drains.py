"""Drains of a host's node by the real kubectl, beside the host's real garbage collector and namespace controller."""

from collections.abc import Iterator

import pytest
from api import PATIENCE, Loop, eventually
from scene import MARKS, Scene

from hack.kubelet import Kubelet
from syncer.api import Key, Obj, annotations_of, uid_of
from syncer.resources.pods.eviction import OF_DAEMON_SET, SAFE_TO_EVICT
from syncer.testing.objects import pod

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: web}]}
"""
AGENT = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: agent}]}
"""


@pytest.fixture
def placed(scene: Scene, loop: Loop) -> Iterator[Scene]:
    """A virtual cluster whose pods are on one node of its host, and whose workloads end with the test."""
    kubelet = loop.start(Kubelet(scene.host.cluster, scene.host_namespace, node=node_of(scene)).run())
    yield scene
    for ns in scene.namespaces:
        scene.virtual.plane.kubectl("delete", "deployments,daemonsets", "--all", "--namespace", ns)
    loop.end(kubelet)


@pytest.fixture
def drained(placed: Scene) -> Scene:
    """The same with a daemon without a right too many."""
    running = placed.daemon(placed.config(user="daemon"))
    placed.grant(running, "daemon")
    running.start()
    return placed


def node_of(scene: Scene) -> str:
    return f"node-{scene.name}"


def drain(scene: Scene, *options: str, check: bool = True) -> str:
    """Drain the node without ``--force``; return what kubectl says."""
    options = ("--ignore-daemonsets", "--delete-emptydir-data", "--timeout=45s", *options)
    done = scene.host.plane.kubectl("drain", node_of(scene), *options, check=check)
    return f"{done.stdout}{done.stderr}"


def running(scene: Scene, ns: str, manifest: str, workload: str) -> set[str]:
    """Run a workload of the tenant's; return the uids of its pods once they are ready."""
    kubectl = scene.virtual.plane.kubectl
    kubectl("apply", "--namespace", ns, "-f", "-", stdin=manifest)
    return ready(scene, ns, workload)


def ready(scene: Scene, ns: str, workload: str) -> set[str]:
    """Return the uids of the pods of a workload once they are ready."""
    scene.virtual.plane.kubectl("rollout", "status", workload, "--namespace", ns, f"--timeout={PATIENCE:g}s")
    selector = f"app={workload.partition('/')[2]}"
    return {uid_of(each) for each in scene.virtual.list("Pod", namespace=ns, selector=selector)}


def copies(scene: Scene, ns: str) -> list[Obj]:
    selector = f"{scene.selector},{MARKS.namespace_label}={ns}"
    return scene.host.list("Pod", namespace=scene.host_namespace, selector=selector)


def home(scene: Scene) -> Obj:
    found = scene.host.get("Namespace", Key("", scene.host_namespace))
    assert found is not None
    return found


def test_drain_without_force_replaces_the_pods_of_controllers(drained: Scene) -> None:
    ns = drained.namespace()
    before = running(drained, ns, WEB, "deployment/web")
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": drained.host_namespace, "uid": uid_of(home(drained))}
    for each in copies(drained, ns):
        assert each["metadata"]["ownerReferences"] == [{**owner, "controller": True}]
        assert annotations_of(each)[SAFE_TO_EVICT] == "true"
    assert drain(drained).count(" evicted") == 2
    eventually(lambda: not before & ready(drained, ns, "deployment/web"), "others are ready in place of them")
    drained.must_be_content()


def test_drain_leaves_pods_of_daemon_sets_alone_by_a_selector_and_ends_without_it(drained: Scene) -> None:
    ns = drained.namespace()
    running(drained, ns, WEB, "deployment/web")  # by its pods there is a Node
    before = running(drained, ns, AGENT, "daemonset/agent")
    assert len(before) == 1
    [copy] = [each for each in copies(drained, ns) if OF_DAEMON_SET in annotations_of(each)]
    assert copy["metadata"]["name"].startswith("agent-")
    assert drain(drained, "--pod-selector=!pod-template-generation").count(" evicted") == 2
    ready(drained, ns, "deployment/web")
    assert ready(drained, ns, "daemonset/agent") == before
    assert drain(drained).count(" evicted") == 3
    eventually(lambda: not before & ready(drained, ns, "daemonset/agent"), "another is ready in place of it")


def test_drain_refuses_a_pod_that_no_controller_would_make_again(drained: Scene) -> None:
    ns = drained.namespace()
    drained.virtual.create(pod("bare", namespace=ns))
    drained.ready(Key(ns, "bare"))
    assert "declare no controller" in drain(drained, check=False)
    [copy] = copies(drained, ns)
    assert "ownerReferences" not in copy["metadata"]
    assert SAFE_TO_EVICT not in annotations_of(copy)
    drained.ready(Key(ns, "bare"))


def test_garbage_collector_keeps_the_copies_and_removes_what_belongs_to_an_earlier_namespace(drained: Scene) -> None:
    ns = drained.namespace()
    before = running(drained, ns, WEB, "deployment/web")
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": drained.host_namespace, "controller": True}
    stale = pod("stale", namespace=drained.host_namespace)
    stale["metadata"]["ownerReferences"] = [{**owner, "uid": "00000000-0000-4000-8000-000000000000"}]
    drained.host.create(stale)
    key = Key(drained.host_namespace, "stale")
    eventually(lambda: drained.host.get("Pod", key) is None, "the garbage collector is at work")
    assert ready(drained, ns, "deployment/web") == before


def test_pods_run_again_after_the_host_namespace_was_replaced(placed: Scene) -> None:
    placed.start()
    ns = placed.namespace()
    before = running(placed, ns, WEB, "deployment/web")
    first = uid_of(home(placed))
    placed.host.plane.kubectl("delete", "namespace", placed.host_namespace, "--timeout=50s")
    placed.host.make_namespace(placed.host_namespace)
    assert uid_of(home(placed)) != first
    eventually(lambda: not before & ready(placed, ns, "deployment/web"), "others are ready in the new namespace")
    owners = [each["metadata"]["ownerReferences"][0]["uid"] for each in copies(placed, ns)]
    assert owners == [uid_of(home(placed))] * 2
