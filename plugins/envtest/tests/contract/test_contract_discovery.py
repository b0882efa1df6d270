"""Discovery: groups, resources, health, tables, OpenAPI."""

from typing import Any

import pytest
from contract_client import Api

Obj = dict[str, Any]

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"

CHANGES = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
PART = ["get", "patch", "update"]
EVERY: Obj = {"categories": ["all"]}


def served(name: str, kind: str, verbs: list[str] = CHANGES, *, namespaced: bool = True, **more: Any) -> Obj:
    """Return the entry of a resource in discovery."""
    singular = "" if "/" in name else kind.lower()
    return {"name": name, "singularName": singular, "namespaced": namespaced, "kind": kind, "verbs": verbs, **more}


CORE = (
    served("configmaps", "ConfigMap", shortNames=["cm"]),
    served("secrets", "Secret"),
    served("pods", "Pod", shortNames=["po"], **EVERY),
    served("services", "Service", shortNames=["svc"], **EVERY),
    served(
        "namespaces",
        "Namespace",
        [verb for verb in CHANGES if verb != "deletecollection"],
        namespaced=False,
        shortNames=["ns"],
    ),
    served("nodes", "Node", namespaced=False, shortNames=["no"]),
    served("events", "Event", shortNames=["ev"]),
    served("serviceaccounts", "ServiceAccount", shortNames=["sa"]),
    served("persistentvolumeclaims", "PersistentVolumeClaim", shortNames=["pvc"]),
    served("pods/binding", "Binding", ["create"]),
    served("pods/eviction", "Eviction", ["create"], group="policy", version="v1"),
    served("pods/status", "Pod", PART),
    served("serviceaccounts/token", "TokenRequest", ["create"], group="authentication.k8s.io", version="v1"),
)
APPS = (
    served("deployments", "Deployment", shortNames=["deploy"], **EVERY),
    served("deployments/scale", "Scale", PART, group="autoscaling", version="v1"),
    served("statefulsets", "StatefulSet", shortNames=["sts"], **EVERY),
)
NETWORKING = (
    served("ingresses", "Ingress", shortNames=["ing"]),
    served("networkpolicies", "NetworkPolicy", shortNames=["netpol"]),
)
DEFINITIONS = served(
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
    shortNames=["crd", "crds"],
    categories=["api-extensions"],
)
#: What kube-apiserver 1.36 says of each resource, by the path of its group and its name.
EXPECTED: dict[tuple[str, str], Obj] = {
    (path, resource["name"]): resource
    for path, resources in (
        ("/api/v1", CORE),
        ("/apis/apps/v1", APPS),
        ("/apis/batch/v1", [served("cronjobs", "CronJob", shortNames=["cj"], **EVERY)]),
        ("/apis/networking.k8s.io/v1", NETWORKING),
        ("/apis/coordination.k8s.io/v1", [served("leases", "Lease")]),
        (
            "/apis/storage.k8s.io/v1",
            [
                served("storageclasses", "StorageClass", namespaced=False, shortNames=["sc"]),
                served("volumeattributesclasses", "VolumeAttributesClass", namespaced=False, shortNames=["vac"]),
            ],
        ),
        ("/apis/node.k8s.io/v1", [served("runtimeclasses", "RuntimeClass", namespaced=False)]),
        ("/apis/policy/v1", [served("poddisruptionbudgets", "PodDisruptionBudget", shortNames=["pdb"])]),
        (
            "/apis/scheduling.k8s.io/v1",
            [served("priorityclasses", "PriorityClass", namespaced=False, shortNames=["pc"])],
        ),
        ("/apis/rbac.authorization.k8s.io/v1", [served("roles", "Role")]),
        ("/apis/apiextensions.k8s.io/v1", [DEFINITIONS]),
        (
            "/apis/authorization.k8s.io/v1",
            [served("selfsubjectaccessreviews", "SelfSubjectAccessReview", ["create"], namespaced=False)],
        ),
    )
    for resource in resources
}


def test_groups(api: Api) -> None:
    core = api.get("/api").json
    assert (core["kind"], core["versions"]) == ("APIVersions", ["v1"])
    listed = api.get("/apis").json
    assert (listed["kind"], listed["apiVersion"]) == ("APIGroupList", "v1")
    apps = next(group for group in listed["groups"] if group["name"] == "apps")
    version = {"groupVersion": "apps/v1", "version": "v1"}
    assert apps == {"name": "apps", "versions": [version], "preferredVersion": version}
    assert api.get("/apis/apps").json == {"kind": "APIGroup", "apiVersion": "v1", **apps}


@pytest.mark.parametrize(("path", "name"), list(EXPECTED))
def test_resources(api: Api, path: str, name: str) -> None:
    listed = api.get(path).json
    assert listed["kind"] == "APIResourceList"
    assert listed["groupVersion"] == path.removeprefix("/apis/").removeprefix("/api/")
    found = next(one for one in listed["resources"] if one["name"] == name)
    shown = {key: value for key, value in found.items() if key != "storageVersionHash"}
    assert shown == EXPECTED[path, name]


