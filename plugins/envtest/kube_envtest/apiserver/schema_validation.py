"""Validate a custom resource by its schema, with the API server's messages.

Source: `k8s.io/kube-openapi/pkg/validation` and `apiextensions-apiserver/pkg/apiserver/validation`.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Any

from kube_envtest.apiserver.fields import (
    FieldError,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
    wrong_type,
)

Node = Mapping[str, Any]


def validate(schema: Node, obj: Any, old: Any = None) -> list[FieldError]:
    """Return the errors of an object.

    Parts that are unchanged from `old` are accepted, as in CRD ratcheting.
    """
    return list(_value(schema, obj, old, ""))


def _value(schema: Node, value: Any, old: Any, path: str) -> Iterator[FieldError]:
    if old is not None and old == value:
        return
    if value is None and schema.get("nullable"):
        return
    problem = _type_problem(schema, value, path)
    if problem is not None:
        yield problem
        return
    yield from _enum(schema, value, path)
    match value:
        case str():
            yield from _text(schema, value, path)
        case bool():
            pass
        case int() | float():
            yield from _number(schema, value, path)
        case list():
            yield from _items(schema, value, old, path)
        case dict():
            yield from _fields(schema, value, old, path)
    yield from _combined(schema, value, path)


def _in_body(path: str) -> str:
    return f"{path or '<nil>'} in body"


def _json_type(value: Any) -> str:
    for kind, name in ((bool, "boolean"), (str, "string"), (int, "integer"), (float, "number"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "null" if value is None else "object"


def _type_problem(schema: Node, value: Any, path: str) -> FieldError | None:
    wanted = schema.get("type")
    found = _json_type(value)
    if schema.get("x-kubernetes-int-or-string"):
        fits = found in ("integer", "string")
        wanted = wanted or "integer,string"
    else:
        fits = not wanted or wanted == found or (wanted == "number" and found == "integer")
        fits = fits or (wanted == "integer" and found == "number" and float(value).is_integer())
    if fits:
        return None
    return wrong_type(path, found, f'{_in_body(path)} must be of type {wanted}: "{found}"')


def _enum(schema: Node, value: Any, path: str) -> Iterator[FieldError]:
    options = schema.get("enum")
    if options is None or value in options:
        return
    shown = [option if isinstance(option, str) else json.dumps(option) for option in options]
    quoted = ", ".join(json.dumps(one) for one in shown)
    yield not_supported(path, value, ())._replace(
        message=f"Unsupported value: {json.dumps(value, ensure_ascii=False)}: supported values: {quoted}"
    )


def _text(schema: Node, value: str, path: str) -> Iterator[FieldError]:
    least = schema.get("minLength")
    most = schema.get("maxLength")
    pattern = schema.get("pattern")
    if most is not None and len(value) > most:
        yield too_long(path, most)
    elif least is not None and len(value) < least:
        yield invalid(path, value, f"{_in_body(path)} should be at least {least} chars long")
    elif pattern and not re.search(pattern, value):
        yield invalid(path, value, f"{_in_body(path)} should match '{pattern}'")
    check = FORMATS.get(schema.get("format", ""))
    if check is not None and not check(value):
        yield wrong_type(path, value, f"{_in_body(path)} must be of type {schema['format']}: {json.dumps(value)}")


def _number(schema: Node, value: float, path: str) -> Iterator[FieldError]:
    most = schema.get("maximum")
    least = schema.get("minimum")
    step = schema.get("multipleOf")
    bits = {"int32": 31, "int64": 63}.get(schema.get("format", ""))
    if bits and not -(2**bits) <= value < 2**bits:
        yield _of_the_whole(f"Checked value must be of type integer with format {schema['format']} in {path}")
    if step and value % step:
        yield invalid(path, value, f"{_in_body(path)} should be a multiple of {step}")
    if most is not None:
        strict = schema.get("exclusiveMaximum")
        if value > most or (strict and value == most):
            rule = "less than" if strict else "less than or equal to"
            yield invalid(path, value, f"{_in_body(path)} should be {rule} {most}")
    if least is not None:
        strict = schema.get("exclusiveMinimum")
        if value < least or (strict and value == least):
            rule = "greater than" if strict else "greater than or equal to"
            yield invalid(path, value, f"{_in_body(path)} should be {rule} {least}")


def _items(schema: Node, value: list[Any], old: Any, path: str) -> Iterator[FieldError]:
    least = schema.get("minItems")
    most = schema.get("maxItems")
    if least is not None and len(value) < least:
        yield invalid(path, len(value), f"{_in_body(path)} should have at least {least} items")
    if most is not None and len(value) > most:
        yield too_many(path, len(value), most)
    items = schema.get("items")
    before = _by_path(schema, old)
    for index, item in enumerate(value) if items else ():
        yield from _value(items or {}, item, before(index, item), f"{path}[{index}]")
    yield from _duplicates(schema, value, path)


def _by_path(schema: Node, old: Any) -> Callable[[int, Any], Any]:
    """Return a function that finds the old value of an item: lists of type map by key; others have none."""
    keys = schema.get("x-kubernetes-list-map-keys")
    if not keys or not isinstance(old, list):
        return lambda index, item: None
    known = {tuple(one.get(key) for key in keys): one for one in old if isinstance(one, dict)}
    return lambda index, item: known.get(tuple(item.get(key) for key in keys)) if isinstance(item, dict) else None


def _duplicates(schema: Node, value: list[Any], path: str) -> Iterator[FieldError]:
    kind = schema.get("x-kubernetes-list-type")
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    if kind not in ("set", "map"):
        return
    marks = []
    for index, item in enumerate(value):
        mark = item
        if kind == "map" and isinstance(item, dict):
            mark = {key: item[key] for key in keys if key in item}
        if mark in marks:
            yield duplicate(f"{path}[{index}]", mark)
        marks.append(mark)


def _fields(schema: Node, value: dict[str, Any], old: Any, path: str) -> Iterator[FieldError]:
    least = schema.get("minProperties")
    most = schema.get("maxProperties")
    if least is not None and len(value) < least:
        yield invalid(path, len(value), f"{_in_body(path)} should have at least {least} properties")
    if most is not None and len(value) > most:
        yield too_many(path, len(value), most)
    for key in schema.get("required") or ():
        if key not in value:
            yield required(_child(path, key))
    known = schema.get("properties") or {}
    extra = schema.get("additionalProperties")
    before = old if isinstance(old, dict) else {}
    for key, sub in value.items():
        inner = known.get(key, extra)
        if isinstance(inner, Mapping):
            yield from _value(inner, sub, before.get(key), _child(path, key))


def _child(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _fits(schema: Node, value: Any) -> bool:
    return next(_value(schema, value, None, ""), None) is None


def _of_the_whole(why: str) -> FieldError:
    """Return an error that the API server attributes to no field; its text names the place."""
    return invalid("<nil>", "", why)


def _combined(schema: Node, value: Any, path: str) -> Iterator[FieldError]:
    """Check `allOf`, `anyOf`, `oneOf` and `not`."""
    shown = json.dumps(path or "<nil>")
    found: list[FieldError] = []
    for part in schema.get("allOf") or ():
        found.extend(_value(part, value, None, path))
    yield from found
    if found:
        yield _of_the_whole(f"{shown} must validate all the schemas (allOf)")
    yield from _options(schema, value, path, shown)
    if schema.get("not") is not None and _fits(schema["not"], value):
        yield _of_the_whole(f"{shown} must not validate the schema (not)")


def _options(schema: Node, value: Any, path: str, shown: str) -> Iterator[FieldError]:
    """Check `anyOf` and `oneOf`; if no option matches, also report the errors of the first."""
    for keyword in ("anyOf", "oneOf"):
        options = schema.get(keyword) or ()
        count = sum(_fits(option, value) for option in options)
        if not options or count == 1 or (count and keyword == "anyOf"):
            continue
        if not count:
            yield from _value(options[0], value, None, path)
        if keyword == "anyOf":
            yield _of_the_whole(f"{shown} must validate at least one schema (anyOf)")
        else:
            why = f"Found {count} valid alternatives" if count else "Found none valid"
            yield _of_the_whole(f"{shown} must validate one and only one schema (oneOf). {why}")


def _parses(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    def check(value: str) -> bool:
        try:
            parse(value)
        except (ValueError, AddressValueError):
            return False
        return True

    return check


def _looks(pattern: str) -> Callable[[str], bool]:
    return lambda value: re.fullmatch(pattern, value) is not None


def _date_time(value: str) -> datetime:
    if not re.match(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d", value):
        raise ValueError(value)
    return datetime.fromisoformat(value.upper().replace(" ", "T"))


#: The formats that the API server validates; others are only informative.
FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date": _parses(date.fromisoformat),
    "date-time": _parses(_date_time),
    "ipv4": _parses(IPv4Address),
    "ipv6": _parses(IPv6Address),
    "uuid": _looks(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"),
    "email": _looks(r"[^@\s]+@[^@\s]+"),
    "uri": _looks(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]+"),
    "hostname": _looks(r"(?i)[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*"),
    "cidr": _looks(r"[0-9A-Fa-f.:]+/\d{1,3}"),
    "mac": _looks(r"(?i)([0-9a-f]{2}[:-]){5}[0-9a-f]{2}"),
    "byte": _looks(r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"),
    "duration": _looks(r"-?(\d+(\.\d+)?(ns|us|µs|ms|s|m|h|d|w| ?[a-z]+))+"),
}
