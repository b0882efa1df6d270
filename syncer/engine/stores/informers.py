"""The stores of both sides that a virtual cluster's syncers read."""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from syncer.api.objects import Key, Obj, Resource, Side
from syncer.api.sources import Source
from syncer.byte_budget import ByteBudget
from syncer.cache.informer import Informer
from syncer.cache.parts import most_parts
from syncer.cache.reflector import Reflector

#: The side and resource of a store.
StoreKey = tuple[Side, Resource]


class SideInformer(Informer):
    """The store of a resource of a side. A host is trusted."""

    def __init__(
        self,
        side: Side,
        resource: Resource,
        *,
        clock: Callable[[], float],
        ordered: Callable[[], bool],
        budget: ByteBudget,
    ) -> None:
        is_host = side is Side.HOST
        self.most_parts = most_parts(of_copy=is_host)
        super().__init__(resource, clock=clock, ordered=ordered, budget=budget, trusted=is_host)
        self.side = side

    def __str__(self) -> str:
        return f"{self.side} {self.resource}"


def store_of(reflector: Reflector) -> SideInformer:
    """Return the store that a reflector of a virtual cluster fills."""
    store = reflector.store
    assert isinstance(store, SideInformer)
    return store


class WatchedSelection(NamedTuple):
    """The watched part of a collection: these namespaces (None: all), with these labels."""

    namespaces: tuple[str, ...] | None = None
    selector: str = ""

    def with_(self, other: "WatchedSelection") -> "WatchedSelection":
        """Return a selection that contains both."""
        namespaces = None
        if self.namespaces is not None and other.namespaces is not None:
            namespaces = tuple(dict.fromkeys((*self.namespaces, *other.namespaces)))
        selector = self.selector if self.selector == other.selector else ""
        return WatchedSelection(namespaces, selector)

    def is_within(self, namespace: str, selector: str) -> bool:
        """Return True if a watch of this namespace and label selector contains the selection.

        ``""`` stands for all namespaces, or no selector.
        """
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
    """A store for each side and resource."""

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
        self._wanted: dict[StoreKey, dict[str, tuple[WatchedSelection, bool]]] = {}

    def limit(self, most: int) -> None:
        """Limit the bytes of the objects, from the next one on; 0 is no limit."""
        self.budget.most = most
        self._virtual.most = most // 2

    def want(
        self, source: Source, selection: WatchedSelection = EVERYTHING, *, owner: str = ""
    ) -> SideInformer:
        """Return the store of a source, created if need be.

        It holds the selections of all its owners.
        """
        store_key = (source.side, source.resource)
        if store_key not in self._stores:
            budget = self._virtual if source.side is Side.VIRTUAL else self.budget
            self._stores[store_key] = SideInformer(
                source.side,
                source.resource,
                clock=self._clock,
                ordered=partial(self._ordered, source.side),
                budget=budget,
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
            self._stores.pop(store_key).empty()
            del self._wanted[store_key]
        return unwanted

    def selection(self, store: SideInformer) -> WatchedSelection:
        """Return the selection that a store has to hold."""
        wants = self._wanted[store.side, store.resource].values()
        whole, *others = [selection for selection, _ in wants]
        for other in others:
            whole = whole.with_(other)
        return whole

    def is_marked(self, side: Side, resource: Resource) -> bool:
        """Return True if a store holds only objects with our mark."""
        return all(marked for _, marked in list(self._wanted[side, resource].values()))

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

    def has(self, side: Side, resource: Resource) -> bool:
        """Return True if a resource is watched on a side."""
        return (side, resource) in self._stores

    def __iter__(self) -> Iterator[SideInformer]:
        return iter(list(self._stores.values()))

    def sizes(self) -> Mapping[tuple[str, ...], int]:
        """Count the cached objects, by side and resource."""
        sizes: dict[tuple[str, ...], int] = {}
        for (side, resource), store in list(self._stores.items()):
            sizes[side.value, str(resource)] = len(store)
        return sizes

    def get(self, side: Side, resource: Resource, key: Key) -> Obj | None:
        """Return a private copy of an object, or None."""
        return self.store(side, resource).get(key)

    def keys(self, side: Side, resource: Resource) -> Collection[Key]:
        """Return the keys of all objects."""
        return self.store(side, resource).keys()
