"""OpenAPI v3 schemas of custom resources: whether two keep the same fields, and how one keeps all of them.

The rules of structural schemas:
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
"""

from collections.abc import Callable
from typing import Any

from syncer.api import Obj

#: Keeps fields that the schema doesn't know, below the place where it stands.
KEEPS = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"

#: Schemas inside allOf and the like may say nothing about structure, nor be described, so they are left out.
_BELOW = ("items", "additionalProperties")
_DOCUMENTATION = frozenset({"description", "title", "example", "externalDocs"})


def alike(one: Obj | None, other: Obj | None) -> bool:
    """Return True if two schemas say the same, but for what is written for people to read."""
    if one == other:
        return True
    return bool(_rewritten(one, _bare) == _rewritten(other, _bare))


def opened(schema: Obj) -> Obj:
    """Return a structural schema that still checks what it knows, and keeps what it doesn't know at every level."""
    return _with_closed_metadata(_rewritten(schema, _open))


def anything() -> Obj:
    """Return the schema that takes, and keeps, any object."""
    return {"type": "object", KEEPS: True}


def _rewritten(schema: Any, change: Callable[[Obj], Obj]) -> Any:
    """Return the schema with each schema in it changed, the innermost first."""
    if not isinstance(schema, dict):
        return schema  # additionalProperties may be true or false
    made = {keyword: _rewritten(below, change) if keyword in _BELOW else below for keyword, below in schema.items()}
    if isinstance(properties := schema.get("properties"), dict):
        made["properties"] = {name: _rewritten(below, change) for name, below in properties.items()}
    return change(made)


def _bare(schema: Obj) -> Obj:
    return {keyword: value for keyword, value in schema.items() if keyword not in _DOCUMENTATION}


def _open(schema: Obj) -> Obj:
    """Schemas of mappings know every key already."""
    if schema.get("type") != "object" or schema.get("additionalProperties"):
        return schema
    marked = {**schema, KEEPS: True}
    return _with_closed_metadata(marked) if schema.get(_EMBEDDED) else marked


def _with_closed_metadata(schema: Obj) -> Obj:
    """Return the schema of a whole object: what it says of metadata may only be about names.

    All of it is kept anyway.
    """
    properties: dict[str, Any] = schema.get("properties") or {}
    if "metadata" not in properties:
        return schema
    metadata = {keyword: value for keyword, value in properties["metadata"].items() if keyword != KEEPS}
    return {**schema, "properties": {**properties, "metadata": metadata}}
