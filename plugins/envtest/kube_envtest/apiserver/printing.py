"""Tables for kubectl: the columns of each resource, and the cells of an object."""

from collections.abc import Callable, Sequence
from typing import Any

from kube_envtest.apiserver.clock import duration, seconds_of
from kube_envtest.apiserver.columns import BUILTIN, Row
from kube_envtest.apiserver.resources import ResourceType
from kube_envtest.apiserver.scale import find

Obj = dict[str, Any]

NAME: Obj = {
    "name": "Name",
    "type": "string",
    "format": "name",
    "description": "Name must be unique within a namespace.",
    "priority": 0,
}


def columns(rt: ResourceType) -> list[Obj]:
    """Return the column definitions of a resource."""
    builtin = BUILTIN.get(rt.table_name) if not rt.custom else None
    if builtin is not None:
        return [_column(name) for name in builtin.names]
    if rt.columns:
        return [NAME, *(_custom_column(column) for column in rt.columns)]
    created = "Created At"
    if rt.custom:
        created = "Age"
    return [NAME, _column(created)]


def _column(name: str) -> Obj:
    if name == "Name":
        return NAME
    wide = name.startswith("+")
    kind = "date" if name == "Created At" else "string"
    return {"name": name.lstrip("+"), "type": kind, "format": "", "description": "", "priority": int(wide)}


def _custom_column(column: Obj) -> Obj:
    return {
        "name": column["name"],
        "type": column["type"],
        "format": column.get("format", ""),
        "description": column.get("description", ""),
        "priority": column.get("priority", 0),
    }


def cells(rt: ResourceType, obj: Obj, now: float) -> Sequence[Any]:
    """Return the cells of an object, in the order of the columns; ``now`` is in seconds since 1970."""
    name = obj["metadata"]["name"]
    builtin = BUILTIN.get(rt.table_name) if not rt.custom else None
    created = obj["metadata"].get("creationTimestamp", "")
    age = duration(now - seconds_of(created)) if created else "<unknown>"
    if builtin is not None:
        return builtin.cells(Row(obj, age, now))
    if rt.columns:
        return [name, *(_custom_cell(obj, column, now) for column in rt.columns)]
    return [name, age if rt.custom else created]


def _custom_cell(obj: Obj, column: Obj, now: float) -> Any:
    value = find(obj, column["jsonPath"]) if "[" not in column["jsonPath"] else _indexed(obj, column["jsonPath"])
    if value is None:
        return None
    if column["type"] == "date":
        return duration(now - seconds_of(str(value)))
    if column["type"] == "string":
        return value if isinstance(value, str) else str(value)
    return value


def _indexed(obj: Obj, path: str) -> Any:
    """Return the value at a JSONPath with filters on a field (``[?(@.type=="Ready")]``) or indexes."""
    found: Any = obj
    for step in _steps(path):
        found = step(found)
        if found is None:
            return None
    return found


def _steps(path: str) -> list[Callable[[Any], Any]]:
    steps: list[Callable[[Any], Any]] = []
    rest = path
    while rest:
        if rest.startswith("[?("):
            inner, _, rest = rest[3:].partition(")]")
            steps.append(_filter(inner))
        elif rest.startswith("["):
            inner, _, rest = rest[1:].partition("]")
            steps.append(_index(inner))
        else:
            rest = rest.lstrip(".")
            end = min((at for at in (rest.find("."), rest.find("[")) if at >= 0), default=len(rest))
            steps.append(_field(rest[:end]))
            rest = rest[end:]
    return steps


def _field(name: str) -> Callable[[Any], Any]:
    return lambda at: at.get(name) if isinstance(at, dict) else None


def _index(text: str) -> Callable[[Any], Any]:
    number = int(text) if text.lstrip("-").isdigit() else 0
    return lambda at: at[number] if isinstance(at, list) and -len(at) <= number < len(at) else None


def _filter(text: str) -> Callable[[Any], Any]:
    field, _, wanted = text.partition("==")
    name = field.strip().removeprefix("@.")
    value = wanted.strip().strip("'\"")
    return lambda at: next((one for one in at if str(one.get(name)) == value), None) if isinstance(at, list) else None
