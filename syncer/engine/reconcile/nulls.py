"""Nulls that are values. Pure.

No merge patch can write one, as null removes a field there (RFC 7386). In our merge patches such a
null is :data:`~syncer.clusters.codec.NULL`; a patch that has any is sent as a JSON patch
(RFC 6902).
"""

from collections.abc import Iterator
from typing import Any

from syncer.api.objects import Obj
from syncer.clusters.codec import NULL
from syncer.translate.pointers import ValuePath, written


def with_nulls(value: Any) -> Any:
    """Return a JSON value for a merge patch that writes it as it is."""
    if value is None:
        return NULL
    if isinstance(value, dict):
        return {name: with_nulls(below) for name, below in value.items()}
    if isinstance(value, list):
        return [with_nulls(item) for item in value]
    return value


def has_nulls(patch: Any) -> bool:
    """Return True if a merge patch writes a null."""
    if isinstance(patch, dict):
        return any(map(has_nulls, patch.values()))
    if isinstance(patch, list):
        return any(map(has_nulls, patch))
    return patch is NULL


def json_patch(patch: Obj, live: Obj) -> list[Obj]:
    """Return the JSON patch that changes a live object as a merge patch would."""
    return list(_operations(patch, live, ()))


def _operations(patch: Obj, live: Obj, above: ValuePath) -> Iterator[Obj]:
    for name, value in patch.items():
        path = (*above, name)
        found = live.get(name)
        if value is None:
            if name in live:
                yield {"op": "remove", "path": written(path)}
        elif isinstance(value, dict) and isinstance(found, dict):
            yield from _operations(value, found, path)
        else:
            yield {"op": "add", "path": written(path), "value": _without_removals(value)}


def _without_removals(value: Any) -> Any:
    """Return the value that a merge patch gives to a missing field."""
    if not isinstance(value, dict):
        return value
    return {name: _without_removals(below) for name, below in value.items() if below is not None}
