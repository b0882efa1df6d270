"""The phase of a Pod's life, and whether the host should run the Pod: now, later, or never."""

from syncer.api import (
    Config,
    Context,
    Decision,
    Key,
    Obj,
    Pair,
    annotations_of,
    delete,
    is_deleting,
    reasons,
    skip,
)
from syncer.resources.kinds import NODES
from syncer.resources.pods.config import is_bound_first
from syncer.resources.pods.ended import LOST, failed_status

#: The kubelet's annotation on a mirror Pod, which represents a manifest on a node's disk.
MIRROR = "kubernetes.io/config.mirror"

_FINISHED = ("Succeeded", "Failed")


def is_finished(pod: Obj) -> bool:
    """Return True if all containers have ended for good."""
    return (pod.get("status") or {}).get("phase") in _FINISHED


def has_started(pod: Obj, *, bound_first: bool = False) -> bool:
    """Return True if a kubelet may have started the Pod; then it is never started again elsewhere.

    A Pod that was bound to a node may have run there even if no status says so, unless it is bound
    before it has a copy (``bound_first``). A Pod created with a node's name lacks the condition
    that a binding sets.
    """
    status = pod.get("status") or {}
    if status.get("startTime") or status.get("phase", "Pending") in ("Running", "Unknown"):
        return True
    if bound_first or not (pod.get("spec") or {}).get("nodeName"):
        return False
    conditions = status.get("conditions") or ()
    bound = [one.get("status") for one in conditions if one.get("type") == "PodScheduled"]
    return "True" in bound


def is_mirror(pod: Obj) -> bool:
    """Return True for a mirror Pod, which represents a manifest on a node's disk."""
    return MIRROR in annotations_of(pod)


def runs_elsewhere(ctx: Context, virtual: Obj) -> bool:
    """Return True if the Pod is on a Node of the virtual cluster itself, with its own kubelet."""
    name = (virtual.get("spec") or {}).get("nodeName")
    if not name:
        return False
    node = ctx.virtual(NODES, Key("", name))
    return node is not None and not ctx.marks.is_from_here(node, cluster=ctx.identity)


def is_bound_apart(pair: Pair) -> bool:
    """Return True if a Pod is bound to a node on either side, and to different ones."""
    own = pair.virtual["spec"].get("nodeName")
    of_host = pair.host["spec"].get("nodeName")
    return bool(own and of_host) and own != of_host


def is_selected(ctx: Context, virtual: Obj) -> bool:
    """Return True if the Pod's labels match the ``selector`` of Pods to sync."""
    pods = ctx.settings.section("pods", Config)
    return pods is None or pods.selector.selects(virtual)


def not_to_run(ctx: Context, virtual: Obj) -> Decision | None:
    """Return the decision about a virtual Pod without a copy; None if the host should run it.

    Caches are complete when a syncer is called, so a copy that isn't cached doesn't exist.
    """
    if runs_elsewhere(ctx, virtual):
        return skip(reasons.OWN_NODE())
    if is_deleting(virtual):
        return _end(ctx, virtual)
    if has_started(virtual, bound_first=is_bound_first(ctx.settings)):
        why = "it had started and is no longer on the host"
        why = f"{why}; a Pod that has started is never started again"
        final = _final_status(ctx, virtual, is_disrupted=True)
        return ended_by_host(delete(virtual=virtual, grace=0, final_status=final, reason=why))
    if is_finished(virtual):
        return skip(reasons.FINISHED())
    if (virtual.get("spec") or {}).get("schedulingGates"):
        return skip(reasons.GATED())
    return None


def ended_by_host(decision: Decision) -> Decision:
    """Return a decision that ends a Pod with an event, as the tenant has not asked for the end."""
    return decision.warn("HostCopyDeleted", f"{LOST}; its controller may create another")


def _end(ctx: Context, virtual: Obj) -> Decision:
    """Finish a deletion: nothing runs any more.

    An API server deletes in two steps: it marks the Pod, then removes it. A request that is cut in
    between leaves a Pod marked that has no finalizers; a further deletion removes it.
    """
    metadata = virtual["metadata"]
    status = _final_status(ctx, virtual, is_disrupted=False)
    is_marked = metadata.get("deletionGracePeriodSeconds") == 0
    if status is None and is_marked and metadata.get("finalizers"):
        return skip(reasons.WAITS_FOR_FINALIZERS())
    reason = "it is being deleted, and no longer runs on the host"
    return delete(virtual=virtual, grace=0, final_status=status, reason=reason)


def _final_status(ctx: Context, virtual: Obj, *, is_disrupted: bool) -> Obj | None:
    """Return the status to end with; None if the Pod has ended already, or can't be read.

    Of a Pod that can't be read only the metadata is known.
    """
    is_known = bool(virtual.get("spec"))
    if not is_known or is_finished(virtual):
        return None
    return failed_status(virtual, ctx.now, is_disrupted=is_disrupted)
