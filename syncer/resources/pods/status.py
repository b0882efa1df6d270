"""Pod status: the host's status comes up; only the conditions of readiness gates go down.

A kubelet writes the status of its pods as a whole, so a condition that is written back to the host
from an older copy would erase newer ones of the kubelet. Therefore the host's status is never
written, except for the conditions that the tenant's own controllers set.
"""

from syncer.api import Obj, Pair
from syncer.resources.pods.containers import Sent

#: Conditions that the host's control plane and kubelet set. Of others, those that only the virtual
#: Pod has are kept.
HOST_CONDITIONS = frozenset(
    {
        "PodScheduled",
        "PodReadyToStartContainers",
        "Initialized",
        "ContainersReady",
        "Ready",
        "PodResizePending",
        "PodResizeInProgress",
    }
)

#: Fields with the names of claims for devices that the host's own controllers made. Those of the virtual cluster's
#: stay.
HOST_CLAIMS = ("resourceClaimStatuses", "extendedResourceClaimStatus", "nodeAllocatableResourceClaimStatuses")

_STATUSES = (
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
)


def virtual_status(pair: Pair, sent: Sent, *, behind: bool = False) -> Obj | None:
    """Return the status of the virtual Pod, or None if the host hasn't reported one yet.

    Args:
        pair: The Pod and its copy.
        sent: The containers of the copy that were sent; of others, nothing comes up.
        behind: The host pod lacks changes of the spec, so its kubelet hasn't observed them.
    """
    reported = pair.host.get("status") or {}
    if not reported.get("phase") or _says_only_that_it_is_placed(reported):
        return None
    status = dict(reported)
    _keep_own(status, pair, behind=behind)
    if conditions := _conditions(pair, behind=behind):
        status["conditions"] = conditions
    for part, containers in _STATUSES:
        if part in status:
            status[part] = [each for each in status[part] if each.get("name") in sent.get(containers, ())]
    return status


def _says_only_that_it_is_placed(reported: Obj) -> bool:
    """Return True if no kubelet has reported yet: the binding of the virtual Pod says as much."""
    conditions = reported.get("conditions") or ()
    placed = [one.get("type") == "PodScheduled" and one.get("status") == "True" for one in conditions]
    return reported["phase"] == "Pending" and "startTime" not in reported and bool(placed) and all(placed)


def gate_conditions(pair: Pair) -> list[Obj]:
    """Return the conditions that go down: those of the readiness gates, from the virtual Pod."""
    gates = _gates(pair.virtual)
    if not gates:
        return []
    own = (pair.virtual.get("status") or {}).get("conditions") or ()
    return [_without_generation(condition) for condition in own if condition.get("type") in gates]


def _keep_own(status: Obj, pair: Pair, *, behind: bool) -> None:
    """Keep the virtual quality of service, which can't change though the host's may differ, and what the virtual
    cluster's own controllers say of claims; and set our own generations.
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
    gates = _gates(pair.virtual)
    own = {one.get("type"): one for one in (pair.virtual.get("status") or {}).get("conditions") or ()}
    result = []
    for condition in pair.host["status"].get("conditions") or ():
        kind = condition.get("type")
        mine = own.pop(kind, None)
        if mine is not None and kind in gates:
            result.append(mine)
        else:
            result.append(_translated(condition, pair, mine, behind=behind))
    return result + [one for kind, one in own.items() if kind in gates or kind not in HOST_CONDITIONS]


def _gates(pod: Obj) -> frozenset[str]:
    gates = pod["spec"].get("readinessGates") or ()
    return frozenset(gate["conditionType"] for gate in gates) - HOST_CONDITIONS


def _translated(condition: Obj, pair: Pair, own: Obj | None, *, behind: bool) -> Obj:
    if "observedGeneration" not in condition:
        return condition
    result = dict(condition)
    _set_generation(result, pair, own, behind=behind)
    return result


def _set_generation(part: Obj, pair: Pair, own: Obj | None, *, behind: bool) -> None:
    """Set the virtual generation if the host observed all of it, which means its own latest one;
    otherwise keep the one that is there.
    """
    seen = part.pop("observedGeneration", None)
    virtual, host = (obj["metadata"].get("generation") for obj in (pair.virtual, pair.host))
    if seen and virtual and host and seen >= host and not behind:
        part["observedGeneration"] = virtual
    elif own and "observedGeneration" in own:
        part["observedGeneration"] = own["observedGeneration"]


def _without_generation(condition: Obj) -> Obj:
    return {name: value for name, value in condition.items() if name != "observedGeneration"}
