"""Find the manager of a field in the ``managedFields`` of a live object. Pure.

An API server keeps for each manager the set of fields that it wrote last (``fieldsV1``): ``f:name``
is a field, ``k:{…}`` a list element with these keys, ``v:…`` an element by its value, ``i:…`` by
its index. A field with nothing below it is held as a whole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from syncer.api.objects import Obj
from syncer.clusters import codec

#: A step of a path: the name of a field, or the index of a list element.
PathStep = str | int


@dataclass(frozen=True, slots=True)
class FieldManager:
    """A manager of fields."""

    name: str
    #: ``Update`` or ``Apply``.
    operation: str = ""
    #: The time of its last write (RFC 3339).
    time: str = ""
    subresource: str = ""


def holders(live: Obj, path: Sequence[PathStep]) -> list[FieldManager]:
    """Return the managers that hold a field or a part of it, the latest first."""
    return _latest_first(
        entry for entry in _entries(live) if _holds(entry.get("fieldsV1"), live, path)
    )


def writers(live: Obj) -> list[FieldManager]:
    """Return the managers that hold any field, the latest first."""
    return _latest_first(_entries(live))


def _entries(live: Any) -> list[Mapping[str, Any]]:
    metadata = live.get("metadata") if isinstance(live, Mapping) else None
    found = metadata.get("managedFields") if isinstance(metadata, Mapping) else None
    if not isinstance(found, list):
        return []
    return [entry for entry in found if isinstance(entry, Mapping)]


def _latest_first(entries: Any) -> list[FieldManager]:
    managers = []
    for entry in entries:
        manager = FieldManager(
            name=str(entry.get("manager") or ""),
            operation=str(entry.get("operation") or ""),
            time=str(entry.get("time") or ""),
            subresource=str(entry.get("subresource") or ""),
        )
        managers.append(manager)
    return sorted(managers, key=attrgetter("time"), reverse=True)


def _holds(fields: Any, live: Any, path: Sequence[PathStep]) -> bool:
    for index, step in enumerate(path):
        if not isinstance(fields, Mapping):
            return False
        if index and not fields:
            return True  # held as a whole
        if isinstance(step, str):
            fields = fields.get(f"f:{step}")
            live = live.get(step) if isinstance(live, Mapping) else None
        else:
            live = live[step] if isinstance(live, list) and step < len(live) else None
            fields = _of_element(fields, live, step)
    return isinstance(fields, Mapping)


def _of_element(fields: Mapping[str, Any], element: Any, index: int) -> Any:
    for name, below in fields.items():
        kind, _, text = name.partition(":")
        if kind in ("k", "v", "i") and _is_meant(kind, text, element, index):
            return below
    return None


def _is_meant(kind: str, text: str, element: Any, index: int) -> bool:
    try:
        expected: Any = codec.decode(text.encode())
    except codec.DecodeError:
        return False
    match kind:
        case "k":
            named = isinstance(expected, dict) and isinstance(element, dict)
            return named and all(element.get(name) == value for name, value in expected.items())
        case "v":
            return bool(expected == element)
        case _:
            return bool(expected == index)
