"""Acts of the daemon on either API server that no tenant may make it do."""

import json
import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hostile_scene import HOME
from kubelet_client import OF_CONTAINERS

from hostile_chaos.grants import HIDDEN_CLASS, LEVEL, excess
from kube_envtest import Change, Logged
from syncer.api import Obj, annotations_of, dig, labels_of

#: Part of the name of each of the host's own objects, and of each text of the host's.
CANARY = "canary"
PREFIX = "vsyncer.dev/"
#: Annotations that host components act on, which a tenant may set on no copy.
ACTED_ON = (
    "eks.amazonaws.com/role-arn",
    "azure.workload.identity/client-id",
    "iam.gke.io/gcp-service-account",
    "iam.amazonaws.com/role",
    "vault.hashicorp.com/agent-inject",
    "k8s.v1.cni.cncf.io/networks",
    "sidecar.istio.io/inject",
    "replicator.v1.mittwald.de/replicate-from",
    "reflector.v1.k8s.emberstack.com/reflects",
    "external-dns.alpha.kubernetes.io/hostname",
    "service.beta.kubernetes.io/aws-load-balancer-security-groups",
    "metallb.universe.tf/loadBalancerIPs",
    "service.cilium.io/global",
)
#: Labels that they act on, on any kind.
ACTED_ON_LABELS = (
    "azure.workload.identity/use",
    "istio-injection",
    "kueue.x-k8s.io/queue-name",
    "grafana_dashboard",
    "velero.io/exclude-from-backup",
)
#: Labels of a Namespace that switch the host's policies off.
POLICY_LABELS = ("openshift.io/run-level", "admission.gatekeeper.sh/ignore", "istio-injection", "team", "name")
#: Kinds of volumes, and of their projected sources, that name things of the node or the host.
HOST_VOLUMES = frozenset({"glusterfs", "rbd", "flexVolume", "podCertificate", "clusterTrustBundle"})
#: Parts of an Issuer or a monitor by which an operator on the host does the tenant's bidding.
OPERATOR_PARTS = frozenset({"ingressTemplate", "podTemplate", "parentRefs", "scrapeClass", "apiKeySecretRef"})
#: Another tenant's virtual cluster in the same daemon, and its host namespace.
NEIGHBOUR, NEIGHBOUR_HOME = "neighbour", "neighbour-ns"
#: A namespace of Secrets that name virtual clusters, and the one that these may lead to.
TEAM, TEAM_HOME = "team", "team-pods"
#: Part of each object of a virtual cluster that such a Secret names.
TEAM_TEXT = "of-the-team"
#: The beginning of the names of what the host has put into a pod.
INJECTED = "injected-"
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
#: Fields by which a Pod is in namespaces of the node.
HOST_NAMESPACES = ("hostNetwork", "hostPID", "hostIPC")
#: Text that is the tenant's own, wherever it says something like a name.
TEXTS = frozenset({"data", "stringData", "args", "command", "annotations", "labels", "value", "message"})
#: Annotations of the daemon's that a container may read: they hold values of the virtual Pod, or nothing.
VIRTUAL_MARKS = frozenset(
    {"virtual-name", "virtual-namespace", "virtual-uid", "pod-labels", "pod-annotations", "pod-service-account", "none"}
)
#: Deletions of a place in a daemon's life, after which it should have taken it for a fight.
DELETIONS = 8
#: Writes of one object within this many seconds, by the host's clock: two a second, and the first. The daemon waits for
#: the answer to a write before it counts the second, so a slow machine makes them fewer.
HAMMERED, WINDOW = 5, 2.0
#: Host namespaces that the daemon uses for others.
_OF_OTHERS = frozenset({NEIGHBOUR_HOME, TEAM, TEAM_HOME})
_NAMESPACED = re.compile(
    r"^(pods|secrets|configmaps|services|serviceaccounts|persistentvolumeclaims|endpoints|vouchers|issuers|certificates)$"
)
#: The mark that a container reads, and a namespace in a message.
_READ = re.compile(rf"\['{PREFIX}([^']*)'\]")
_NAMESPACE = re.compile(r"(?<=namespace )[\w-]+|(?<= )[\w-]+(?=/)")


