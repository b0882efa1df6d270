"""Values that a kind's Go struct can't hold, so that the API server can't decode the object.

Only common mistakes are detected: maps of strings with other values, base64, times.
"""

import re
from collections.abc import Mapping
from typing import Any

Obj = dict[str, Any]

_GO_MICRO_TIME = "2006-01-02T15:04:05.000000Z07:00"
_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
_BASE64 = re.compile("[A-Za-z0-9+/]*={0,2}")


class DecodeError(ValueError):
    """The object can't be decoded; the message is the API server's for 400."""


def handled(kind: str, obj: Mapping[str, Any]) -> str:
    """Return the beginning of the API server's message."""
    version = str(obj.get("apiVersion", "v1")).rpartition("/")[2]
    return f'{kind} in version "{version}" cannot be handled as a {kind}'


def check_texts(kind: str, obj: Mapping[str, Any]) -> None:
    """Refuse maps of strings with other values, the most common mistake in templates."""
    texts = [(obj.get("metadata") or {}, name, "ObjectMeta.metadata") for name in ("labels", "annotations")]
    if kind in ("ConfigMap", "Secret"):
        texts += [(obj, name, kind) for name in ("data", "stringData", "binaryData")]
    for holder, name, struct in texts:
        values = holder.get(name)
        slot = f"Go struct field {struct}.{name} of type"
        if values is not None and not isinstance(values, dict):
            raise _not_this(kind, obj, values, f"{slot} map[string]string")
        for value in (values or {}).values():
            if not isinstance(value, str) and value is not None:
                raise _not_this(kind, obj, value, f"{slot} string")
    encoded = {"Secret": "data", "ConfigMap": "binaryData"}.get(kind, "")
    for value in (obj.get(encoded) or {}).values():
        _check_base64(kind, obj, value or "")


def _not_this(kind: str, obj: Mapping[str, Any], value: Any, slot: str) -> DecodeError:
    found = {bool: "bool", dict: "object", list: "array", str: "string"}.get(type(value), "number")
    return DecodeError(f"{handled(kind, obj)}: json: cannot unmarshal {found} into {slot}")


def _check_base64(kind: str, obj: Mapping[str, Any], text: str) -> None:
    if len(text) % 4 or not _BASE64.fullmatch(text):
        good = re.match("[A-Za-z0-9+/]*", text)
        at = good.end() if good else 0
        raise DecodeError(f"{handled(kind, obj)}: illegal base64 data at input byte {at}")


def check_micro_time(text: Any, kind: str, obj: Mapping[str, Any]) -> None:
    """Refuse a time without six digits after the second, like the real decoder."""
    if text is not None and not _MICRO_TIME.fullmatch(str(text)):
        why = f'parsing time "{text}" as "{_GO_MICRO_TIME}": cannot parse "{str(text)[19:]}" as ".000000"'
        raise DecodeError(f"{handled(kind, obj)}: {why}")
