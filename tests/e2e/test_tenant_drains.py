"""A drain of the real node by kubectl, without `--force`, evicts a tenant's pods; others run in place of them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from node_scene import WEB, running, until
from tenant_scene import MARKS, Tenant

from hack.realnode.inside import Failed

AGENT = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      terminationGracePeriodSeconds: 0
      volumes: [{name: scratch, emptyDir: {}}]
      containers:
      - name: agent
        image: vsyncer.dev/web:local
        imagePullPolicy: Never
        volumeMounts: [{name: scratch, mountPath: /scratch}]
"""
BARE = """
apiVersion: v1
kind: Pod
metadata: {name: bare, labels: {app: bare}}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: bare, image: "vsyncer.dev/web:local", imagePullPolicy: Never}]
"""


def copies(tenant: Tenant, namespace: str) -> list[Any]:
    """Return the copies of the pods of a virtual namespace."""
    options = (f"-n={tenant.host_namespace}", f"-l={MARKS.namespace_label}={namespace}", "-o=json")
    found: list[Any] = json.loads(tenant.host.kubectl("get", "pods", *options))["items"]
    return found


@contextmanager
def drained(tenant: Tenant, namespace: str) -> Iterator[str]:
    """Drain the host's node of the pods of a virtual namespace; yield what kubectl says. It is cordoned meanwhile.

    The node's other pods stay: it has no other for them, and the tenant's control plane is among them.

    Raises:
        Failed: kubectl refuses it, or it doesn't end.
    """
    [node] = tenant.host.kubectl("get", "nodes", "-o=jsonpath={.items[*].metadata.name}").split()
    try:
        yield tenant.host.kubectl(
            "drain",
            node,
            "--ignore-daemonsets",
            "--delete-emptydir-data",
            f"--pod-selector={MARKS.namespace_label}={namespace}",
            "--timeout=60s",
        )
    finally:
        tenant.host.kubectl("uncordon", node)


def test_drain_without_force_replaces_the_pods_of_controllers(tenant: Tenant) -> None:
    with tenant.namespace("drain", WEB):
        before = set(running(tenant, "drain", "app=web", count=2))
        uid = tenant.host.kubectl("get", "namespace", tenant.host_namespace, "-o=jsonpath={.metadata.uid}")
        for copy in copies(tenant, "drain"):
            [owner] = copy["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["uid"], owner["controller"]) == ("Namespace", uid, True)
            assert copy["metadata"]["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "true"
        with drained(tenant, "drain") as said:
            assert said.count(" evicted") == 2
            until("others wait for a node", lambda: len(copies(tenant, "drain")) == 2)
            assert all("nodeName" not in copy["spec"] for copy in copies(tenant, "drain"))
        until("others run", lambda: not before & set(running(tenant, "drain", "app=web", count=2)))


def test_drain_ends_though_a_daemon_set_makes_another_pod(tenant: Tenant) -> None:
    with tenant.namespace("agents", WEB, AGENT):
        running(tenant, "agents", "app=web", count=2)
        [before] = running(tenant, "agents", "app=agent")
        marks = [copy["metadata"]["annotations"] for copy in copies(tenant, "agents")]
        assert [one.get("cluster-autoscaler.kubernetes.io/daemonset-pod") for one in marks].count("true") == 1
        with drained(tenant, "agents") as said:
            assert said.count(" evicted") == 3
        until("another agent runs", lambda: running(tenant, "agents", "app=agent") != [before])


def test_drain_refuses_a_pod_that_no_controller_would_make_again(tenant: Tenant) -> None:
    with tenant.namespace("single", BARE):
        running(tenant, "single", "app=bare")
        with pytest.raises(Failed, match="declare no controller"), drained(tenant, "single"):
            pass
        assert running(tenant, "single", "app=bare") == ["bare"]
