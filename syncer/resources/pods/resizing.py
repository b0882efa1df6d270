"""In-place resizing: changed requests and limits of a running Pod.

Only changes of the tenant's are sent, as the host may have other values on purpose: its LimitRanges
add some, and its webhooks lower some. See
https://kubernetes.io/docs/tasks/configure-pod-container/resize-container-resources/.
"""

import hashlib
from collections.abc import Iterator

from syncer.api import Obj
from syncer.resources.pods.containers import Sent

#: The subresource that resources are changed through.
SUBRESOURCE = "resize"
#: Below the marks' prefix: a digest of the resources that were sent last; missing if there are none.
RESOURCES = "pod-resources"

_PARTS, _SIDES = ("containers", "initContainers"), ("limits", "requests")
#: The resources that can change; none can be removed.
_CHANGEABLE = ("cpu", "memory")


def resources_digest(spec: Obj) -> str:
    """Return a short digest of all requests and limits, by container; ``""`` if there are none."""
    found = [
        f"{name} {side} {sorted(resources[side].items())}"
        for name, resources in _resources(spec)
        for side in _SIDES
        if resources.get(side)
    ]
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16] if found else ""


def _resources(spec: Obj) -> Iterator[tuple[str, Obj]]:
    """Yield the resources of the Pod as a whole, and of each container, by its name."""
    if spec.get("resources"):
        yield "", spec["resources"]
    for part in _PARTS:
        for container in spec.get(part) or ():
            if container.get("resources"):
                yield container["name"], container["resources"]


def lacking(wanted: Obj, actual: Obj, sent: Sent) -> Obj:
    """Return the part of a spec with the cpu and memory that another spec lacks; ``{}`` if it has all.

    Of its containers, only those count that were sent.
    """
    spec: Obj = {}
    if whole := _unlike(wanted.get("resources"), actual.get("resources")):
        spec["resources"] = whole
    for part in _PARTS:
        theirs = {container["name"]: container.get("resources") for container in actual.get(part) or ()}
        changed = [
            {"name": name, "resources": resources}
            for container in wanted.get(part) or ()
            if (name := container["name"]) in theirs
            and name in sent.get(part, ())
            and (resources := _unlike(container.get("resources"), theirs[name]))
        ]
        if changed:
            spec[part] = changed
    return spec


def _unlike(wanted: Obj | None, actual: Obj | None) -> Obj:
    result: Obj = {}
    for side in _SIDES:
        there = (actual or {}).get(side) or {}
        given = ((wanted or {}).get(side) or {}).items()
        if left := {name: value for name, value in given if name in _CHANGEABLE and there.get(name) != value}:
            result[side] = left
    return result
