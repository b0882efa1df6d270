"""Shared objects are used on a real node: a Service of the host by a tenant, theirs by the host, a ConfigMap."""

import subprocess
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from chart_scene import WORKLOADS
from node_scene import WEB, Node, Reached, running, until
from tenant_scene import Tenant

INFRA, MART = "infra", "mart"
SETTINGS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: red}
"""
#: Pods of both may connect to each other, besides what the chart's own policies allow.
OPEN = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: shared}
spec:
  podSelector: {}
  policyTypes: [Ingress, Egress]
  ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: infra}}}]}]
  egress: [{to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: infra}}}]}]
"""
READER = """
apiVersion: v1
kind: Pod
metadata: {name: reader, labels: {app: reader}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: reader
    image: vsyncer.dev/busybox:local
    args: [-c, sleep 3600]
    volumeMounts: [{name: settings, mountPath: /settings}]
  volumes: [{name: settings, configMap: {name: settings}}]
"""


def _entry(origin: str, place: str) -> dict[str, object]:
    return {"enabled": True, "mappings": {"byName": {origin: place}}}


SHARED = {
    "fromHost": {
        "services": _entry(f"{INFRA}/web", f"{MART}/shared"),
        "configMaps": _entry(f"{INFRA}/settings", f"{MART}/settings"),
    },
    "toHost": {"publishedServices": {"namespaces": [INFRA], **_entry(f"{MART}/web", f"{INFRA}/mart-web")}},
}


class Shops(NamedTuple):
    """The host and the tenant, each with pods that serve the web."""

    host: Node
    tenant: Tenant


@pytest.fixture(scope="module")
def shops(tenant: Tenant) -> Iterator[Shops]:
    """A web server on either side, and what is shared between them."""
    host = tenant.host
    of_host = WEB.replace("good morning", "greetings of the host")
    with host.namespace(INFRA, of_host, SETTINGS), tenant.configured(sync=SHARED), tenant.namespace(MART, WEB, READER):
        host.kubectl("apply", "-n", WORKLOADS, "-f", "-", stdin=OPEN)
        try:
            running(host, INFRA, "app=web", 2)
            running(tenant, MART, "app=web", 2)
            yield Shops(host, tenant)
        finally:
            host.kubectl("delete", "networkpolicy", "shared", "-n", WORKLOADS)


def answer(cluster: Reached, namespace: str, pod: str, url: str) -> str:
    """Return the answer to a request from inside a pod; ``""`` if there is none."""
    # The -T of this wget crashes.
    command = cluster.command("exec", "-n", namespace, pod, "--", "timeout", "3", "wget", "-qO-", url)
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout


def test_tenants_pod_reaches_a_service_of_the_host_by_its_name(shops: Shops) -> None:
    client, *_ = running(shops.tenant, MART, "app=web", 2)

    def answered() -> str:
        return answer(shops.tenant, MART, client, f"http://shared.{MART}/")

    until("the host's Service answers", lambda: answered().startswith("greetings of the host from web-"))
    shops.host.kubectl("scale", "deployment/web", "--replicas=0", "-n", INFRA)
    until("it has no address while no pod is ready", lambda: answered() == "")
    shops.host.kubectl("scale", "deployment/web", "--replicas=2", "-n", INFRA)
    until("it answers again", lambda: answered().startswith("greetings of the host from web-"))


def test_pod_of_the_host_reaches_the_tenants_service_by_its_name(shops: Shops) -> None:
    client, *_ = running(shops.host, INFRA, "app=web", 2)

    def answered() -> str:
        return answer(shops.host, INFRA, client, f"http://mart-web.{INFRA}/")

    until("the tenant's Service answers", lambda: answered().startswith("good morning from web-"))
    shops.tenant.kubectl("scale", "deployment/web", "--replicas=0", "-n", MART)
    until("it has no address while no pod is ready", lambda: answered() == "")
    shops.tenant.kubectl("scale", "deployment/web", "--replicas=2", "-n", MART)
    until("it answers again", lambda: answered().startswith("good morning from web-"))
    shops.tenant.kubectl("delete", "service", "web", "-n", MART)
    found = ("get", "service,endpointslice", "-n", INFRA, "-l=vsyncer.dev/cluster", "-o=name")
    until("it goes with the tenant's", lambda: shops.host.kubectl(*found) == "")


def test_pod_mounts_a_configmap_of_the_host_and_sees_its_changes(shops: Shops) -> None:
    running(shops.tenant, MART, "app=reader")
    assert shops.tenant.exec(MART, "reader", "cat", "/settings/color") == "red"
    shops.host.kubectl("patch", "configmap", "settings", "-n", INFRA, "-p", '{"data": {"color": "blue"}}')
    until(
        "the change reaches the virtual cluster",
        lambda: shops.tenant.kubectl("get", "configmap", "settings", "-n", MART, "-o=jsonpath={.data.color}") == "blue",
    )
    shops.tenant.kubectl("annotate", "pod", "reader", "-n", MART, "seen=now")  # a kubelet then looks at once
    until("the pod sees it", lambda: shops.tenant.exec(MART, "reader", "cat", "/settings/color") == "blue")
