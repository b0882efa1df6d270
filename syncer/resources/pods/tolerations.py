"""Tolerations of a Pod: a bounded list, compared by its fields.

The API server accepts any number of tolerations, and they can be added to a running Pod.
"""

from collections.abc import Iterable

from syncer.api import Obj, TooLarge

#: Most tolerations of a virtual Pod, as each is compared in every decision about it.
MOST_TOLERATIONS = 200

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
