"""Structural schemas of custom resources: pruning, defaulting, validation and merging.

Source: `k8s.io/apiextensions-apiserver/pkg/apiserver/schema`. CEL rules
(`x-kubernetes-validations`) aren't evaluated.
"""

import copy
from collections.abc import Mapping
from typing import Any

from kube_envtest.apiserver.fields import FieldError
from kube_envtest.apiserver.schema_check import check
from kube_envtest.apiserver.schema_validation import validate
from kube_envtest.apiserver.shapes import Shape, from_openapi

Obj = dict[str, Any]
Node = Mapping[str, Any]

__all__ = ["Schema", "check", "compile"]

_META = ("apiVersion", "kind", "metadata")


class Schema:
    """A compiled schema; its methods don't change their arguments."""

    def __init__(self, openapi: Node) -> None:
        self._root = openapi
        #: How apply merges objects of this schema.
        self.shape: Shape = from_openapi(openapi)

    def prune(self, obj: Obj) -> Obj:
        """Return an object without unknown fields."""
        body = {key: value for key, value in obj.items() if key not in _META}
        kept: Obj = _pruned(body, self._root)
        return {key: obj[key] for key in _META if key in obj} | kept

    def default(self, obj: Obj) -> Obj:
        """Return an object with the schema's defaults, and without forbidden nulls."""
        out: Obj = _defaulted(_without_nulls(obj, self._root), self._root)
        return out

    def validate(self, obj: Obj, old: Obj | None = None) -> list[FieldError]:
        """Return the errors of an object; parts that are unchanged from `old` are accepted."""
        return validate(self._root, obj, old)


def compile(openapi: Node) -> Schema:  # noqa: A001 -- as in re.compile
    """Compile an `openAPIV3Schema`; `check` tells whether a CRD may have it."""
    return Schema(openapi)


def _inner(schema: Node | None, key: str) -> Node | None:
    """Return the schema of a map's field, or None."""
    if schema is None:
        return None
    known: Node | None = (schema.get("properties") or {}).get(key)
    if known is not None:
        return known
    extra = schema.get("additionalProperties")
    return extra if isinstance(extra, Mapping) else None


def _keeps(schema: Node | None, key: str) -> bool:
    """Return True if a key of a map without a property stays."""
    if schema is None:
        return False
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("additionalProperties"):
        return True
    return bool(schema.get("x-kubernetes-embedded-resource")) and key in _META


def _pruned(value: Any, schema: Node | None) -> Any:
    if isinstance(value, list):
        items = (schema or {}).get("items")
        if items is None and (schema or {}).get("x-kubernetes-preserve-unknown-fields"):
            return value
        return [_pruned(item, items) for item in value]
    if not isinstance(value, dict):
        return value
    out = {}
    for key, sub in value.items():
        inner = _inner(schema, key)
        if inner is not None and not _is_embedded_meta(schema, key):
            out[key] = _pruned(sub, inner)
        elif _keeps(schema, key):
            out[key] = sub
    return out


def _is_embedded_meta(schema: Node | None, key: str) -> bool:
    return key in _META and bool((schema or {}).get("x-kubernetes-embedded-resource"))


def _without_nulls(value: Any, schema: Node | None) -> Any:
    """Return a copy without nulls that are neither allowed nor replaced by a default."""
    if isinstance(value, list):
        return [_without_nulls(item, (schema or {}).get("items")) for item in value]
    if not isinstance(value, dict):
        return value
    out = {}
    for key, sub in value.items():
        inner = _inner(schema, key)
        if sub is not None or inner is None or inner.get("nullable") or "default" in inner:
            out[key] = _without_nulls(sub, inner)
    return out


def _defaulted(value: Any, schema: Node | None) -> Any:
    """Set defaults in a private copy, and return it."""
    if schema is None:
        return value
    if isinstance(value, list):
        items = schema.get("items")
        return [_defaulted(_or_default(item, items), items) for item in value]
    if not isinstance(value, dict):
        return value
    for key, inner in (schema.get("properties") or {}).items():
        if "default" in inner and _wants_default(value, key, inner):
            value[key] = copy.deepcopy(inner["default"])
    for key in value:
        found = _inner(schema, key)
        value[key] = _defaulted(_or_default(value[key], found), found)
    return value


def _wants_default(value: Obj, key: str, inner: Node) -> bool:
    return key not in value or (value[key] is None and not inner.get("nullable"))


def _or_default(value: Any, schema: Node | None) -> Any:
    if value is None and schema is not None and not schema.get("nullable"):
        return copy.deepcopy(schema.get("default"))
    return value
