"""Nulls that are values: no merge patch can write one, as null removes a field there (RFC 7386). Pure.

In our merge patches such a null is :data:`~syncer.clusters.codec.NULL`; a patch that has any is sent as a JSON patch
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
    return [with_nulls(item) for item in value] if isinstance(value, list) else value


def has_nulls(patch: Any) -> bool:
    """Return True if a merge patch writes a null."""
    if isinstance(patch, dict):
        return any(map(has_nulls, patch.values()))
    return any(map(has_nulls, patch)) if isinstance(patch, list) else patch is NULL


def json_patch(patch: Obj, live: Obj) -> list[Obj]:
    """Return the JSON patch that does to a live object what a merge patch says."""
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
    """Return what a merge patch makes of a field that is missing."""
    if not isinstance(value, dict):
        return value
    return {name: _without_removals(below) for name, below in value.items() if below is not None}
