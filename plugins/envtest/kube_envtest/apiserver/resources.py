"""The built-in resources, with their properties."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Obj = dict[str, Any]

#: Verbs of an ordinary resource, in the order of discovery.
ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True)
class ResourceType:
    """A resource in a served version.

    ``table`` is where its objects are stored: versions of a resource share it, and so do the two
    Event groups. ``subresources`` are those served; ``generation`` is True if the server counts
    changes of the spec.
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[str, ...] = ()
    generation: bool = False
    create_on_update: bool = False
    unconditional_update: bool = True
    returns_deleted: bool = False
    custom: bool = False
    storage_version: str = ""
    table: str = ""
    schema: Any = None
    columns: tuple[Obj, ...] = ()
    selectable: tuple[str, ...] = ()
    scale_paths: Obj = field(default_factory=dict)

    @cached_property
    def api_version(self) -> str:
        """``v1`` or ``group/version``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def full_name(self) -> str:
        """``pods`` or ``deployments.apps``, as in messages."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def table_name(self) -> str:
        """The table of its objects."""
        return self.table or f"{self.group}/{self.plural}"

    @cached_property
    def stored_api_version(self) -> str:
        """The ``apiVersion`` of stored objects."""
        if self.table == "/events":
            return "v1"
        version = self.storage_version or self.version
        return f"{self.group}/{version}" if self.group else version

    @cached_property
    def prefix(self) -> bytes:
        """The first bytes of each served object."""
        return f'{{"kind":"{self.kind}","apiVersion":"{self.api_version}",'.encode()

    @cached_property
    def stored_prefix(self) -> bytes:
        """The first bytes of each stored object."""
        return f'{{"kind":"{self.kind}","apiVersion":"{self.stored_api_version}",'.encode()

    @cached_property
    def base_path(self) -> str:
        """``/api/v1`` or ``/apis/group/version``."""
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "") -> str:
        """Return the path of a collection or of an object."""
        scope = f"/namespaces/{namespace}" if namespace else ""
        return f"{self.base_path}{scope}/{self.plural}" + (f"/{name}" if name else "")


def _core(kind: str, plural: str, short: str = "", **options: Any) -> ResourceType:
    return _make("", "v1", kind, plural, short, options)


def _make(group: str, version: str, kind: str, plural: str, short: str, options: Obj) -> ResourceType:
    names = tuple(short.split())
    return ResourceType(group, version, kind, plural, singular=kind.lower(), short_names=names, **options)


def _rbac(kind: str, plural: str, *, namespaced: bool) -> ResourceType:
    options = {"namespaced": namespaced, "create_on_update": True}
    return _make("rbac.authorization.k8s.io", "v1", kind, plural, "", options)


def _review(group: str, kind: str, plural: str, *, namespaced: bool = False) -> ResourceType:
    return _make(group, "v1", kind, plural, "", {"namespaced": namespaced, "verbs": ("create",)})


ALL = ("all",)
STATUS = ("status",)
SCALE = ("scale", "status")
POD_SUBRESOURCES = ("binding", "ephemeralcontainers", "eviction", "resize", "status")

CORE = (
    _core("ConfigMap", "configmaps", "cm"),
    _core("Endpoints", "endpoints", "ep", create_on_update=True),
    _core("Event", "events", "ev", create_on_update=True),
    _core("LimitRange", "limitranges", "limits", create_on_update=True),
    _core(
        "Namespace",
        "namespaces",
        "ns",
        namespaced=False,
        verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
        subresources=("finalize", "status"),
        returns_deleted=True,
    ),
    _core("Node", "nodes", "no", namespaced=False, subresources=STATUS),
    _core("PersistentVolume", "persistentvolumes", "pv", namespaced=False, subresources=STATUS, returns_deleted=True),
    _core("PersistentVolumeClaim", "persistentvolumeclaims", "pvc", subresources=STATUS, returns_deleted=True),
    _core("Pod", "pods", "po", categories=ALL, subresources=POD_SUBRESOURCES, generation=True, returns_deleted=True),
    _core("ResourceQuota", "resourcequotas", "quota", subresources=STATUS, returns_deleted=True),
    _core("Secret", "secrets"),
    _core(
        "Service",
        "services",
        "svc",
        categories=ALL,
        subresources=STATUS,
        create_on_update=True,
        returns_deleted=True,
    ),
    _core("ServiceAccount", "serviceaccounts", "sa", subresources=("token",), returns_deleted=True),
)


def _apps(kind: str, plural: str, short: str, subresources: tuple[str, ...] = SCALE) -> ResourceType:
    options = {"categories": ALL, "subresources": subresources, "generation": True}
    return _make("apps", "v1", kind, plural, short, options)


def _batch(kind: str, plural: str, short: str) -> ResourceType:
    return _make("batch", "v1", kind, plural, short, {"categories": ALL, "subresources": STATUS, "generation": True})


def _cluster(group: str, kind: str, plural: str, short: str = "", **options: Any) -> ResourceType:
    return _make(group, "v1", kind, plural, short, {"namespaced": False, **options})


