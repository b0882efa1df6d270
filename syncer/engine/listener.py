"""What the reflectors of a virtual cluster tell the engine."""

from typing import TYPE_CHECKING

from syncer.api.errors import Missing, SyncerError, Unauthorized, Unreachable
from syncer.api.objects import Side
from syncer.cache.reflector import Reflector
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.informers import store_of
from syncer.observe.logs import get_logger

if TYPE_CHECKING:
    from syncer.engine.engine import Engine

log = get_logger(__name__)


class Listener:
    """Receives the notifications of a pair's reflectors."""

    def __init__(self, engine: "Engine", pair: ClusterPair) -> None:
        self._engine, self._pair = engine, pair
        #: Reflectors whose resource was missing: a missing resource triggers discovery only once.
        self._missing: set[Reflector] = set()

    def synced(self, reflector: Reflector) -> None:
        """Handle a store that was filled."""
        self._pair.applier.claim.lists += store_of(reflector).side is Side.VIRTUAL
        self._engine.filled(self._pair, store_of(reflector))

    def watching(self, reflector: Reflector) -> None:
        """Count a watch that began again."""
        if reflector.restarts > 1:
            side, resource = store_of(reflector).side.value, str(reflector.store.resource)
            self._engine.metrics.watch_restarted(self._pair.name, side, resource)

    def failed(self, reflector: Reflector, error: SyncerError) -> None:
        """Handle a list or a watch that failed."""
        is_lost = isinstance(error, Unauthorized) or (isinstance(error, Unreachable) and error.status == 0)
        if is_lost:
            self._engine.lost(self._pair, store_of(reflector).side, error)
        if not is_lost or (reflector.failures > 1 and self._engine.connection(self._pair, store_of(reflector).side).up):
            log.warning("can't list or watch", cluster=self._pair.name, what=reflector, error=str(error))
            if isinstance(error, Missing) and reflector not in self._missing:
                self._missing.add(reflector)
                self._engine.served[self._pair.name].discovery_loop.soon()
            self._engine.filled(self._pair)

    def went_back(self, reflector: Reflector) -> None:
        """Handle an API server that shows an older state than before."""
        said = "the API server shows an older state than before, and all is decided anew from it"
        log.warning(said, cluster=self._pair.name, what=reflector)
        self._pair.applier.bound.clear()  # a Pod may be unbound again

    def working(self, reflector: Reflector) -> None:
        """Handle a list or a watch that works again."""
        log.info("watching again", cluster=self._pair.name, what=reflector)
        self._missing.discard(reflector)
        self._engine.served[self._pair.name].discovery_loop.soon()
