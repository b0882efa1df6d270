"""The initial objects of every cluster: namespaces, the kubernetes Service, roles, priority classes."""

import ipaddress
from typing import Any

from kube_envtest.apiserver.authority import GROUP
from kube_envtest.apiserver.internal import Internal
from kube_envtest.apiserver.namespaces import FIRST
from kube_envtest.apiserver.resources import Registry

Obj = dict[str, Any]

READ = ["get", "list", "watch"]
WRITE = [*READ, "create", "update", "patch", "delete", "deletecollection"]
DISCOVERY = [
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
]
DISCOVERY_MORE = ["/version/"]
PUBLIC = ["/healthz", "/livez", "/readyz", "/version", "/version/"]

REVIEWS = {
    "verbs": ["create"],
    "apiGroups": ["authorization.k8s.io"],
    "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
}
MYSELF = {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]}

#: Groups and resources that ``view`` reads and ``edit`` writes.
NAMESPACED: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "",
        (
            "configmaps",
            "endpoints",
            "persistentvolumeclaims",
            "pods",
            "serviceaccounts",
            "services",
        ),
    ),
    ("apps", ("daemonsets", "deployments", "deployments/scale", "replicasets", "replicasets/scale", "statefulsets")),
    ("batch", ("cronjobs", "jobs")),
    ("discovery.k8s.io", ("endpointslices",)),
    ("networking.k8s.io", ("ingresses", "networkpolicies")),
    ("policy", ("poddisruptionbudgets",)),
)
READABLE = ("events", "limitranges", "namespaces", "namespaces/status", "pods/log", "pods/status", "resourcequotas")


def _rules(verbs: list[str]) -> list[Obj]:
    return [{"verbs": verbs, "apiGroups": [group], "resources": list(names)} for group, names in NAMESPACED]


VIEW: list[Obj] = [*_rules(READ), {"verbs": READ, "apiGroups": [""], "resources": list(READABLE)}]
EDIT: list[Obj] = [
    *VIEW,
    *_rules(WRITE),
    {"verbs": WRITE, "apiGroups": [""], "resources": ["secrets", "pods/eviction", "serviceaccounts/token"]},
]
ADMIN: list[Obj] = [*EDIT, {"verbs": WRITE, "apiGroups": [GROUP], "resources": ["roles", "rolebindings"]}]
EVERYTHING: list[Obj] = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]

CLUSTER_ROLES: dict[str, list[Obj]] = {
    "cluster-admin": EVERYTHING,
    "admin": ADMIN,
    "edit": EDIT,
    "view": VIEW,
    "system:basic-user": [REVIEWS, MYSELF],
    "system:discovery": [{"verbs": ["get"], "nonResourceURLs": [*DISCOVERY, *DISCOVERY_MORE]}],
    "system:public-info-viewer": [{"verbs": ["get"], "nonResourceURLs": PUBLIC}],
}

#: ClusterRole → groups that it is bound to.
BOUND: dict[str, tuple[str, ...]] = {
    "cluster-admin": ("system:masters",),
    "system:basic-user": ("system:authenticated",),
    "system:discovery": ("system:authenticated",),
    "system:public-info-viewer": ("system:authenticated", "system:unauthenticated"),
}

PRIORITIES = {
    "system-cluster-critical": (
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    "system-node-critical": (
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
}


def furnish(registry: Registry, internal: Internal, *, rbac: bool, service_range: str) -> None:
    """Create the initial objects; roles only with RBAC. The first address of the range is the API server's."""
    for name in FIRST:
        internal.ensure("namespaces", {"metadata": {"name": name}})
    address = str(ipaddress.ip_network(service_range)[1])
    internal.ensure("services", {**SERVICE, "spec": {**SERVICE["spec"], "clusterIP": address}})
    ranges = registry.find("networking.k8s.io", "v1", "servicecidrs")
    if ranges is not None:
        internal.ensure_of(ranges, {**SERVICE_CIDR, "spec": {"cidrs": [service_range]}})
    priorities = registry.find("scheduling.k8s.io", "v1", "priorityclasses")
    if priorities is not None:
        for name, (value, text) in PRIORITIES.items():
            internal.ensure_of(priorities, {"metadata": {"name": name}, "value": value, "description": text})
    if rbac:
        _roles(registry, internal)


def _roles(registry: Registry, internal: Internal) -> None:
    roles = registry.find(GROUP, "v1", "clusterroles")
    bindings = registry.find(GROUP, "v1", "clusterrolebindings")
    if roles is None or bindings is None:
        return
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    for name, rules in CLUSTER_ROLES.items():
        internal.ensure_of(roles, {"metadata": {"name": name, "labels": labels}, "rules": rules})
    for name, groups in BOUND.items():
        subjects = [{"apiGroup": GROUP, "kind": "Group", "name": group} for group in groups]
        role = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
        internal.ensure_of(
            bindings, {"metadata": {"name": name, "labels": labels}, "roleRef": role, "subjects": subjects}
        )


#: The range of the API server's flag, which can't be extended here.
#: Source: pkg/controlplane/controller/defaultservicecidr.
SERVICE_CIDR: Obj = {
    "metadata": {"name": "kubernetes"},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "", "message": "Kubernetes default Service CIDR is ready"}
        ]
    },
}

SERVICE: Obj = {
    "metadata": {
        "name": "kubernetes",
        "namespace": "default",
        "labels": {"component": "apiserver", "provider": "kubernetes"},
    },
    "spec": {
        "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        "type": "ClusterIP",
    },
}
