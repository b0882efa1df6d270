"""Objects of one resource as bytes of exactly their size, by key. Reads give private copies."""

from collections.abc import Collection
from typing import NamedTuple

from syncer.api.objects import Key, Obj, Resource
from syncer.clusters import codec


class Entry(NamedTuple):
    """One object: its resourceVersion, its uid, and its JSON without managedFields, which are most of its size."""

    version: str
    uid: str
    raw: bytes


class Store:
    """The entries of one resource; for one thread."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self._entries: dict[Key, Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def get(self, key: Key) -> Obj | None:
        """Return the object as a private copy; None where there is none."""
        entry = self._entries.get(key)
        return codec.seen(entry.raw) if entry else None

    def entry(self, key: Key) -> Entry | None:
        """Return the entry as it is kept; None where there is none."""
        return self._entries.get(key)

    def keys(self) -> Collection[Key]:
        """Return all keys, as a view."""
        return self._entries.keys()

    def keep(self, key: Key, obj: Obj) -> Obj:
        """Put an object that belongs to the caller, and return it as it is kept.

        ``managedFields`` are taken away, and ``apiVersion`` and ``kind`` filled in, which lists leave out.
        """
        metadata = obj["metadata"]
        metadata.pop("managedFields", None)
        if "kind" not in obj:
            obj = {"apiVersion": self.resource.api_version, "kind": self.resource.kind, **obj}
        self._entries[key] = Entry(metadata["resourceVersion"], metadata.get("uid", ""), codec.encode(obj))
        return obj

    def drop(self, key: Key) -> Obj | None:
        """Remove an object, and return it as it last was; None where there was none."""
        entry = self._entries.pop(key, None)
        return codec.seen(entry.raw) if entry else None
