"""OpenAPI v3 schemas of custom resources.

They are compared by the fields that they keep, and opened for unknown fields. For the rules of
structural schemas see kubernetes.io, "Extend the Kubernetes API with CustomResourceDefinitions",
"Specifying a structural schema".
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
    """Return a structural schema that keeps unknown fields at every level.

    Known fields are validated as before.
    """
    return _with_closed_metadata(_rewritten(schema, _open))


def anything() -> Obj:
    """Return a schema that accepts and keeps any object."""
    return {"type": "object", KEEPS: True}


def _rewritten(schema: Any, change: Callable[[Obj], Obj]) -> Any:
    """Return the schema with ``change`` applied to every schema in it, innermost first."""
    if not isinstance(schema, dict):
        # additionalProperties may be true or false.
        return schema
    made = dict(schema)
    for keyword in _BELOW:
        if keyword in schema:
            made[keyword] = _rewritten(schema[keyword], change)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        made["properties"] = {name: _rewritten(below, change) for name, below in properties.items()}
    return change(made)


def _bare(schema: Obj) -> Obj:
    return {keyword: value for keyword, value in schema.items() if keyword not in _DOCUMENTATION}


def _open(schema: Obj) -> Obj:
    """Keep unknown fields, except in schemas of mappings, which know every key."""
    if schema.get("type") != "object" or schema.get("additionalProperties"):
        return schema
    marked = {**schema, KEEPS: True}
    if schema.get(_EMBEDDED):
        return _with_closed_metadata(marked)
    return marked


def _with_closed_metadata(schema: Obj) -> Obj:
    """Return the schema of an object in the form that CRDs accept.

    Below metadata they accept only rules about names. All metadata is kept anyway.
    """
    properties: dict[str, Any] = schema.get("properties") or {}
    if "metadata" not in properties:
        return schema
    metadata = dict(properties["metadata"])
    metadata.pop(KEEPS, None)
    return {**schema, "properties": {**properties, "metadata": metadata}}
