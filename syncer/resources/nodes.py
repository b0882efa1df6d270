"""Stand-in Nodes in the virtual cluster, for host nodes that run synced Pods."""

from collections.abc import Iterable, Sequence

from pydantic import Field

from syncer.api import (
    Config,
    Context,
    Decision,
    FakeSyncUp,
    Index,
    Indexes,
    Key,
    Obj,
    Settings,
    Side,
    Source,
    Syncer,
    Watch,
    Watches,
    apply,
    delete,
    dig,
    reasons,
    skip,
)
from syncer.resources import node_quota
from syncer.resources.kinds import NODES, PODS
from syncer.resources.namespace_values import Amount, NodeLabels
from syncer.translate import times

_HOST_PODS = Source(Side.HOST, PODS, marked=True)
_VIRTUAL_PODS = Source(Side.VIRTUAL, PODS)

#: The conditions of a healthy Node, in the customary order of ``kubectl describe``.
_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID"),
    ("Ready", "True", "KubeletReady"),
)

#: Why a Node goes.
UNUSED = "no synced Pod is on this node any more"
_OS = "kubernetes.io/os"
_ARCH = "kubernetes.io/arch"
_MESSAGE = "stands for the host node of this name; its health is not reported"

#: The features that an API server asks of a Pod's node (``status.declaredFeatures``), in its order:
#: those of Kubernetes 1.36 (``k8s.io/component-helpers``, ``nodedeclaredfeatures/features``). It
#: refuses a resizing of a Pod as a whole, or of an init container, that its node doesn't declare.
FEATURES = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
)
#: The first minor version of Kubernetes 1 whose API servers keep these by default; an older one
#: drops them.
FEATURES_SINCE = 36
#: The feature of a node that accepts WebSockets for all streams. The kubelet of a stand-in is the
#: daemon, which passes streams on to the host's API server, and that accepts them since this minor
#: version.
WEB_SOCKETS = FEATURES[0]
WEB_SOCKETS_SINCE = 31

#: The taint that the API server puts on each new Node, for the controller of node lifecycles to
#: remove (admission plugin ``TaintNodesByCondition``).
_NEW = "node.kubernetes.io/not-ready"


class NodeConfig(Config):
    """The capacity and the labels that stand-in Nodes have."""

    cpu: Amount = "16"
    """Reported CPUs. Nothing is scheduled by it: the host's scheduler places Pods."""

    memory: Amount = "32Gi"
    """Reported memory."""

    pods: Amount = "110"
    """Reported capacity for Pods."""

    quotas: bool = False
    """Whether a Node has at most what the ResourceQuotas of the host namespace allow all Pods
    together, and the extended resources that they name, such as GPUs. It takes the right to get,
    list and watch ResourceQuotas there. Without effect where virtual namespaces have host
    namespaces of their own.
    """

    labels: NodeLabels = Field(default={})
    """Labels of stand-ins, such as `kubernetes.io/arch: arm64`, which also gives the architecture
    in their status. The operating system is that of `kubernetes.io/os`, by default linux.
    """


class NodeSyncer(Syncer[NodeConfig], FakeSyncUp[NodeConfig], Indexes, Watches):
    """Creates a stand-in Node for each host node that runs a synced Pod.

    The stand-in is deleted after the last Pod. Run the virtual cluster's controller manager without
    the controllers that judge Nodes: no kubelet sends a heartbeat, so they would take every
    stand-in for dead, and a Pod may be there before its stand-in. Pods that the host has lost end
    without them. That is, put all of these into its ``--controllers``: ``*``,
    ``-node-lifecycle-controller``, ``-taint-eviction-controller`` and
    ``-pod-garbage-collector-controller``.
    """

    name = "nodes"
    section = "fake.nodes"
    resource = NODES
    reads = (_HOST_PODS, _VIRTUAL_PODS)

    def applies_to(self, settings: Settings) -> bool:
        """Return False where the host's nodes appear themselves."""
        return "host-nodes" not in settings.sections

    def reads_with(self, settings: Settings) -> Iterable[Source]:
        """Return the Pods of both sides, and the quotas that lower what a Node has."""
        config = settings.section(self.name, NodeConfig)
        if config is not None and config.quotas:
            return (*self.reads, node_quota.QUOTAS)
        return self.reads

    def indexes(self) -> Sequence[Index]:
        """Return indexes of both sides' Pods by their node."""
        return [Index(_HOST_PODS, "node", _nodes_of), Index(_VIRTUAL_PODS, "node", _nodes_of)]

    def watches(self) -> Sequence[Watch]:
        """Requeue a node when the first Pod is bound to it, or the last one leaves it."""
        return [
            Watch(_HOST_PODS, _keys, when="used"),
            Watch(_VIRTUAL_PODS, _keys_of_virtual, when="used"),
        ]

    def fake_sync_up(self, ctx: Context[NodeConfig], key: Key) -> Decision:
        """Create the stand-in if a Pod needs it."""
        if not is_used(ctx, key.name):
            return skip(reasons.NODE_UNUSED())
        why = f"a synced Pod is on the host node {key.name}"
        return looked_at(ctx, apply(virtual=_node(ctx, key.name, None), reason=why))

    def fake_sync(self, ctx: Context[NodeConfig], virtual: Obj) -> Decision:
        """Keep the stand-in ready, and delete it after the last Pod.

        Only called for our own Nodes.
        """
        name = virtual["metadata"]["name"]
        if not is_needed(ctx, name):
            return delete(virtual=virtual, reason=UNUSED)
        return looked_at(ctx, apply(virtual=_node(ctx, name, virtual)))


