"""kubectl top and a HorizontalPodAutoscaler work through a virtual cluster, with figures of the host's kubelet."""

import contextlib
import json
import re
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator

import pytest
from node_scene import Reached, running, until
from tenant_scene import Tenant, credentials

from hack.realnode import builds, outside
from kube_envtest.controlplane.processes import spawn

BUSY = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: busy}
spec:
  replicas: 1
  selector: {matchLabels: {app: busy}}
  template:
    metadata: {labels: {app: busy}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: vsyncer.dev/busybox:local
        imagePullPolicy: Never
        command: [sh, -c, 'while true; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.3; done']
        resources: {requests: {cpu: 10m, memory: 8Mi}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: busy}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: busy}
  minReplicas: 1
  maxReplicas: 2
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
"""


@pytest.fixture(scope="module")
def pod(tenant: Tenant) -> Iterator[str]:
    """Return the name of a running pod in the virtual namespace ``measured``, of which there are figures."""
    with tenant.namespace("measured", BUSY):
        name = running(tenant, "measured", "app=busy")[0]
        until("the pod is measured", lambda: name in figures(tenant))
        yield name


def figures(tenant: Tenant) -> str:
    """Return the raw figures of the namespace; empty before the API is served."""
    return asked(tenant, "/apis/metrics.k8s.io/v1beta1/namespaces/measured/pods")


def asked(cluster: Reached, path: str) -> str:
    """Return what is at a path; empty if there is nothing."""
    command = cluster.command("get", "--raw", path)
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600).stdout


def test_top_shows_the_tenants_pods_and_nodes(tenant: Tenant, pod: str) -> None:
    assert re.search(rf"^{pod} +\d+m +\d+Mi *$", tenant.kubectl("top", "pods", "-n=measured"), re.MULTILINE)
    assert "main " in tenant.kubectl("top", "pod", pod, "-n=measured", "--containers")
    assert tenant.kubectl("top", "pods", "-n=measured", "-l=app=none").strip() == ""
    everything = tenant.kubectl("top", "pods", "-A")
    assert pod in everything
    assert "-x-" not in everything, "that would be the name of a copy"
    assert "metrics-server" not in everything
    assert re.search(r"^node1 +\d+m", tenant.kubectl("top", "nodes"), re.MULTILINE)
    assert re.search(rf"^{pod} +\d+n +\d+Ki", tenant.kubectl("get", "podmetrics", "-n=measured"), re.MULTILINE)


def test_figures_are_those_of_the_host(tenant: Tenant, pod: str) -> None:
    copy = tenant.copies("measured", "pods")[0].partition("/")[2]
    of_host = f"/apis/metrics.k8s.io/v1beta1/namespaces/{tenant.host_namespace}/pods/{copy}"

    def same() -> bool:
        host = json.loads(asked(tenant.host, of_host) or "{}")
        if not host or pod not in figures(tenant):
            return False  # a metrics-server drops a pod for a while if a scrape came too late
        [ours] = [each for each in json.loads(figures(tenant))["items"] if each["metadata"]["name"] == pod]
        return bool(
            ours["timestamp"] == host["timestamp"]
            and ours["containers"][0]["usage"]["cpu"] == host["containers"][0]["usage"]["cpu"]
        )

    until("both sides say the same", same)


def test_kubelet_shows_the_pods_of_its_node_and_their_usage(tenant: Tenant, pod: str) -> None:
    page = "/api/v1/nodes/node1/proxy/"
    pods = json.loads(tenant.kubectl("get", "--raw", f"{page}pods"))["items"]
    assert pod in {each["metadata"]["name"] for each in pods}
    assert {each["spec"]["nodeName"] for each in pods} == {"node1"}
    text = tenant.kubectl("get", "--raw", f"{page}metrics/resource")
    labels = rf'\{{container="main",namespace="measured",pod="{pod}"\}}'
    assert re.search(rf"^container_memory_working_set_bytes{labels} [1-9]\d+ \d+$", text, re.MULTILINE)
    summary = json.loads(tenant.kubectl("get", "--raw", f"{page}stats/summary"))
    [one] = [each for each in summary["pods"] if each["podRef"]["name"] == pod]
    assert one["memory"]["workingSetBytes"] > 0
    for shown in (text, json.dumps(summary), json.dumps(pods)):
        assert "-x-" not in shown, "that would be the name of a copy"


def test_cadvisor_shows_the_tenants_containers_alone(tenant: Tenant, pod: str) -> None:
    path = "/api/v1/nodes/node1/proxy/metrics/cadvisor"
    refused = subprocess.run(
        tenant.command("get", "--raw", path), capture_output=True, text=True, check=False, timeout=600
    )
    assert "NotFound" in refused.stderr, "it is off by default"
    with tenant.configured(kubelet={"cadvisor": True}):
        until("the kubelet answers again", lambda: asked(tenant, path) != "")
        text = tenant.kubectl("get", "--raw", path)
    of_pod = [line for line in text.splitlines() if f'pod="{pod}"' in line and 'container="main"' in line]
    assert any(line.startswith("container_cpu_usage_seconds_total{") for line in of_pod)
    assert any(line.startswith("container_memory_working_set_bytes{") for line in of_pod)
    assert 'namespace="measured"' in of_pod[0]
    assert "-x-" not in text
    assert tenant.host_namespace not in text
    shown = set(re.findall(r'pod="([^"]*)"', text))
    # One that the autoscaler has just made has no figures yet.
    assert shown <= set(tenant.kubectl("get", "pods", "-A", "-o=jsonpath={.items[*].metadata.name}").split())


def test_metrics_server_of_the_tenant_reads_the_nodes(tenant: Tenant, pod: str) -> None:
    """A stock one takes a rate from two scrapes, so the counters of a node have to be right."""
    site, port = tenant.host.site, 4444
    files = credentials(tenant.kubeconfig, tenant.folder / "tenant")
    command = [
        *outside.enter_network(site),
        str(builds.metrics_server()),
        *(f"--{kind}kubeconfig={tenant.kubeconfig}" for kind in ("", "authentication-", "authorization-")),
        f"--secure-port={port}",
        f"--cert-dir={tenant.folder}",
        f"--kubelet-certificate-authority={files.ca}",
        "--metric-resolution=15s",
        "--kubelet-use-node-status-port",
    ]
    tls = ssl._create_unverified_context()
    tls.load_cert_chain(files.certificate, files.key)
    url = f"https://{site.addresses[1]}:{port}/apis/metrics.k8s.io/v1beta1/namespaces/measured/pods/{pod}"

    def cores() -> float:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, context=tls, timeout=20) as reply:
            return float(json.load(reply)["containers"][0]["usage"]["cpu"].removesuffix("n")) / 1e9
        return 0.0

    process = spawn(command, tenant.folder / "metrics-server.log", tenant.folder)
    try:
        until("it has measured the pod", lambda: cores() > 0)
        assert 0.001 < cores() < 2
    finally:
        process.kill()
        process.wait(600)


def test_autoscaler_makes_a_busy_deployment_larger(tenant: Tenant, pod: str) -> None:
    running(tenant, "measured", "app=busy", count=2)

    def is_measured() -> bool:
        return re.search(r"cpu: \d+%/50%", tenant.kubectl("get", "hpa", "busy", "-n=measured")) is not None

    until("the autoscaler has figures, also of the new pod", is_measured)
