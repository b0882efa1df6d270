"""Handles the notifications of a virtual cluster's reflectors."""

from collections.abc import Callable, Mapping

from syncer.api.errors import NotFound, SyncerError, Unauthorized, Unreachable
from syncer.api.objects import Side
from syncer.cache.reflector import Reflector
from syncer.daemon.connections import Connection
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.stores.informers import SideInformer, store_of
from syncer.observe.logs import get_logger

log = get_logger(__name__)


class Listener:
    """Receives the notifications of a pair's reflectors."""

    def __init__(
        self,
        pair: ClusterPair,
        connections: Mapping[Side, Connection],
        *,
        filled: Callable[[SideInformer | None], None],
        discover: Callable[[], None],
        watch_restarted: Callable[[str, str, str], None],
    ) -> None:
        """Create it for a pair.

        Args:
            pair: The pair of the reflectors.
            connections: Its connections, which learn of requests that got no answer.
            filled: Handles a store that was filled, or was given up.
            discover: Repeats the discovery of both sides soon.
            watch_restarted: Counts a restarted watch, by virtual cluster, side and resource.
        """
        self._pair = pair
        self._connections = connections
        self._filled = filled
        self._discover = discover
        self._watch_restarted = watch_restarted
        #: Reflectors whose resource was missing: a missing resource triggers discovery only once.
        self._missing: set[Reflector] = set()

    def synced(self, reflector: Reflector) -> None:
        """Handle a store that was filled."""
        self._pair.applier.claim.lists += store_of(reflector).side is Side.VIRTUAL
        self._filled(store_of(reflector))

    def watching(self, reflector: Reflector) -> None:
        """Count a restarted watch."""
        if reflector.restarts > 1:
            store = store_of(reflector)
            self._watch_restarted(self._pair.name, store.side.value, str(store.resource))

    def failed(self, reflector: Reflector, error: SyncerError) -> None:
        """Handle a list or a watch that failed."""
        connection = self._connections[store_of(reflector).side]
        is_lost = isinstance(error, Unauthorized)
        if isinstance(error, Unreachable) and error.status == 0:
            is_lost = True
        if is_lost:
            connection.lost(error)
        if not is_lost or (reflector.failures > 1 and connection.up):
            log.warning(
                "can't list or watch",
                cluster=self._pair.name,
                what=reflector,
                error=str(error),
            )
            if isinstance(error, NotFound) and reflector not in self._missing:
                self._missing.add(reflector)
                self._discover()
            self._filled(None)

    def went_back(self, reflector: Reflector) -> None:
        """Handle an API server that returned an older state than before."""
        warning = "API server returned an older state (restored etcd?); reconciling everything"
        log.warning(warning, cluster=self._pair.name, what=reflector)
        self._pair.policies.bound_pods.clear()

    def working(self, reflector: Reflector) -> None:
        """Handle a list or a watch that works again."""
        log.info("watching again", cluster=self._pair.name, what=reflector)
        self._missing.discard(reflector)
        self._discover()
