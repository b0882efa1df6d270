"""Field ownership: the entries of `metadata.managedFields`, and the effect of an update on them.

Source: `k8s.io/apimachinery/pkg/util/managedfields/internal`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kube_envtest.apiserver.field_sets import Fields, difference, union, without_subtrees
from kube_envtest.apiserver.shapes import is_builtin

Obj = dict[str, Any]

#: Parts of `metadata` that the API server sets itself, and that have no owner.
SYSTEM_METADATA = frozenset(
    {
        *("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp"),
        *("managedFields", "selfLink", "clusterName"),
    }
)
_META_STEPS = frozenset("f:" + key for key in SYSTEM_METADATA)

#: Maximum number of managers of updates of an object; older ones are merged into `ancient-changes`.
MOST_UPDATERS = 10


class Identity(NamedTuple):
    """The identity of an entry; `api_version` is empty for an Apply."""

    manager: str
    operation: str
    subresource: str
    api_version: str


class Entry(NamedTuple):
    """An entry: manager, time (RFC 3339, or None), fields."""

    manager: str
    operation: str
    api_version: str
    time: str | None
    fields: Fields
    subresource: str = ""

    @property
    def identity(self) -> Identity:
        """The identity of this entry."""
        version = "" if self.operation == "Apply" else self.api_version
        return Identity(self.manager, self.operation, self.subresource, version)

    def json(self) -> Obj:
        """Return the entry as in the object."""
        out: Obj = {"manager": self.manager, "operation": self.operation, "apiVersion": self.api_version}
        if self.time is not None:
            out["time"] = self.time
        out["fieldsType"] = "FieldsV1"
        out["fieldsV1"] = self.fields
        if self.subresource:
            out["subresource"] = self.subresource
        return out


Entries = dict[Identity, Entry]


class BadEntryError(ValueError):
    """An entry that the API server would not decode."""


def read(managed: Iterable[Mapping[str, Any]]) -> Entries:
    """Parse the entries of `metadata.managedFields`.

    Raises:
        BadEntryError: An entry is malformed.
    """
    out: Entries = {}
    for raw in managed:
        if raw.get("operation") not in ("Apply", "Update") or not raw.get("apiVersion"):
            raise BadEntryError("operation must be `Apply` or `Update`, and apiVersion must not be empty")
        if raw.get("fieldsType") != "FieldsV1":
            raise BadEntryError(f"invalid fieldsType {raw.get('fieldsType')!r}")
        entry = Entry(
            raw.get("manager", ""),
            raw["operation"],
            raw["apiVersion"],
            raw.get("time"),
            raw.get("fieldsV1") or {},
            raw.get("subresource", ""),
        )
        out[entry.identity] = entry
    return out


def read_or_none(obj: Mapping[str, Any]) -> Entries:
    """Return an object's entries, none if one is malformed."""
    try:
        return read(obj.get("metadata", {}).get("managedFields") or ())
    except BadEntryError:
        return {}


def starting_point(old: Mapping[str, Any], new: Mapping[str, Any], *, subresource: str) -> Entries:
    """Return the entries before a write. A client may send its own; `[]` or `[{}]` forgets all."""
    sent = new.get("metadata", {}).get("managedFields")
    if subresource or sent is None:
        return read_or_none(old)
    if not sent or (len(sent) == 1 and not sent[0]):
        return {}
    return read_or_none(new) or read_or_none(old)


def _sort_key(entry: Entry) -> tuple[str, str, str, str, str]:
    return (entry.operation, entry.time or "", entry.manager, entry.api_version, entry.subresource)


def write(obj: Obj, entries: Entries) -> Obj:
    """Return a copy of `obj` with these entries, in the API server's order."""
    metadata = {key: value for key, value in obj.get("metadata", {}).items() if key != "managedFields"}
    ordered = sorted(entries.values(), key=_sort_key) if len(entries) > 1 else entries.values()
    if entries:
        metadata["managedFields"] = [entry.json() for entry in ordered]
    return {**obj, "metadata": metadata}


def strip(fields: Fields) -> Fields:
    """Return a set without fields that the API server sets itself."""
    metadata = fields.get("f:metadata")
    out = {step: node for step, node in fields.items() if step not in ("f:apiVersion", "f:kind", "f:metadata", ".")}
    if metadata:
        rest = {step: node for step, node in metadata.items() if step not in _META_STEPS and step != "."}
        if rest:
            out["f:metadata"] = rest
    return out


def reset_fields(api_version: str, kind: str, subresource: str) -> Fields:
    """Return the fields that a request through this (sub)resource can't change, and so doesn't own.

    Source: `GetResetFields` of the kinds' strategies. The main resource of a custom resource is not
    covered: whether it has a status subresource is up to its CRD.
    """
    builtin = is_builtin(api_version)
    if subresource == "status":
        return _status_resets(kind) if builtin else {"f:metadata": {}, "f:spec": {}}
    return {"f:status": {}} if builtin else {}


def _status_resets(kind: str) -> Fields:
    match kind:
        case "Pod":
            return {"f:spec": {}, "f:metadata": {"f:deletionTimestamp": {}, "f:ownerReferences": {}}}
        case "Deployment":
            return {"f:spec": {}, "f:metadata": {"f:labels": {}}}
        case "VolumeAttachment":
            return {"f:spec": {}, "f:metadata": {}}
        case _:
            return {"f:spec": {}}


def filtered(fields: Fields, resets: Fields) -> Fields:
    """Return a set without the reset fields."""
    return without_subtrees(fields, resets) if fields and resets else fields


def taken_from(entries: Entries, lost: Fields) -> Entries:
    """Return the entries without fields that another manager changed or removed; empty entries are
    dropped.
    """
    out: Entries = {}
    for identity, entry in entries.items():
        rest = difference(entry.fields, lost)
        if rest:
            out[identity] = entry if rest is entry.fields else entry._replace(fields=rest)
    return out


def given_to(entries: Entries, entry: Entry) -> Entries:
    """Return the entries with the fields of `entry` added to its manager's entry."""
    before = entries.get(entry.identity)
    merged = entry if before is None else entry._replace(fields=union(before.fields, entry.fields))
    return {**entries, entry.identity: merged}


def capped(entries: Entries) -> Entries:
    """Return the entries, with the oldest updates merged into `ancient-changes` if there are too many."""
    updaters = [entry for entry in entries.values() if entry.operation == "Update"]
    if len(updaters) <= MOST_UPDATERS:
        return entries
    updaters.sort(key=lambda entry: (entry.time or "", entry.identity))
    out = dict(entries)
    left = len(updaters)
    first = dict[str, Entry]()
    for entry in updaters:
        if left <= MOST_UPDATERS:
            break
        oldest = first.get(entry.api_version)
        if oldest is None:
            first[entry.api_version] = entry
            continue
        del out[entry.identity]
        out.pop(oldest.identity, None)
        bucket = Entry("ancient-changes", "Update", entry.api_version, entry.time, union(entry.fields, oldest.fields))
        out[bucket.identity] = first[entry.api_version] = bucket
        left -= 1
    return out
