"""The stores of both sides that a virtual cluster's syncers read."""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from syncer.api.objects import Key, Obj, Resource, Side
from syncer.api.sources import Source, SourcePart
from syncer.byte_budget import ByteBudget
from syncer.cache.informer import Informer
from syncer.cache.parts import most_parts
from syncer.cache.reflector import Reflector

#: The side and resource of a store, and its part if it holds one alone.
StoreKey = tuple[Side, Resource, *tuple[SourcePart, ...]]


class SideInformer(Informer):
    """The store of a resource of a side, or of a part of it. A host is trusted."""

    def __init__(
        self,
        side: Side,
        resource: Resource,
        *,
        clock: Callable[[], float],
        ordered: Callable[[], bool],
        budget: ByteBudget,
        part: SourcePart | None = None,
    ) -> None:
        is_host = side is Side.HOST
        self.most_parts = most_parts(of_copy=is_host)
        super().__init__(resource, clock=clock, ordered=ordered, budget=budget, trusted=is_host)
        self.side = side
        #: The part of the collection that it holds; None for all that copies can be among.
        self.part = part

    @property
    def store_key(self) -> StoreKey:
        """The key of the store among those of a virtual cluster."""
        if self.part is None:
            return (self.side, self.resource)
        return (self.side, self.resource, self.part)

    def __str__(self) -> str:
        # Any reader of /readyz may see it, so it names no object of the host.
        return f"{self.side} {self.resource}"


def store_of(reflector: Reflector) -> SideInformer:
    """Return the store that a reflector of a virtual cluster fills."""
    store = reflector.store
    assert isinstance(store, SideInformer)
    return store


class WatchedSelection(NamedTuple):
    """The watched part of a collection: these namespaces (None: all), with these labels.

    With ``about_copies`` only the Events about copies of the virtual cluster's objects.
    """

    namespaces: tuple[str, ...] | None = None
    selector: str = ""
    about_copies: bool = False

    def with_(self, other: "WatchedSelection") -> "WatchedSelection":
        """Return a selection that contains both."""
        namespaces = None
        if self.namespaces is not None and other.namespaces is not None:
            namespaces = tuple(dict.fromkeys((*self.namespaces, *other.namespaces)))
        selector = self.selector if self.selector == other.selector else ""
        return WatchedSelection(namespaces, selector, self.about_copies and other.about_copies)

    def is_within(self, namespace: str, selector: str, *, about_copies: bool) -> bool:
        """Return True if a watch of this namespace and label selector contains the selection.

        ``""`` stands for all namespaces, or no selector.
        """
        if about_copies and not self.about_copies:
            return False
        return namespace in ("", self.namespace) and selector in ("", self.selector)

    @property
    def namespace(self) -> str:
        """Return the only namespace, or ``""`` for all: API servers support nothing in between."""
        if self.namespaces is None or len(self.namespaces) != 1:
            return ""
        return self.namespaces[0]


EVERYTHING = WatchedSelection()


def _unordered(side: Side) -> bool:
    """Claim no order of versions."""
    return False


