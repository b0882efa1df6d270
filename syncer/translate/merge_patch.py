"""JSON merge patches, as an API server applies them."""

from collections.abc import Mapping, Sequence
from typing import Any

from syncer.api import Obj


def merged(target: Obj, patch: Mapping[str, Any], *, by_type: bool = False) -> Obj:
    """Return the target with a merge patch (RFC 7386) applied; the arguments are not changed.

    With ``by_type``, lists whose items all have a ``type`` are merged by it, such as conditions in
    a strategic merge patch.
    """
    result = dict(target)
    for name, value in patch.items():
        live: Any = result.get(name)
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            result[name] = merged(live if isinstance(live, dict) else {}, value, by_type=by_type)
        elif by_type and _has_types(value) and _has_types(live):
            result[name] = _by_type(live, value)
        else:
            result[name] = value
    return result


def _has_types(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) and "type" in item for item in value)


def _by_type(live: Sequence[Obj], patch: Sequence[Obj]) -> list[Obj]:
    found = {item["type"]: item for item in live}
    for item in patch:
        found[item["type"]] = {**found.get(item["type"], {}), **item}
    return list(found.values())
