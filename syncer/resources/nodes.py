"""Stand-in Nodes in the virtual cluster, for host nodes that run synced Pods."""

from collections.abc import Iterable, Sequence

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
    skip,
)
from syncer.resources.kinds import NODES, PODS
from syncer.resources.namespace_values import Amount
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

_MESSAGE = "stands for the host node of this name; its health is not reported"

#: The features that an API server asks of a Pod's node (``status.declaredFeatures``), in its order: those of
#: Kubernetes 1.36 (``k8s.io/component-helpers``, ``nodedeclaredfeatures/features``). It refuses a resizing of a Pod
#: as a whole, or of an init container, that its node doesn't declare.
FEATURES = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
)
#: The first minor version of Kubernetes 1 whose API servers keep these by default; an older one drops them.
FEATURES_SINCE = 36
#: The feature of a node whose kubelet takes WebSockets for all streams: it is the daemon, which takes them to the
#: host's API server, and that does so since this minor version.
WEB_SOCKETS, WEB_SOCKETS_SINCE = FEATURES[0], 31

#: The taint that the API server puts on each new Node, for the controller of node lifecycles to
#: remove (admission plugin ``TaintNodesByCondition``).
_NEW = "node.kubernetes.io/not-ready"


class NodeConfig(Config):
    """The capacity that stand-in Nodes report."""

    cpu: Amount = "16"
    """Reported CPUs. Nothing is scheduled by it: the host's scheduler places Pods."""

    memory: Amount = "32Gi"
    """Reported memory."""

    pods: Amount = "110"
    """Reported capacity for Pods."""


class NodeSyncer(Syncer[NodeConfig], FakeSyncUp[NodeConfig], Indexes, Watches):
    """Creates a stand-in Node for each host node that runs a synced Pod, and deletes it after the
    last Pod.

    Run the virtual cluster's controller manager without the controllers that judge Nodes
    (``--controllers=*,-node-lifecycle-controller,-taint-eviction-controller,-pod-garbage-collector-controller``):
    no kubelet sends a heartbeat, so they would take every stand-in for dead, and a Pod may be there
    before its stand-in. Pods that the host has lost end without them.
    """

    name = "nodes"
    section = "fake.nodes"
    resource = NODES
    reads = (_HOST_PODS, _VIRTUAL_PODS)

    def applies_to(self, settings: Settings) -> bool:
        """Return False where the host's nodes appear themselves."""
        return "host-nodes" not in settings.sections

    def indexes(self) -> Sequence[Index]:
        """Return indexes of both sides' Pods by their node."""
        return [Index(_HOST_PODS, "node", _nodes_of), Index(_VIRTUAL_PODS, "node", _nodes_of)]

    def watches(self) -> Sequence[Watch]:
        """Requeue a node when a Pod is bound to it or leaves it."""
        return [Watch(_HOST_PODS, _keys), Watch(_VIRTUAL_PODS, _keys_of_virtual)]

    def fake_sync_up(self, ctx: Context[NodeConfig], key: Key) -> Decision:
        """Create the stand-in if a Pod needs it."""
        if not _is_used(ctx, key.name):
            return skip("no synced Pod is on this node")
        return apply(virtual=_node(ctx, key.name, None), reason=f"a synced Pod is on the host node {key.name}")

    def fake_sync(self, ctx: Context[NodeConfig], virtual: Obj) -> Decision:
        """Keep the stand-in ready, and delete it after the last Pod.

        Only called for our own Nodes.
        """
        name = virtual["metadata"]["name"]
        if not _is_used(ctx, name) and not ctx.reader.indexed(Side.VIRTUAL, PODS, "node", name):
            return delete(virtual=virtual, reason="no synced Pod is on this node any more")
        return apply(virtual=_node(ctx, name, virtual))


def addresses(settings: Settings, node: str) -> Obj:
    """Return the addresses in a virtual Node's status; none where the daemon answers as its kubelet,
    and writes its own.
    """
    return {} if settings.kubelet else {"addresses": [{"type": "Hostname", "address": node}]}


def declared(ctx: Context[NodeConfig], features: Iterable[str], virtual: Obj | None) -> Obj:
    """Return the features in a virtual Node's status; none where its API server drops them.

    ``virtual`` is the Node as it is, None for a new one.
    """
    names = sorted(set(features))
    is_there = bool(names or dig(virtual or {}, "status.declaredFeatures"))
    if ctx.minor_version(Side.VIRTUAL) < FEATURES_SINCE or not is_there:
        return {}
    return {"declaredFeatures": names}


def _served(ctx: Context[NodeConfig]) -> list[str]:
    """Return the features of a host node that isn't read: all, as the host has the last word about what needs one."""
    takes_web_sockets = ctx.minor_version(Side.HOST) >= WEB_SOCKETS_SINCE
    return [name for name in FEATURES if name != WEB_SOCKETS or takes_web_sockets]


def _nodes_of(pod: Obj) -> Iterable[str]:
    name = dig(pod, "spec.nodeName")
    return (name,) if name else ()


def _keys(pod: Obj, settings: Settings) -> Iterable[Key]:
    names = _nodes_of(pod)
    if not names or not settings.marks.is_ours(pod, cluster=settings.identity, resource=PODS):
        return ()
    return [Key("", name) for name in names]


def _keys_of_virtual(pod: Obj, settings: Settings) -> Iterable[Key]:
    return [Key("", name) for name in _nodes_of(pod)]


def _is_used(ctx: Context[NodeConfig], node: str) -> bool:
    return any(_is_our_pod(ctx, key) for key in ctx.reader.indexed(Side.HOST, PODS, "node", node))


def _is_our_pod(ctx: Context[NodeConfig], key: Key) -> bool:
    pod = ctx.host(PODS, key)
    return pod is not None and ctx.marks.is_ours(pod, cluster=ctx.identity, resource=PODS)


def _since(node: Obj) -> dict[str, str]:
    """Return the time of the last transition for each condition that is as it should be."""
    right = {kind: status for kind, status, _ in _CONDITIONS}
    found = dig(node, "status.conditions") or ()
    return {
        one["type"]: one["lastTransitionTime"]
        for one in found
        if one.get("lastTransitionTime") and right.get(one["type"]) == one.get("status")
    }


def _node(ctx: Context[NodeConfig], name: str, virtual: Obj | None) -> Obj:
    """Return the stand-in; ``virtual`` is the Node as it is, None for a new one."""
    usual = NodeConfig()
    room = {field: getattr(ctx.config, field) or getattr(usual, field) for field in ("cpu", "memory", "pods")}
    now, since = times.written(ctx.now), _since(virtual or {})
    conditions = [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": _MESSAGE,
            "lastTransitionTime": since.get(kind, now),
        }
        for kind, status, reason in _CONDITIONS
    ]
    metadata: Obj = {"name": name, "labels": _labels(ctx, name)}
    if virtual is not None:
        metadata["resourceVersion"] = virtual["metadata"].get("resourceVersion", "")
    taints = [taint for taint in dig(virtual or {}, "spec.taints") or () if taint["key"] != _NEW]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": {"taints": taints},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": conditions,
            **declared(ctx, _served(ctx), virtual),
            **addresses(ctx.settings, name),
        },
    }


def _labels(ctx: Context[NodeConfig], name: str) -> dict[str, str]:
    return {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", ctx.marks.cluster: ctx.identity}
