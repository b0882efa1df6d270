"""Pods of a tenant really run: their volumes, jobs and services, and their removal."""

import json

from node_scene import WEB, running, until
from tenant_scene import Tenant

READER = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: red}
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: first}
---
apiVersion: v1
kind: Pod
metadata: {name: reader, labels: {app: reader}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: reader
    image: vsyncer.dev/busybox:local
    args: [-c, sleep 3600]
    volumeMounts: [{name: settings, mountPath: /settings}, {name: login, mountPath: /login}]
  volumes:
  - {name: settings, configMap: {name: settings}}
  - {name: login, secret: {secretName: login}}
"""

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: sum}
spec:
  completions: 3
  parallelism: 3
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 0
      containers: [{name: sum, image: "vsyncer.dev/busybox:local", args: [-c, "test $((20 + 22)) = 42"]}]
"""

#: All kinds that a Pod brings to the host.
KINDS = ("pods", "services", "configmaps", "secrets", "serviceaccounts")


def test_web_shop_runs_on_the_node_and_leaves_nothing_with_its_namespace(tenant: Tenant) -> None:
    with tenant.namespace("market", WEB):
        pods = running(tenant, "market", "app=web", 2)
        address = tenant.kubectl("get", "pod", pods[0], "-n=market", "-o=jsonpath={.status.podIP}")
        answer = tenant.exec("market", pods[1], "wget", "-qO-", f"http://{address}:8080/")
        assert answer == f"good morning from {pods[0]}\n"
        by_variable = "wget -qO- http://$WEB_SERVICE_HOST:$WEB_SERVICE_PORT/"
        assert "good morning from web-" in tenant.exec("market", pods[1], "sh", "-c", by_variable)
        for name in ("web", "web.market", "web.market.svc.cluster.local"):
            assert "good morning from web-" in tenant.exec("market", pods[1], "wget", "-qO-", f"http://{name}/")
        for name, address in (
            ("kubernetes.default", tenant.api_address),
            ("web.market", clusterip(tenant, "market", "web")),
        ):
            found = tenant.exec("market", pods[1], "nslookup", f"{name}.svc.cluster.local")
            assert address in found, found
        assert len(tenant.copies("market", "pods")) == 2
    until("no copies are left", lambda: tenant.copies("market", *KINDS) == [])


def clusterip(tenant: Tenant, namespace: str, service: str) -> str:
    """Return the address of a virtual Service."""
    return tenant.kubectl("get", "service", service, "-n", namespace, "-o=jsonpath={.spec.clusterIP}")


def test_changed_configmap_and_secret_reach_the_volumes_of_a_running_pod(tenant: Tenant) -> None:
    with tenant.namespace("volumes", READER):
        running(tenant, "volumes", "app=reader")
        assert tenant.exec("volumes", "reader", "cat", "/settings/color", "/login/password") == "redfirst"
        tenant.kubectl("patch", "configmap", "settings", "-n=volumes", "-p", json.dumps({"data": {"color": "blue"}}))
        change = {"stringData": {"password": "second"}}
        tenant.kubectl("patch", "secret", "login", "-n=volumes", "-p", json.dumps(change))
        tenant.kubectl("annotate", "pod", "reader", "-n=volumes", "seen=now")  # a kubelet then looks at once
        until(
            "the pod sees both changes",
            lambda: tenant.exec("volumes", "reader", "cat", "/settings/color", "/login/password") == "bluesecond",
        )
        restarts = "{.status.containerStatuses[0].restartCount}"
        assert tenant.kubectl("get", "pod", "reader", "-n=volumes", f"-o=jsonpath={restarts}") == "0"


def test_job_completes_and_its_pods_go_with_it(tenant: Tenant) -> None:
    with tenant.namespace("jobs", JOB):
        tenant.kubectl("wait", "job/sum", "-n=jobs", "--for=condition=Complete", "--timeout=60s")
        assert tenant.kubectl("get", "job/sum", "-n=jobs", "-o=jsonpath={.status.succeeded}") == "3"
        tenant.kubectl("delete", "job/sum", "-n=jobs")
        until("its pods are gone", lambda: tenant.copies("jobs", "pods") == [])
