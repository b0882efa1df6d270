"""Plant unknown fields in objects, like those of the next version of Kubernetes."""

from collections.abc import Iterable, Sequence
from typing import Any

from syncer.api import FieldPath, Obj, Steps, dig, path_steps, path_text

#: The name of the planted fields, and their value.
MARKER = "zzAddedInTheNextVersion"

#: Parts that identify an object, and in which copies differ by nature.
_IDENTITY = ("apiVersion", "kind", "metadata", "status")
#: Maps with keys of the tenant's choice, where a new key is no unknown field.
_MAPS = frozenset(
    {
        "annotations",
        "data",
        "binaryData",
        "labels",
        "limits",
        "matchLabels",
        "nodeSelector",
        "requests",
        "selector",
    }
)


def planted(obj: Obj, *, paths: Sequence[FieldPath] | None, dropped: Iterable[str] = ()) -> Obj:
    """Return the object with an unknown field in every mapping below the paths (None: all parts but
    metadata and status).

    Dropped paths are left as they are; ``[]`` in them stands for any element of a list.
    """
    left_out = frozenset(dropped)
    if paths is None:
        paths = [part for part in obj if part not in _IDENTITY]
    result = dict(obj)
    for path in paths:
        found = dig(obj, path)
        if isinstance(found, dict | list):
            result = _set(result, path_steps(path), _plant(found, path_text(path), left_out))
    return result


def count(value: Any) -> int:
    """Count the planted fields."""
    if isinstance(value, dict):
        return (MARKER in value) + sum(count(below) for below in value.values())
    return sum(count(below) for below in value) if isinstance(value, list) else 0


def _plant(value: Any, path: str, left_out: frozenset[str]) -> Any:
    if path in left_out:
        return value
    if isinstance(value, list):
        return [_plant(one, f"{path}[]", left_out) for one in value]
    if not isinstance(value, dict):
        return value
    grown = {}
    for key, below in value.items():
        grown[key] = below if key in _MAPS else _plant(below, f"{path}.{key}", left_out)
    return {**grown, MARKER: "kept"}


def _set(obj: Obj, steps: Steps, value: Any) -> Obj:
    first = steps[0]
    rest = steps[1:]
    return {**obj, first: _set(obj[first], rest, value) if rest else value}
