"""Commands that people type: kubectl against both kinds of server."""

import json
from threading import Timer

import pytest
from contract_client import PATIENCE, Api

SHOP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: shop}
data: {greeting: hello}
---
apiVersion: v1
kind: Service
metadata: {name: shop}
spec:
  selector: {app: shop}
  ports: [{port: 80, name: http}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, labels: {app: shop}}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: web, image: nginx}]}
"""

CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: GROUP}
spec:
  group: GROUP_NAME
  scope: Namespaced
  names: {kind: Gizmo, plural: gizmos, shortNames: [giz]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""


class Kubectl:
    """kubectl in one namespace."""

    def __init__(self, api: Api, ns: str) -> None:
        self.api = api
        self.ns = ns

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        return self.api.kubectl("-n", self.ns, *arguments, stdin=stdin).stdout

    def fails(self, *arguments: str, stdin: str | None = None) -> str:
        done = self.api.kubectl("-n", self.ns, *arguments, stdin=stdin, check=False)
        assert done.returncode != 0
        return done.stderr


@pytest.fixture
def kubectl(api: Api, ns: str) -> Kubectl:
    return Kubectl(api, ns)


def test_create_and_get(kubectl: Kubectl) -> None:
    assert kubectl("create", "-f", "-", stdin=SHOP).splitlines() == [
        "configmap/shop created",
        "service/shop created",
        "deployment.apps/shop created",
    ]
    header, row = kubectl("get", "configmaps", "shop").splitlines()
    assert header.split() == ["NAME", "DATA", "AGE"]
    assert row.split()[:2] == ["shop", "1"]
    assert kubectl("get", "deploy", "shop").splitlines()[1].split()[:2] == ["shop", "0/2"]
    assert kubectl("get", "all", "-o", "name").splitlines() == ["service/shop", "deployment.apps/shop"]
    assert kubectl("get", "cm", "shop", "-o", "jsonpath={.data.greeting}") == "hello"
    wide = kubectl("get", "svc", "shop", "-o", "wide").splitlines()
    assert wide[0].split()[-1] == "SELECTOR"
    assert wide[1].split()[-1] == "app=shop"
    assert "No resources found" in kubectl.api.kubectl("-n", kubectl.ns, "get", "pods").stderr
    assert 'configmaps "none" not found' in kubectl.fails("get", "cm", "none")
    assert "AlreadyExists" in kubectl.fails("create", "-f", "-", stdin=SHOP)


def test_generators(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "a", "--from-literal=x=1")
    kubectl("create", "secret", "generic", "a", "--from-literal=x=1")
    kubectl("create", "deployment", "a", "--image=nginx", "--port=80", "--replicas=0")
    kubectl("create", "serviceaccount", "a")
    kubectl("expose", "deployment", "a", "--port=80")
    kubectl("create", "job", "a", "--image=busybox", "--", "true")
    kubectl("create", "cronjob", "a", "--image=busybox", "--schedule=*/5 * * * *")
    kubectl("create", "ingress", "a", "--rule=example.com/path=a:80,tls=cert")
    kubectl("create", "role", "a", "--verb=get", "--resource=pods")
    kubectl("create", "rolebinding", "a", "--role=a", "--serviceaccount=default:a")
    kubectl("create", "quota", "a", "--hard=pods=5,requests.cpu=2")
    kubectl("run", "a", "--image=busybox", "--env=X=y", "--labels=l=m")
    assert kubectl("get", "cm", "a", "-o", "jsonpath={.data}") == '{"x":"1"}'
    assert kubectl("get", "secret", "a", "-o", "jsonpath={.data}") == '{"x":"MQ=="}'
    pod = json.loads(kubectl("get", "pod", "a", "-o", "json"))
    assert pod["metadata"]["labels"] == {"l": "m"}
    assert pod["spec"]["containers"][0]["env"] == [{"name": "X", "value": "y"}]
    deployment = json.loads(kubectl("get", "deploy", "a", "-o", "json"))
    assert deployment["spec"]["replicas"] == 0
    assert deployment["spec"]["template"]["metadata"] == {"labels": {"app": "a"}}
    service = json.loads(kubectl("get", "svc", "a", "-o", "json"))
    assert service["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    rule = json.loads(kubectl("get", "ingress", "a", "-o", "json"))["spec"]["rules"][0]
    backend = {"service": {"name": "a", "port": {"number": 80}}}
    assert rule["http"]["paths"] == [{"backend": backend, "path": "/path", "pathType": "Exact"}]
    assert len(kubectl("create", "token", "a").split(".")) == 3
    quota = json.loads(kubectl("get", "quota", "a", "-o", "json"))
    assert quota["spec"]["hard"] == {"pods": "5", "requests.cpu": "2"}


def test_apply(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=SHOP)
    changed = SHOP.replace("hello", "good day").replace("port: 80, name: http", "port: 81, name: http")
    lines = kubectl("apply", "-f", "-", stdin=changed).splitlines()
    assert lines == ["configmap/shop configured", "service/shop configured", "deployment.apps/shop unchanged"]
    assert kubectl("get", "svc", "shop", "-o", "jsonpath={.spec.ports[*].port}") == "81"
    lines = kubectl("apply", "-f", "-", stdin=changed).splitlines()
    assert lines == ["configmap/shop unchanged", "service/shop unchanged", "deployment.apps/shop unchanged"]
    assert "greeting" in kubectl("get", "cm", "shop", "-o", "yaml", "--show-managed-fields")


def test_apply_server_side(kubectl: Kubectl) -> None:
    assert "deployment.apps/shop serverside-applied" in kubectl("apply", "--server-side", "-f", "-", stdin=SHOP)
    kubectl("scale", "deployment", "shop", "--replicas=5")
    problem = kubectl.fails("apply", "--server-side", "-f", "-", stdin=SHOP)
    assert 'Apply failed with 1 conflict: conflict with "kubectl" with subresource "scale"' in problem
    assert ".spec.replicas" in problem
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=SHOP)
    assert kubectl("get", "deploy", "shop", "-o", "jsonpath={.spec.replicas}") == "2"


def test_diff(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=SHOP)
    done = kubectl.api.kubectl(
        "-n", kubectl.ns, "diff", "-f", "-", stdin=SHOP.replace("hello", "good day"), check=False
    )
    assert done.returncode == 1
    assert "+  greeting: good day" in done.stdout


def test_change(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=SHOP)
    assert kubectl("label", "cm", "shop", "tier=front") == "configmap/shop labeled\n"
    assert kubectl("annotate", "cm", "shop", "note=x") == "configmap/shop annotated\n"
    assert kubectl("patch", "cm", "shop", "-p", '{"data":{"a":"b"}}') == "configmap/shop patched\n"
    kubectl("patch", "cm", "shop", "--type=json", "-p", '[{"op":"remove","path":"/data/greeting"}]')
    assert kubectl("scale", "deployment", "shop", "--replicas=4") == "deployment.apps/shop scaled\n"
    kubectl("set", "image", "deployment/shop", "web=nginx:2")
    found = json.loads(kubectl("get", "cm", "shop", "-o", "json"))
    assert found["metadata"]["labels"] == {"tier": "front"}
    assert found["metadata"]["annotations"] == {"note": "x"}
    assert found["data"] == {"a": "b"}
    deployment = json.loads(kubectl("get", "deploy", "shop", "-o", "json"))
    assert deployment["spec"]["replicas"] == 4
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"
    assert kubectl("get", "cm", "-l", "tier=front", "-o", "name") == "configmap/shop\n"


def test_describe(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=SHOP)
    kubectl("run", "a", "--image=busybox")
    assert "Data\n====\ngreeting:\n----\nhello" in kubectl("describe", "cm", "shop")
    service = kubectl("describe", "svc", "shop")
    assert "Selector:                 app=shop" in service
    assert "Replicas:               2 desired" in kubectl("describe", "deploy", "shop")
    pod = kubectl("describe", "pod", "a")
    assert "Image:        busybox" in pod
    assert "kube-api-access" in pod
    assert "Name:         default" in kubectl("describe", "ns", "default")


def test_watch(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "a")
    watching = kubectl.api.kubectl_process("-n", kubectl.ns, "get", "cm", "-w", "-o", "name")
    end = Timer(PATIENCE, watching.kill)
    end.start()

    def line() -> str:
        assert watching.stdout is not None
        found = watching.stdout.readline()
        assert found, f"{watching.args!r}: ended, or wrote no more in {PATIENCE:g} s"
        return found.strip()

    try:
        printed = {line(), line()}
        assert printed == {"configmap/a", "configmap/kube-root-ca.crt"}
        kubectl("create", "configmap", "b")
        assert line() == "configmap/b"
        kubectl("delete", "cm", "b")
        assert line() == "configmap/b"
    finally:
        end.cancel()
        watching.kill()
        watching.communicate()


def test_wait(kubectl: Kubectl) -> None:
    kubectl("run", "a", "--image=busybox")
    status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    kubectl("patch", "pod", "a", "--subresource=status", "-p", json.dumps(status))
    kubectl("wait", "pod/a", "--for=condition=Ready", f"--timeout={PATIENCE:g}s")


def test_delete(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=SHOP)
    kubectl("run", "a", "--image=busybox")
    kubectl("delete", "pod", "a")
    assert kubectl("delete", "deployment", "shop").startswith('deployment.apps "shop" deleted')
    kubectl("delete", "svc", "--all")
    kubectl("delete", "cm", "-l", "none=none")
    assert kubectl("get", "all", "-o", "name") == ""
    kubectl.api.kubectl("delete", "ns", kubectl.ns)


def test_custom_resources(kubectl: Kubectl) -> None:
    group = kubectl.api.name("k") + ".example.com"
    kubectl("apply", "-f", "-", stdin=CRD.replace("GROUP_NAME", group).replace("GROUP", f"gizmos.{group}"))
    kubectl("wait", "--for=condition=Established", f"crd/gizmos.{group}", f"--timeout={PATIENCE:g}s")
    body = f"{{apiVersion: {group}/v1, kind: Gizmo, metadata: {{name: a}}, spec: {{size: SIZE}}}}"
    kubectl.api.eventually(lambda: "gizmos" in kubectl("api-resources", f"--api-group={group}", "-o", "name"))
    kubectl("apply", "-f", "-", stdin=body.replace("SIZE", "3"))
    assert kubectl("apply", "-f", "-", stdin=body.replace("SIZE", "4")).endswith("configured\n")
    header, row = kubectl("get", f"gizmos.{group}").splitlines()
    assert (header.split(), row.split()) == (["NAME", "SIZE"], ["a", "4"])
    kubectl("patch", f"gizmos.{group}", "a", "--type=merge", "-p", '{"spec":{"size":5}}')
    assert "Size:  5" in kubectl("describe", f"gizmos.{group}", "a")
    assert "invalid" in kubectl.fails("apply", "-f", "-", stdin=body.replace("SIZE", "x")).lower()
    kubectl("delete", f"crd/gizmos.{group}")


def test_can_i(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"
    assert kubectl.fails("auth", "can-i", "create", "pods", "--as=alice") == ""
    assert "root" in kubectl("auth", "whoami")


def test_server_version(kubectl: Kubectl) -> None:
    assert "Server Version: v1.36." in kubectl("version")
    assert "configmaps" in kubectl("api-resources")
    assert "apps/v1" in kubectl("api-versions")
