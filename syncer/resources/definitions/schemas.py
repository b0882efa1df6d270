"""OpenAPI v3 schemas of custom resources: compare the fields that they keep, and open them for
unknown fields.

The rules of structural schemas:
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
"""

from collections.abc import Callable
from typing import Any

from syncer.api import Obj
from syncer.translate.alike import same

#: Makes an API server keep unknown fields below the level where it stands.
KEEPS = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"

#: Schemas inside allOf and the like may contain neither structure nor descriptions, so they are
#: left out.
_BELOW = ("items", "additionalProperties")
_DOCUMENTATION = frozenset({"description", "title", "example", "externalDocs"})


def alike(one: Obj | None, other: Obj | None) -> bool:
    """Return True if two schemas are equal except for descriptions."""
    return same(one, other) or same(_rewritten(one, _bare), _rewritten(other, _bare))


def opened(schema: Obj) -> Obj:
    """Return a structural schema that validates known fields as before, and keeps unknown ones at
    every level.
    """
    return _with_closed_metadata(_rewritten(schema, _open))


def anything() -> Obj:
    """Return a schema that accepts and keeps any object."""
    return {"type": "object", KEEPS: True}


def _rewritten(schema: Any, change: Callable[[Obj], Obj]) -> Any:
    """Return the schema with ``change`` applied to every schema in it, innermost first."""
    if not isinstance(schema, dict):
        return schema  # additionalProperties may be true or false
    made = {keyword: _rewritten(below, change) if keyword in _BELOW else below for keyword, below in schema.items()}
    if isinstance(properties := schema.get("properties"), dict):
        made["properties"] = {name: _rewritten(below, change) for name, below in properties.items()}
    return change(made)


def _bare(schema: Obj) -> Obj:
    return {keyword: value for keyword, value in schema.items() if keyword not in _DOCUMENTATION}


def _open(schema: Obj) -> Obj:
    """Keep unknown fields, except in schemas of mappings, which know every key."""
    if schema.get("type") != "object" or schema.get("additionalProperties"):
        return schema
    marked = {**schema, KEEPS: True}
    return _with_closed_metadata(marked) if schema.get(_EMBEDDED) else marked


def _with_closed_metadata(schema: Obj) -> Obj:
    """Return the schema of an object in the form that CRDs accept: only rules about names below
    metadata.

    All metadata is kept anyway.
    """
    properties: dict[str, Any] = schema.get("properties") or {}
    if "metadata" not in properties:
        return schema
    metadata = {keyword: value for keyword, value in properties["metadata"].items() if keyword != KEEPS}
    return {**schema, "properties": {**properties, "metadata": metadata}}
