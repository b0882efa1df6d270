"""Indexes of a resource's objects by values."""

from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from syncer.api.objects import Key, Obj

_NO_VALUES: frozenset[Hashable] = frozenset()


@dataclass(slots=True)
class Index:
    """Keys by value, and values by key so that they can be removed; ``notify`` gets the values
    gained and lost.
    """

    owner: str
    values: Callable[[Obj], Iterable[Hashable]]
    notify: Callable[[Iterable[Any]], None] | None = None
    by_value: dict[Hashable, set[Key]] = field(default_factory=dict)
    by_key: dict[Key, frozenset[Hashable]] = field(default_factory=dict)

    def update(self, key: Key, obj: Obj | None) -> None:
        """Replace the values of a key by those of an object; None if the object is gone."""
        before = self.by_key.get(key, _NO_VALUES)
        now = frozenset(self.values(obj)) if obj is not None else _NO_VALUES
        if now == before:
            return
        if now:
            self.by_key[key] = now
        else:
            del self.by_key[key]
        for value in before - now:
            keys = self.by_value[value]
            keys.discard(key)
            if not keys:
                del self.by_value[value]
        for value in now - before:
            self.by_value.setdefault(value, set()).add(key)
        if self.notify:
            self.notify(before ^ now)


class Indexer:
    """The indexes of a resource, by name."""

    def __init__(self) -> None:
        #: Whoever changes an object updates each of them.
        self.indexes: list[Index] = []
        self._by_name: dict[str, Index] = {}

    def add(self, name: str, index: Index) -> None:
        """Add an index, replacing one of the same name."""
        self._set({**self._by_name, name: index})

    def forget(self, owner: str) -> None:
        """Remove the indexes of an owner."""
        self._set({name: index for name, index in self._by_name.items() if index.owner != owner})

    def keys(self, index: str, value: Hashable) -> Collection[Key]:
        """Return the keys of the objects that have a value.

        Raises:
            KeyError: There is no such index.
        """
        return self._by_name[index].by_value.get(value, ())

    def values(self, index: str) -> Collection[Any]:
        """Return all values of an index.

        Raises:
            KeyError: There is no such index.
        """
        return self._by_name[index].by_value.keys()

    def _set(self, by_name: dict[str, Index]) -> None:
        self._by_name, self.indexes = by_name, list(by_name.values())
