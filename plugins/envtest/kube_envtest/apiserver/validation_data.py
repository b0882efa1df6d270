"""Checks of ConfigMaps and Secrets.

Source: `kubernetes/pkg/apis/core/validation/validation.go`.
"""

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any

from kube_envtest.apiserver.fields import FieldError, forbidden, invalid, required, too_long
from kube_envtest.apiserver.syntax import config_key
from kube_envtest.apiserver.validation_metadata import IMMUTABLE

Obj = Mapping[str, Any]

#: Maximum size of the data of a ConfigMap or Secret, in bytes.
MOST_DATA = 1024 * 1024

_FROZEN = "field is immutable when `immutable` is set"


def _size(texts: Obj) -> int:
    return sum(len(str(value).encode()) for value in texts.values())


def _bytes(values: Obj) -> int:
    """Return the decoded size of base64 strings, in bytes."""
    return sum(len(value) * 3 // 4 - value[-2:].count("=") for value in values.values())


def _keys(values: Obj, path: str) -> Iterator[FieldError]:
    for key in values:
        for problem in config_key(key):
            yield invalid(f"{path}[{key}]", key, problem)


def check_config_map(obj: Obj) -> Iterator[FieldError]:
    """Check a ConfigMap: its keys and its size."""
    data = obj.get("data") or {}
    binary = obj.get("binaryData") or {}
    yield from _keys(data, "data")
    for key in data.keys() & binary.keys():
        yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    yield from _keys(binary, "binaryData")
    if _size(data) + _bytes(binary) > MOST_DATA:
        yield too_long("[]", MOST_DATA)


#: The keys that a Secret of a type must have.
_SECRET_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def check_secret(obj: Obj) -> Iterator[FieldError]:
    """Check a Secret: its keys, its size, and the requirements of its type."""
    data = obj.get("data") or {}
    kind = obj.get("type")
    yield from _keys(data, "data")
    if _bytes(data) > MOST_DATA:
        yield too_long("data", MOST_DATA)
    for key in _SECRET_KEYS.get(str(kind), ()):
        if key not in data:
            yield required(f"data[{key}]")
        elif key.startswith(".docker") and (why := _json_problem(data[key])):
            yield invalid(f"data[{key}]", "<secret contents redacted>", why)
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
        yield required("data[username]")
        yield required("data[password]")
    account = "kubernetes.io/service-account.name"
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    if kind == "kubernetes.io/service-account-token" and not annotations.get(account):
        yield required(f"metadata.annotations[{account}]")


def _json_problem(encoded: str) -> str:
    """Return why a base64 string isn't a JSON object, in Go's words; "" if it is."""
    text = base64.b64decode(encoded)
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        rest = error.doc[error.pos :]
        what = "looking for beginning of value"
        return f"invalid character '{rest[0]}' {what}" if rest else "unexpected end of JSON input"
    except ValueError:
        return "invalid UTF-8 in string"
    return "" if isinstance(found, dict) else "json: cannot unmarshal into Go value of type map[string]interface {}"


def check_frozen_data(old: Obj, new: Obj) -> Iterator[FieldError]:
    """Check a change of a ConfigMap or Secret that may be immutable."""
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield forbidden("immutable", _FROZEN)
    for key in ("data", "binaryData"):
        if (new.get(key) or {}) != (old.get(key) or {}):
            yield forbidden(key, _FROZEN)


def check_secret_change(old: Obj, new: Obj) -> Iterator[FieldError]:
    """Check that the type of a Secret doesn't change."""
    if new.get("type") != old.get("type"):
        yield invalid("type", new.get("type"), IMMUTABLE)
    yield from check_frozen_data(old, new)
