"""Objects of a resource as bytes of exact size, by key. Reads return private copies."""

from collections.abc import Collection
from typing import NamedTuple

from syncer.api.objects import Key, Obj, Resource
from syncer.clusters import codec


class Entry(NamedTuple):
    """An object: its resourceVersion, its uid, and its JSON without managedFields, which are most
    of its size.
    """

    version: str
    uid: str
    raw: bytes


class Store:
    """The entries of a resource; not thread-safe."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self._entries: dict[Key, Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def get(self, key: Key) -> Obj | None:
        """Return a private copy of the object; None if there is none."""
        entry = self._entries.get(key)
        return codec.seen(entry.raw) if entry else None

    def entry(self, key: Key) -> Entry | None:
        """Return the stored entry; None if there is none."""
        return self._entries.get(key)

    def keys(self) -> Collection[Key]:
        """Return all keys, as a view."""
        return self._entries.keys()

    def keep(self, key: Key, obj: Obj) -> Obj:
        """Store an object that the caller hands over, and return it as stored.

        ``managedFields`` are removed, and ``apiVersion`` and ``kind`` added, which lists leave out.
        """
        metadata = obj["metadata"]
        metadata.pop("managedFields", None)
        if "kind" not in obj:
            obj = {"apiVersion": self.resource.api_version, "kind": self.resource.kind, **obj}
        self._entries[key] = Entry(metadata["resourceVersion"], metadata.get("uid", ""), codec.encode(obj))
        return obj

    def drop(self, key: Key) -> Obj | None:
        """Remove an object, and return it as it last was; None if there was none."""
        entry = self._entries.pop(key, None)
        return codec.seen(entry.raw) if entry else None
