"""Convert between the stored form of an object and the served version."""

from typing import Any

from kube_envtest.apiserver.resources import ResourceType
from kube_envtest.apiserver.storage import Entry, encode

Obj = dict[str, Any]

#: Fields of the two Event groups: core v1 name → events.k8s.io/v1 name.
EVENT_FIELDS = {
    "message": "note",
    "involvedObject": "regarding",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
CORE_FIELDS = {new: old for old, new in EVENT_FIELDS.items()}


def served(rt: ResourceType, entry: Entry) -> bytes:
    """Return a stored object as JSON in the version of ``rt``."""
    if rt.api_version == rt.stored_api_version:
        return entry.raw
    if rt.group == "events.k8s.io":
        return encode(to_version(rt, entry.obj))
    return rt.prefix + entry.raw[len(rt.stored_prefix) :]


def to_version(rt: ResourceType, obj: Obj) -> Obj:
    """Return a stored object in the version of ``rt``; a new outer mapping if anything differs."""
    if rt.api_version == rt.stored_api_version:
        return obj
    if rt.group == "events.k8s.io":
        obj = _renamed(obj, EVENT_FIELDS)
    return {**obj, "apiVersion": rt.api_version}


def to_stored(rt: ResourceType, obj: Obj) -> Obj:
    """Return a client's object in the stored version, with kind, apiVersion and metadata first."""
    if rt.group == "events.k8s.io":
        obj = _renamed(obj, CORE_FIELDS)
    return canonical(rt, obj)


def canonical(rt: ResourceType, obj: Obj) -> Obj:
    """Return the object with kind, apiVersion and metadata first: stored bytes begin with the
    type's prefix.
    """
    head = {"kind": rt.kind, "apiVersion": rt.stored_api_version, "metadata": obj.get("metadata") or {}}
    return head | {key: value for key, value in obj.items() if key not in head}


def _renamed(obj: Obj, names: dict[str, str]) -> Obj:
    return {names.get(key, key): value for key, value in obj.items()}
