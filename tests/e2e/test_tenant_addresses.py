"""The addresses and names that a tenant's pod is given lead to its own cluster, never to the host's."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from node_scene import PATIENCE, running, until
from tenant_scene import Tenant

NAMESPACE = "names"

RIGHTS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: default, namespace: names}]
"""

OBJECTS = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: db}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{port: 8080}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 0
      enableServiceLinks: false
      containers:
      - name: web
        image: vsyncer.dev/web:local
        imagePullPolicy: Never
        env: [{name: GREETING, value: hello}]
---
apiVersion: v1
kind: Pod
metadata: {name: named, labels: {app: db}}
spec:
  hostname: primary
  subdomain: db
  terminationGracePeriodSeconds: 0
  containers:
  - {name: web, image: 'vsyncer.dev/web:local', imagePullPolicy: Never}
---
apiVersion: v1
kind: Pod
metadata: {name: other, labels: {app: other}}
spec:
  dnsPolicy: Default
  terminationGracePeriodSeconds: 0
  containers:
  - {name: web, image: 'vsyncer.dev/web:local', imagePullPolicy: Never}
"""


@pytest.fixture(scope="module")
def names(tenant: Tenant) -> Iterator[Tenant]:
    """A tenant with pods of a StatefulSet, one with a name of its own, and one with the host's DNS."""
    with tenant.namespace(NAMESPACE, RIGHTS, OBJECTS):
        running(tenant, NAMESPACE, "app=db", 3)
        running(tenant, NAMESPACE, "app=other")
        yield tenant


def answer(tenant: Tenant, url: str) -> str:
    """Return the answer to a request from inside a pod."""
    return tenant.exec(NAMESPACE, "db-0", "/bin/busybox", "wget", "-qO-", url)


def serves(tenant: Tenant, url: str) -> bool:
    """Return True if a pod of these answers at a URL."""
    command = tenant.command("exec", "-n", NAMESPACE, "db-0", "--", "/bin/busybox", "wget", "-qO-", url)
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return " from " in done.stdout


def test_clients_in_a_pod_find_the_virtual_api_server_with_token_and_ca(names: Tenant) -> None:
    environment = names.exec(NAMESPACE, "db-0", "/bin/busybox", "env").splitlines()
    assert f"KUBERNETES_SERVICE_HOST={names.api_address}" in environment
    assert "KUBERNETES_SERVICE_PORT=443" in environment
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    for server in ([], ["kubernetes.default.svc"], ["kubernetes.default"], ["kubernetes.default.svc.cluster.local"]):
        status, _, body = names.exec(NAMESPACE, "db-0", "/web", "api", path, *server).partition("\n")
        assert status == "200 OK", body
        assert {pod["metadata"]["name"] for pod in json.loads(body)["items"]} == {"db-0", "db-1", "named", "other"}


def test_virtual_api_server_is_found_by_dns_and_without_it(names: Tenant) -> None:
    found = names.exec(NAMESPACE, "db-0", "/bin/busybox", "nslookup", "kubernetes.default.svc.cluster.local")
    assert f"Address: {names.api_address}" in " ".join(found.split())
    status = names.exec(NAMESPACE, "other", "/web", "api", "/version", "kubernetes.default.svc").partition("\n")[0]
    assert status == "200 OK"


@pytest.mark.parametrize("name", ["web", f"web.{NAMESPACE}", f"web.{NAMESPACE}.svc.cluster.local"])
def test_service_is_reached_by_each_of_its_names(names: Tenant, name: str) -> None:
    assert " from " in answer(names, f"http://{name}/")


@pytest.mark.parametrize("pod", ["db-0", "db-1"])
def test_pod_of_a_stateful_set_is_reached_by_its_own_name(names: Tenant, pod: str) -> None:
    assert answer(names, f"http://{pod}.db:8080/") == f"hello from {pod}\n"
    assert answer(names, f"http://{pod}.db.{NAMESPACE}.svc.cluster.local:8080/") == f"hello from {pod}\n"


def test_pod_is_reached_by_its_hostname_and_subdomain(names: Tenant) -> None:
    assert answer(names, "http://primary.db:8080/") == " from primary\n"


def test_headless_service_has_the_addresses_of_its_pods(names: Tenant) -> None:
    found = names.exec(NAMESPACE, "db-0", "/bin/busybox", "nslookup", f"db.{NAMESPACE}.svc.cluster.local")
    listed = names.kubectl("get", "pods", "-n", NAMESPACE, "-l=app=db", "-o=jsonpath={.items[*].status.podIP}")
    assert all(f"Address: {address}" in " ".join(found.split()) for address in listed.split())


def test_pod_has_the_name_server_and_search_domains_of_its_cluster(names: Tenant) -> None:
    content = names.exec(NAMESPACE, "db-0", "/bin/busybox", "cat", "/etc/resolv.conf")
    address = names.kubectl("get", "service", "-n=kube-system", "kube-dns", "-o=jsonpath={.spec.clusterIP}")
    assert f"nameserver {address}\n" in content
    assert f"search {NAMESPACE}.svc.cluster.local svc.cluster.local cluster.local\n" in content
    assert "options ndots:5" in content


#: An address that a Service of the host's own has.
TAKEN = "10.96.200.77"


def made(tenant: Tenant, name: str, **spec: Any) -> Any:
    """Create a Service of the pods, and return it as the virtual API server has answered."""
    body = {"selector": {"app": "db"}, "ports": [{"port": 80, "targetPort": 8080}], **spec}
    manifest = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": body}
    return json.loads(tenant.kubectl("create", "-n", NAMESPACE, "-o=json", "-f", "-", stdin=json.dumps(manifest)))


def test_service_with_an_address_taken_on_the_host_is_reached_at_another(names: Tenant) -> None:
    theirs = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "theirs"}}
    spec = {"clusterIP": TAKEN, "ports": [{"port": 80}]}
    names.host.kubectl("create", "-f", "-", stdin=json.dumps({**theirs, "spec": spec}))
    try:
        before = made(names, "moved", clusterIP=TAKEN)
        until("it has another address", lambda: _field(names, "moved", "spec.clusterIP") not in ("", TAKEN))
        until("its name leads there", lambda: serves(names, "http://moved/"))
        assert _field(names, "moved", "metadata.uid") == before["metadata"]["uid"]
    finally:
        names.host.kubectl("delete", "service", "theirs")


def test_node_port_that_the_virtual_api_server_has_drawn_is_served_at_the_address_of_the_node(names: Tenant) -> None:
    port = made(names, "public", type="NodePort")["spec"]["ports"][0]["nodePort"]
    address = names.kubectl("get", "pod", "-n", NAMESPACE, "db-0", "-o=jsonpath={.status.hostIP}")
    until("the node's port serves", lambda: serves(names, f"http://{address}:{port}/"))
    assert json.loads(_field(names, "public", "spec.ports"))[0]["nodePort"] == port


def _field(tenant: Tenant, service: str, path: str) -> str:
    return tenant.kubectl("get", "service", "-n", NAMESPACE, service, f"-o=jsonpath={{.{path}}}")
