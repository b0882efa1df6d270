"""Create and change objects: the steps of every write before it is stored.

Source: ``registry/rest`` and ``registry/generic/registry/store.go`` of k8s.io/apiserver.
"""

from random import Random
from typing import Any, Protocol

from kube_envtest.apiserver import apply, metadata
from kube_envtest.apiserver.convert import to_stored
from kube_envtest.apiserver.errors import (
    already_exists,
    cause,
    conflict,
    invalid,
    modified,
    not_found,
    unhandled,
)
from kube_envtest.apiserver.patches import same
from kube_envtest.apiserver.reading import read
from kube_envtest.apiserver.request import Call
from kube_envtest.apiserver.resources import ResourceType
from kube_envtest.apiserver.storage import Entry, Storage, key_of
from kube_envtest.apiserver.strategies import Strategies

Obj = dict[str, Any]


class Admission(Protocol):
    """Checks each object before it is stored; it may change or refuse it."""

    def create(self, call: Call, obj: Obj) -> Obj:
        """Return the object, possibly changed."""


class Objects:
    """The writing half of every resource's store."""

    def __init__(self, storage: Storage, strategies: Strategies, admission: Admission, chance: Random) -> None:
        self._storage = storage
        self._strategies = strategies
        self._admission = admission
        self._chance = chance

    def create(self, call: Call, obj: Obj, *, manage: bool = True) -> Entry:
        """Store a new object.

        ``manage`` False skips managedFields, for server-side apply, which has set them.

        Raises:
            ApiError: AlreadyExists, Invalid, Forbidden and others.
        """
        rt = call.type
        obj = to_stored(rt, obj)
        meta = obj["metadata"] = dict(obj["metadata"])
        metadata.match_namespace(rt, meta, call.namespace)
        version = meta.pop("resourceVersion", None)
        metadata.begin(meta, now=call.now, chance=self._chance)
        obj = self._strategies.decoded(rt, read(call, obj), None)
        obj = self._tracked(call, None, obj) if manage else obj
        obj = self._strategies.create(rt, _own_metadata(obj))
        obj = self._admission.create(call, obj)
        self._refuse(rt, obj, self._strategies.check_create(rt, obj))
        if version:
            raise unhandled("resourceVersion should not be set on objects to be created")
        return self._insert(call, obj)

    def _insert(self, call: Call, obj: Obj) -> Entry:
        meta = obj["metadata"]
        key = key_of(meta.get("namespace", ""), meta["name"])
        if self._storage.get(call.table, key) is not None:
            generated = meta.get("generateName") and meta["name"] != call.name
            taken = metadata.name_taken if generated else already_exists
            raise taken(call.type, meta["name"])
        obj = self._strategies.allocate(call.type, obj, None, dry_run=call.request.dry_run)
        if call.request.dry_run:
            return Entry(key, obj, 0)
        return self._storage.create(call.table, key, obj)

    def _refuse(self, rt: ResourceType, obj: Obj, causes: list[Obj]) -> None:
        if causes:
            raise invalid(rt, obj["metadata"].get("name", ""), causes)

    def _tracked(self, call: Call, old: Obj | None, new: Obj) -> Obj:
        """Return the object with its managedFields."""
        tracked: Obj = apply.track_update(
            old,
            new,
            manager=call.request.manager,
            api_version=new["apiVersion"],
            now=call.now,
            subresource=call.subresource,
            schema=call.type.schema,
        )
        return tracked

    def update(self, call: Call, entry: Entry, new: Obj, *, manage: bool = True, check: bool = True) -> Entry:
        """Replace an object; an equal object is not written.

        ``check`` False also allows forbidden changes.

        A terminating object that loses its last finalizer is removed.

        Raises:
            ApiError: Conflict: another uid or resourceVersion. Invalid: a forbidden change.
        """
        rt = call.type
        old = entry.obj
        new = to_stored(rt, new)
        meta = new["metadata"] = dict(new["metadata"])
        self._preconditions(call, meta, old["metadata"])
        metadata.match_namespace(rt, meta, old["metadata"].get("namespace", ""))
        metadata.keep(meta, old["metadata"])
        new = self._strategies.decoded(rt, read(call, new), old, call.subresource)
        new = self._tracked(call, old, new) if manage else new
        new = self._strategies.update(rt, _own_metadata(new), old, call.subresource)
        if check:
            self._refuse(rt, old, self._strategies.check_update(rt, old, new, call.subresource))
        return self._replace(call, entry, new)

    def _preconditions(self, call: Call, meta: Obj, old: Obj) -> None:
        uid = meta.get("uid")
        if uid and uid != old["uid"] and call.verb == "update":
            raise conflict(call.type, old["name"], uid_mismatch(call, uid, old["uid"]))
        version = meta.get("resourceVersion")
        if not version:
            if not call.type.unconditional_update:
                raise _version_missing(call.type, old["name"])
            meta["resourceVersion"] = old["resourceVersion"]
        elif version != old["resourceVersion"]:
            raise modified(call.type, old["name"])

    def _replace(self, call: Call, entry: Entry, new: Obj) -> Entry:
        if call.request.dry_run:
            return Entry(entry.key, new, entry.revision)
        if emptied(new, entry.obj):
            return self.remove(call.type, entry, new)
        if _same(new, entry.obj):
            return entry
        new = self._strategies.allocate(call.type, new, entry.obj)
        return self._storage.update(call.table, entry.key, new)

    def remove(self, rt: ResourceType, entry: Entry, last: Obj | None = None) -> Entry:
        """Remove an object from the storage for good."""
        self._strategies.removed(rt, entry.obj)
        return self._storage.delete(rt.table_name, entry.key, last)

    def existing(self, call: Call) -> Entry:
        """Return the object of the path.

        Raises:
            ApiError: NotFound.
        """
        found = self._storage.get(call.table, call.key)
        if found is None:
            raise not_found(call.type, call.name)
        return found


