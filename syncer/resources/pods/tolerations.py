"""Tolerations of a Pod: a bounded list, compared by its fields.

The API server accepts any number of tolerations, and they can be added to a running Pod.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from syncer.api import Obj, TooLarge

#: Most tolerations of a virtual Pod, as each is compared in every decision about it.
MOST_TOLERATIONS = 200

#: The keys of the taints by which Kubernetes shows the state of a node
#: (Kubernetes, "Well-Known Labels, Annotations and Taints").
_STATES = (
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
)

_FIELDS = ("key", "operator", "value", "effect")
_DEFAULTS = {"operator": "Equal"}


def own(spec: Obj) -> list[Obj]:
    """Return the tolerations of a virtual Pod.

    Raises:
        TooLarge: There are too many.
    """
    found: list[Obj] = spec.get("tolerations") or []
    if len(found) > MOST_TOLERATIONS:
        why = f"has {len(found)} tolerations, and {MOST_TOLERATIONS} are accepted; use fewer"
        raise TooLarge(why, path="spec.tolerations")
    return found


def allowed(given: list[Obj], enforced: Iterable[str]) -> list[Obj]:
    """Return the tolerations of a Pod without those of enforced taints, by patterns of their keys.

    One of all taints becomes tolerations of those that show the state of a node.
    """
    patterns = tuple(enforced)
    if not patterns:
        return given
    found: dict[tuple[object, ...], Obj] = {}
    for toleration in given:
        keys: Iterable[str] = (toleration.get("key") or "",)
        if keys == ("",):
            keys = _STATES
        for key in keys:
            if not any(fnmatchcase(key, pattern) for pattern in patterns):
                kept = {**toleration, "key": key}
                found[_written(kept)] = kept
    return list(found.values())


def left_out(given: list[Obj], enforced: Iterable[str]) -> list[str]:
    """Return the paths of the tolerations that don't go down as they are."""
    there = allowed(given, enforced)
    lost = dict.fromkeys(one.get("key") or "*" for one in given if one not in there)
    return [f"spec.tolerations[{key}]" for key in lost]


def missing(wanted: Iterable[Obj], actual: Iterable[Obj]) -> list[Obj]:
    """Return the wanted tolerations that aren't there as they are, seconds included."""
    there = {_written(one) for one in actual}
    return [one for one in wanted if _written(one) not in there]


def merged(wanted: list[Obj], actual: list[Obj]) -> list[Obj] | None:
    """Return the host's tolerations and the tenant's; None if the host has them all.

    A toleration can't be removed.
    """
    added = missing(wanted, actual)
    if not added:
        return None
    replaced = {_identity(one) for one in added}
    return [one for one in actual if _identity(one) not in replaced] + added


def _written(toleration: Obj) -> tuple[object, ...]:
    return (*_identity(toleration), toleration.get("tolerationSeconds"))


def _identity(toleration: Obj) -> tuple[str, ...]:
    """Return the identity of a toleration; only its seconds can change."""
    return tuple(toleration.get(part) or _DEFAULTS.get(part, "") for part in _FIELDS)