#: Gets the attack, or the part of the daemon, that something wrong is of; what is wrong; an example.
Report = Callable[[str, str, str], None]
#: The same, with what to add to the object's name for an example.
Wrong = tuple[str, str, str]


@dataclass
class Audit:
    """Looks at each request and each write of the daemon."""

    report: Report
    #: True if the translator has one host namespace, in which all lists and watches must stay.
    single: bool
    #: True if the translator lets tenants make host namespaces, and the daemon guards these.
    polices: bool
    #: Names of attacks, which are at the beginning of those of their objects.
    attacks: Collection[str]
    #: Names of copies at whose place the host has an object of its own.
    squatted: frozenset[str] = frozenset()
    #: Host namespaces that are a tenant's, or were.
    namespaces: set[str] = field(default_factory=lambda: {HOME, *_OF_OTHERS})
    deletions: Counter[str] = field(default_factory=Counter)
    _levels: dict[str, str] = field(default_factory=dict)
    _writes: dict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))

    def __post_init__(self) -> None:
        self._attack = re.compile(rf"\b({'|'.join(self.attacks)})-\d")

    def _owner(self, text: str) -> str:
        """Return the attack that an object is of."""
        found = self._attack.search(text)
        return found[1] if found else "daemon"

    def restarted(self) -> None:
        """Forget what a daemon knows of fights and of its writes: that ends with it."""
        self.deletions.clear()
        self._writes.clear()

    # -- writes ------------------------------------------------------------------------------------

    def on_host(self, at: float, change: Change) -> None:
        """Look at a change of the host that the daemon has stored at this moment."""
        metadata, resource = change.obj["metadata"], change.resource
        key = f"{resource} {metadata.get('namespace', '')}/{metadata['name']}"
        if change.before is not None and is_unmarked(change.before):
            self.report(self._owner(key), f"{resource} that aren't copies are written", key)
        elif resource == "namespaces" and change.before is None:
            self.namespaces.add(metadata["name"])
        if resource == "namespaces":
            self._levels[metadata["name"]] = labels_of(change.obj).get(LEVEL, "")
        if metadata.get("namespace") == NEIGHBOUR_HOME and change.before is not None and resource == "configmaps":
            self.report("fleet", "a copy of another tenant's is changed", key)
        if change.after is None:
            self._deleted(resource, key)
            return
        for rule in (self._named, self._team, self._metadata, self._marks, self._grants, self._kind, self._privileges):
            for kind, wrong, example in rule(resource, key, change):
                self.report(kind, wrong, f"{key} {example}".rstrip())
        self._count(key, at)

    def _deleted(self, resource: str, key: str) -> None:
        self.deletions[key] += 1
        if self.deletions[key] == DELETIONS + 1:
            self.report(self._owner(key), f"{resource} are deleted more than {DELETIONS} times, and made again", key)

    def _named(self, resource: str, key: str, change: Change) -> Iterator[Wrong]:
        for path, value in _texts({**change.obj, "metadata": {}, "status": {}}):
            if value in self.squatted or (value.startswith(CANARY) and not _translated(value)):
                yield self._owner(key), f"{resource} name an object of the host's at {path}", value

    def _team(self, resource: str, key: str, change: Change) -> Iterator[Wrong]:
        if change.obj["metadata"].get("namespace") != TEAM_HOME and TEAM_TEXT in json.dumps(change.obj):
            yield "fleet", "a virtual cluster of a Secret has copies outside the namespaces that it may have", ""

    def _metadata(self, resource: str, key: str, change: Change) -> Iterator[Wrong]:
        annotations = annotations_of(change.obj)
        for name in ACTED_ON:
            if name in annotations:
                yield self._owner(key), f"{resource} have annotations that host components act on", name
        for name in ACTED_ON_LABELS:
            if name in labels_of(change.obj):
                yield self._owner(key), f"{resource} have labels that host components act on", name
        if resource == "serviceaccounts":
            for name in annotations:
                if name.startswith("annotations.example.org/"):
                    yield "annotations", "a tenant's annotation is on a ServiceAccount", name
        if resource == "namespaces":
            for name in POLICY_LABELS:
                if name in labels_of(change.obj):
                    yield "policies", "a Namespace has labels that host components act on", name

    def _marks(self, resource: str, key: str, change: Change) -> Iterator[Wrong]:
        if "." in resource:
            for name in _keys(change.obj.get("spec")):
                if name.startswith(PREFIX) and "templates" in key:
                    yield "templates", f"{resource} carry marks in templates", name
                if name in OPERATOR_PARTS and ("issuers" in resource or "monitors" in resource):
                    yield self._owner(key), f"{resource} have operators act for the tenant", name

    def _grants(self, resource: str, key: str, change: Change) -> Iterator[Wrong]:
        if is_unmarked(change.obj):
            return
        before = set(excess(change.before)) if change.before is not None else set()
        for part in excess(change.obj):
            if part not in before:
                yield self._owner(key), f"{change.obj['kind']} copies get more than the operator's rules allow", part

    def _kind(self, resource: str, key: str, change: Change) -> Iterator[Wrong]:
        spec = change.obj.get("spec") or {}
        if resource != "pods":
            return
        home = change.obj["metadata"]["namespace"]
        if change.before is None and self.polices and home not in _OF_OTHERS and not self._levels.get(home):
            yield "policies", "a Pod is created in a host namespace without a Pod Security level", ""
        if any(dig(one, "securityContext.privileged") for part in _CONTAINERS for one in spec.get(part) or ()):
            yield "policies", "a Pod is privileged", ""
        if change.before is None and spec.get("nodeName"):
            yield "nodes", "a Pod is created on a node of the tenant's choice", ""
        for volume in spec.get("volumes") or ():
            sources = [*volume, *(name for one in dig(volume, "projected.sources") or () for name in one)]
            for name in HOST_VOLUMES.intersection(sources):
                yield "nodes", "Pods have volumes of the node or the host", name
        if set(_READ.findall(json.dumps(spec.get("containers")))) - VIRTUAL_MARKS:
            yield "hostnames", "Pods read the daemon's marks of themselves", ""

    def _privileges(self, resource: str, key: str, change: Change) -> Iterator[Wrong]:
        if resource != "pods":
            return
        if "relay-" in key:
            yield from _of_the_host(change)
        for part in _of_the_node(change.obj.get("spec") or {}):
            yield "privileges", "a Pod has parts of the node", part
        if change.before is None and "privileges-" in key and "-plain" not in key:
            yield "privileges", "a Pod is created that asks for parts of the node", ""

    def _count(self, key: str, now: float) -> None:
        if "hammered-" not in key:
            return
        times = self._writes[key]
        times.append(now)
        while now - times[0] > WINDOW:
            times.popleft()
        if len(times) > HAMMERED:
            self.report("hammered", f"an object is written {HAMMERED + 1} times within {WINDOW:g} s", key)

    def on_virtual(self, change: Change) -> None:
        """Look at a change of the virtual cluster that the daemon has stored."""
        if change.after is None:
            return
        obj = change.after
        metadata = obj["metadata"]
        key = f"{change.resource} {metadata.get('namespace', '')}/{metadata['name']}"
        if change.resource == "secrets" and "pod-tokens" in metadata["name"]:
            self.report("tokens", "the Secret of a Pod's tokens comes up", key)
        if CANARY in json.dumps([annotations_of(obj), obj.get("spec")]) and "classes" in change.resource:
            self.report("notes", "a host object shows what the host hides", key)
        if metadata["name"] == HIDDEN_CLASS:
            self.report("classes", "a class comes up that the operator's selector leaves out", key)
        hidden = self.namespaces - {metadata.get("namespace")}
        if change.resource == "pods" and not hidden.isdisjoint(_NAMESPACE.findall(json.dumps(obj.get("status")))):
            self.report("hostnames", "the status of a virtual Pod names a host namespace", key)
        if change.resource == "events" and INJECTED in str(dig(obj, "involvedObject.fieldPath")):
            self.report("relay", "an event about a container of the host's comes up", key)
        if change.resource == "pods" and INJECTED in json.dumps(_statuses(obj)):
            self.report("relay", "the status of a container of the host's comes up", key)
        if change.resource == "events" and _names_host(json.dumps([obj.get("message"), obj.get("note")])):
            self.report("events", "an event names a host namespace", f"{key}: {obj.get('message')}")

    # -- requests ----------------------------------------------------------------------------------

    def on_request(self, each: Logged) -> None:
        """Look at a request of the daemon to the host."""
        parts, wanted = each.path.split("/"), f"{each.verb} {each.resource}"
        namespace = parts[parts.index("namespaces") + 1] if "namespaces" in parts[:-1] else ""
        if any(part.startswith(CANARY) and not _translated(part) for part in parts):
            self.report(self._owner(each.path), f"{wanted} asks for an object of the host's", _asked(each))
        if each.path.endswith(OF_CONTAINERS) and "/relay-" in each.path:
            self.report("relay", "a container of the host's is reached", _asked(each))
        if each.status == 413:
            self.report("size", f"{wanted} sends a body that the host refuses", _asked(each))
        if each.verb in ("list", "watch"):
            if self.single and namespace not in self.namespaces and _NAMESPACED.match(each.resource):
                self.report("namespace", f"{wanted} leaves the host namespace", _asked(each))
        elif namespace and each.resource != "namespaces" and namespace not in self.namespaces:
            self.report(self._owner(each.path), f"{wanted} in a host namespace that isn't the tenant's", _asked(each))


