"""One object of every kind with its copy, what people do to the two, and what both sides hold in the end."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from class_rows import (
    CSI,
    CSI_SYNCERS,
    DISK,
    NFS,
    STORAGE,
    TENANTS_PRIORITIES,
    TENANTS_PRIORITY,
    capacity,
    csi_node,
    fast,
    zoned,
)
from class_rows import ROWS as CLASSES
from custom_scene import CERTIFICATES, CLUSTER_ISSUERS, custom, definition, owned_by
from harness import CLUSTER, HOME, NAMESPACE, Two, built_in, host_path, widget
from sampled import MADE, SAMPLES, config_model, define

from syncer.api import Key, NameTranslator, Obj, is_deleting
from syncer.config import SyncerConfig
from syncer.names import PerNamespace, SingleNamespace
from syncer.resources.kinds import NAMESPACES, PERSISTENT_VOLUME_CLAIMS
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.testing.objects import (
    build,
    configmap,
    crd,
    event,
    ingress,
    namespace,
    node,
    pod,
    secret,
    service,
    serviceaccount,
)
from syncer.testing.samples import Sample

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
INGRESSES = "ingresses.networking.k8s.io"
WIDGETS, GADGETS = "widgets.example.org", "gadgets.example.com"
PUBLIC: Obj = {"metadata": {"labels": {"tenancy.x-k8s.io/super.public": "true"}}}
#: What a tenant and somebody on the host change, unless the kind has more to change.
EDITS: tuple[Obj, Obj] = ({"metadata": {"labels": {"tier": "front"}}}, {"metadata": {"labels": {"tier": "back"}}})
VOLUME = "pvc-1"
CLAIM: Obj = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
RUNNING = ("pods", "nodes", "serviceaccounts", "pod-tokens", "secrets")
TOKEN = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}]}}

#: Resource and key.
ObjectPath = tuple[str, str]


UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


@dataclass(frozen=True, slots=True)
class Case:
    """One object of a kind: where it is on either side, and how people change it there."""

    name: str
    syncers: tuple[str, ...]
    virtual: ObjectPath
    host: ObjectPath
    #: What there is at first, on each side.
    on_virtual: tuple[Obj, ...] = ()
    on_host: tuple[Obj, ...] = ()
    edits: tuple[Obj, Obj] = EDITS
    sync: Mapping[str, Any] = field(default_factory=dict)
    translator: type[NameTranslator] = SingleNamespace
    #: Where its options are, if it is for a policy to say what a deleted copy means.
    section: str = ""
    #: Fields that both sides may own.
    shared: str = ""
    #: Kinds that both sides have to serve.
    samples: tuple[Sample, ...] = ()
    #: What is another end after a stop, and why that is right.
    otherwise: Mapping[str, str] = field(default_factory=dict)

    def config(self, options: Mapping[str, Any]) -> SyncerConfig:
        """The configuration, with more options of the kind."""
        direction, _, name = self.section.partition(".")
        sync = merged(dict(self.sync), {direction: {name: options}} if options else {})
        host = {"namespace": HOME} if self.translator is SingleNamespace else {}
        model = config_model(built_in(*self.syncers), self.translator)
        return model.model_validate({"cluster": CLUSTER, "host": host, "sync": sync})

    def stage(self) -> Two:
        """Both API servers with what there is at first."""
        two = Two()
        for server in (two.virtual, two.host):
            server.put(definition(CERTIFICATES))
            server.put(definition(CLUSTER_ISSUERS, scope="Cluster"))
            server.put(definition(WIDGETS))
        if self.samples:
            define(two.virtual, two.host, *self.samples)
        for server, objects in ((two.virtual, self.on_virtual), (two.host, (node("n1"), *self.on_host))):
            for obj in objects:
                server.put(obj)
        return two


def copied(plural: str, obj: Obj, *syncers: str, name: str = "", others: tuple[Obj, ...] = (), **options: Any) -> Case:
    """A kind of the shop that is copied under its translated name."""
    own = obj["metadata"]["name"]
    given = {"virtual": (plural, f"{NAMESPACE}/{own}"), "host": (plural, host_path(own)), **options}
    return Case(name or plural, syncers or (plural.partition(".")[0],), on_virtual=(*others, obj), **given)


def _event() -> Obj:
    about = pod(f"x-x-{NAMESPACE}-x-vc", namespace=HOME)
    about["metadata"].pop("uid", None)
    return event(f"{about['metadata']['name']}.17ab", about=about, count=1)


def _all(section: str) -> Mapping[str, Any]:
    return {"toHost": {section: {"all": True}}}


BLOG = PerNamespace(cluster=CLUSTER, namespace="").to_host(NAMESPACES, Key("", "blog")).name
DATA: tuple[Obj, Obj] = ({"data": {"a": "ours"}}, {"data": {"a": "theirs", "b": "theirs"}})
ENCODED: tuple[Obj, Obj] = ({"data": {"a": "b3Vycw=="}}, {"data": {"a": "dGhlaXJz", "b": "dGhlaXJz"}})
SPEC: tuple[Obj, Obj] = ({"spec": {"size": 2}}, {"spec": {"size": 3, "color": "red"}})
SHORT: tuple[Obj, Obj] = ({"spec": {"names": {"shortNames": ["w"]}}}, {"spec": {"names": {"shortNames": ["bad"]}}})
ISSUER: tuple[Obj, Obj] = ({"spec": {"acme": {"server": "bad"}}}, {"spec": {"acme": {"server": "b"}}})
CERTIFICATE = custom(CERTIFICATES, "db", spec={"secretName": "db-tls"})
OPERATORS = {"resource": "secrets", "origin": "host", "by": {"reference": "spec.secretName"}}
NAMED = {"references": {"spec.secretName": "Secret"}, "related": [OPERATORS]}
LISTED: Mapping[str, Any] = {"mappings": {"byName": {"infra/x": f"{NAMESPACE}/x"}}}
PUBLISHED: Mapping[str, Any] = {
    "enabled": True,
    "namespaces": ["infra"],
    "mappings": {"byName": {f"{NAMESPACE}/*": "infra/p-*"}},
}
CRD_OPTIONS = {"enabled": True, "onRemoval": "delete", "names": [GADGETS]}

_SPECIAL = (
    copied(
        "configmaps",
        configmap("x", {"a": "0"}),
        sync=_all("configMaps"),
        edits=DATA,
        section="toHost.configMaps",
        shared="data",
    ),
    copied("secrets", secret("x"), sync=_all("secrets"), edits=ENCODED, section="toHost.secrets", shared="data"),
    copied(
        "secrets",
        secret("x"),
        "secrets",
        "ingresses",
        name="secrets of ingresses",
        others=(ingress("web", tls_secret="x"),),
        sync={"toHost": {"ingresses": {"enabled": True}}},
        edits=ENCODED,
        section="toHost.secrets",
    ),
    copied(
        "services",
        service("x"),
        edits=({"spec": {"sessionAffinity": "ClientIP"}}, {"spec": {"selector": {"app": "other"}}}),
        section="toHost.services",
        shared="spec.sessionAffinity",
    ),
    copied("services", service("x", spec={"type": "NodePort"}), name="node ports", section="toHost.services"),
    copied(
        INGRESSES,
        ingress("x"),
        sync={"toHost": {"ingresses": {"enabled": True}}},
        edits=({"spec": {"ingressClassName": "fast"}}, {"spec": {"ingressClassName": "slow"}}),
        section="toHost.ingresses",
        shared="spec.ingressClassName",
    ),
    copied("serviceaccounts", serviceaccount("x"), section="toHost.serviceAccounts"),
    Case(
        "namespaces",
        ("namespaces",),
        ("namespaces", "blog"),
        ("namespaces", BLOG),
        on_virtual=(namespace("blog"),),
        translator=PerNamespace,
        section="toHost.namespaces",
    ),
    copied("pods", pod("x"), *RUNNING),
    copied(
        "pods",
        pod("x", spec={"volumes": [TOKEN]}),
        *RUNNING,
        name="pod-tokens",
        host=("secrets", host_path("x.pod-tokens")),
    ),
    copied("pods", pod("x"), *RUNNING, name="nodes", virtual=("nodes", "n1")),
    Case(
        "persistentvolumes",
        ("persistentvolumes", "persistentvolumeclaims"),
        ("persistentvolumes", VOLUME),
        ("persistentvolumeclaims", host_path("bound")),
        on_virtual=(build(PERSISTENT_VOLUME_CLAIMS, "bound", spec=CLAIM),),
        edits=({"spec": {"capacity": {"storage": "9Gi"}}}, {"metadata": {"labels": {"tier": "back"}}}),
    ),
    copied(
        "pods",
        pod("x"),
        "events",
        *RUNNING,
        name="events",
        virtual=("events", f"{NAMESPACE}/x.17ab"),
        host=("events", f"{HOME}/{_event()['metadata']['name']}"),
        on_host=(_event(),),
        edits=({"count": 7}, {"count": 2}),
        otherwise=dict.fromkeys(
            ("edit virtual", "delete virtual"),
            "what the host reports is written again at the start; while it runs, an Event is the tenant's to change",
        ),
    ),
    Case(
        "public-crds",
        ("public-crds",),
        (CRDS, GADGETS),
        (CRDS, GADGETS),
        on_host=(merged(crd(GADGETS), PUBLIC),),
        edits=(SHORT[1], SHORT[0]),
        sync={"fromHost": {"customResourceDefinitions": {"enabled": True, "onRemoval": "delete"}}},
    ),
    Case(
        "host-nodes",
        ("host-nodes",),
        ("nodes", "n1"),
        ("nodes", "n1"),
        edits=({"spec": {"taints": [UNREACHABLE]}}, {"spec": {"taints": []}}),
        sync={"fromHost": {"nodes": {"enabled": True}}},
    ),
    Case(
        "csinodes",
        ("csinodes", *CSI_SYNCERS),
        ("csinodes.storage.k8s.io", "n1"),
        ("csinodes.storage.k8s.io", "n1"),
        on_host=(csi_node("n1"),),
        edits=({"spec": {"drivers": [DISK, NFS]}}, {"spec": {"drivers": [NFS]}}),
        sync={"fromHost": CSI},
    ),
    Case(
        "csistoragecapacities",
        ("csistoragecapacities", *CSI_SYNCERS),
        ("csistoragecapacities.storage.k8s.io", f"kube-system/{STORAGE}.x"),
        ("csistoragecapacities.storage.k8s.io", f"{STORAGE}/x"),
        on_host=(capacity("x"), fast(), zoned("n1")),
        edits=({"capacity": "4Gi"}, {"capacity": "2Gi"}),
        sync={"fromHost": CSI},
    ),
    Case(
        "host-configmaps",
        ("host-configmaps",),
        ("configmaps", f"{NAMESPACE}/x"),
        ("configmaps", "infra/x"),
        on_host=(configmap("x", namespace="infra"),),
        edits=DATA,
        sync={"fromHost": {"configMaps": {"enabled": True, **LISTED}}},
    ),
    Case(
        "host-secrets",
        ("host-secrets", "secrets"),
        ("secrets", f"{NAMESPACE}/x"),
        ("secrets", "infra/x"),
        on_host=(secret("x", namespace="infra"),),
        edits=ENCODED,
        sync={"fromHost": {"secrets": {"enabled": True, **LISTED}}, "toHost": {"secrets": {"all": True}}},
    ),
    Case(
        "host-services",
        ("host-services", "services", "endpointslices", "pods", "serviceaccounts", "nodes"),
        ("services", f"{NAMESPACE}/x"),
        ("services", "infra/x"),
        on_host=(service("x", namespace="infra"),),
        edits=({"spec": {"selector": {"app": "other"}}}, {"spec": {"ports": [{"name": "other", "port": 9}]}}),
        sync={"fromHost": {"services": {"enabled": True, **LISTED}}},
    ),
    Case(
        "published-services",
        ("published-services", "services"),
        ("services", f"{NAMESPACE}/x"),
        ("services", "infra/p-x"),
        on_virtual=(service("x"),),
        on_host=(namespace("infra"),),
        edits=(
            {"spec": {"ports": [{"name": "other", "port": 9}]}},
            {"spec": {"ports": [{"name": "theirs", "port": 8}]}},
        ),
        sync={"toHost": {"publishedServices": PUBLISHED}},
    ),
    Case(
        "tenant-crds",
        ("tenant-crds",),
        (CRDS, GADGETS),
        (CRDS, GADGETS),
        on_virtual=(crd(GADGETS),),
        edits=SHORT,
        sync={"toHost": {"customResourceDefinitions": CRD_OPTIONS}},
    ),
    copied(
        WIDGETS,
        widget("x", spec={"size": 1}),
        "configmaps",
        name="custom",
        sync={"custom": {WIDGETS: {}}},
        edits=SPEC,
        section=f"custom.{WIDGETS}",
        shared="spec",
    ),
    copied(
        WIDGETS,
        widget("x", spec={"size": 1}),
        "configmaps",
        name="custom, retained",
        sync={"custom": {WIDGETS: {"onDelete": "retain"}}},
        edits=SPEC,
    ),
    Case(
        "custom, from the host",
        ("configmaps",),
        (CLUSTER_ISSUERS, "ca"),
        (CLUSTER_ISSUERS, "ca"),
        on_host=(custom(CLUSTER_ISSUERS, "ca", namespace="", spec={"acme": {"server": "a"}}),),
        edits=ISSUER,
        sync={"custom": {CLUSTER_ISSUERS: {"direction": "fromHost"}}},
    ),
    Case(
        "custom, made by an operator",
        ("configmaps", "secrets"),
        ("secrets", f"{NAMESPACE}/db-tls"),
        ("secrets", host_path("db-tls")),
        on_virtual=(CERTIFICATE,),
        edits=ENCODED,
        sync={"custom": {CERTIFICATES: NAMED}},
    ),
    *(
        Case(
            row.syncer,
            (row.syncer,),
            (str(row.resource), "fast"),
            (str(row.resource), "fast"),
            on_host=(row.named("fast"),),
            edits=(row.edit, row.other),
            sync=row.sync,
            samples=(SAMPLES[row.syncer],),
        )
        for row in CLASSES
    ),
    Case(
        "tenant-priorityclasses",
        ("tenant-priorityclasses",),
        (str(TENANTS_PRIORITY.resource), "fast"),
        (str(TENANTS_PRIORITY.resource), f"fast-x-{CLUSTER}-x-{HOME}"),
        on_virtual=(TENANTS_PRIORITY.named("fast"),),
        edits=(TENANTS_PRIORITY.edit, {"description": "theirs"}),
        sync=TENANTS_PRIORITIES,
    ),
)


def _sampled(sample: Sample) -> Case:
    """The case of a kind of which nothing is known but its sample."""
    return copied(
        sample.plural,
        sample.object("x"),
        sample.name,
        *(each.name for each in sample.together),
        host=(str(sample.syncer.host_resource), host_path("x")),
        edits=(sample.change, sample.tampered),
        sync=sample.sync,
        section=sample.syncer.section,
        samples=(sample,),
    )


#: The first syncer of a case is the one that it is about.
_OURS = {case.syncers[0] for case in _SPECIAL}
CASES = (*_SPECIAL, *(_sampled(sample) for name, sample in MADE.items() if name not in _OURS))


# -- what people do --------------------------------------------------------------------------------


def _edit(server: ApiServer, where: ObjectPath, patch: Obj) -> None:
    found = server.get(*where)
    if found is not None and not is_deleting(found):
        server.put(merged(found, patch))


def _delete(server: ApiServer, where: ObjectPath) -> None:
    if server.get(*where) is not None:
        server.delete(*where)


def _recreate(server: ApiServer, where: ObjectPath) -> None:
    """Delete the object and create it again with all its fields, as ``kubectl replace --force`` does."""
    found = server.get(*where)
    if found is not None:
        server.delete(*where)
        fresh = dict.fromkeys(("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"))
        server.put(merged(found, {"metadata": fresh, "status": None}))


Do = Callable[[ApiServer, ObjectPath, Obj], None]
_DEEDS: Mapping[str, Do] = {
    "edit": _edit,
    "delete": lambda server, where, patch: _delete(server, where),
    "recreate": lambda server, where, patch: _recreate(server, where),
}
#: What happens, by name: a deed and on which side.
DEEDS = tuple(f"{deed} {side}" for deed in _DEEDS for side in ("virtual", "host", "both"))


def perform(two: Two, case: Case, deed: str) -> None:
    """Let it happen."""
    act, _, side = deed.partition(" ")
    if side != "host":
        _DEEDS[act](two.virtual, case.virtual, case.edits[0])
    if side != "virtual":
        _DEEDS[act](two.host, case.host, case.edits[1])


def work(two: Two) -> None:
    """One step of those who work on the host: a kubelet, a provider of volumes, and an operator that makes a Secret for
    each Certificate.
    """
    for each in two.host.objects("pods"):
        if is_deleting(each):
            two.host.delete("pods", f"{each['metadata']['namespace']}/{each['metadata']['name']}")
        elif not each["spec"].get("nodeName"):
            two.host.put(merged(each, {"spec": {"nodeName": "n1"}}))
        elif not each["status"].get("startTime"):
            two.host.put(merged(each, {"status": {"phase": "Running", "startTime": "2026-01-01T00:00:05Z"}}))
    for each in two.host.objects("persistentvolumeclaims"):
        if each["metadata"]["name"] == host_path("bound").partition("/")[2] and not each["spec"].get("volumeName"):
            status = {"phase": "Bound", "accessModes": CLAIM["accessModes"], "capacity": {"storage": "1Gi"}}
            two.host.put(merged(each, {"spec": {"volumeName": VOLUME}, "status": status}))
    for each in two.host.objects(CERTIFICATES):
        name = each["spec"]["secretName"]
        if not is_deleting(each) and two.host.get("secrets", f"{HOME}/{name}") is None:
            two.host.put(secret(name, {"tls.key": "key"}, namespace=HOME, metadata=owned_by(each)))


# -- the end ---------------------------------------------------------------------------------------

_NOISE = frozenset({"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"})
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_HASH = re.compile(r'\\"want\\":\\"[0-9a-f]{16}\\"')
_ALLOCATED = re.compile(r'"(10\.96\.\d+\.\d+)"|"nodePort":(\d+)')


def end_of(two: Two) -> Mapping[str, Any]:
    """Return the objects of both sides without values that differ in each run."""
    objects = {
        f"{side} {resource} {obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}": obj
        for side, server in (("virtual", two.virtual), ("host", two.host))
        for resource in server.resources()
        for obj in server.objects(resource)
        if obj.get("reportingComponent") != "vsyncer"
    }
    names = {obj["metadata"].get("uid", ""): f"<{where}>" for where, obj in objects.items()}
    return {where: _plain(obj, names) for where, obj in objects.items()}


def _plain(obj: Obj, names: Mapping[str, str]) -> Any:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _NOISE}
    ended = "vsyncer.dev/token-expires" in metadata.get("annotations", {})
    text = json.dumps({**obj, "metadata": metadata, **({"data": sorted(obj["data"])} if ended else {})})
    text = _UID.sub(lambda found: names.get(found.group(), "<gone>"), text)
    return json.loads(_ALLOCATED.sub('"<allocated>"', _HASH.sub("", _TIME.sub("<time>", text))))
