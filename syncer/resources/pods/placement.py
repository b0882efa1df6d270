"""Pods that a scheduler of the virtual cluster places: each gets a copy once it is bound there.

The copy may run on that node alone. A required node affinity says so, as in the Pods of a
DaemonSet, rather than ``nodeName``: that would pass the host's scheduler by, and with it the taints
of the operator's, volumes, and the room that other tenants have left. A kubelet fails a pod that it
has no room for, and its controller would make the next one at once.

The tenant's scheduler has gone by labels, taints and resources that Nodes may have in the virtual
cluster alone. What it has decided doesn't go down.
"""

from collections.abc import Iterable, Mapping

from syncer.api import (
    Context,
    Decision,
    Key,
    Obj,
    ObjectRef,
    Pair,
    Settings,
    Side,
    Source,
    annotations_of,
    delete,
    dig,
    reasons,
    wait,
)
from syncer.resources.host_nodes import shown_node, shown_nodes
from syncer.resources.kinds import NODES
from syncer.resources.node_quota import is_extended
from syncer.resources.pods.config import PodConfig, is_bound_first
from syncer.resources.pods.ended import NODE_GONE, failed_status

#: The fields by which a scheduler chooses a node.
DECIDED = frozenset(
    {"affinity", "nodeName", "nodeSelector", "schedulerName", "topologySpreadConstraints"}
)
#: Below the marks' prefix: the node that a copy is for.
_BOUND_TO = "bound-to"
_SIDES = ("limits", "requests")


def sources(settings: Settings) -> Iterable[Source]:
    """Yield the nodes of the host that Pods may be bound to, where the tenant's scheduler binds."""
    if is_bound_first(settings):
        yield shown_nodes(settings)


def obstacle(ctx: Context[PodConfig], virtual: Obj) -> Decision | None:
    """Return the decision about a Pod that isn't bound to a node of the host; None otherwise.

    One that is bound to a node that isn't there, or isn't shown, ends as Kubernetes' garbage
    collector of Pods ends it.
    """
    node = virtual["spec"].get("nodeName")
    if not node:
        return wait(reasons.NOT_BOUND())
    if shown_node(ctx, node) is None:
        return _ended(ctx, virtual)
    return None


def moved(ctx: Context[PodConfig], pair: Pair) -> Decision | None:
    """Return the decision about a copy that isn't for the node of its Pod; None if it is.

    The host has not placed it yet. It was made while the host's scheduler chose the nodes, or its
    node is gone.
    """
    if pair.host["spec"].get("nodeName"):
        return None
    node = pair.virtual["spec"].get("nodeName")
    if not node or annotations_of(pair.host).get(_mark(ctx)) != node:
        why = "it wasn't made for the node that the virtual cluster's scheduler chooses"
        return delete(host=pair.host, reason=why)
    if shown_node(ctx, node) is None:
        return _ended(ctx, pair.virtual)
    return None


def awaited(pair: Pair) -> Decision:
    """Return a wait while the host hasn't put the copy on its node."""
    if pair.host["spec"].get("nodeName"):
        return Decision()
    node = pair.virtual["spec"]["nodeName"]
    there = ObjectRef(Side.HOST, NODES, Key("", node))
    return wait(reasons.NOT_PLACED(node), on=(there,))


def annotations(ctx: Context[PodConfig], virtual: Obj) -> Mapping[str, str]:
    """Return the annotation of a copy that names its node; none while its Pod isn't bound."""
    node = virtual["spec"].get("nodeName")
    if node:
        return {_mark(ctx): node}
    return {}


def pinned(ctx: Context[PodConfig], spec: Obj) -> Obj:
    """Return the spec of a bound Pod for that node alone, without what the host doesn't know."""
    node = spec["nodeName"]
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    result = {name: value for name, value in spec.items() if name not in DECIDED}
    result["affinity"] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
    }

    known = dig(shown_node(ctx, node) or {}, "status.allocatable") or {}
    if "resources" in result:
        result["resources"] = _without_unknown(result["resources"], known)
    for part in ("containers", "initContainers"):
        if part in result:
            result[part] = [_known_to_host(container, known) for container in result[part]]
    return result


def _mark(ctx: Context[PodConfig]) -> str:
    return f"{ctx.marks.prefix}/{_BOUND_TO}"


def _ended(ctx: Context[PodConfig], virtual: Obj) -> Decision:
    """Return the decision to end a Pod that hasn't started and whose node isn't there."""
    final = failed_status(virtual, ctx.now, is_disrupted=True, message=NODE_GONE)
    decision = delete(virtual=virtual, grace=0, final_status=final, reason=NODE_GONE)
    return decision.warn("NodeGone", f"{NODE_GONE}; its controller may create another")


def _known_to_host(container: Obj, known: Mapping[str, object]) -> Obj:
    resources = container.get("resources")
    if not resources:
        return container
    return {**container, "resources": _without_unknown(resources, known)}


def _without_unknown(resources: Obj, known: Mapping[str, object]) -> Obj:
    """Return requests and limits without extended resources that the host's node doesn't have.

    The tenant has given the virtual Node those.
    """
    result = dict(resources)
    for side in _SIDES:
        given = resources.get(side)
        if given:
            result[side] = {
                name: amount
                for name, amount in given.items()
                if name in known or not is_extended(name)
            }
    return result
