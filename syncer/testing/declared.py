"""Restrict a syncer to the sources that it declares, as in a daemon with no other syncer."""

from collections.abc import Iterable

from syncer.api import Resource, Side, Source, Syncer
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
        if (side, resource) not in self._allowed:
            raise KeyError(
                f"{type(self._syncer).__name__} reads {resource} of the {side.value} side, "
                f"which it does not declare: put Source(Side.{side.name}, …) into its `reads`"
            )
        return self._informers.store(side, resource)

    def has(self, side: Side, resource: Resource) -> bool:
        """Return True if the syncer declares a resource on a side."""
        return (side, resource) in self._allowed
