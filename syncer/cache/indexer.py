"""Indexes of a resource's objects by values."""

from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from syncer.api.objects import Key, Obj
from syncer.cache.budget import Charge, cost_of, uncharged
from syncer.observe.logs import get_logger

_NO_VALUES: frozenset[Hashable] = frozenset()

log = get_logger(__name__)


@dataclass(slots=True)
class ValueIndex:
    """Keys by value, and values by key so that they can be removed.

    ``notify`` is called with the values that an object gained and lost. With ``when="used"`` these
    are only those that no other object has, and with ``when="change"``, at every change, all values
    that it had or has.
    """

    owner: str
    values: Callable[[Obj], Iterable[Hashable]]
    notify: Callable[[Iterable[Any]], None] | None = None
    when: Literal["values", "used", "change"] = "values"
    #: Counts the memory of the values of an object.
    charge: Charge = uncharged
    #: True: an object with unknown values keeps its earlier ones. False: it has none.
    keeps: bool = True
    #: True if the values of an object follow from its spec, whose changes API servers count; not
    #: with ``when="change"``.
    by_spec: bool = False
    by_value: dict[Hashable, set[Key]] = field(default_factory=dict)
    by_key: dict[Key, frozenset[Hashable]] = field(default_factory=dict)
    #: The keys of objects with unknown values.
    doubted: set[Key] = field(default_factory=set)
    #: The keys of objects for which the function raised.
    failed: set[Key] = field(default_factory=set)
    #: True once one of the functions has raised, which is logged once.
    raised: bool = False
    #: With ``by_spec``, a hash of the uid and the generation that each object had last.
    generations: dict[Key, int] = field(default_factory=dict)

    def update(self, key: Key, obj: Obj | None) -> None:
        """Replace the values of a key by those of an object; None if the object was deleted.

        If the function raises for an object, the values of the object are unknown.

        Raises:
            NoRoom: There is no room for the values; the object keeps its earlier ones.
        """
        if self.by_spec and self._is_of_known_spec(key, obj):
            return
        before = self.by_key.get(key, _NO_VALUES)
        try:
            now = _NO_VALUES
            if obj is not None:
                now = frozenset(self.values(obj) or ())
        except Exception:  # noqa: BLE001 — an object or a syncer's bug must not stop the others
            self._log()
            self.doubt(key)
            self.failed.add(key)
            return
        if now != before:
            difference = cost_of(now) - cost_of(before)
            if difference:
                self.charge(key, difference)
        if self.doubted:
            self.doubted.discard(key)
            self.failed.discard(key)
        if now != before:
            self._replace(key, before, now)
        elif self.when != "change":
            return
        if self.notify:
            concerned = before | now if self.when == "change" else before ^ now
            if self.when == "used":
                concerned = self._without_used(concerned, now)
            try:
                self.notify(concerned)
            except Exception:  # noqa: BLE001 — the values may be of any kind
                self._log()

    def _is_of_known_spec(self, key: Key, obj: Obj | None) -> bool:
        """Return True if the values of an object are known, as its spec hasn't changed since.

        An API server that counts no changes of a spec, as those before Kubernetes 1.33 for Pods,
        sends no generation.
        """
        before = self.generations.pop(key, None)
        if obj is None:
            return False
        metadata = obj["metadata"]
        generation = metadata.get("generation")
        if type(generation) is not int:
            return False
        now = hash((metadata.get("uid"), generation))
        self.generations[key] = now
        return now == before and key not in self.doubted

    def doubt(self, key: Key) -> None:
        """Record that the values of an object are unknown from now on."""
        if not self.keeps:
            self.update(key, None)
        self.doubted.add(key)

    def end(self) -> None:
        """Stop counting the memory of the values."""
        for key, values in self.by_key.items():
            cost = cost_of(values)
            if cost:
                self.charge(key, -cost)
        self.charge = uncharged

    def _without_used(
        self, values: frozenset[Hashable], now: frozenset[Hashable]
    ) -> frozenset[Hashable]:
        """Return those of the values that no other object has than one with the values ``now``."""
        alone: set[Hashable] = set()
        for value in values:
            holders = len(self.by_value.get(value, ()))
            if holders == (value in now):
                alone.add(value)
        return frozenset(alone)

    def _replace(self, key: Key, before: frozenset[Hashable], now: frozenset[Hashable]) -> None:
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

    def _log(self) -> None:
        if not self.raised:
            log.exception("an index raised", owner=self.owner)
        self.raised = True


class Indexer:
    """The indexes of a resource, by name."""

    def __init__(self) -> None:
        #: Every change of an object updates each of them.
        self.indexes: list[ValueIndex] = []
        self._by_name: dict[str, ValueIndex] = {}

    def add(self, name: str, index: ValueIndex) -> None:
        """Add an index, replacing one of the same name."""
        self._set({**self._by_name, name: index})

    def forget(self, owner: str) -> None:
        """Remove the indexes of an owner."""
        self._set({name: index for name, index in self._by_name.items() if index.owner != owner})

    def has(self, index: str) -> bool:
        """Return True if there is an index of this name."""
        return index in self._by_name

    def keys(self, index: str, value: Hashable) -> Collection[Key]:
        """Return the keys of the objects with a value.

        Raises:
            KeyError: There is no such index.
        """
        return self._by_name[index].by_value.get(value, ())

    def doubted(self, index: str) -> Collection[Key]:
        """Return the keys of the objects with unknown values; the index has their earlier values.

        Raises:
            KeyError: There is no such index.
        """
        return self._by_name[index].doubted

    def values(self, index: str) -> Collection[Any]:
        """Return all values of an index.

        Raises:
            KeyError: There is no such index.
        """
        return self._by_name[index].by_value.keys()

    def of(self, index: str, key: Key) -> Collection[Any]:
        """Return the values of the object with a key.

        Raises:
            KeyError: There is no such index.
        """
        return self._by_name[index].by_key.get(key, ())

    def is_certain(self, owner: str) -> bool:
        """Return True if the values of all objects in an owner's indexes are known."""
        return not any(index.doubted for index in self.indexes if index.owner == owner)

    def end(self) -> None:
        """Stop counting the memory of all indexes."""
        for index in self.indexes:
            index.end()

    def _set(self, by_name: dict[str, ValueIndex]) -> None:
        for name, index in self._by_name.items():
            if by_name.get(name) is not index:
                index.end()
        self._by_name = by_name
        self.indexes = list(by_name.values())