GROUPED = (
    _apps("DaemonSet", "daemonsets", "ds", STATUS),
    _apps("Deployment", "deployments", "deploy"),
    _apps("ReplicaSet", "replicasets", "rs"),
    _apps("StatefulSet", "statefulsets", "sts"),
    _make("apps", "v1", "ControllerRevision", "controllerrevisions", "", {}),
    _batch("CronJob", "cronjobs", "cj"),
    _batch("Job", "jobs", ""),
    _make("networking.k8s.io", "v1", "Ingress", "ingresses", "ing", {"subresources": STATUS, "generation": True}),
    _cluster("networking.k8s.io", "IngressClass", "ingressclasses", generation=True),
    _make("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", "netpol", {"generation": True}),
    _cluster("networking.k8s.io", "ServiceCIDR", "servicecidrs", verbs=("get", "list", "watch")),
    _make(
        "coordination.k8s.io", "v1", "Lease", "leases", "", {"create_on_update": True, "unconditional_update": False}
    ),
    _make("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", "", {"generation": True}),
    _cluster("storage.k8s.io", "CSIDriver", "csidrivers", unconditional_update=False, returns_deleted=True),
    _cluster("storage.k8s.io", "CSINode", "csinodes", unconditional_update=False, returns_deleted=True),
    _cluster("storage.k8s.io", "StorageClass", "storageclasses", "sc", returns_deleted=True),
    _cluster("storage.k8s.io", "VolumeAttributesClass", "volumeattributesclasses", "vac", returns_deleted=True),
    _cluster("storage.k8s.io", "VolumeAttachment", "volumeattachments", subresources=STATUS),
    _make("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities", "", {}),
    _cluster("node.k8s.io", "RuntimeClass", "runtimeclasses", create_on_update=True, unconditional_update=False),
    _cluster("scheduling.k8s.io", "PriorityClass", "priorityclasses", "pc", generation=True),
    _make(
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        "pdb",
        {"subresources": STATUS, "generation": True, "unconditional_update": False},
    ),
    _rbac("ClusterRole", "clusterroles", namespaced=False),
    _rbac("ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    _rbac("Role", "roles", namespaced=True),
    _rbac("RoleBinding", "rolebindings", namespaced=True),
    _cluster(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "crd crds",
        categories=("api-extensions",),
        subresources=STATUS,
        generation=True,
        unconditional_update=False,
    ),
    _make("events.k8s.io", "v1", "Event", "events", "ev", {"table": "/events", "create_on_update": True}),
    _review("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews"),
    _review("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews"),
    _review("authorization.k8s.io", "LocalSubjectAccessReview", "localsubjectaccessreviews", namespaced=True),
    _review("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews"),
    _review("authentication.k8s.io", "TokenReview", "tokenreviews"),
)

#: The resources before the first CustomResourceDefinition.
BUILTIN = (*CORE, *GROUPED)


class Registry:
    """The resources that are served; CustomResourceDefinitions add and remove some."""

    def __init__(self, types: Iterable[ResourceType] = BUILTIN) -> None:
        self._types: dict[tuple[str, str, str], ResourceType] = {}
        for rt in types:
            self.add(rt)

    def add(self, rt: ResourceType) -> None:
        """Serve ``rt``, replacing an earlier version of it."""
        self._types[rt.group, rt.version, rt.plural] = rt

    def remove(self, rt: ResourceType) -> None:
        """Stop serving ``rt``."""
        self._types.pop((rt.group, rt.version, rt.plural), None)

    def find(self, group: str, version: str, plural: str) -> ResourceType | None:
        """Return the resource at a path."""
        return self._types.get((group, version, plural))

    def all(self) -> list[ResourceType]:
        """Return every resource in every version."""
        return list(self._types.values())

    def stored(self) -> list[ResourceType]:
        """Return a resource for each table, in its stored version."""
        return [rt for rt in self._types.values() if rt.api_version == rt.stored_api_version and "list" in rt.verbs]

    def by_kind(self, api_version: str, kind: str) -> ResourceType | None:
        """Return the resource of an object."""
        group, _, version = api_version.rpartition("/")
        for rt in self._types.values():
            if rt.kind == kind and rt.group == group and rt.version == version and "list" in rt.verbs:
                return rt
        return None

    def versions(self, group: str) -> list[str]:
        """Return the versions of a group, the preferred one first."""
        found = dict.fromkeys(rt.version for rt in self._types.values() if rt.group == group)
        return sorted(found, key=version_priority, reverse=True)

    def groups(self) -> list[str]:
        """Return every group except the core group, in the order of registration."""
        return list(dict.fromkeys(rt.group for rt in self._types.values() if rt.group))


def version_priority(version: str) -> tuple[int, int, int]:
    """Return the sort key of a version: v2 > v1 > v1beta2 > v1beta1 > v1alpha1 > anything else.

    Source: "Version priority", kubernetes.io/docs/tasks/extend-kubernetes/custom-resources.
    """
    body = version.removeprefix("v")
    for rank, word in ((1, "alpha"), (2, "beta")):
        major, found, minor = body.partition(word)
        if found and major.isdigit():
            return (rank, int(major), int(minor or 0))
    return (3, int(body), 0) if body.isdigit() else (0, 0, 0)
