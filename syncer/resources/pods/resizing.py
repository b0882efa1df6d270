"""In-place resizing: changed requests and limits of a running Pod.

Only changes of the tenant's are sent, as the host may have other values on purpose: its LimitRanges
add some, and its webhooks lower some. See
https://kubernetes.io/docs/tasks/configure-pod-container/resize-container-resources/.
"""

import hashlib
from collections.abc import Iterator

from syncer.api import Obj
from syncer.resources.pods.record import PodRecord

#: The subresource that resources are changed through.
SUBRESOURCE = "resize"
#: Below the marks' prefix: a digest of the resources that were sent last, if there are any.
RESOURCES = "pod-resources"

_PARTS = ("containers", "initContainers")
_SIDES = ("limits", "requests")
#: The resources that can change; none can be removed.
_CHANGEABLE = ("cpu", "memory")


def resources_digest(spec: Obj) -> str:
    """Return a short digest of all requests and limits, by container; ``""`` if there are none."""
    found = []
    for name, resources in _resources(spec):
        for side in _SIDES:
            amounts = resources.get(side)
            if amounts:
                found.append(f"{name} {side} {sorted(amounts.items())}")
    if not found:
        return ""
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]


def _resources(spec: Obj) -> Iterator[tuple[str, Obj]]:
    """Yield the resources of the Pod as a whole, and of each container, by its name."""
    if spec.get("resources"):
        yield "", spec["resources"]
    for part in _PARTS:
        for container in spec.get(part) or ():
            if container.get("resources"):
                yield container["name"], container["resources"]


def lacking(wanted: Obj, actual: Obj, sent: PodRecord) -> Obj:
    """Return the part of a spec with the cpu and memory that another spec lacks.

    ``{}`` if it lacks none. Of the containers, only those count that were sent.
    """
    spec: Obj = {}
    if whole := _unlike(wanted.get("resources"), actual.get("resources")):
        spec["resources"] = whole
    for part in _PARTS:
        theirs = {each["name"]: each.get("resources") for each in actual.get(part) or ()}
        changed = []
        for container in wanted.get(part) or ():
            name = container["name"]
            if name not in theirs or not sent.has(part, name):
                continue
            resources = _unlike(container.get("resources"), theirs[name])
            if resources:
                changed.append({"name": name, "resources": resources})
        if changed:
            spec[part] = changed
    return spec


def _unlike(wanted: Obj | None, actual: Obj | None) -> Obj:
    """Return the wanted cpu and memory that differ from the actual ones, by side."""
    result: Obj = {}
    for side in _SIDES:
        given = (wanted or {}).get(side) or {}
        there = (actual or {}).get(side) or {}
        changeable = {name: given[name] for name in _CHANGEABLE if name in given}
        left = {name: value for name, value in changeable.items() if there.get(name) != value}
        if left:
            result[side] = left
    return result
