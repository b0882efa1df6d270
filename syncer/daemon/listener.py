"""Handles the notifications of a virtual cluster's reflectors."""

from typing import Protocol

from syncer.api.errors import Missing, SyncerError, Unauthorized, Unreachable
from syncer.api.objects import Side
from syncer.cache.reflector import Reflector
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.stores.informers import SideInformer, store_of
from syncer.observe.logs import get_logger

log = get_logger(__name__)


class StoreEvents(Protocol):
    """Acts on changes in the state of a pair's stores and connections."""

    def filled(self, pair: ClusterPair, store: SideInformer | None = None) -> None:
        """Handle a store that was filled or given up."""
        ...

    def watch_restarted(self, pair: ClusterPair, store: SideInformer) -> None:
        """Count a watch that began again."""
        ...

    def discover(self, pair: ClusterPair) -> None:
        """Repeat the discovery of both sides soon."""
        ...

    def lost(self, pair: ClusterPair, side: Side, error: SyncerError) -> None:
        """Handle a request that got no answer from a side."""
        ...

    def answers(self, pair: ClusterPair, side: Side) -> bool:
        """Return True unless a side is known not to answer."""
        ...


class Listener:
    """Receives the notifications of a pair's reflectors."""

    def __init__(self, events: StoreEvents, pair: ClusterPair) -> None:
        self._events = events
        self._pair = pair
        #: Reflectors whose resource was missing: a missing resource triggers discovery only once.
        self._missing: set[Reflector] = set()

    def synced(self, reflector: Reflector) -> None:
        """Handle a store that was filled."""
        self._pair.applier.claim.lists += store_of(reflector).side is Side.VIRTUAL
        self._events.filled(self._pair, store_of(reflector))

    def watching(self, reflector: Reflector) -> None:
        """Count a watch that began again."""
        if reflector.restarts > 1:
            self._events.watch_restarted(self._pair, store_of(reflector))

    def failed(self, reflector: Reflector, error: SyncerError) -> None:
        """Handle a list or a watch that failed."""
        side = store_of(reflector).side
        is_lost = isinstance(error, Unauthorized) or (isinstance(error, Unreachable) and error.status == 0)
        if is_lost:
            self._events.lost(self._pair, side, error)
        if not is_lost or (reflector.failures > 1 and self._events.answers(self._pair, side)):
            log.warning("can't list or watch", cluster=self._pair.name, what=reflector, error=str(error))
            if isinstance(error, Missing) and reflector not in self._missing:
                self._missing.add(reflector)
                self._events.discover(self._pair)
            self._events.filled(self._pair)

    def went_back(self, reflector: Reflector) -> None:
        """Handle an API server that shows an older state than before."""
        said = "the API server shows an older state than before, and all is decided anew from it"
        log.warning(said, cluster=self._pair.name, what=reflector)
        self._pair.policies.bound_pods.clear()

    def working(self, reflector: Reflector) -> None:
        """Handle a list or a watch that works again."""
        log.info("watching again", cluster=self._pair.name, what=reflector)
        self._missing.discard(reflector)
        self._events.discover(self._pair)
