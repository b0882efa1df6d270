"""Indexes and map functions that are added to a store with objects."""

from collections.abc import Container, Mapping
from contextlib import suppress

from syncer.api.objects import Key
from syncer.cache.budget import NoRoom
from syncer.cache.entry import Entry
from syncer.cache.handlers import MapFunction
from syncer.cache.indexer import ValueIndex
from syncer.clusters import codec
from syncer.steps import STEP_BYTES, next_turn

#: Number of objects of a store from which on they are read in steps.
MANY = 100


class Newcomers:
    """The indexes and map functions of a store that don't have all of its objects yet.

    An index is uncertain about these objects (:attr:`~syncer.cache.indexer.ValueIndex.doubted`). It
    gets changes like the others.
    """

    def __init__(
        self,
        entries: Mapping[Key, Entry],
        quarantined: Container[Key],
        most_parts: float,
    ) -> None:
        self._entries = entries
        self._quarantined = quarantined
        self._most_parts = most_parts
        self._behind: list[tuple[ValueIndex | MapFunction, list[Key]]] = []

    def __bool__(self) -> bool:
        return bool(self._behind)

    def hides(self, key: Key) -> bool:
        """Return True if an object is left out: it is quarantined, or has too many parts."""
        entry = self._entries.get(key)
        return key in self._quarantined or (entry is not None and entry.parts > self._most_parts)

    def add(self, newcomer: ValueIndex | MapFunction) -> None:
        """Update a newcomer with all objects; if there are many, :meth:`catch_up` does it."""
        if isinstance(newcomer, ValueIndex):
            newcomer.doubted.update(self._entries)
        if len(self._entries) >= MANY:
            self._behind.append((newcomer, list(self._entries)))
            return
        for key in self._entries:
            self._show(newcomer, key)

    def forget(self, owner: str) -> None:
        """Forget the newcomers of an owner."""
        self._behind = [each for each in self._behind if each[0].owner != owner]

    async def catch_up(self) -> None:
        """Update the newcomers with all objects, and let other tasks run in between."""
        room = STEP_BYTES
        while self._behind:
            newcomer, keys = self._behind[-1]
            if not keys:
                self._behind.pop()
                continue
            room -= self._show(newcomer, keys.pop())
            if room <= 0:
                await next_turn()
                room = STEP_BYTES

    def _show(self, newcomer: ValueIndex | MapFunction, key: Key) -> int:
        """Update a newcomer with an object as it is now; return the object's size."""
        entry = self._entries.get(key)
        if entry is None or self.hides(key):
            return 0
        with suppress(NoRoom):
            newcomer.update(key, codec.stored(entry.raw))
        return entry.size
