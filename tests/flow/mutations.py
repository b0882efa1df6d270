"""The kinds of the mutation matrix: how objects of each are made and changed, and the findings of a scan."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from class_rows import (
    CSI,
    DISK,
    NFS,
    STORAGE,
    TENANTS_PRIORITIES,
    TENANTS_PRIORITY,
    ClassRow,
    capacity,
    csi_node,
    fast,
    zoned,
)
from class_rows import ROWS as CLASSES
from harness import CLUSTER, HOME, NAMESPACE, Daemon, Two, host_path, until
from sampled import MADE, SAMPLES, define

from syncer.api import NameTranslator, Obj, Side
from syncer.names import PerNamespace, SingleNamespace
from syncer.resources.kinds import PERSISTENT_VOLUME_CLAIMS
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.testing.objects import build, configmap, crd, event, namespace, node, pod, secret, service
from syncer.testing.samples import Sample

PREFIX = "vsyncer.dev"
#: What is done to an object, each to one that is named after it.
MUTATIONS = ("missing", "orphan", "uid", "spec", "metadata", "mark", "status")
TIER = {"labels": {"tier": "gold"}}
PUBLIC = {"labels": {"tenancy.x-k8s.io/super.public": "true", "tier": "gold"}}
MARK_GONE = {"metadata": {"labels": {f"{PREFIX}/cluster": None}}}

#: What a scan says of one object: classes with side and outcome. A text says why a cell makes no sense.
Cell = tuple[tuple[str, str, str], ...] | str


def repaired(kind: str, side: str = "host") -> Cell:
    return ((kind, side, "repaired"),)


NO_MARK = "a tenant's own object bears no mark of ours"
FIXED = "nobody can change what is shown of a class"
NO_STATUS = "the kind has no status that crosses"
NOT_MADE = "what is on one side only is what `missing` on the other side is about"
#: For what begins on the virtual side.
DOWN: dict[tuple[str, str], Cell] = {
    ("host", "missing"): repaired("missing"),
    ("host", "orphan"): repaired("orphan"),
    ("host", "uid"): repaired("wrongOwner"),
    ("host", "spec"): repaired("field"),
    ("host", "metadata"): repaired("metadata"),
    ("host", "mark"): (("missing", "host", "failed"),),  # it is nobody's that we know, and so is left alone
    ("host", "status"): NO_STATUS,
    ("virtual", "missing"): repaired("orphan"),
    ("virtual", "orphan"): NOT_MADE,
    ("virtual", "uid"): repaired("wrongOwner"),
    ("virtual", "spec"): repaired("field"),
    ("virtual", "metadata"): repaired("metadata"),
    ("virtual", "mark"): NO_MARK,
    ("virtual", "status"): NO_STATUS,
}
STATUS: dict[tuple[str, str], Cell] = {
    ("host", "status"): repaired("status", "virtual"),
    ("virtual", "status"): repaired("status", "virtual"),
}
NO_OWNER = "what begins on the host has no uid mark: it is known by its name"
#: For what begins on the host.
UP: dict[tuple[str, str], Cell] = {
    ("host", "missing"): repaired("orphan", "virtual"),
    ("host", "orphan"): NOT_MADE,
    ("host", "uid"): NO_OWNER,
    ("host", "spec"): repaired("field", "virtual"),
    ("host", "metadata"): repaired("metadata", "virtual"),
    ("host", "mark"): "the host's own object bears no mark of ours",
    ("host", "status"): NO_STATUS,
    ("virtual", "missing"): repaired("missing", "virtual"),
    ("virtual", "orphan"): repaired("orphan", "virtual"),
    ("virtual", "uid"): NO_OWNER,
    ("virtual", "spec"): repaired("field", "virtual"),
    ("virtual", "metadata"): repaired("metadata", "virtual"),
    ("virtual", "mark"): (("missing", "virtual", "failed"),),
    ("virtual", "status"): NO_STATUS,
}


def _in_shop(name: str) -> str:
    return f"{NAMESPACE}/{name}"


@dataclass(frozen=True)
class Operation:
    """One kind of object of one syncer, and its row of the matrix."""

    syncer: str
    plural: str
    #: The object as it begins, and on which side.
    make: Callable[[Two, str], Obj]
    #: What "spec" and "status" do to an object, by side.
    spec: Mapping[str, Obj]
    status: Mapping[str, Obj] = field(default_factory=dict)
    begins: Side = Side.VIRTUAL
    host_plural: str = ""
    sync: Mapping[str, Any] = field(default_factory=dict)
    translator: type[NameTranslator] = SingleNamespace
    virtual_key: Callable[[str], str] = _in_shop
    host_key: Callable[[str], str] = host_path
    #: The label that "metadata" changes.
    label: str = "tier"
    cells: Mapping[tuple[str, str], Cell] = field(default_factory=lambda: DOWN)
    #: What both sides need first; what happens when everything is in step.
    before: Callable[[Two], None] = lambda two: None
    #: What the host does to the copy of what was made, for which there is a stand-in then; None if the object is none.
    provide: Callable[[Two, str], None] | None = None
    after: Callable[[Two, Callable[[str, str], Obj]], None] = lambda two, get: None
    title: str = ""

    def server(self, two: Two, side: str) -> ApiServer:
        return two.host if side == "host" else two.virtual

    def location(self, side: str, name: str) -> tuple[str, str]:
        """The resource and the key of an object on a side."""
        if side == "host":
            return self.host_plural or self.plural, self.host_key(name)
        return self.plural, self.virtual_key(name)

    def get(self, two: Two, side: str, name: str) -> Obj | None:
        return self.server(two, side).get(*self.location(side, name))

    def mutate(self, two: Two, side: str, name: str) -> None:
        """Do to the object of this name what it is named after."""
        server, obj = self.server(two, side), self.get(two, side, name)
        assert obj, f"there is no {side} {name} to mutate"
        match name:
            case "missing":
                server.delete(*self.location(side, name))
            case "orphan":
                server.put(self.ghost(side, obj))
            case "uid" if side == "host":
                server.put(merged(obj, {"metadata": {"annotations": {f"{PREFIX}/virtual-uid": "of-another"}}}))
            case "uid":
                server.delete(*self.location(side, name))
                server.put(self.make(two, name))
            case "spec":
                server.put(merged(obj, self.spec[side]))
            case "metadata":
                server.put(merged(obj, {"metadata": {"labels": {self.label: "changed"}}}))
            case "mark":
                server.put(merged(obj, MARK_GONE))
            case "status":
                server.put(merged(obj, self.status[side]))

    def ghost(self, side: str, obj: Obj) -> Obj:
        """A copy of an object that isn't there."""
        _, key = self.location(side, "ghost")
        name = key.rpartition("/")[2]
        metadata = {part: value for part, value in obj["metadata"].items() if part not in ("uid", "resourceVersion")}
        virtual = self.virtual_key("ghost").rpartition("/")[2]
        marks = {f"{PREFIX}/virtual-name": virtual, f"{PREFIX}/host-name": name} if side == "host" else {}
        annotations = {**(metadata.get("annotations") or {}), **marks}
        made = {**obj, "metadata": {**metadata, "name": name, "annotations": annotations}}
        if obj["kind"] == "Service":
            made = merged(made, {"spec": {"clusterIP": None, "clusterIPs": None}})
        if obj["kind"] == "CustomResourceDefinition":
            made = merged(made, {"spec": {"names": crd(name)["spec"]["names"]}})
        return made


