"""Decode Kubernetes protobuf, which kubectl's own generators (``kubectl create configmap``) send
instead of JSON.

Source: "Protobuf encoding" in kubernetes.io/docs/reference/using-api/api-concepts: four bytes of
magic, then a ``runtime.Unknown`` with the type and the message.
"""

import base64
from collections.abc import Iterator
from typing import Any

from kube_envtest.apiserver.clock import micro_timestamp, timestamp
from kube_envtest.apiserver.structs import Field, name_of, structs

Obj = dict[str, Any]

MAGIC = b"k8s\x00"
MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

VARINT = 0
EIGHT = 1
BYTES = 2
FOUR = 5


class ProtobufError(ValueError):
    """The bytes are not Kubernetes protobuf, or of an unknown kind."""


def decode(body: bytes) -> Obj:
    """Decode an object.

    Raises:
        ProtobufError: The bytes can't be decoded.
    """
    if not body.startswith(MAGIC):
        raise ProtobufError("the body is no Kubernetes protobuf: it does not begin with k8s\\x00")
    parts = {number: value for number, _, value in _wire(body[len(MAGIC) :])}
    identity = {number: value.decode() for number, _, value in _wire(parts.get(1, b""))}
    version = identity.get(1, "")
    kind = identity.get(2, "")
    name = name_of(version, kind)
    if not name:
        raise ProtobufError(f"no protobuf of {version} {kind} is known here: send JSON")
    return {"kind": kind, "apiVersion": version, **_message(name, parts.get(2, b""))}


def _message(name: str, content: bytes) -> Obj:
    fields = structs()[name]
    out: Obj = {}
    for number, _, value in _wire(content):
        field = fields.get(number)
        if field is not None:
            _put(out, field, value)
    return {key: value for key, value in out.items() if value} if name == "ObjectMeta" else out


def _put(out: Obj, field: Field, value: Any) -> None:
    match field.form:
        case "*":
            out.setdefault(field.name, []).append(_value(field.type, value))
        case "{":
            pair = {number: found for number, _, found in _wire(value)}
            item = _value(field.type, pair[2]) if 2 in pair else _value(field.type, b"")
            out.setdefault(field.name, {})[pair.get(1, b"").decode()] = item
        case "^":
            out.update(_message(field.type, value))
        case _:
            found = _value(field.type, value)
            if found is not None:
                out[field.name] = found


def _value(kind: str, value: Any) -> Any:
    match kind:
        case "s":
            return value.decode()
        case "i" | "l":
            return value - (1 << 64) if value >= 1 << 63 else value
        case "b":
            return bool(value)
        case "y":
            return base64.b64encode(value).decode()
        case "Quantity":
            return {number: found for number, _, found in _wire(value)}.get(1, b"").decode() or "0"
        case "Time" | "MicroTime":
            return _time(kind, value)
        case "IntOrString":
            return _number_or_text(value)
        case "FieldsV1" | "RawExtension":
            return None
        case _:
            return _message(kind, value)


def _time(kind: str, value: bytes) -> str | None:
    parts = {number: found for number, _, found in _wire(value)}
    if 1 not in parts:
        return None
    seconds = parts[1] + parts.get(2, 0) / 1e9
    return timestamp(seconds) if kind == "Time" else micro_timestamp(seconds)


def _number_or_text(value: bytes) -> Any:
    parts = {number: found for number, _, found in _wire(value)}
    return parts.get(3, b"").decode() if parts.get(1) else _value("i", parts.get(2, 0))


def _wire(content: bytes) -> Iterator[tuple[int, int, Any]]:
    """Yield field number, wire type and value of each field."""
    at = 0
    while at < len(content):
        tag, at = _varint(content, at)
        number = tag >> 3
        wire = tag & 7
        value: Any
        if wire == VARINT:
            value, at = _varint(content, at)
        elif wire == BYTES:
            size, at = _varint(content, at)
            value = content[at : at + size]
            at += size
        elif wire in (EIGHT, FOUR):
            size = 8 if wire == EIGHT else 4
            value = int.from_bytes(content[at : at + size], "little")
            at += size
        else:
            raise ProtobufError(f"wire type {wire} at byte {at}")
        if at > len(content):
            raise ProtobufError("the body ends in the middle of a field")
        yield number, wire, value


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(content):
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at += 1
        shift += 7
        if byte < 0x80:
            return value, at
    raise ProtobufError("the body ends in the middle of a number")
