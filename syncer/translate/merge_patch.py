"""JSON merge patches, as an API server applies them."""

from collections.abc import Mapping, Sequence
from typing import Any

from syncer.api import Obj

#: The fields that identify the items of a list, as of containers and of conditions.
_KEYS = ("name", "type")


def merged(target: Obj, patch: Mapping[str, Any], *, by_key: bool = False) -> Obj:
    """Return the target with a merge patch (RFC 7386) applied; the arguments are not changed.

    With ``by_key``, a list in which each item has a ``name``, or each a ``type``, is merged by it,
    such as containers and conditions in a strategic merge patch.
    """
    result = dict(target)
    for name, value in patch.items():
        live: Any = result.get(name)
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            below = live if isinstance(live, dict) else {}
            result[name] = merged(below, value, by_key=by_key)
        elif by_key and (key := _key(value, live)):
            result[name] = _by_key(live, value, key)
        else:
            result[name] = value
    return result


def _key(patch: Any, live: Any) -> str:
    """Return the field that all items of both lists have; ``""`` if there is none."""
    for key in _KEYS:
        if _all_have(patch, key) and _all_have(live, key):
            return key
    return ""


def _all_have(items: Any, key: str) -> bool:
    if not isinstance(items, list):
        return False
    return all(isinstance(item, dict) and key in item for item in items)


def _by_key(live: Sequence[Obj], patch: Sequence[Obj], key: str) -> list[Obj]:
    """Return the live list with the patch's items merged into those of the same key."""
    found = {item[key]: item for item in live}
    for item in patch:
        found[item[key]] = merged(found.get(item[key], {}), item, by_key=True)
    return list(found.values())