def _both(patch: Obj) -> Mapping[str, Obj]:
    return {"host": patch, "virtual": patch}


def _put(server: ApiServer, obj: Obj, patch: Obj) -> None:
    server.put(merged(obj, patch))


# -- what begins on the virtual side ---------------------------------------------------------------


def _running(two: Two, get: Callable[[str, str], Obj]) -> None:
    status = {"phase": "Running", "startTime": "2026-01-01T00:00:01Z", "podIP": "10.0.0.1"}
    _put(two.host, get("host", "status"), {"spec": {"nodeName": "n1"}, "status": status})


def _pod(two: Two, name: str) -> Obj:
    return pod(name, metadata=TIER, spec={"tolerations": [{"key": "gpu", "operator": "Exists"}]})


def _pod_with_token(two: Two, name: str) -> Obj:
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}
    return pod(name, metadata=TIER, spec={"volumes": [{"name": "token", "projected": {"sources": [token]}}]})


#: The host may run other images than the tenant's, but it may not take away what the tenant tolerates.
POD: Mapping[str, Obj] = {
    "host": {"spec": {"tolerations": []}},
    "virtual": {"spec": {"containers": [{"name": "app", "image": "other:2"}]}},
}
#: A new image, and the mark that says which the tenant's were.
IMAGE: Cell = (("field", "host", "repaired"), ("metadata", "host", "repaired"))


