"""What a store keeps beside its objects: who wants to know which keys they name, and by which values they are found."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from syncer.api.objects import Key, Obj

_NO_VALUES: frozenset[Hashable] = frozenset()


@dataclass(slots=True)
class Watcher:
    """Somebody who wants the keys that an object names, and those that it ceases to name."""

    owner: str
    keys: Callable[[Obj], Iterable[Key]]
    when: Literal["keys", "change"]
    notify: Callable[[Iterable[Key]], None]
    named: dict[Key, frozenset[Key]] = field(default_factory=dict)

    def see(self, key: Key, obj: Obj | None) -> None:
        """Take the object's new state (None: it is gone) and tell the keys that are concerned."""
        before = self.named.get(key, frozenset())
        now = frozenset(self.keys(obj)) if obj is not None else frozenset()
        if now:
            self.named[key] = now
        elif before:
            del self.named[key]
        concerned = before ^ now if self.when == "keys" else before | now
        if concerned:
            self.notify(concerned)


@dataclass(slots=True)
class Index:
    """Keys by value, and values by key so that they can be taken back; ``notify`` hears of values gained and lost."""

    owner: str
    values: Callable[[Obj], Iterable[Hashable]]
    notify: Callable[[Iterable[Any]], None] | None = None
    by_value: dict[Hashable, set[Key]] = field(default_factory=dict)
    by_key: dict[Key, frozenset[Hashable]] = field(default_factory=dict)

    def see(self, key: Key, obj: Obj | None) -> None:
        """Replace what is known of a key."""
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