def _asked(request: Logged) -> str:
    """Return the path of a request, when it came, and the status of the response."""
    return f"{request.path} at {datetime.fromtimestamp(request.at, UTC):%H:%M:%S.%f}: {request.status}"


def _of_the_node(spec: Obj) -> Iterator[str]:
    """Yield what a Pod has of its node: namespaces, paths, ports and rights, but for privileged containers."""
    yield from (name for name in HOST_NAMESPACES if spec.get(name))
    yield from ("hostPath" for volume in spec.get("volumes") or () if "hostPath" in volume)
    for one in (one for part in _CONTAINERS for one in spec.get(part) or ()):
        yield from ("hostPort" for port in one.get("ports") or () if port.get("hostPort"))
        if "SYS_ADMIN" in (dig(one, "securityContext.capabilities.add") or ()):
            yield "SYS_ADMIN"


def _of_the_host(change: Change) -> Iterator[Wrong]:
    """Yield what a Pod's new ephemeral containers have of the host's own, and what those of the host's have become."""
    before = {name: each for name, each in _named_containers(change.before or {}) if name.startswith(INJECTED)}
    for name, each in _named_containers(change.obj):
        if name in before:
            if each != before[name]:
                yield "relay", "a container of the host's is changed", name
            continue
        mounted = {mount.get("name", "") for mount in each.get("volumeMounts") or ()}
        for used in sorted({name, each.get("targetContainerName", ""), *mounted}):
            if used.startswith(INJECTED):
                yield "relay", "Pods get containers that are at something of the host's", used