PODS = Operation(
    "pods",
    "pods",
    _pod,
    POD,
    _both({"status": {"podIP": "10.0.0.9"}}),
    cells=DOWN | STATUS | {("virtual", "spec"): IMAGE},
    after=_running,
)

#: Tokens are asked for again, and it is noted when that was.
TOKENS: Cell = (("field", "host", "repaired"), ("metadata", "host", "repaired"))

#: A custom resource with a status, and one of which copies are kept.
WIDGETS, KEPT, SHOWN = "widgets.example.com", "keepers.example.com", "issuers.example.com"


def _define_infra(two: Two) -> None:
    two.host.put(namespace("infra"))


def _define(*names: str) -> Callable[[Two], None]:
    def define(two: Two) -> None:
        for server in (two.virtual, two.host):
            for name in names:
                server.put(crd(name, scope="Cluster" if name == SHOWN else "Namespaced"))

    return define


def _custom(kind: str, *, namespaced: bool = True, **parts: Any) -> Callable[[Two, str], Obj]:
    def make(two: Two, name: str) -> Obj:
        metadata = {"name": name, **TIER} | ({"namespace": NAMESPACE} if namespaced else {})
        return {"apiVersion": "example.com/v1", "kind": kind, "metadata": metadata, "spec": {"size": 1}, **parts}

    return make


def _reported(two: Two, get: Callable[[str, str], Obj]) -> None:
    _put(two.host, get("host", "status"), {"status": {"phase": "Ready"}})


CUSTOM = Operation(
    WIDGETS,
    WIDGETS,
    _custom("Widget"),
    _both({"spec": {"size": 7}}),
    {"host": {"status": {"phase": "Failed"}}, "virtual": {"status": {"phase": "Forged"}}},
    sync={"custom": {WIDGETS: {}}},
    cells=DOWN | STATUS,
    before=_define(WIDGETS),
    after=_reported,
    title="custom",
)
RETAINED = replace(
    CUSTOM,
    syncer=KEPT,
    plural=KEPT,
    make=_custom("Keeper"),
    sync={"custom": {KEPT: {"onDelete": "retain"}}},
    before=_define(KEPT),
    cells=DOWN
    | STATUS
    | {
        ("host", "orphan"): "copies outlive what they were made of: sync.custom onDelete is retain",
        ("host", "uid"): repaired("metadata"),
        ("virtual", "missing"): "copies outlive what they were made of: sync.custom onDelete is retain",
        ("virtual", "uid"): repaired("metadata"),
    },
    title="retained",
)


def _definition(two: Two, name: str) -> Obj:
    return crd(_of_crd(name), metadata=TIER)


def _of_crd(name: str) -> str:
    return f"{name}s.example.org"


CRDS = "customresourcedefinitions.apiextensions.k8s.io"
_SHORT = _both({"spec": {"names": {"shortNames": ["short"]}}})
TENANT_CRDS = Operation(
    "tenant-crds",
    CRDS,
    _definition,
    _SHORT,
    sync={
        "toHost": {
            "customResourceDefinitions": {
                "enabled": True,
                "names": [_of_crd(name) for name in (*MUTATIONS, "ghost")],
                "onRemoval": "delete",
            }
        }
    },
    virtual_key=_of_crd,
    host_key=_of_crd,
    cells=DOWN
    | {
        ("host", "uid"): repaired("metadata"),  # a CRD is taken over: to create it again would cost all of its objects
        ("virtual", "uid"): repaired("metadata"),
    },
)


def _host_namespace(name: str) -> str:
    return f"{name}-x-{CLUSTER}-x-{HOME}"


NAMESPACES = Operation(
    "namespaces",
    "namespaces",
    lambda two, name: namespace(name, metadata=TIER),
    {},
    translator=PerNamespace,
    virtual_key=lambda name: name,
    host_key=_host_namespace,
    sync={"toHost": {"namespaces": {"metadata": {"labels": {"allow": ["tier"]}}}}},
    cells=DOWN
    | {
        ("host", "spec"): "only labels and annotations of a namespace cross",
        ("virtual", "spec"): "only labels and annotations of a namespace cross",
    },
)

# -- what begins on the host -----------------------------------------------------------------------

