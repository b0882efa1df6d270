"""The garbage collector: dependents are deleted with their last owner.

Source: kubernetes.io/docs/concepts/architecture/garbage-collection.
"""

from collections.abc import Iterable
from typing import Any

from kube_envtest.apiserver.controllers import Now
from kube_envtest.apiserver.deletion import FOREGROUND, ORPHAN, DeleteOptions, Deleter
from kube_envtest.apiserver.objects import Objects, emptied
from kube_envtest.apiserver.resources import Registry, ResourceType
from kube_envtest.apiserver.storage import Entry, Event, Storage

Obj = dict[str, Any]

TableKey = tuple[str, str]


class Garbage:
    """Follows ownerReferences: background, foreground and orphaning deletion."""

    def __init__(self, storage: Storage, registry: Registry, objects: Objects, deleter: Deleter, now: Now) -> None:
        self._storage = storage
        self._registry = registry
        self._objects = objects
        self._deleter = deleter
        self._now = now
        self._alive: set[str] = set()
        self._dependents: dict[str, set[TableKey]] = {}

    def react(self, table: str, event: Event) -> None:
        """Update the graph, then delete objects whose owners are gone."""
        meta = event.entry.obj["metadata"]
        key = (table, event.entry.key)
        before = _owners(event.previous.obj) if event.previous else set()
        after = _owners(event.entry.obj) if event.type != "DELETED" else set()
        for uid in before - after:
            self._dependents.get(uid, set()).discard(key)
        for uid in after - before:
            self._dependents.setdefault(uid, set()).add(key)
        if event.type == "DELETED":
            self._alive.discard(meta["uid"])
            self._collect(meta["uid"])
            self._unblock(before)
        else:
            self._alive.add(meta["uid"])
            self._check(table, event.entry)

    def _check(self, table: str, entry: Entry) -> None:
        meta = entry.obj["metadata"]
        if meta.get("ownerReferences") and not any(uid in self._alive for uid in _owners(entry.obj)):
            self._delete((table, entry.key), "Background")
        if "deletionTimestamp" in meta and ORPHAN in (meta.get("finalizers") or ()):
            self._orphan(table, entry)
        if "deletionTimestamp" in meta and FOREGROUND in (meta.get("finalizers") or ()):
            self._foreground(table, entry)

    def _collect(self, uid: str) -> None:
        for key in sorted(self._dependents.pop(uid, ())):
            entry = self._storage.get(*key)
            if entry is not None and not any(owner in self._alive for owner in _owners(entry.obj)):
                self._delete(key, "Background")

    def _delete(self, key: TableKey, propagation: str) -> None:
        entry = self._storage.get(*key)
        rt = self._type(key[0])
        if entry is None or rt is None or "deletionTimestamp" in entry.obj["metadata"]:
            return
        self._deleter.delete(rt, entry, DeleteOptions(propagation=propagation, now=self._now()))

    def _type(self, table: str) -> ResourceType | None:
        return next((rt for rt in self._registry.stored() if rt.table_name == table), None)

    def _orphan(self, table: str, entry: Entry) -> None:
        uid = entry.obj["metadata"]["uid"]
        for key in sorted(self._dependents.get(uid, ())):
            found = self._storage.get(*key)
            if found is not None:
                kept = [one for one in found.obj["metadata"]["ownerReferences"] if one["uid"] != uid]
                self._rewrite(key[0], found, {"ownerReferences": kept})
        self._release(table, entry, ORPHAN)

    def _foreground(self, table: str, entry: Entry) -> None:
        uid = entry.obj["metadata"]["uid"]
        for key in sorted(self._dependents.get(uid, ())):
            self._delete(key, "Foreground")
        self._unblock({uid}, [(table, entry.key)])

    def _unblock(self, uids: set[str], keys: Iterable[TableKey] = ()) -> None:
        """Release owners that wait in the foreground for nothing any more."""
        for key in [*keys, *self._waiting(uids)]:
            entry = self._storage.get(*key)
            if entry is not None and not self._blocking(entry.obj["metadata"]["uid"]):
                self._release(key[0], entry, FOREGROUND)

    def _waiting(self, uids: set[str]) -> list[TableKey]:
        if not uids & self._alive:
            return []
        found: list[TableKey] = []
        for table in self._storage.tables.values():
            for key, entry in table.entries.items():
                metadata = entry.obj["metadata"]
                if metadata["uid"] in uids and FOREGROUND in (metadata.get("finalizers") or ()):
                    found.append((table.name, key))
        return found

    def _blocking(self, uid: str) -> bool:
        for key in self._dependents.get(uid, ()):
            entry = self._storage.get(*key)
            references = entry.obj["metadata"].get("ownerReferences") or () if entry else ()
            if any(one["uid"] == uid and one.get("blockOwnerDeletion") for one in references):
                return True
        return False

    def _release(self, table: str, entry: Entry, finalizer: str) -> None:
        finalizers = entry.obj["metadata"].get("finalizers") or []
        if finalizer in finalizers:
            self._rewrite(table, entry, {"finalizers": [name for name in finalizers if name != finalizer]})

    def _rewrite(self, table: str, entry: Entry, changes: Obj) -> None:
        meta = {**entry.obj["metadata"], **changes}
        obj = {**entry.obj, "metadata": {key: value for key, value in meta.items() if value != []}}
        rt = self._type(table)
        if rt is not None and emptied(obj, entry.obj):
            self._objects.remove(rt, entry, obj)
        else:
            self._storage.update(table, entry.key, obj)


def _owners(obj: Obj) -> set[str]:
    return {one["uid"] for one in obj["metadata"].get("ownerReferences") or ()}
