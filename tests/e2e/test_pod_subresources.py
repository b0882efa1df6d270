"""kubectl debug and resizing of a running Pod work through a virtual cluster, on a real node."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from node_scene import running, until
from tenant_scene import Tenant

from hack.commands import line_of
from hack.realnode.inside import Failed

WEB = """
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: first}
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: web
    image: vsyncer.dev/web:local
    imagePullPolicy: Never
    resources: {requests: {cpu: 20m, memory: 16Mi}, limits: {cpu: 200m, memory: 64Mi}}
"""
NS = "-n=changes"


@pytest.fixture(scope="module")
def web(tenant: Tenant) -> Iterator[Tenant]:
    """Return the tenant with a running Pod ``web`` in the virtual namespace ``changes``."""
    with tenant.namespace("changes", WEB):
        running(tenant, "changes", "app=web")
        yield tenant


def pod(tenant: Tenant) -> Any:
    return json.loads(tenant.kubectl("get", "pod", "web", NS, "-o=json"))


def debug(tenant: Tenant, name: str, command: str, *options: str) -> None:
    """Add an ephemeral container of busybox to the Pod with kubectl debug."""
    image = ("--image=vsyncer.dev/busybox:local", "--image-pull-policy=Never")
    tenant.kubectl("debug", "web", NS, *image, f"--container={name}", *options, "--", "sh", "-c", command)


def state(tenant: Tenant, name: str) -> Any:
    """Return the state of an ephemeral container in the virtual Pod's status."""
    found = pod(tenant)["status"].get("ephemeralContainerStatuses") or ()
    return next((one["state"] for one in found if one["name"] == name), {})


def test_debug_container_runs_and_logs_exec_and_attach_reach_it(web: Tenant) -> None:
    debug(web, "shell", "echo hello; cat", "--profile=baseline", "--target=web", "-i", "--attach=false")
    until("the debug container runs", lambda: "running" in state(web, "shell"))
    assert web.kubectl("logs", NS, "web", "-c=shell") == "hello\n"
    assert "/web" in web.kubectl("exec", NS, "web", "-c=shell", "--", "ps"), "it shares the target's processes"
    assert web.kubectl("exec", NS, "web", "-c=shell", "--", "wget", "-qO-", "http://127.0.0.1:8080/")
    with subprocess.Popen(
        web.command("attach", NS, "-i", "web", "-c=shell"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as attached:
        try:
            assert attached.stdin is not None
            attached.stdin.write("echoed\n")
            attached.stdin.flush()
            assert line_of(attached, attached.stdout) == "echoed\n"
        finally:
            attached.kill()


def test_second_debug_container_reads_a_secret_of_the_tenant(web: Tenant) -> None:
    env = [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}}]
    container = {"name": "env", "image": "vsyncer.dev/busybox:local", "imagePullPolicy": "Never", "env": env}
    container["command"] = ["sh", "-c", "echo $PASSWORD $KUBERNETES_SERVICE_HOST"]
    patch = json.dumps({"spec": {"ephemeralContainers": [container]}})
    web.kubectl("patch", "pod", "web", NS, "--subresource=ephemeralcontainers", f"--patch={patch}")
    until("the debug container ended", lambda: "terminated" in state(web, "env"))
    assert web.kubectl("logs", NS, "web", "-c=env") == f"first {web.api_address}\n"
    for command in (("attach", NS, "web", "-c=env"), ("exec", NS, "web", "-c=env", "--", "true")):
        with pytest.raises(Failed, match="this container does not run in the Pod"):
            web.kubectl(*command)


def test_privileged_debug_container_is_refused_and_its_owner_reads_why(web: Tenant) -> None:
    debug(web, "root", "sleep 600", "--profile=sysadmin")
    events = (
        "get",
        "events",
        NS,
        "--field-selector=reason=EphemeralContainerRefused",
        "-o=jsonpath={.items[*].message}",
    )
    until("the event is there", lambda: "container root is privileged" in web.kubectl(*events))
    assert state(web, "root") == {}


def resize(tenant: Tenant, cpu: str) -> None:
    change = {
        "spec": {"containers": [{"name": "web", "resources": {"limits": {"cpu": cpu}, "requests": {"cpu": cpu}}}]}
    }
    tenant.kubectl("patch", "pod", "web", NS, "--subresource=resize", f"--patch={json.dumps(change)}")


def limit(tenant: Tenant) -> str:
    """Return the limit of the container's cpu as the kubelet reports it of the runtime."""
    return str(pod(tenant)["status"]["containerStatuses"][0]["resources"]["limits"]["cpu"])


def test_resize_is_carried_out_by_the_kubelet(web: Tenant) -> None:
    before = pod(web)
    resize(web, "300m")
    generation = before["metadata"]["generation"] + 1
    until("the kubelet has observed it", lambda: pod(web)["status"]["observedGeneration"] == generation)
    until("the container may use more", lambda: limit(web) == "300m")
    after = pod(web)["status"]["containerStatuses"][0]
    assert after["allocatedResources"]["cpu"] == "300m"
    assert after["restartCount"] == before["status"]["containerStatuses"][0]["restartCount"]