FROM_HOST = Operation(
    SHOWN,
    SHOWN,
    _custom("Issuer", namespaced=False),
    _both({"spec": {"size": 7}}),
    begins=Side.HOST,
    sync={"custom": {SHOWN: {"direction": "fromHost"}}},
    virtual_key=lambda name: name,
    host_key=lambda name: name,
    cells=UP,
    before=_define(SHOWN),
    title="fromHost",
)
PUBLIC_CRDS = Operation(
    "public-crds",
    CRDS,
    lambda two, name: crd(_of_crd(name), metadata=PUBLIC),
    _SHORT,
    begins=Side.HOST,
    sync={"fromHost": {"customResourceDefinitions": {"enabled": True, "onRemoval": "delete"}}},
    virtual_key=_of_crd,
    host_key=_of_crd,
    cells=UP,
)


def _event(two: Two, name: str) -> Obj:
    about = two.copy("pods", "subject")
    assert about
    return event(f"{about['metadata']['name']}.{name}", about=about, metadata=TIER)


EVENTS_GO = "Events expire by themselves, on each side for itself: none is ever deleted"
EVENTS = Operation(
    "events",
    "events",
    _event,
    {"host": {"count": 7}, "virtual": {"count": 9}},
    begins=Side.HOST,
    virtual_key=lambda name: _in_shop(f"subject.{name}"),
    host_key=lambda name: f"{host_path('subject')}.{name}",
    cells=UP | {("host", "missing"): EVENTS_GO, ("virtual", "orphan"): EVENTS_GO},
)


def _place(two: Two, name: str) -> None:
    copy = two.copy("pods", name)
    assert copy
    _put(two.host, copy, {"spec": {"nodeName": f"node-{name}"}})


NODES = Operation(
    "nodes",
    "nodes",
    lambda two, name: pod(name),
    {"virtual": {"spec": {"unschedulable": True}}},
    {"virtual": {"status": {"capacity": {"cpu": "1"}}}},
    virtual_key=lambda name: f"node-{name}",
    provide=_place,
    label="kubernetes.io/os",
    cells={("host", mutation): "the stand-in has no object on the host" for mutation in MUTATIONS}
    | {
        ("virtual", "missing"): repaired("missing", "virtual"),
        ("virtual", "orphan"): repaired("orphan", "virtual"),
        ("virtual", "uid"): "the stand-in is no copy",
        ("virtual", "spec"): "a stand-in's spec is the tenant's, to cordon it for instance",
        ("virtual", "metadata"): repaired("metadata", "virtual"),
        ("virtual", "mark"): "a Node without our mark is one of the virtual cluster's own, and is left alone",
        ("virtual", "status"): repaired("status", "virtual"),
    },
)

CLAIM: Obj = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def _bind(two: Two, name: str) -> None:
    copy = two.copy("persistentvolumeclaims", name)
    assert copy
    status = {"phase": "Bound", "accessModes": CLAIM["accessModes"], "capacity": {"storage": "1Gi"}}
    _put(two.host, copy, {"spec": {"volumeName": f"pvc-{name}"}, "status": status})


VOLUMES = Operation(
    "persistentvolumes",
    "persistentvolumes",
    lambda two, name: build(PERSISTENT_VOLUME_CLAIMS, name, spec=CLAIM),
    {"virtual": {"spec": {"persistentVolumeReclaimPolicy": "Recycle"}}},
    {"virtual": {"status": {"phase": "Available"}}},
    virtual_key=lambda name: f"pvc-{name}",
    label="app",
    provide=_bind,
    cells={("host", mutation): "the stand-in has no object on the host" for mutation in MUTATIONS}
    | {
        ("virtual", "missing"): "a bound volume that is deleted stays until its claim is gone, as anywhere",
        # It is released first: the virtual cluster's controller holds a bound one.
        ("virtual", "orphan"): (("orphan", "virtual", "repaired"), ("status", "virtual", "repaired")),
        ("virtual", "uid"): "the stand-in is no copy",
        ("virtual", "spec"): repaired("field", "virtual"),
        ("virtual", "metadata"): "a stand-in's other labels are the tenant's",
        ("virtual", "mark"): "a volume without our mark is one of the tenant's own, and is left alone",
        ("virtual", "status"): repaired("status", "virtual"),
    },
)

UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
HOST_NODES = Operation(
    "host-nodes",
    "nodes",
    lambda two, name: node(name, metadata=TIER),
    _both({"spec": {"taints": [UNREACHABLE]}}),
    _both({"status": {"capacity": {"cpu": "1"}}}),
    begins=Side.HOST,
    sync={"fromHost": {"nodes": {"enabled": True, "metadata": {"labels": {"allow": ["*", "tier"]}}}}},
    virtual_key=lambda name: name,
    host_key=lambda name: name,
    cells=UP
    | {
        ("virtual", "mark"): "a Node without our mark is one of the virtual cluster's own, and is left alone",
        ("host", "status"): repaired("status", "virtual"),
        ("virtual", "status"): repaired("status", "virtual"),
    },
)


def _csi(syncer: str, plural: str, make: Callable[..., Obj], spec: Mapping[str, Obj], **keys: Any) -> Operation:
    """The row of a kind that appears with the nodes and the class that it is of."""

    def before(two: Two) -> None:
        for each in (fast(), *(zoned(name) for name in MUTATIONS)):
            two.host.put(each)

    return Operation(
        syncer,
        f"{plural}.storage.k8s.io",
        lambda two, name: make(name, metadata=TIER),
        spec,
        begins=Side.HOST,
        sync={"fromHost": CSI},
        before=before,
        cells=UP,
        **keys,
    )


CSI_KINDS = (
    _csi(
        "csinodes",
        "csinodes",
        csi_node,
        {
            "host": {"spec": {"drivers": [DISK, NFS]}},
            # The object that "spec" is done to has this name, and so have its drivers.
            "virtual": {"spec": {"drivers": [{**DISK, "nodeID": "spec"}, NFS]}},
        },
        virtual_key=lambda name: name,
        host_key=lambda name: name,
    ),
    _csi(
        "csistoragecapacities",
        "csistoragecapacities",
        capacity,
        _both({"capacity": "4Gi"}),
        virtual_key=lambda name: f"kube-system/{STORAGE}.{name}",
        host_key=lambda name: f"{STORAGE}/{name}",
    ),
)


def _listed(syncer: str, section: str, make: Callable[..., Obj], field: Obj) -> Operation:
    """The row of a kind of which listed objects of the host appear."""
    options = {
        "enabled": True,
        "mappings": {"byName": {"infra/*": NAMESPACE}},
        "metadata": {"labels": {"allow": ["tier"]}},
    }
    return Operation(
        syncer,
        section.lower(),
        lambda two, name: make(name, namespace="infra", metadata=TIER),
        _both(field),
        begins=Side.HOST,
        sync={"fromHost": {section: options}},
        host_key=lambda name: f"infra/{name}",
        cells=UP | {("virtual", "mark"): "without our mark it is the tenant's own, and is left alone"},
    )


_LISTED_SERVICES = _listed("host-services", "services", service, {"spec": {"ports": [{"name": "other", "port": 9}]}})
SEEN = "the virtual cluster removes its EndpointSlice with it, which is seen at once"
LISTED_SERVICES = replace(_LISTED_SERVICES, cells={**_LISTED_SERVICES.cells, ("virtual", "missing"): SEEN})


ITS_COPY = "a published Service follows the copy, whatever is in the virtual one"
PUBLISHED = Operation(
    "published-services",
    "services",
    lambda two, name: service(name, metadata=TIER),
    _both({"spec": {"ports": [{"name": "other", "port": 9}]}}),
    sync={
        "toHost": {
            "publishedServices": {
                "enabled": True,
                "namespaces": ["infra"],
                "mappings": {"byName": {f"{NAMESPACE}/*": "infra/p-*"}},
                "metadata": {"labels": {"allow": ["tier"]}},
            }
        }
    },
    host_key=lambda name: f"infra/p-{name}",
    before=_define_infra,
    cells=DOWN
    | {
        ("host", "missing"): "the host removes its EndpointSlice with it, which is seen at once",
        ("host", "uid"): repaired("metadata"),  # it is taken over: clients on the host know it by its name
        ("virtual", "uid"): repaired("metadata"),
        ("virtual", "spec"): ITS_COPY,
    },
)


def _only_metadata(patch: Obj) -> bool:
    return patch.keys() <= {"metadata"}


