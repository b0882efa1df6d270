"""Objects of a resource as bytes of exact size, by key. Reads return private copies."""

from collections.abc import Collection

from syncer.api.objects import Key, Obj, Resource
from syncer.byte_budget import ByteBudget
from syncer.cache.budget import OVERHEAD, NoRoom
from syncer.cache.decoded import DECODED
from syncer.cache.entry import Entry, packed
from syncer.cache.parts import FEW_PARTS_BYTES, parts_of
from syncer.clusters import codec


class Store:
    """The entries of a resource; not thread-safe."""

    def __init__(self, resource: Resource, budget: ByteBudget) -> None:
        self.resource = resource
        self.budget = budget
        self._entries: dict[Key, Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def get(self, key: Key) -> Obj | None:
        """Return a private copy of the object; None if there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        return DECODED.take(entry)

    def outline(self, key: Key) -> Obj | None:
        """Return an object with a private copy of the metadata only; None if there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        return codec.outline(entry.raw)

    def entry(self, key: Key) -> Entry | None:
        """Return the stored entry; None if there is none."""
        return self._entries.get(key)

    def keys(self) -> Collection[Key]:
        """Return all keys, as a view."""
        return self._entries.keys()

    def keep(self, key: Key, obj: Obj, text: bytes = b"") -> Obj:
        """Store an object, which the caller must not use any more, and return it as stored.

        ``managedFields`` are removed; ``apiVersion`` and ``kind``, which lists omit, are added.
        ``text`` is the JSON that the object was decoded from, if it is at hand: it is stored as it
        is, unless it has anything that is removed, lacks anything, or has escapes that take much
        room.

        Raises:
            NoRoom: The object is too large for the budget; one without its contents never is.
        """
        metadata = obj["metadata"]
        raw = text
        if "managedFields" in metadata:
            del metadata["managedFields"]
            raw = b""
        if "kind" not in obj:
            obj = {"apiVersion": self.resource.api_version, "kind": self.resource.kind, **obj}
            raw = b""
        # API servers escape <, > and &, which takes six bytes for each; our encoder doesn't. Quotes
        # are escaped by both: those in our notes on each copy. Other escapes take three times the
        # room at most. A single byte is found 20 times as fast as several.
        if not raw or (b"\\" in raw and b"\\u00" in raw):
            raw = codec.encode(obj)
        entry = Entry(metadata["resourceVersion"], metadata.get("uid", ""), raw)
        if len(raw) > FEW_PARTS_BYTES:
            entry = entry._replace(packed=packed(raw), parts=parts_of(raw))
        takes = len(entry.packed)
        before = self._entries.get(key)
        more = takes + OVERHEAD if before is None else takes - len(before.packed)
        budget = self.budget.of(key.namespace)
        if not budget.has_room(more) and codec.UNREADABLE not in obj:
            raise NoRoom(takes + OVERHEAD)
        budget.take(more)
        self._entries[key] = entry
        return obj

    def charge(self, key: Key, difference: int) -> None:
        """Count so many bytes more for an object, or fewer for a negative number.

        Raises:
            NoRoom: The budget has no room for so many bytes.
        """
        budget = self.budget.of(key.namespace)
        if difference < 0:
            budget.give_back(-difference)
            return
        if not budget.has_room(difference):
            raise NoRoom(difference)
        budget.take(difference)

    def drop(self, key: Key) -> Obj | None:
        """Remove an object, and return it as it last was; None if there was none."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self.budget.of(key.namespace).give_back(len(entry.packed) + OVERHEAD)
        return DECODED.take(entry)

    def empty(self) -> None:
        """Forget all objects of a store that is no longer used."""
        for key, entry in self._entries.items():
            self.budget.of(key.namespace).give_back(len(entry.packed) + OVERHEAD)
        self._entries.clear()
