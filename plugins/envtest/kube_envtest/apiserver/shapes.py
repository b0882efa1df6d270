"""The merge rules of an object's fields, as a tree beside the object, for built-in kinds and custom
resources.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kube_envtest.apiserver.shape_table import ALWAYS, GROUPS, TABLE


@dataclass(slots=True, eq=False)
class Shape:
    """The rules for a value: how apply owns and merges it, and how a strategic merge does."""

    #: The rules of the named fields.
    fields: dict[str, "Shape"] = field(default_factory=dict)
    #: The rules of all other keys of a map, or of a list's items.
    element: "Shape | None" = None
    #: True if the value is owned and replaced as a whole.
    atomic: bool = False
    #: The keys of a list of objects, each with its default or None.
    keys: tuple[tuple[str, Any], ...] = ()
    #: True for a list of scalars that are owned individually.
    is_set: bool = False
    #: True if keys that `fields` doesn't list are fields of a struct, not entries of a map.
    named: bool = False
    #: The key by which a strategic merge merges the list's items.
    merge_key: str = ""
    #: True if a strategic merge joins the list of scalars.
    merge_scalars: bool = False
    #: True if a strategic merge replaces the map as a whole.
    replace: bool = False

    def of(self, key: str) -> "Shape":
        """Return the rules for the value under `key`."""
        return self.fields.get(key) or self.element or FREE

    def has_field(self, key: str) -> bool:
        """Return True if `key` is a field of a struct: apply owns its contents, not the field itself."""
        return self.named or key in self.fields

    @property
    def granular(self) -> bool:
        """True if a list's items are owned individually."""
        return bool(self.keys) or self.is_set


#: A value without a schema: maps entry by entry, lists as a whole.
FREE = Shape()
#: A struct of a built-in kind that is not in the table.
STRUCT = Shape(named=True)
STRUCT.element = STRUCT
ATOMIC = Shape(atomic=True)


def _rule(words: list[str], types: Mapping[str, Shape]) -> Shape:
    """Parse a field's rules: see the table's docstring."""
    element = types[words[words.index(":") + 1]] if ":" in words else STRUCT
    rules = words[: words.index(":")] if ":" in words else words
    if "map" not in rules and "merge" not in rules and "set" not in rules and ":" in words:
        return element
    shape = Shape(named=True, element=element, atomic="atomic" in rules, replace="replace" in rules)
    shape.is_set = "set" in rules
    if "map" in rules:
        keys = rules[rules.index("map") + 1].split(",")
        shape.keys = tuple(map(_key, keys))
    if "merge" in rules:
        after = rules[rules.index("merge") + 1 :]
        shape.merge_key = after[0] if after and after[0] != "retain" else ""
        shape.merge_scalars = not shape.merge_key
    return shape


def _key(text: str) -> tuple[str, Any]:
    """Parse a key and its default; without one it is the zero value of its type, as all keys are
    required fields.
    """
    name, is_given, default = text.partition("=")
    if is_given:
        return name, default
    if name in ("port", "containerPort"):
        return name, 0
    return name, ""


@cache
def _types() -> Mapping[str, Shape]:
    lines = [line for line in TABLE.splitlines() if line]
    types = {line: Shape(named=True, element=STRUCT) for line in lines if not line.startswith(" ")}
    types["Whole"] = ATOMIC
    current = STRUCT
    for line in lines:
        if not line.startswith(" "):
            current = types[line]
            continue
        name, *words = line.split()
        current.fields[name] = _rule(words, types)
    return types


@cache
def builtin(kind: str) -> Shape:
    """Return the rules of a built-in kind; an unknown kind has those of every object's metadata."""
    types = _types()
    known = types.get(kind)
    return Shape(
        named=True,
        element=STRUCT,
        fields={"metadata": types["ObjectMeta"], **(known.fields if known else {})},
    )


def is_builtin(api_version: str) -> bool:
    """Return True if an apiVersion is of a group of Kubernetes itself, so that the table applies."""
    group, slash, _ = api_version.partition("/")
    return not slash or group in GROUPS


@cache
def untyped() -> Shape:
    """Return the rules of a custom resource without a schema."""
    return Shape(fields={"metadata": _types()["ObjectMeta"]})


def find(api_version: str, kind: str, schema: Shape | None = None) -> Shape:
    """Return the rules for an object: its CRD's if given, else the built-in kind's."""
    if schema is not None:
        return schema
    return builtin(kind) if is_builtin(api_version) else untyped()


@cache
def skeleton(kind: str) -> Mapping[str, Any]:
    """Return the contents of a built-in object before its first write: empty structs, and null lists."""
    empty: dict[str, Any] = {"metadata": {}}
    for line in ALWAYS.splitlines():
        owner, *paths = line.split() or [""]
        for path in paths if owner == kind else []:
            *parents, last = path.rstrip("-=").split(".")
            at = empty
            for parent in parents:
                at = at.setdefault(parent, {})
            if path.endswith("-"):
                at[last] = None
            elif path.endswith("="):
                at[last] = ""
            else:
                at[last] = {}
    return empty


def from_openapi(schema: Mapping[str, Any], *, root: bool = True) -> Shape:
    """Return the rules of an OpenAPI v3 schema, from its `x-kubernetes-*` extensions.

    Source: the "Merge strategy" table of the Server-Side Apply document.
    """
    if schema.get("x-kubernetes-map-type") == "atomic":
        return ATOMIC
    fields = {key: from_openapi(sub, root=False) for key, sub in schema.get("properties", {}).items()}
    if root or schema.get("x-kubernetes-embedded-resource"):
        fields["metadata"] = _types()["ObjectMeta"]
    shape = Shape(fields=fields, element=_element(schema))
    kind = schema.get("x-kubernetes-list-type")
    shape.is_set = kind == "set"
    if kind == "map":
        items = schema.get("items", {}).get("properties", {})
        keys = schema.get("x-kubernetes-list-map-keys", ())
        shape.keys = tuple((key, items.get(key, {}).get("default")) for key in keys)
    return shape


def _element(schema: Mapping[str, Any]) -> Shape | None:
    inner = schema.get("items") or schema.get("additionalProperties")
    return from_openapi(inner, root=False) if isinstance(inner, Mapping) else None
