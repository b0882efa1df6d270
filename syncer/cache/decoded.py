"""Small objects as they were decoded when they were stored, each for the first reader of its entry.

A change of an object leads to a decision about it a moment later, which would decode it once more:
6 µs for a Pod of 3 kB. An object is handed out once, so the reader has it for itself.
"""

from syncer.api.objects import Obj
from syncer.cache.entry import Entry
from syncer.clusters import codec

#: Maximum number of objects that are kept, in all stores of the process together. None has more
#: JSON than :data:`~syncer.cache.parts.FEW_PARTS_BYTES`, so they take some MB at most.
KEPT = 64


class DecodedObjects:
    """The objects of the entries that were stored last."""

    def __init__(self) -> None:
        #: By the identity of the entry, which is kept so that no other one gets it.
        self._kept: dict[int, tuple[Entry, Obj]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, entry: Entry, obj: Obj) -> None:
        """Keep the object of an entry, which nobody may change from now on."""
        self._kept[id(entry)] = (entry, obj)
        if len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]

    def take(self, entry: Entry) -> Obj:
        """Return the object of an entry as a private copy."""
        kept = self._kept.pop(id(entry), None)
        if kept is None:
            return codec.stored(entry.raw)
        return kept[1]


#: Those of all stores.
DECODED = DecodedObjects()