def _class(row: ClassRow) -> Operation:
    return Operation(
        row.syncer,
        str(row.resource),
        lambda two, name: row.named(name, metadata=TIER),
        _both(row.edit),
        begins=Side.HOST,
        sync=row.sync,
        virtual_key=lambda name: name,
        host_key=lambda name: name,
        before=lambda two: define(two.virtual, two.host, SAMPLES[row.syncer]),
        cells=UP | dict.fromkeys([("host", "spec"), ("virtual", "spec")], FIXED) if _only_metadata(row.edit) else UP,
    )


PRIORITIES = Operation(
    "tenant-priorityclasses",
    str(TENANTS_PRIORITY.resource),
    lambda two, name: TENANTS_PRIORITY.named(name, metadata=TIER),
    _both(TENANTS_PRIORITY.edit),
    sync=TENANTS_PRIORITIES,
    virtual_key=lambda name: name,
    host_key=lambda name: f"{name}-x-{CLUSTER}-x-{HOME}",
)

#: Kinds with a life of their own, or that begin elsewhere; the rows of all others follow from their samples.
SPECIAL = [
    PODS,
    Operation(
        "pod-tokens",
        "pods",
        _pod_with_token,
        {"host": {"data": None}},
        host_plural="secrets",
        host_key=lambda name: host_path(f"{name}.pod-tokens"),
        cells=DOWN
        | {
            ("host", "spec"): TOKENS,
            ("host", "metadata"): "its labels are written with its tokens, when those are renewed",
            ("virtual", "spec"): "the volumes of a Pod never change",
            ("virtual", "metadata"): "what the tenant has written on the Pod isn't repeated on it",
        },
    ),
    CUSTOM,
    RETAINED,
    TENANT_CRDS,
    NAMESPACES,
    FROM_HOST,
    PUBLIC_CRDS,
    EVENTS,
    NODES,
    VOLUMES,
    HOST_NODES,
    *CSI_KINDS,
    _listed("host-configmaps", "configMaps", configmap, {"data": {"color": "green"}}),
    _listed("host-secrets", "secrets", secret, {"data": {"password": "bGVhZA=="}}),
    LISTED_SERVICES,
    PUBLISHED,
    *map(_class, CLASSES),
    PRIORITIES,
]


def _sampled(sample: Sample) -> Operation:
    """The row of a kind of which nothing is known but its sample."""
    cells, kind = dict(DOWN), sample.resource.kind
    for side, patch in (("virtual", sample.change), ("host", sample.tampered)):
        if _only_metadata(patch):
            cells[side, "spec"] = f"only labels and annotations of a {kind} cross"
    first, second = sample.reports or ({}, {})
    if sample.reports:
        drift = "status" if "status" in first else "metadata" if _only_metadata(first) else "field"
        cells |= {(side, "status"): repaired(drift, "virtual") for side in ("host", "virtual")}
    return Operation(
        sample.name,
        sample.plural,
        lambda two, name: sample.object(name, metadata=TIER),
        {"virtual": sample.change, "host": sample.tampered},
        {"virtual": second, "host": second},
        host_plural=str(sample.syncer.host_resource),
        sync=sample.sync,
        cells=cells,
        before=lambda two: define(two.virtual, two.host, sample),
        after=lambda two, get: _put(two.host, get("host", "status"), first),
    )


KINDS = [*(_sampled(sample) for name, sample in MADE.items() if name not in {row.syncer for row in SPECIAL}), *SPECIAL]


async def in_step(two: Two, kind: Operation, daemon: Daemon) -> None:
    """Make all objects of a kind, one for each mutation, and wait until they are on both sides."""
    names = list(MUTATIONS)
    if kind.syncer == "events":
        two.virtual.put(pod("subject"))
        await until(lambda: two.copy("pods", "subject"))
    for name in names:
        (two.host if kind.begins is Side.HOST else two.virtual).put(kind.make(two, name))
    await daemon.settled()
    if kind.provide is not None:
        for name in names:
            kind.provide(two, name)
        await daemon.settled()

    def get(side: str, name: str) -> Obj:
        found = kind.get(two, side, name)
        assert found, f"{side} {name} is not there"
        return found

    if any(not isinstance(kind.cells[side, "status"], str) for side in ("host", "virtual")):
        kind.after(two, get)
    await daemon.settled()
    for side in ("host", "virtual"):
        for name in names:
            is_stand_in = side == "host" and kind.provide is not None
            assert is_stand_in or kind.get(two, side, name), f"{side} {name} was not made"
