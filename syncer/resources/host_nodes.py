"""Nodes of the host in the virtual cluster, for tenants who may know which nodes there are."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from pydantic import Field

from syncer.api import (
    Context,
    Decision,
    Key,
    KeyRules,
    MetadataFilter,
    MetadataRules,
    Obj,
    Pair,
    Settings,
    Side,
    Source,
    Sync,
    SyncFromHost,
    apply,
    delete,
    dig,
    key_of,
    labels_of,
    reasons,
    selectors,
    skip,
)
from syncer.resources import node_quota
from syncer.resources.kinds import NODES
from syncer.resources.namespace_values import Amount, NodeLabels, TaintPattern
from syncer.resources.nodes import (
    UNUSED,
    NodeConfig,
    NodeSyncer,
    addresses,
    declared,
    is_needed,
    is_used,
    limits,
    looked_at,
)
from syncer.resources.pods.config import PodConfig, Toleration, is_bound_first

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
#: The effects of taints that keep Pods from a node.
_KEEPING_OFF = ("NoSchedule", "NoExecute")
_MESSAGE = "as the host reports it"


class HostNodeConfig(NodeConfig):
    """Nodes of the host that appear in the virtual cluster, instead of stand-ins where pods run."""

    enabled: bool = False
    """Whether nodes of the host appear in the virtual cluster, also those without a Pod, as a
    DaemonSet needs it. It takes the right to get, list and watch the host's Nodes.

    Without it, `fake.nodes` makes a stand-in while a synced Pod is on a node.
    """

    only_used: bool = False
    """Whether a node appears only while a synced Pod is on it, as a stand-in does."""

    node_selector: NodeLabels = Field(default={})
    """Labels that a host node must have to appear. Empty: all nodes appear.

    Pods are placed on such nodes only: the host pod's `nodeSelector` gets these labels.
    """

    taints: tuple[TaintPattern, ...] = ("node.kubernetes.io/*", "node-role.kubernetes.io/*")
    """Keys of taints that are shown; `*` stands for any characters and `?` for a single one.

    A DaemonSet makes no Pod for a node whose taint it sees and doesn't tolerate. Taints that
    `sync.toHost.pods.tolerations` lets every Pod tolerate are not shown. A tenant's own taints on
    other keys stay. With `sync.toHost.pods.scheduler: virtual`, a node with a further taint appears
    cordoned.
    """

    cpu: Amount = ""
    """Reported CPUs. Empty: those of the host node."""

    memory: Amount = ""
    """Reported memory. Empty: that of the host node."""

    pods: Amount = ""
    """Reported capacity for Pods. Empty: that of the host node."""

    labels: NodeLabels = Field(default={})
    """Labels of stand-ins for nodes that don't appear."""


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
        if ctx.config.only_used and not is_used(ctx, key_of(host).name):
            return skip(reasons.NODE_UNUSED())
        shown = apply(virtual=_shown(ctx, host, None), reason="the host has this node")
        return looked_at(ctx, shown)

    def sync(self, ctx: Context[HostNodeConfig], pair: Pair) -> Decision:
        """Update the virtual Node, if a field has changed that it shows."""
        if ctx.config.only_used and not is_needed(ctx, key_of(pair.host).name):
            return delete(virtual=pair.virtual, reason=UNUSED)
        return looked_at(ctx, apply(virtual=_shown(ctx, pair.host, pair.virtual)))


def required_labels(settings: Settings) -> dict[str, str]:
    """Return the labels of the nodes that a tenant may use; empty for all nodes."""
    config = settings.section(HostNodeSyncer.name, HostNodeConfig)
    if config:
        return config.node_selector
    return {}


def shown_nodes(settings: Settings) -> Source:
    """Return the source of the host's nodes that appear."""
    chosen = selectors.written({"matchLabels": required_labels(settings)})
    return Source(Side.HOST, NODES, selector=chosen)


def shown_node(ctx: Context, name: str) -> Obj | None:
    """Return a node of the host that appears in the virtual cluster; None if there is none."""
    host = ctx.host(NODES, Key("", name))
    if host is None or not is_shown(ctx.settings, host):
        return None
    return host


def is_shown(settings: Settings, host: Obj) -> bool:
    """Return True if a node of the host appears in the virtual cluster, where nodes do."""
    return required_labels(settings).items() <= labels_of(host).items()