def test_aggregated(api: Api) -> None:
    answer = api.get("/api", accept=AGGREGATED)
    assert answer.headers["content-type"] == AGGREGATED
    assert (answer["kind"], answer["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    [core] = answer["items"]
    assert core["versions"][0]["version"] == "v1"
    maps = next(one for one in core["versions"][0]["resources"] if one["resource"] == "configmaps")
    assert maps == {
        "resource": "configmaps",
        "responseKind": {"group": "", "version": "", "kind": "ConfigMap"},
        "scope": "Namespaced",
        "singularResource": "configmap",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "shortNames": ["cm"],
    }
    groups = {one["metadata"]["name"]: one for one in api.get("/apis", accept=AGGREGATED)["items"]}
    deployments = next(one for one in groups["apps"]["versions"][0]["resources"] if one["resource"] == "deployments")
    assert deployments["scope"] == "Namespaced"
    scale = next(one for one in deployments["subresources"] if one["subresource"] == "scale")
    assert scale["responseKind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}


def test_health(api: Api) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        answer = api.get(path)
        assert (answer.status, answer.body) == (200, b"ok")


def test_version(api: Api) -> None:
    version = api.get("/version").json
    assert version["gitVersion"].startswith(f"v{version['major']}.{version['minor']}.")


def test_paths(api: Api) -> None:
    assert {"/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1"} <= set(api.get("/")["paths"])


def test_openapi(api: Api) -> None:
    paths = api.get("/openapi/v3", accept="application/json")["paths"]
    assert {"api/v1", "apis/apps/v1"} <= set(paths)
    document = api.get(paths["apis/apps/v1"]["serverRelativeURL"], accept="application/json").json
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert "fieldValidation" in {one["name"] for one in patch["parameters"]}
    assert "io.k8s.api.apps.v1.Deployment" in document["components"]["schemas"]


@pytest.mark.parametrize(
    ("path", "columns"),
    [
        ("/api/v1/namespaces/default/pods", "Name Ready Status Restarts Age"),
        ("/api/v1/namespaces/default/services", "Name Type Cluster-IP External-IP Port(s) Age"),
        ("/api/v1/namespaces/default/configmaps", "Name Data Age"),
        ("/api/v1/namespaces/default/secrets", "Name Type Data Age"),
        ("/api/v1/nodes", "Name Status Roles Age Version"),
        ("/api/v1/namespaces", "Name Status Age"),
        ("/api/v1/namespaces/default/events", "Last Seen,Type,Reason,Object,Message"),
        ("/apis/apps/v1/namespaces/default/deployments", "Name Ready Up-to-date Available Age"),
        ("/apis/networking.k8s.io/v1/namespaces/default/ingresses", "Name Class Hosts Address Ports Age"),
        ("/apis/coordination.k8s.io/v1/namespaces/default/leases", "Name Holder Age"),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "Name,Created At"),
    ],
)
def test_columns(api: Api, path: str, columns: str) -> None:
    answer = api.get(path, accept=TABLE)
    assert (answer["kind"], answer["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    shown = [one["name"] for one in answer["columnDefinitions"] if not one["priority"]]
    assert shown == columns.split("," if "," in columns else None)


def cells(api: Api, path: str) -> list[Any]:
    found: list[Any] = api.get(path, accept=TABLE)["rows.0.cells"]
    return found


def test_cells(api: Api, ns: str) -> None:
    base = f"/api/v1/namespaces/{ns}"
    spec = {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]}
    api.make(f"{base}/pods", {"metadata": {"name": "a"}, "spec": spec})
    assert cells(api, f"{base}/pods/a")[:4] == ["a", "0/2", "Pending", "0"]
    states = [
        {"name": "c", "ready": True, "restartCount": 2, "image": "", "imageID": "", "state": {"running": {}}},
        {"name": "d", "restartCount": 0, "image": "", "imageID": "", "state": {"waiting": {"reason": "ErrImagePull"}}},
    ]
    status = {"phase": "Running", "containerStatuses": states}
    api.patch(f"{base}/pods/a/status", {"status": status})
    assert cells(api, f"{base}/pods/a")[:4] == ["a", "1/2", "ErrImagePull", "2"]
    ports = [{"name": "x", "port": 80}, {"name": "y", "port": 53, "protocol": "UDP"}]
    made = api.make(f"{base}/services", {"metadata": {"name": "a"}, "spec": {"ports": ports}})
    address = made["spec"]["clusterIP"]
    assert cells(api, f"{base}/services/a")[:5] == ["a", "ClusterIP", address, "<none>", "80/TCP,53/UDP"]
    api.make(f"{base}/secrets", {"metadata": {"name": "a"}, "stringData": {"x": "1", "y": "2"}})
    assert cells(api, f"{base}/secrets/a")[:3] == ["a", "Opaque", 2]
    api.make(f"{base}/configmaps", {"metadata": {"name": "a"}, "data": {"x": "1"}, "binaryData": {"y": "MQ=="}})
    assert cells(api, f"{base}/configmaps/a")[:2] == ["a", 2]


def test_cells_of_nodes(api: Api) -> None:
    name = api.name("node")
    labels = {"node-role.kubernetes.io/worker": ""}
    api.make("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}, "spec": {"unschedulable": True}})
    ready = {"type": "Ready", "status": "True"}
    api.patch(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [ready]}})
    assert cells(api, f"/api/v1/nodes/{name}")[:3] == [name, "Ready,SchedulingDisabled", "worker"]
    api.delete(f"/api/v1/nodes/{name}")
