"""Check that a schema is structural, as a CRD requires.

Source: `k8s.io/apiextensions-apiserver/pkg/apiserver/schema/validation.go` and the "Specifying a
structural schema" document.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kube_envtest.apiserver.fields import FieldError, forbidden, invalid, not_supported, required

Node = Mapping[str, Any]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_LEVELS = {"root": "at the root", "item": "for specified array items", "field": "for specified object fields"}
_COMBINED = ("allOf", "anyOf", "oneOf")
#: Forbidden keywords, with the reason.
_FORBIDDEN = {
    "$ref": "$ref is not supported",
    "definitions": "definitions is not supported",
    "dependencies": "dependencies is not supported",
    "deprecated": "deprecated is not supported",
    "discriminator": "discriminator is not supported",
    "id": "id is not supported",
    "patternProperties": "patternProperties is not supported",
    "readOnly": "readOnly is not supported",
    "writeOnly": "writeOnly is not supported",
    "xml": "xml is not supported",
}
#: Keywords that a schema inside allOf, anyOf, oneOf or not may not have, because the structure must
#: not depend on values.
_NOT_NESTED = {
    "type": "must be empty to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "additionalProperties": "must be undefined to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
}
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


def check(openapi: Node, path: str = "spec.validation.openAPIV3Schema") -> list[FieldError]:
    """Return why a CRD may not have this schema.

    `path` is its place in the CRD; the default is the API server's if all versions have the same
    schema. As there, later checks only run if the earlier ones found nothing.
    """
    for phase in (_words, _structure, _completeness):
        found = sorted(phase(openapi, path, "root"), key=str)
        if found:
            return found
    return []


def _words(schema: Node, path: str, level: str) -> Iterator[FieldError]:
    """Check each schema by itself, and those nested in its allOf, anyOf, oneOf and not."""
    yield from _keywords(schema, path)
    yield from _lists(schema, path)
    for keyword in _COMBINED:
        for index, part in enumerate(schema.get(keyword) or ()):
            twins = keyword == "anyOf" and schema[keyword] == _INT_OR_STRING
            yield from _nested(part, f"{path}.{keyword}[{index}]", typed=twins)
    if isinstance(schema.get("not"), Mapping):
        yield from _nested(schema["not"], f"{path}.not")
    for inner, at, below in _children(schema, path):
        yield from _words(inner, at, below)


def _structure(schema: Node, path: str, level: str) -> Iterator[FieldError]:
    yield from _type(schema, path, level)
    yield from _extensions(schema, path)
    if schema.get("type") == "array" and schema.get("items") is None:
        yield required(f"{path}.items", "must be specified")
    if schema.get("additionalProperties") is not None and level == "root":
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    yield from _metadata(schema, path, level)
    for inner, at, below in _children(schema, path):
        if not (level == "root" and at.endswith("properties[metadata]")):
            yield from _structure(inner, at, below)


def _children(schema: Node, path: str) -> Iterator[tuple[Node, str, str]]:
    """Yield the schemas directly below this one, each with its path and its level."""
    for key, inner in (schema.get("properties") or {}).items():
        yield inner, f"{path}.properties[{key}]", "field"
    if isinstance(schema.get("items"), Mapping):
        yield schema["items"], f"{path}.items", "item"
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield schema["additionalProperties"], f"{path}.additionalProperties", "field"


def _keywords(schema: Node, path: str) -> Iterator[FieldError]:
    for keyword, why in _FORBIDDEN.items():
        if keyword in schema:
            yield forbidden(f"{path}.{keyword}", why)
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", why)
    if schema.get("additionalProperties") is not None and schema.get("properties"):
        yield forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    if isinstance(schema.get("items"), list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    pattern = schema.get("pattern")
    if pattern:
        try:
            re.compile(pattern)
        except re.error as error:
            yield invalid(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {error}")


def _type(schema: Node, path: str, level: str) -> Iterator[FieldError]:
    kind = schema.get("type")
    at = f"{path}.type"
    embedded = schema.get("x-kubernetes-embedded-resource")
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if embedded and kind != "object":
        yield required(at, "must be object if x-kubernetes-embedded-resource is true")
    elif not kind:
        if not free:
            yield required(at, f"must not be empty {_LEVELS[level]}")
    elif level == "root" and kind != "object":
        yield invalid(at, kind, "must be object at the root")
    elif kind not in _TYPES:
        yield not_supported(at, kind, _TYPES)


def _extensions(schema: Node, path: str) -> Iterator[FieldError]:
    keeps = "x-kubernetes-preserve-unknown-fields"
    embedded = "x-kubernetes-embedded-resource"
    if schema.get("x-kubernetes-int-or-string"):
        for name in (keeps, embedded):
            if schema.get(name):
                yield invalid(f"{path}.{name}", True, "must be false if x-kubernetes-int-or-string is true")
    if schema.get(embedded) and not schema.get(keeps) and not schema.get("properties"):
        why = f"must not be empty if {embedded} is true without {keeps}"
        yield required(f"{path}.properties", why)


def _lists(schema: Node, path: str) -> Iterator[FieldError]:
    kind = schema.get("x-kubernetes-list-type")
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    if kind is not None and schema.get("type") != "array":
        shown = schema.get("type", "")
        yield invalid(f"{path}.type", shown, "must be array if x-kubernetes-list-type is specified")
    if kind not in (None, "atomic", "set", "map"):
        yield _unknown(f"{path}.x-kubernetes-list-type", kind, '"atomic", "set", "map"')
    if kind == "map" and not keys:
        yield required(f"{path}.x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map")
    items = schema.get("items") or {}
    known = items.get("properties") or {}
    if not set(keys) <= set(known):
        yield invalid(f"{path}.x-kubernetes-list-map-keys", list(keys), "entries must all be names of item properties")
    for key in keys:
        if key in known and "default" not in known[key] and key not in (items.get("required") or ()):
            why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            yield required(f"{path}.items.properties[{key}].default", why)
    kind = schema.get("x-kubernetes-map-type")
    if kind not in (None, "atomic", "granular"):
        yield _unknown(f"{path}.x-kubernetes-map-type", kind, '"atomic", "granular"')


def _unknown(path: str, found: str, options: str) -> FieldError:
    text = f'Unsupported value: "{found}": supported values: {options}'
    return FieldError(path, text, "FieldValueNotSupported")


def _metadata(schema: Node, path: str, level: str) -> Iterator[FieldError]:
    properties = schema.get("properties") or {}
    if level != "root" and not schema.get("x-kubernetes-embedded-resource"):
        return
    for key, wanted in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        found = properties.get(key)
        if found is not None and found.get("type") != wanted:
            yield invalid(f"{path}.properties[{key}].type", found.get("type", ""), f"must be {wanted}")
    about = properties.get("metadata") or {}
    extra = set(about) - {"type", "properties", "description"}
    if level == "root" and (extra or set(about.get("properties") or ()) - {"name", "generateName"}):
        why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(f"{path}.properties[metadata]", why)


def _nested(schema: Node, path: str, *, typed: bool = False) -> Iterator[FieldError]:
    """Check a schema in allOf, anyOf, oneOf or not; only the two halves of an int-or-string may
    repeat a type.
    """
    for keyword, why in _NOT_NESTED.items():
        if schema.get(keyword) and not typed:
            yield forbidden(f"{path}.{keyword}", why)
    for keyword in _COMBINED:
        for index, part in enumerate(schema.get(keyword) or ()):
            twins = keyword == "anyOf" and schema[keyword] == _INT_OR_STRING
            yield from _nested(part, f"{path}.{keyword}[{index}]", typed=twins)
    for key, inner in (schema.get("properties") or {}).items():
        yield from _nested(inner, f"{path}.properties[{key}]")
    if isinstance(schema.get("items"), Mapping):
        yield from _nested(schema["items"], f"{path}.items")


def _completeness(schema: Node, path: str, level: str) -> Iterator[FieldError]:
    """Check that the fields of a nested schema are also described outside of it."""
    for keyword in _COMBINED:
        for index, part in enumerate(schema.get(keyword) or ()):
            yield from _described(part, schema, f"{path}.{keyword}[{index}]", path)
    if isinstance(schema.get("not"), Mapping):
        yield from _described(schema["not"], schema, f"{path}.not", path)
    for inner, at, below in _children(schema, path):
        yield from _completeness(inner, at, below)


def _described(part: Node, schema: Node, path: str, outer: str) -> Iterator[FieldError]:
    known = schema.get("properties") or {}
    for key, inner in (part.get("properties") or {}).items():
        at = f"{outer}.properties[{key}]"
        if key not in known:
            yield required(at, f"because it is defined in {path}.properties[{key}]")
        else:
            yield from _described(inner, known[key], f"{path}.properties[{key}]", at)
    if isinstance(part.get("items"), Mapping):
        if not isinstance(schema.get("items"), Mapping):
            yield required(f"{outer}.items", f"because it is defined in {path}.items")
        else:
            yield from _described(part["items"], schema["items"], f"{path}.items", f"{outer}.items")
    for keyword in _COMBINED:
        for index, nested in enumerate(part.get(keyword) or ()):
            yield from _described(nested, schema, f"{path}.{keyword}[{index}]", outer)
