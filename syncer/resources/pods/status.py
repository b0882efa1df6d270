"""Pod status: the host's status comes up; only the conditions of readiness gates go down.

A kubelet writes the status of its pods as a whole, so a condition that is written back to the host
from an older copy would erase newer ones of the kubelet. Therefore the host's status is never
written, except for the conditions that the tenant's own controllers set.
"""

from syncer.api import Obj, Pair
from syncer.resources.pods.record import PodRecord

#: Conditions that the host's control plane and kubelet set, and that no readiness gate may write
#: there. Of others, those that only the virtual Pod has are kept.
HOST_CONDITIONS = frozenset(
    {
        "PodScheduled",
        "PodReadyToStartContainers",
        "Initialized",
        "ContainersReady",
        "Ready",
        "PodResizePending",
        "PodResizeInProgress",
        "DisruptionTarget",
    }
)
#: Those of them that the virtual cluster's own control plane sets, too, as it evicts a Pod: it
#: stays if the host has none, for a Job's policy on failures.
_OF_BOTH = frozenset({"DisruptionTarget"})

#: Fields with the names of claims for devices that the host's own controllers made. Those of the
#: virtual cluster's stay.
HOST_CLAIMS = (
    "resourceClaimStatuses",
    "extendedResourceClaimStatus",
    "nodeAllocatableResourceClaimStatuses",
)

_STATUSES = (
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
)


def virtual_status(pair: Pair, sent: PodRecord, *, behind: bool = False) -> Obj | None:
    """Return the status of the virtual Pod, or None if the host hasn't reported one yet.

    Args:
        pair: The Pod and its copy.
        sent: What of the copy was sent; of other containers, nothing comes up.
        behind: The host pod lacks changes of the spec, so its kubelet hasn't observed them.
    """
    reported = pair.host.get("status") or {}
    if not reported.get("phase") or _is_only_placed(reported):
        return None
    status = dict(reported)
    _keep_own(status, pair, behind=behind)
    if conditions := _conditions(pair, behind=behind):
        status["conditions"] = conditions
    for part, containers in _STATUSES:
        if part in status:
            status[part] = [each for each in status[part] if sent.has(containers, each.get("name"))]
    return status


def _is_only_placed(reported: Obj) -> bool:
    """Return True if the scheduler has reported, and no kubelet yet.

    The binding of the virtual Pod has the same effect on its status.
    """
    if reported["phase"] != "Pending" or "startTime" in reported:
        return False
    conditions = reported.get("conditions") or ()
    for one in conditions:
        if one.get("type") != "PodScheduled" or one.get("status") != "True":
            return False
    return bool(conditions)


def gate_conditions(pair: Pair) -> list[Obj]:
    """Return the conditions that go down: those of the readiness gates, from the virtual Pod."""
    gates = _gates(pair.virtual)
    if not gates:
        return []
    result = []
    for condition in (pair.virtual.get("status") or {}).get("conditions") or ():
        if condition.get("type") in gates:
            # The generation is that of the virtual Pod, and another one on the host.
            kept = dict(condition)
            kept.pop("observedGeneration", None)
            result.append(kept)
    return result


def _keep_own(status: Obj, pair: Pair, *, behind: bool) -> None:
    """Keep the fields of the virtual status that the host doesn't own.

    These are the quality of service, which can't change though the host's may differ, the claims
    that the virtual cluster's own controllers report, and the generation.
    """
    own = pair.virtual.get("status") or {}
    if "qosClass" in own:
        status["qosClass"] = own["qosClass"]
    for field in HOST_CLAIMS:
        status.pop(field, None)
        if field in own:
            status[field] = own[field]
    _set_generation(status, pair, own, behind=behind)


def _conditions(pair: Pair, *, behind: bool) -> list[Obj]:
    """Return the host's conditions, and those that only the virtual Pod has."""
    gates = _gates(pair.virtual)
    conditions = (pair.virtual.get("status") or {}).get("conditions") or ()
    own = {one.get("type"): one for one in conditions}
    result = []
    for condition in pair.host["status"].get("conditions") or ():
        kind = condition.get("type")
        mine = own.pop(kind, None)
        if mine is not None and kind in gates:
            result.append(mine)
        else:
            result.append(_translated(condition, pair, mine, behind=behind))
    for kind, mine in own.items():
        if kind in gates or kind in _OF_BOTH or kind not in HOST_CONDITIONS:
            result.append(mine)
    return result


def _gates(pod: Obj) -> frozenset[str]:
    """Return the conditions of a Pod's readiness gates."""
    gates = pod["spec"].get("readinessGates")
    if not gates:
        return frozenset()
    return frozenset(gate["conditionType"] for gate in gates) - HOST_CONDITIONS


def _translated(condition: Obj, pair: Pair, own: Obj | None, *, behind: bool) -> Obj:
    """Return a condition of the host's with the virtual generation, if there is one in it."""
    if "observedGeneration" not in condition:
        return condition
    result = dict(condition)
    _set_generation(result, pair, own, behind=behind)
    return result


def _set_generation(part: Obj, pair: Pair, own: Obj | None, *, behind: bool) -> None:
    """Set the virtual generation if the host's kubelet has observed all of it.

    That is so if it has observed the host pod's latest one. Otherwise the generation that is there
    stays.
    """
    observed = part.pop("observedGeneration", None)
    virtual = pair.virtual["metadata"].get("generation")
    host = pair.host["metadata"].get("generation")
    if observed and virtual and host and observed >= host and not behind:
        part["observedGeneration"] = virtual
    elif own and "observedGeneration" in own:
        part["observedGeneration"] = own["observedGeneration"]
