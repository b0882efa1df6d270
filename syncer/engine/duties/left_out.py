"""Objects that were left out of a store for lack of memory.

They are read and stored whole once there is room.
"""

import asyncio

from syncer.api.errors import ClusterError, NotFound
from syncer.api.objects import Side
from syncer.cache.informer import Informer
from syncer.clusters.client import Client
from syncer.clusters.codec import DecodeError
from syncer.engine.controllers.pair import ClusterPair
from syncer.observe.logs import get_logger

#: Seconds between two checks of the free memory.
SECONDS = 5.0

log = get_logger(__name__)


async def let_in_what_was_left_out(pair: ClusterPair) -> None:
    """Read virtual objects for which there is room again, one after the other, until cancelled."""
    while True:
        await asyncio.sleep(SECONDS)
        for store in pair.informers:
            if store.side is not Side.VIRTUAL or not store.left_out:
                continue
            failure = "can't read an object for which there is room again"
            try:
                await _let_in(pair.virtual, store)
            except ClusterError as error:
                log.debug(failure, of=str(store), error=str(error))
            except Exception:  # a tenant's API server may answer anything
                log.exception(failure, of=str(store))


async def _let_in(cluster: Client, store: Informer) -> None:
    """Read the objects of a store that there is room for.

    Raises:
        ClusterError: A request failed.
    """
    for key, size in list(store.left_out.items()):
        if store.budget.of(key.namespace).has_room(size):
            try:
                obj = await cluster.get(store.resource, key)
                store.let_in(key, obj)
            except (NotFound, DecodeError):
                continue  # a watch will report its new state
