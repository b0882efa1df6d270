"""Pod status: the host's status comes up; only the conditions of readiness gates go down.

A kubelet writes the status of its pods as a whole, so a condition that is written back to the host
from an older copy would erase newer ones of the kubelet. Therefore the host's status is never
written, except for the conditions that the tenant's own controllers set.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from syncer.api import Obj, Pair, shortened

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

#: The state of a container that has ended, whose message is its own.
_OWN = "terminated"

#: A word of a message that may be a name: a DNS subdomain, as Kubernetes wants names of most kinds. A
#: full stop after it is none of it.
_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?")

_STATUSES = (
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
)


def virtual_status(pair: Pair, *, behind: bool = False) -> Obj | None:
    """Return the status of the virtual Pod, or None if the host hasn't reported one yet.

    ``behind``: the host pod lacks changes of the spec, so its kubelet hasn't observed them.
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
            status[part] = _of_containers(status[part], pair.virtual["spec"].get(containers) or ())
    return status


def may_name_host(reported: Obj, host: Obj) -> bool:
    """Return True if a message of the status may contain a name of the host: it quotes a name, or has
    the host namespace in it.
    """
    namespace = host["metadata"].get("namespace") or '"'
    return any('"' in text or namespace in text for text in _messages(reported))


def with_virtual_names(reported: Obj, names: Mapping[str, str], phrases: Iterable[tuple[str, str]]) -> Obj:
    """Return the status with host names in its messages replaced.

    Args:
        reported: The status; not changed.
        names: Virtual names by host name. Each word of a message is looked up, so the time doesn't
            grow with the number of names.
        phrases: Host texts, each with the virtual one, replaced afterwards, the longest first. They
            are few, as each message is searched for each.
    """
    phrases = sorted(phrases, key=lambda phrase: len(phrase[0]), reverse=True)

    def told(value: Any) -> Any:
        if isinstance(value, list):
            return [told(each) for each in value]
        if not isinstance(value, dict):
            return value
        return {
            name: each if name == _OWN else _told(each, names, phrases) if name == "message" else told(each)
            for name, each in value.items()
        }

    result: Obj = told(reported)
    return result


def _told(message: Any, names: Mapping[str, str], phrases: Iterable[tuple[str, str]]) -> Any:
    if not isinstance(message, str):
        return message
    message = _NAME.sub(lambda found: names.get(found[0], found[0]), shortened(message))
    for host, virtual in phrases:
        message = message.replace(host, virtual)
    return message


def _messages(value: Any) -> Iterator[str]:
    """Yield all messages in a status."""
    if isinstance(value, list):
        for each in value:
            yield from _messages(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if name == "message" and isinstance(each, str):
                yield each
            elif name != _OWN:
                yield from _messages(each)


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


def _of_containers(statuses: list[Obj], containers: Iterable[Obj]) -> list[Obj]:
    """Return the statuses without those of containers that the host added to the pod."""
    names = {container["name"] for container in containers}
    return [status for status in statuses if status.get("name") in names]