def emptied(new: Obj, old: Obj) -> bool:
    """Return True if an object is terminating and waits for nothing any more."""
    before = old["metadata"]
    after = new["metadata"]
    waiting = "deletionTimestamp" in before and not before.get("deletionGracePeriodSeconds")
    has_finalizers = new["kind"] == "Namespace" and (new.get("spec") or {}).get("finalizers")
    return waiting and not after.get("finalizers") and not has_finalizers


def uid_mismatch(call: Call, given: str, found: str) -> str:
    """Return the reason of a ``Conflict`` about uids, in the real storage's words."""
    rt = call.type
    folder = f"{rt.group}/{rt.plural}" if rt.custom else STORAGE_FOLDERS.get(rt.plural, rt.plural)
    key = f"/registry/{folder}/{call.key.lstrip('/')}"
    why = f"Precondition failed: UID in precondition: {given}, UID in object meta: {found}"
    return f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}"


#: Where etcd stores resources that aren't under their plural. Source:
#: ``kubernetes/pkg/kubeapiserver``.
STORAGE_FOLDERS = {
    "services": "services/specs",
    "endpoints": "services/endpoints",
    "nodes": "minions",
    "ingresses": "ingress",
}


def _version_missing(rt: ResourceType, name: str) -> Exception:
    text = "Invalid value: 0: must be specified for an update"
    by_plural = ResourceType(rt.group, rt.version, rt.plural, rt.plural)
    return invalid(by_plural, name, [cause("metadata.resourceVersion", text)])


def _own_metadata(obj: Obj) -> Obj:
    """Return the object with its own metadata, which may be changed."""
    return {**obj, "metadata": dict(obj["metadata"])}


def _same(new: Obj, old: Obj) -> bool:
    """Return True if nothing changed except times in managedFields."""
    if new.keys() != old.keys() or any(not same(new[key], old[key]) for key in new if key != "metadata"):
        return False
    after = new["metadata"]
    before = old["metadata"]
    if after == before:
        return True
    return _timeless(after) == _timeless(before)


def _timeless(meta: Obj) -> Obj:
    entries = [
        {key: value for key, value in entry.items() if key != "time"} for entry in meta.get("managedFields") or ()
    ]
    return {**meta, "managedFields": entries}
