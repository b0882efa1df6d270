"""Restrict a syncer to the sources that it declares, as in a daemon with no other syncer."""

from collections.abc import Collection, Iterable

from syncer.api import Key, Resource, Side, Source, Syncer
from syncer.engine.stores.informers import Informers, SideInformer


class Declared:
    """The stores of a pair, restricted to a syncer's own sources."""

    def __init__(self, informers: Informers, syncer: Syncer, sources: Iterable[Source]) -> None:
        self._informers = informers
        self._syncer = syncer
        self._allowed = {(source.side, source.resource) for source in sources}

    def allow(self, stores: Iterable[SideInformer]) -> None:
        """Let the syncer read these stores, too."""
        self._allowed |= {(store.side, store.resource) for store in stores}

    def store(self, side: Side, resource: Resource) -> SideInformer:
        """Return the store of a resource on a side.

        Raises:
            KeyError: The syncer doesn't declare it.
        """
        self._must_declare(side, resource)
        return self._informers.store(side, resource)

    def at(self, side: Side, resource: Resource, key: Key) -> SideInformer:
        """Return the store that has the object of a key, or else that would have it.

        Raises:
            KeyError: The syncer doesn't declare it.
        """
        self._must_declare(side, resource)
        return self._informers.at(side, resource, key)

    def keys(self, side: Side, resource: Resource) -> Collection[Key]:
        """Return the keys of all objects of a resource on a side.

        Raises:
            KeyError: The syncer doesn't declare it.
        """
        self._must_declare(side, resource)
        return self._informers.keys(side, resource)

    def indexed(self, side: Side, resource: Resource, index: str, value: str) -> Collection[Key]:
        """Return the keys of the objects with a value in an index.

        Raises:
            KeyError: The syncer doesn't declare the resource.
        """
        self._must_declare(side, resource)
        return self._informers.indexed(side, resource, index, value)

    def _must_declare(self, side: Side, resource: Resource) -> None:
        if (side, resource) not in self._allowed:
            raise KeyError(
                f"{type(self._syncer).__name__} reads {resource} of the {side.value} side, "
                f"which it does not declare: put Source(Side.{side.name}, …) into its `reads`"
            )

    def has(self, side: Side, resource: Resource) -> bool:
        """Return True if the syncer declares a resource on a side."""
        return (side, resource) in self._allowed
