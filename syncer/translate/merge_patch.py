"""JSON merge patches, as an API server applies them."""

from collections.abc import Mapping, Sequence
from typing import Any

from syncer.api import Obj

#: The fields by which items of a list are told apart, as of containers and of conditions.
_KEYS = ("name", "type")


def merged(target: Obj, patch: Mapping[str, Any], *, by_key: bool = False) -> Obj:
    """Return the target with a merge patch (RFC 7386) applied; the arguments are not changed.

    With ``by_key``, lists whose items all have a ``name``, or all a ``type``, are merged by it, such as
    containers and conditions in a strategic merge patch.
    """
    result = dict(target)
    for name, value in patch.items():
        live: Any = result.get(name)
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            result[name] = merged(live if isinstance(live, dict) else {}, value, by_key=by_key)
        elif by_key and (key := _key(value, live)):
            result[name] = _by_key(live, value, key)
        else:
            result[name] = value
    return result


def _key(*lists: Any) -> str:
    """Return the field that all items of some lists have; ``""`` if there is none."""
    for key in _KEYS:
        if all(
            isinstance(each, list) and all(isinstance(item, dict) and key in item for item in each) for each in lists
        ):
            return key
    return ""


def _by_key(live: Sequence[Obj], patch: Sequence[Obj], key: str) -> list[Obj]:
    found = {item[key]: item for item in live}
    for item in patch:
        found[item[key]] = merged(found.get(item[key], {}), item, by_key=True)
    return list(found.values())
