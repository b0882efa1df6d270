"""Notify a tenant of objects that only the host could enforce, and that no syncer copies there.

A NetworkPolicy isolates no Pod while it is in the virtual cluster alone, and the tenant would not
notice. The metadata of each such kind is watched, of which only a bounded set of hashes is kept.
"""

import asyncio
import time
from collections.abc import Callable, Iterable

from cachetools import LRUCache

from syncer.api.errors import ClusterError, Expired
from syncer.api.objects import Resource
from syncer.cache.reflector import SILENCE_SECONDS, WATCH_SECONDS
from syncer.clusters import codec
from syncer.clusters.discovery import Discovery
from syncer.daemon.served_cluster import ServedCluster
from syncer.engine.controllers.pair import ClusterPair
from syncer.observe.events import EventRecorder
from syncer.observe.logs import get_logger
from syncer.remembered import REMEMBERED
from syncer.resources.kinds import ENFORCED_ON_HOST
from syncer.token_bucket import TokenBucket

#: Seconds until a kind is tried again that can't be watched, or need not be at present.
AGAIN_SECONDS = 60.0
#: Objects of a kind that get an event at once.
MOST = 20
#: Seconds until a further object gets an event; others get none.
REFILL = 30.0

REASON = "NotSynced"

log = get_logger(__name__)


class Notices:
    """Records an event about each object that is enforced nowhere, once while the daemon runs."""

    def __init__(
        self,
        pair: ClusterPair,
        discovery: Discovery,
        events: EventRecorder,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pair = pair
        self._discovery = discovery
        self._events = events
        self._clock = clock
        #: The hashes of the uids of objects that have an event.
        self._notified: LRUCache[int, None] = LRUCache(REMEMBERED)
        self._limits: dict[Resource, TokenBucket] = {}
        for resource in ENFORCED_ON_HOST:
            self._limits[resource] = TokenBucket(rate=1 / REFILL, burst=MOST, now=clock())

    async def run(self) -> None:
        """Watch all kinds until cancelled."""
        async with asyncio.TaskGroup() as kinds:
            for resource in ENFORCED_ON_HOST:
                kinds.create_task(self._follow(resource))

    async def _follow(self, resource: Resource) -> None:
        while True:
            try:
                await self._watch(resource)
            except ClusterError as error:
                log.debug(
                    "can't watch a kind that isn't synced",
                    **self._about(resource),
                    error=str(error),
                )
            except Exception:  # a tenant's API server may answer anything
                log.exception("can't watch a kind that isn't synced", **self._about(resource))
            await asyncio.sleep(AGAIN_SECONDS)

    async def _watch(self, resource: Resource) -> None:
        """Report the first objects that there are, and later ones, while nothing enforces them.

        Raises:
            ClusterError: The kind can't be watched.
        """
        version = ""
        while self._is_unenforced(resource):
            if not version:
                page = await self._pair.virtual.first(resource, MOST)
                version = page.resource_version
                self._report(resource, page.items)
            watching = self._pair.virtual.watch(
                resource,
                resource_version=version,
                timeout_seconds=int(WATCH_SECONDS[0]),
                idle_timeout=SILENCE_SECONDS,
                metadata_only=True,
            )
            async with watching as events:
                async for batch in events:
                    if any(event.type == "ERROR" for event in batch):
                        raise Expired(f"the watch of {resource} can't continue")
                    version = codec.version(batch[-1].object) or version
                    if not self._is_unenforced(resource):
                        return
                    self._report(
                        resource,
                        [event.object for event in batch if event.type in ("ADDED", "MODIFIED")],
                    )

    def _is_unenforced(self, resource: Resource) -> bool:
        """Return True if the virtual cluster serves a kind that no running syncer copies."""
        if self._discovery.served(resource) is None:
            return False
        controllers = self._pair.controllers.values()
        return not any(controller.stands_for == resource for controller in controllers)

    def _report(self, resource: Resource, items: Iterable[codec.Undecoded]) -> None:
        for raw in items:
            try:
                head = codec.head(raw)
            except codec.DecodeError:
                continue
            key = head.key
            uid = head.uid
            if hash(uid) in self._notified or not self._limits[resource].take_now(self._clock()):
                continue
            self._notified[hash(uid)] = None
            named = {"metadata": {"name": key.name, "namespace": key.namespace, "uid": uid}}
            self._events.warning(resource, named, REASON, _message(resource))

    def _about(self, resource: Resource) -> dict[str, str]:
        return {"cluster": self._pair.name, "what": str(resource)}


def notices_of(served: ServedCluster) -> Notices:
    """Return the notices for the tenants of a virtual cluster."""
    return Notices(served.pair, served.discovery, served.events)


def _message(resource: Resource) -> str:
    return (
        f"objects of the kind {resource.kind} are not synced to where Pods run, and nothing "
        "enforces or provides this one there, unless something in this virtual cluster does; "
        f"the operator can enable a syncer of {resource}"
    )
