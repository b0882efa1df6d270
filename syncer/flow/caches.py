"""The stores of both sides that one virtual cluster's syncers read."""

from collections.abc import Callable, Collection, Iterator, Mapping

from syncer.api.objects import Key, Obj, Resource, Side
from syncer.api.roles import Source
from syncer.flow.store import Store


class Caches:
    """A store a side and resource; the reader behind every ``Context``."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._stores: dict[tuple[Side, Resource], Store] = {}
        #: Whether a store holds only what bears our mark.
        self.marked: dict[tuple[Side, Resource], bool] = {}

    def want(self, source: Source) -> Store:
        """The store of a source, made if need be; it holds everything as soon as one who reads it wants everything."""
        place = (source.side, source.resource)
        if place not in self._stores:
            self._stores[place] = Store(source.side, source.resource, clock=self._clock)
            self.marked[place] = source.marked
        self.marked[place] = self.marked[place] and source.marked
        return self._stores[place]

    def store(self, side: Side, resource: Resource) -> Store:
        """The store of a resource on one side. Raises KeyError where it isn't watched."""
        try:
            return self._stores[side, resource]
        except KeyError:
            raise KeyError(
                f"{side} {resource} is read but not watched: name it in the syncer's `reads`, as Source(Side"
                f".{side.name}, …)"
            ) from None

    def has(self, side: Side, resource: Resource) -> bool:
        """Whether a resource is watched on a side."""
        return (side, resource) in self._stores

    def __iter__(self) -> Iterator[Store]:
        return iter(self._stores.values())

    def sizes(self) -> Mapping[tuple[str, ...], int]:
        """Objects kept by side and resource."""
        return {(side.value, str(resource)): len(store) for (side, resource), store in self._stores.items()}

    # -- Reader ----------------------------------------------------------------------------------------------------

    def get(self, side: Side, resource: Resource, key: Key) -> Obj | None:
        """The object as a private copy."""
        return self.store(side, resource).get(key)

    def keys(self, side: Side, resource: Resource) -> Collection[Key]:
        """The keys of all objects."""
        return self.store(side, resource).keys()

    def indexed(self, side: Side, resource: Resource, index: str, value: str) -> Collection[Key]:
        """The keys for which an index function gave this value."""
        return self.store(side, resource).indexed(index, value)