class Informers:
    """A store for each side and resource, and for each part that a source names."""

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        ordered: Callable[[Side], bool] = _unordered,
        budget: ByteBudget | None = None,
    ) -> None:
        self._clock = clock
        self._ordered = ordered
        #: The memory of all stores.
        self.budget = budget or ByteBudget()
        #: Half of it is for the virtual objects, which a tenant chooses, divided between
        #: namespaces.
        self._virtual = ByteBudget(self.budget.most // 2, parent=self.budget, divided=True)
        self._stores: dict[StoreKey, SideInformer] = {}
        #: The parts with a store, by resource.
        self._parts: dict[Resource, tuple[SourcePart, ...]] = {}
        self._wanted: dict[StoreKey, dict[str, tuple[WatchedSelection, bool]]] = {}

    def limit(self, most: int) -> None:
        """Limit the bytes of the objects, from the next one on; 0 is no limit."""
        self.budget.most = most
        self._virtual.most = most // 2

    def want(
        self,
        source: Source,
        selection: WatchedSelection = EVERYTHING,
        *,
        owner: str = "",
        part: SourcePart | None = None,
    ) -> SideInformer:
        """Return the store of a source, or of a part of it, created if need be.

        It holds the selections of all its owners.
        """
        store_key: StoreKey = (source.side, source.resource)
        if part is not None:
            store_key = (source.side, source.resource, part)
            known = self._parts.get(source.resource, ())
            self._parts[source.resource] = tuple(dict.fromkeys((*known, part)))
        if store_key not in self._stores:
            budget = self._virtual if source.side is Side.VIRTUAL else self.budget
            self._stores[store_key] = SideInformer(
                source.side,
                source.resource,
                clock=self._clock,
                ordered=partial(self._ordered, source.side),
                budget=budget,
                part=part,
            )
        wants = self._wanted.setdefault(store_key, {})
        before, marked = wants.get(owner, (selection, source.marked))
        wants[owner] = (before.with_(selection), marked and source.marked)
        return self._stores[store_key]

    def leave(self, owner: str) -> list[StoreKey]:
        """Remove an owner; return the stores without any owner left, which are removed."""
        for store in self:
            store.forget(owner)
        for wants in self._wanted.values():
            wants.pop(owner, None)
        unwanted = [store_key for store_key, wants in self._wanted.items() if not wants]
        for store_key in unwanted:
            store = self._stores.pop(store_key)
            store.empty()
            del self._wanted[store_key]
            if store.part is not None:
                left = [part for part in self._parts.pop(store.resource) if part != store.part]
                if left:
                    self._parts[store.resource] = tuple(left)
        return unwanted

    def selection(self, store: SideInformer) -> WatchedSelection:
        """Return the selection that a store has to hold."""
        wants = self._wanted[store.store_key].values()
        whole, *others = [selection for selection, _ in wants]
        for other in others:
            whole = whole.with_(other)
        return whole

    def is_marked(self, store: SideInformer) -> bool:
        """Return True if a store holds only objects with our mark."""
        return all(marked for _, marked in list(self._wanted[store.store_key].values()))

    def store(self, side: Side, resource: Resource) -> SideInformer:
        """Return the store of a resource on a side.

        Raises:
            KeyError: It isn't watched.
        """
        try:
            return self._stores[side, resource]
        except KeyError:
            why = f"{side} {resource} is read but not watched"
            hint = f"name it in the syncer's `reads`, as Source(Side.{side.name}, …)"
            raise KeyError(f"{why}: {hint}") from None

    def parts(self, side: Side, resource: Resource, owner: str) -> tuple[SideInformer, ...]:
        """Return the stores of the parts that an owner wants."""
        found = []
        for part in self._parts.get(resource, ()):
            store_key = (side, resource, part)
            if owner in self._wanted.get(store_key, ()):
                found.append(self._stores[store_key])
        return tuple(found)

    def at(self, side: Side, resource: Resource, key: Key) -> SideInformer:
        """Return the store that has the object of a key, or else that would have it.

        Raises:
            KeyError: The resource isn't watched there.
        """
        if side is Side.HOST and resource in self._parts:
            whole = self._stores.get((side, resource))
            if whole is None or key not in whole:
                for part in self._parts[resource]:
                    if part.contains(key):
                        return self._stores[side, resource, part]
        return self.store(side, resource)

    def indexed(self, side: Side, resource: Resource, index: str, value: str) -> Collection[Key]:
        """Return the keys of the objects with a value in an index.

        Raises:
            KeyError: The resource isn't watched.
        """
        parts = self._parts.get(resource, ()) if side is Side.HOST else ()
        if not parts:
            return self.store(side, resource).indexer.keys(index, value)
        keys: set[Key] = set()
        for store in self:
            of_kind = store.side is side and store.resource == resource
            if of_kind and store.indexer.has(index):
                keys.update(store.indexer.keys(index, value))
        return keys

    def has(self, side: Side, resource: Resource) -> bool:
        """Return True if a resource is watched on a side, not only parts of it."""
        return (side, resource) in self._stores

    def __iter__(self) -> Iterator[SideInformer]:
        return iter(list(self._stores.values()))

    def sizes(self) -> Mapping[tuple[str, ...], int]:
        """Count the cached objects, by side and resource."""
        sizes: dict[tuple[str, ...], int] = {}
        for store in self:
            kind = (store.side.value, str(store.resource))
            sizes[kind] = sizes.get(kind, 0) + len(store)
        return sizes

    def get(self, side: Side, resource: Resource, key: Key) -> Obj | None:
        """Return a private copy of an object, or None."""
        return self.at(side, resource, key).get(key)

    def keys(self, side: Side, resource: Resource) -> Collection[Key]:
        """Return the keys of all objects.

        Raises:
            KeyError: The resource isn't watched.
        """
        parts = self._parts.get(resource, ()) if side is Side.HOST else ()
        if not parts:
            return self.store(side, resource).keys()
        keys: set[Key] = set()
        for part in parts:
            keys.update(self._stores[side, resource, part].keys())
        if self.has(side, resource):
            keys.update(self.store(side, resource).keys())
        return keys