def shows_label(settings: Settings, key: str) -> bool:
    """Return True if Nodes have the label of this key that their host nodes have."""
    config = settings.section(HostNodeSyncer.name, HostNodeConfig)
    if config is None:
        return False
    return MetadataFilter(HostNodeSyncer.metadata, config.metadata).crosses("labels", key)


def _shown(ctx: Context[HostNodeConfig], host: Obj, virtual: Obj | None) -> Obj:
    """Return the virtual Node of a host node; ``virtual`` is the present one, None if it is new."""
    shown = ctx.virtual_copy(host, key_of(host))
    if virtual is not None:
        shown["metadata"]["resourceVersion"] = virtual["metadata"].get("resourceVersion", "")

    spec = host.get("spec") or {}
    of_virtual = dig(virtual or {}, "spec.taints") or ()
    shown["spec"] = {"taints": _taints(ctx, spec.get("taints") or (), of_virtual)}
    if spec.get("unschedulable") or _keeps_off(ctx, spec.get("taints") or ()):
        # Only set to True: where the host's node has no cordon, the tenant's own stays.
        shown["spec"]["unschedulable"] = True

    status = host.get("status") or {}
    allocatable = _room(ctx.config, status.get("allocatable"))
    info = status.get("nodeInfo") or {}
    given = status.get("conditions") or ()
    conditions = [_condition(each) for each in given if each.get("type") in _CONDITIONS]
    shown["status"] = {
        "capacity": _room(ctx.config, status.get("capacity")),
        "allocatable": {
            **node_quota.lowered(allocatable, limits(ctx)),
            **_of_tenant(ctx, status.get("capacity") or {}, virtual),
        },
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
    taints = []
    for taint in of_host:
        # A DaemonSet of the tenant's doesn't know the tolerations that every Pod is given.
        if not _is_listed(ctx.config, taint) or _is_tolerated(ctx, taint):
            continue
        kept = ("key", "value", "effect")
        taints.append({field: taint[field] for field in kept if taint.get(field)})
    taints.extend(taint for taint in of_virtual if not _is_listed(ctx.config, taint))
    return taints


def _keeps_off(ctx: Context[HostNodeConfig], of_host: Iterable[Obj]) -> bool:
    """Return True if a taint that isn't shown keeps off what a tenant's scheduler would put there.

    Such a node appears cordoned. Where the host's scheduler chooses the nodes, it isn't needed.
    """
    if not is_bound_first(ctx.settings):
        return False
    for taint in of_host:
        is_hidden = taint.get("effect") in _KEEPING_OFF and not _is_listed(ctx.config, taint)
        if is_hidden and not _is_tolerated(ctx, taint):
            return True
    return False


def _is_listed(config: HostNodeConfig, taint: Obj) -> bool:
    """Return True if taints of this key are shown."""
    return any(fnmatchcase(taint["key"], pattern) for pattern in config.taints)


def _is_tolerated(ctx: Context[HostNodeConfig], taint: Obj) -> bool:
    """Return True if every Pod is given a toleration of a taint."""
    pods = ctx.settings.section("pods", PodConfig)
    given = pods.tolerations if pods else ()
    return any(_tolerates(each, taint) for each in given)


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


def _of_tenant(ctx: Context[HostNodeConfig], of_host: Obj, virtual: Obj | None) -> Obj:
    """Return the extended resources that the tenant has given a virtual Node, for its allocatable.

    A kubelet does the same with what others have put into ``capacity`` (its ``setters.go``). They
    only count for a scheduler in the virtual cluster.
    """
    if virtual is None or not is_bound_first(ctx.settings):
        return {}
    found = {}
    for name, amount in (dig(virtual, "status.capacity") or {}).items():
        is_ours = name in of_host or ctx.marks.is_set(virtual, "status", "capacity", name)
        if node_quota.is_extended(name) and not is_ours:
            found[name] = amount
    return found


def _condition(of_host: Obj) -> Obj:
    """Return a condition without the time of the last heartbeat, and without the host's message."""
    kept = ("type", "status", "reason", "lastTransitionTime")
    return {**{field: of_host[field] for field in kept if of_host.get(field)}, "message": _MESSAGE}