def _named_containers(pod: Obj) -> Iterator[tuple[str, Obj]]:
    for part in _CONTAINERS:
        for each in dig(pod, f"spec.{part}") or ():
            yield each["name"], each


def _statuses(pod: Obj) -> list[Any]:
    """Return the names of the containers in a Pod's status."""
    status = pod.get("status") or {}
    return [each.get("name") for part in _STATUSES for each in status.get(part) or ()]


def _translated(name: str) -> bool:
    """Return True for the translated name of what the tenant has called like a canary."""
    return "-x-" in name


def _names_host(text: str) -> bool:
    return f"namespace {HOME}" in text or f" {HOME}/" in text


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts of an object that may be names, with their paths."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each, f"{path}[]")
    elif isinstance(value, Mapping):
        for name, each in value.items():
            if name not in TEXTS:
                yield from _texts(each, f"{path}.{name}" if path else name)


def _keys(value: Any) -> Iterator[str]:
    """Yield the keys of all mappings in a value."""
    if isinstance(value, list):
        for each in value:
            yield from _keys(each)
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield name
            yield from _keys(each)


def is_unmarked(obj: Obj) -> bool:
    """Return True if an object isn't a copy of any tenant's."""
    return f"{PREFIX}cluster" not in labels_of(obj)
