"""The structs of the built-in kinds: their fields, and the values that each can hold."""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from kube_envtest.apiserver.errors import bad_request
from kube_envtest.apiserver.struct_table import TABLE
from kube_envtest.apiserver.struct_table_core import TABLE as CORE_TABLE

Obj = dict[str, Any]


class Field(NamedTuple):
    """A field: its number, its JSON name, its type, and its form: "", ``*`` list, ``{`` map, ``^`` inline."""

    number: int
    name: str
    type: str
    form: str


Struct = dict[int, Field]


@cache
def structs() -> dict[str, Struct]:
    """Return every struct by name: its fields by number."""
    found = {}
    for line in (CORE_TABLE + TABLE).replace("\n ", " ").split("\n"):
        name, *fields = line.split() or [""]
        found[name] = {field.number: field for field in map(_field, fields)}
    return found


def _field(text: str) -> Field:
    number, name, kind = text.split(":")
    form = kind[0] if kind[0] in "*{^" else ""
    return Field(int(number), name, kind.strip("*{}^"), form)


def name_of(api_version: str, kind: str) -> str:
    """Return the struct of a kind; "" if there is none."""
    group = api_version.rpartition("/")[0].partition(".")[0] or "core"
    name = kind if kind in structs() else f"{group}.{kind}"
    return name if name in structs() else ""


@cache
def by_name(struct: str) -> dict[str, Field]:
    """Return the fields of a struct as in JSON."""
    found: dict[str, Field] = {}
    for field in structs()[struct].values():
        found |= by_name(field.type) if field.form == "^" else {field.name: field}
    return found


#: Types that accept any value here.
FREE = frozenset({"FieldsV1", "RawExtension", "authentication.ExtraValue", "authorization.ExtraValue", "Quantity"})

#: Python types of a scalar, and Go's name for it.
SCALARS: dict[str, tuple[tuple[type, ...], str]] = {
    "s": ((str,), "string"),
    "i": ((int,), "int32"),
    "l": ((int,), "int64"),
    "b": ((bool,), "bool"),
    "y": ((str,), "[]uint8"),
    "d": ((int, float), "float64"),
    "Time": ((str,), "v1.Time"),
    "MicroTime": ((str,), "v1.MicroTime"),
    "IntOrString": ((int, str), "intstr.IntOrString"),
}


class Reader:
    """Decodes an object: drops fields that its struct doesn't have, and records their paths in
    ``unknown``.
    """

    def __init__(self, what: str) -> None:
        self.unknown: list[str] = []
        self._what = what

    def struct(self, name: str, value: Obj, path: str, plain: str) -> Obj:
        """Return a struct without unknown fields; ``path`` has indexes, ``plain`` has none."""
        fields = by_name(name)
        out = {}
        for key, item in value.items():
            field = fields.get(key)
            below = f"{path}.{key}" if path else key
            if field is None:
                if not (path == "" and key in ("kind", "apiVersion")):
                    self.unknown.append(below)
                    continue
                out[key] = item
            elif item is None:
                out[key] = None
            else:
                out[key] = self._value(name, field, item, (below, f"{plain}.{key}" if plain else key))
        return out

    def _value(self, struct: str, field: Field, value: Any, path: tuple[str, str]) -> Any:
        where = f"{struct.rpartition('.')[2]}.{path[1]}"
        if field.form == "*":
            if not isinstance(value, list):
                raise self._mismatch(value, where, f"[]{go_name(field.type)}")
            return [
                self._item(field.type, item, (f"{path[0]}[{number}]", path[1]), where)
                for number, item in enumerate(value)
            ]
        if field.form == "{":
            if not isinstance(value, dict):
                raise self._mismatch(value, where, f"map[string]{go_name(field.type)}")
            return {
                key: self._item(field.type, item, (f"{path[0]}.{key}", path[1]), where) for key, item in value.items()
            }
        return self._item(field.type, value, path, where)

    def _item(self, kind: str, value: Any, path: tuple[str, str], where: str) -> Any:
        if value is None or kind in FREE:
            return value
        scalar = SCALARS.get(kind)
        if scalar is None:
            if not isinstance(value, dict):
                raise self._mismatch(value, where, go_name(kind))
            return self.struct(kind, value, *path)
        types, go = scalar
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise self._mismatch(value, where, go)
        return value

    def _mismatch(self, value: Any, where: str, go: str) -> Exception:
        found = {bool: "bool", dict: "object", list: "array", str: "string"}.get(type(value), "number")
        return bad_request(f"{self._what}: json: cannot unmarshal {found} into Go struct field {where} of type {go}")


def go_name(kind: str) -> str:
    """Return Go's name of a type."""
    return SCALARS[kind][1] if kind in SCALARS else f"v1.{kind.rpartition('.')[2]}"


def lost(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of fields that ``after`` lacks."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            below = f"{path}.{key}" if path else key
            if key in after:
                yield from lost(value, after[key], below)
            else:
                yield below
    elif isinstance(before, list) and isinstance(after, list):
        for number, (old, new) in enumerate(zip(before, after, strict=False)):
            yield from lost(old, new, f"{path}[{number}]")
