"""Nodes of the host in the virtual cluster, for tenants who may know which nodes there are."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from pydantic import Field

from syncer.api import (
    Context,
    Decision,
    Key,
    KeyRules,
    MetadataRules,
    Obj,
    Pair,
    Settings,
    Sync,
    SyncFromHost,
    apply,
    dig,
    key_of,
    selectors,
)
from syncer.resources.namespace_values import Amount, NodeLabels, TaintPattern
from syncer.resources.nodes import NodeConfig, NodeSyncer, addresses, declared
from syncer.resources.pods.config import PodConfig, Toleration

#: Labels that Kubernetes itself gives a Node, and that scheduling needs
#: (Kubernetes, "Well-Known Labels, Annotations and Taints").
_LABELS = (
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
)
#: The conditions that Kubernetes defines. Others, of a problem detector for instance, would reveal
#: details of the host.
_CONDITIONS = frozenset(
    {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"},
)
#: The fields of ``nodeInfo`` that identify neither the machine nor its software. By the kubelet's
#: version clients judge the abilities of a node.
_INFO = ("architecture", "operatingSystem", "kubeletVersion")
_MESSAGE = "as the host reports it"


class HostNodeConfig(NodeConfig):
    """Nodes of the host that appear in the virtual cluster, instead of stand-ins where pods run."""

    enabled: bool = False
    """Whether nodes of the host appear in the virtual cluster, also those without a Pod, as a
    DaemonSet needs it. It takes the right to get, list and watch the host's Nodes.

    Without it, `fake.nodes` makes a stand-in while a synced Pod is on a node.
    """

    node_selector: NodeLabels = Field(default={})
    """Labels that a host node must have to appear. Empty: all nodes appear.

    Pods are placed on such nodes only: the host pod's `nodeSelector` gets these labels.
    """

    taints: tuple[TaintPattern, ...] = ("node.kubernetes.io/*", "node-role.kubernetes.io/*")
    """Keys of taints that are shown; `*` stands for any characters and `?` for a single one.

    A DaemonSet makes no Pod for a node whose taint it sees and doesn't tolerate. Taints that
    `sync.toHost.pods.tolerations` lets every Pod tolerate are not shown. A tenant's own taints on
    other keys stay.
    """

    cpu: Amount = ""
    """Reported CPUs. Empty: those of the host node."""

    memory: Amount = ""
    """Reported memory. Empty: that of the host node."""

    pods: Amount = ""
    """Reported capacity for Pods. Empty: that of the host node."""


class HostNodeSyncer(NodeSyncer, SyncFromHost[HostNodeConfig], Sync[HostNodeConfig]):
    """Shows nodes of the host.

    They have listed labels and taints, a cordon, readiness, pressures, capacity, declared features
    and what the kubelet reports of itself, but neither the host's addresses nor its images: their
    only address is their name, or the daemon's. A node that is not shown has a stand-in while a
    synced Pod is on it, as without this syncer.
    """

    name = "host-nodes"
    section = "fromHost.nodes"
    reverts_virtual_changes = True
    metadata = MetadataRules(labels=KeyRules(allow=_LABELS), annotations=KeyRules(deny=("*",)))
    up = (
        "spec.taints",
        "status.capacity",
        "status.allocatable",
        "status.conditions",
        "status.nodeInfo",
        "status.declaredFeatures",
    )
    exact = ("spec.taints",)

    def applies_to(self, settings: Settings) -> bool:
        """Return True: where this syncer is enabled, it replaces ``NodeSyncer``."""
        return True

    def host_selector(self, settings: Settings) -> str:
        """Return the selector of the nodes that appear."""
        return selectors.written({"matchLabels": required_labels(settings)})

    def host_key(self, settings: Settings, key: Key) -> Key:
        """Return the same key: the host's scheduler and kubelet know a Pod's node by its name."""
        return key

    def virtual_key(self, ctx: Context[HostNodeConfig], host: Obj) -> Key | None:
        """Return the same key."""
        return key_of(host)

    def sync_from_host(self, ctx: Context[HostNodeConfig], host: Obj) -> Decision:
        """Create the virtual Node."""
        return apply(virtual=_shown(ctx, host, None), reason="the host has this node")

    def sync(self, ctx: Context[HostNodeConfig], pair: Pair) -> Decision:
        """Update the virtual Node, if a field has changed that it shows."""
        return apply(virtual=_shown(ctx, pair.host, pair.virtual))


def required_labels(settings: Settings) -> dict[str, str]:
    """Return the labels of the nodes that a tenant may use; empty for all nodes."""
    config = settings.section(HostNodeSyncer.name, HostNodeConfig)
    if config:
        return config.node_selector
    return {}


def _shown(ctx: Context[HostNodeConfig], host: Obj, virtual: Obj | None) -> Obj:
    """Return the virtual Node of a host node; ``virtual`` is the present one, None if it is new."""
    shown = ctx.virtual_copy(host, key_of(host))
    if virtual is not None:
        shown["metadata"]["resourceVersion"] = virtual["metadata"].get("resourceVersion", "")

    spec = host.get("spec") or {}
    of_virtual = dig(virtual or {}, "spec.taints") or ()
    shown["spec"] = {"taints": _taints(ctx, spec.get("taints") or (), of_virtual)}
    if spec.get("unschedulable"):
        # Only set to True: where the host's node has no cordon, the tenant's own stays.
        shown["spec"]["unschedulable"] = True

    status = host.get("status") or {}
    info = status.get("nodeInfo") or {}
    given = status.get("conditions") or ()
    conditions = [_condition(each) for each in given if each.get("type") in _CONDITIONS]
    shown["status"] = {
        "capacity": _room(ctx.config, status.get("capacity")),
        "allocatable": _room(ctx.config, status.get("allocatable")),
        "conditions": conditions,
        "nodeInfo": {field: info[field] for field in _INFO if info.get(field)},
        **declared(ctx, status.get("declaredFeatures") or (), virtual),
        **addresses(ctx.settings, key_of(host).name),
    }
    return shown


def _taints(
    ctx: Context[HostNodeConfig],
    of_host: Iterable[Obj],
    of_virtual: Iterable[Obj],
) -> list[Obj]:
    """Return the host's taints that are shown, and the tenant's own."""

    def is_shown(key: str) -> bool:
        return any(fnmatchcase(key, pattern) for pattern in ctx.config.taints)

    pods = ctx.settings.section("pods", PodConfig)
    given = pods.tolerations if pods else ()
    taints = []
    for taint in of_host:
        # A DaemonSet of the tenant's doesn't know the tolerations that every Pod is given.
        if not is_shown(taint["key"]) or any(_tolerates(each, taint) for each in given):
            continue
        kept = ("key", "value", "effect")
        taints.append({field: taint[field] for field in kept if taint.get(field)})
    taints.extend(taint for taint in of_virtual if not is_shown(taint["key"]))
    return taints


def _tolerates(toleration: Toleration, taint: Obj) -> bool:
    """Return True if a toleration matches a taint, as the scheduler of Kubernetes decides it."""
    if toleration.effect not in ("", taint.get("effect")):
        return False
    if toleration.key not in ("", taint["key"]):
        return False
    return toleration.operator == "Exists" or toleration.value == (taint.get("value") or "")


def _room(config: HostNodeConfig, of_host: Obj | None) -> Obj:
    """Return the amounts of the host node, with the configured ones in place of its own."""
    amounts = {"cpu": config.cpu, "memory": config.memory, "pods": config.pods}
    configured = {name: amount for name, amount in amounts.items() if amount}
    return {**(of_host or {}), **configured}


def _condition(of_host: Obj) -> Obj:
    """Return a condition without the time of the last heartbeat, and without the host's message."""
    kept = ("type", "status", "reason", "lastTransitionTime")
    return {**{field: of_host[field] for field in kept if of_host.get(field)}, "message": _MESSAGE}