def is_needed(ctx: Context[NodeConfig], node: str) -> bool:
    """Return True if a copy of a Pod is on a host node, or a virtual Pod still names it."""
    return is_used(ctx, node) or bool(ctx.reader.indexed(Side.VIRTUAL, PODS, "node", node))


def looked_at(ctx: Context[NodeConfig], decision: Decision) -> Decision:
    """Return the decision about a Node, to be made again in time if quotas count."""
    if ctx.config.quotas:
        return decision.look_again(node_quota.LOOK_SECONDS)
    return decision


def limits(ctx: Context[NodeConfig]) -> Obj:
    """Return the most that the tenant's quotas allow of each resource; empty if none counts."""
    if ctx.config.quotas and node_quota.has_home(ctx.settings):
        return node_quota.limits(ctx)
    return {}


def addresses(settings: Settings, node: str) -> Obj:
    """Return the ``addresses`` field of a virtual Node's status.

    It is ``{}`` where the daemon serves as the Node's kubelet, as it writes its own address then.
    """
    if settings.kubelet:
        return {}
    return {"addresses": [{"type": "Hostname", "address": node}]}


def declared(ctx: Context[NodeConfig], features: Iterable[str], virtual: Obj | None) -> Obj:
    """Return the features in a virtual Node's status; none where its API server drops them.

    ``virtual`` is the Node as it is, None for a new one.
    """
    if ctx.minor_version(Side.VIRTUAL) < FEATURES_SINCE:
        return {}
    names = sorted(set(features))
    if not names and not dig(virtual or {}, "status.declaredFeatures"):
        return {}
    return {"declaredFeatures": names}


def _served(ctx: Context[NodeConfig]) -> list[str]:
    """Return the features of a host node that isn't read.

    These are all: the host itself refuses a request that needs another one.
    """
    features = list(FEATURES)
    if ctx.minor_version(Side.HOST) < WEB_SOCKETS_SINCE:
        features.remove(WEB_SOCKETS)
    return features


def _nodes_of(pod: Obj) -> Iterable[str]:
    """Return the name of the node that a Pod is bound to; nothing if it isn't yet."""
    name = dig(pod, "spec.nodeName")
    if name:
        return (name,)
    return ()


def _keys(pod: Obj, settings: Settings) -> Iterable[Key]:
    """Yield the Node to requeue when a Pod of the host changes."""
    for name in _nodes_of(pod):
        if settings.marks.is_ours(pod, cluster=settings.identity, resource=PODS):
            yield Key("", name)


def _keys_of_virtual(pod: Obj, settings: Settings) -> Iterable[Key]:
    """Yield the Node to requeue when a virtual Pod changes."""
    for name in _nodes_of(pod):
        yield Key("", name)


def is_used(ctx: Context[NodeConfig], node: str) -> bool:
    """Return True if a copy of a Pod is on a host node."""
    for key in ctx.reader.indexed(Side.HOST, PODS, "node", node):
        pod = ctx.host(PODS, key)
        if pod is None:
            continue
        if ctx.marks.is_ours(pod, cluster=ctx.identity, resource=PODS):
            return True
    return False


def _since(node: Obj) -> dict[str, str]:
    """Return the time of the last transition for each condition that is as it should be."""
    right = {kind: status for kind, status, _ in _CONDITIONS}
    times_by_type = {}
    for one in dig(node, "status.conditions") or ():
        since = one.get("lastTransitionTime")
        if since and right.get(one["type"]) == one.get("status"):
            times_by_type[one["type"]] = since
    return times_by_type


def _node(ctx: Context[NodeConfig], name: str, virtual: Obj | None) -> Obj:
    """Return the stand-in; ``virtual`` is the Node as it is, None for a new one."""
    usual = NodeConfig()
    room = {}
    for field in ("cpu", "memory", "pods"):
        room[field] = getattr(ctx.config, field) or getattr(usual, field)
    most = limits(ctx)
    extended = {name: amount for name, amount in most.items() if node_quota.is_extended(name)}
    room = {**node_quota.lowered(room, most), **extended}

    now = times.written(ctx.now)
    since = _since(virtual or {})
    conditions = []
    for kind, status, reason in _CONDITIONS:
        condition = {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": _MESSAGE,
            "lastTransitionTime": since.get(kind, now),
        }
        conditions.append(condition)

    labels = {
        "kubernetes.io/hostname": name,
        _OS: "linux",
        **ctx.config.labels,
        ctx.marks.cluster: ctx.identity,
    }
    metadata: Obj = {"name": name, "labels": labels}
    if virtual is not None:
        metadata["resourceVersion"] = virtual["metadata"].get("resourceVersion", "")
    given = dig(virtual or {}, "spec.taints") or ()
    taints = [taint for taint in given if taint["key"] != _NEW]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": {"taints": taints},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": conditions,
            "nodeInfo": _info(ctx, labels),
            **declared(ctx, _served(ctx), virtual),
            **addresses(ctx.settings, name),
        },
    }


def _info(ctx: Context[NodeConfig], labels: Obj) -> Obj:
    """Return what a stand-in says of its machine and its kubelet.

    The version is that of the host's API server, which answers for the kubelet.
    """
    info = {"operatingSystem": labels[_OS]}
    if labels.get(_ARCH):
        info["architecture"] = labels[_ARCH]
    minor = ctx.minor_version(Side.HOST)
    if minor:
        info["kubeletVersion"] = f"v1.{minor}.0+vsyncer"
    return info
