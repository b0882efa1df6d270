"""All steps put together: informers fill stores, stores feed the queue, workers empty it."""

import asyncio
import gc
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from syncer.api.config import Config
from syncer.api.context import Settings
from syncer.api.errors import ClusterError, SyncerError, Unreachable
from syncer.api.objects import Request, Resource, Side
from syncer.api.roles import Initialize, Live, OwnController, Source, Syncer
from syncer.clusters.client import Cluster
from syncer.clusters.discovery import Discovery
from syncer.flow.connection import Connection
from syncer.flow.ledger import Ledger
from syncer.flow.link import Link, Part, link, selection
from syncer.flow.queue import Queue
from syncer.flow.store import Store
from syncer.flow.watch import Informer
from syncer.flow.worker import Workers
from syncer.observe.events import EventRecorder
from syncer.observe.logs import get_logger
from syncer.observe.metrics import Metrics, QueueState

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Served:
    """What the engine keeps for one virtual cluster."""

    link: Link
    discovery: Discovery
    connection: Connection
    events: EventRecorder


class Engine:
    """The daemon's inside, without configuration files, signals, leadership and HTTP. Make it within a running loop."""

    def __init__(
        self,
        *,
        host: Cluster,
        metrics: Metrics,
        workers: int = 32,
        clock: Callable[[], float] | None = None,
        utcnow: Callable[[], datetime] = lambda: datetime.now(UTC),
        rng: random.Random | None = None,
    ) -> None:
        self.host, self.metrics = host, metrics
        self.clock = clock or asyncio.get_running_loop().time
        self.utcnow = utcnow
        self.rng = rng or random.Random()  # noqa: S311 — jitter, not a secret
        queue_metrics = metrics.queue("syncer", self._queue_state)
        self.queue = Queue(clock=self.clock, spread=self.rng.random, added=queue_metrics.added)
        self.ledger = Ledger()
        #: Whether this process leads; asked before each write.
        self.may_write: Callable[[], bool] = lambda: True
        self.links: dict[str, Link] = {}
        self.served: dict[str, Served] = {}
        self.host_discovery = Discovery(host)
        self.host_connection = Connection(host, lost=self._host_lost, back=self._host_back)
        self._count = workers
        self.workers = Workers(self.queue, self.links, self.ledger, self, metrics, queue_metrics, clock=self.clock)
        self._tasks: asyncio.TaskGroup | None = None
        self._refreshing: asyncio.Task[None] | None = None

    # -- building --------------------------------------------------------------------------------------------------

    def add(self, settings: Settings, enabled: Iterable[tuple[Syncer[Any], Config]], *, virtual: Cluster) -> Link:
        """Serve a virtual cluster."""
        name = settings.cluster
        discovery = Discovery(virtual)
        connection = Connection(
            virtual, lost=lambda: self.queue.pause(name), back=lambda: self._virtual_back(self.served[name])
        )

        def has_status(side: Side, resource: Resource) -> bool:
            return (self.host_discovery if side is Side.HOST else discovery).has_status(resource)

        made = link(
            settings,
            enabled,
            virtual=virtual,
            host=self.host,
            queue=self.queue,
            clock=self.clock,
            utcnow=self.utcnow,
            has_status=has_status,
            may_write=lambda: self.may_write(),
        )
        self.links[name] = made
        events = EventRecorder(virtual, clock=self.clock, utcnow=self.utcnow)
        self.served[name] = Served(made, discovery, connection, events)
        self._add_informers(made)
        return made

    def _add_informers(self, made: Link) -> None:
        for store in made.caches:
            marked = made.caches.marked[store.side, store.resource]
            namespace, selector = selection(made, Source(store.side, store.resource, marked))
            made.informers[store.side, store.resource] = Informer(
                made.virtual if store.side is Side.VIRTUAL else self.host,
                store,
                _Listener(self, made),
                namespace=namespace,
                selector=selector,
                rng=self.rng,
            )

    # -- running ---------------------------------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Before the caches start: learn what both sides serve, and let syncers initialise. Raises ``ClusterError``."""
        discoveries = [self.host_discovery, *(served.discovery for served in self.served.values())]
        await asyncio.gather(*(discovery.refresh() for discovery in discoveries))
        for made, part in self._parts():
            if isinstance(part.syncer, Initialize):
                await part.syncer.init(self._live(made, part))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the stores filled while the block runs; :meth:`work` is what uses them."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            background = [tasks.create_task(each) for each in self._background()]
            try:
                yield
            finally:
                if self._refreshing:
                    background.append(self._refreshing)
                for task in background:
                    task.cancel()
                self._tasks = None

    def _background(self) -> Iterator[Coroutine[Any, Any, None]]:
        yield self.host_connection.run()
        for served in self.served.values():
            yield served.connection.run()
            yield served.events.run()
            for informer in served.link.informers.values():
                yield informer.run()

    async def work(self) -> None:
        """Work on the queue, and run the syncers' own controllers, until the queue is closed or this is cancelled."""
        for made, part in self._parts():
            if part.ready:
                made.ask_all(part)
        own = [asyncio.create_task(self._own(made, part)) for made, part in self._parts()]
        try:
            await self.workers.run(self._count)
        finally:
            for task in own:
                task.cancel()
            await asyncio.gather(*own, return_exceptions=True)

    async def _own(self, made: Link, part: Part) -> None:
        if not isinstance(part.syncer, OwnController):
            return
        try:
            await part.syncer.register(self._live(made, part))
        except Exception:
            log.exception("a syncer's own controller ended with an error", syncer=part.syncer.name)

    def _live(self, made: Link, part: Part) -> Live:
        name = part.syncer.name
        return Live(made.name, made.virtual, made.host, lambda key: self.queue.add(Request(made.name, name, key)))

    def _parts(self) -> Iterator[tuple[Link, Part]]:
        for made in list(self.links.values()):
            for part in list(made.parts.values()):
                yield made, part

    # -- told by informers and workers -----------------------------------------------------------------------------

    def filled(self, made: Link, store: Store | None = None) -> None:
        """A store has been filled, for the first time or anew, or given up: syncers that have all they need begin."""
        for part in made.parts.values():
            if store in part.missed:
                part.missed.discard(store)
                made.ask_all(part)
        begun = [part for part in made.parts.values() if not part.ready and not part.lacks(made.given_up)]
        for part in begun:
            part.ready = True
            part.missed = {extra for extra in part.extras if not extra.synced}
            made.ask_all(part)
        for part in begun:
            log.info("ready", cluster=made.name, syncer=part.syncer.name)
        if begun and all(part.ready for part in made.parts.values()):
            gc.collect(1)  # what starting left behind; the oldest generation is what stays anyway
            gc.freeze()

    def lost(self, made: Link, side: Side, error: SyncerError) -> None:
        """A request got no answer from one side."""
        connection = self.host_connection if side is Side.HOST else self.served[made.name].connection
        connection.lost(error)

    def warn(self, made: Link, request: Request, reason: str, message: str) -> None:
        """Tell the owner of the virtual object, in names that mean something there."""
        syncer = made.parts[request.syncer].syncer
        virtual = made.caches.get(Side.VIRTUAL, syncer.resource, request.key)
        if virtual is None:
            return
        host = syncer.host_key(made.settings, request.key)
        names = {str(host): str(request.key), host.name: request.key.name}
        self.served[made.name].events.warning(syncer.resource, virtual, reason, message, names=names)

    def refresh_discovery(self) -> None:
        """Look at what both sides serve: a resource that was missing is there now."""
        if self._tasks and (self._refreshing is None or self._refreshing.done()):
            self._refreshing = self._tasks.create_task(self._refresh())

    async def _refresh(self) -> None:
        for discovery in (self.host_discovery, *(served.discovery for served in self.served.values())):
            try:
                await discovery.refresh()
            except ClusterError as error:
                log.warning("can't see what a cluster serves", error=str(error))

    def _host_lost(self) -> None:
        for name in self.served:
            self.queue.pause(name)

    def _host_back(self) -> None:
        for served in self.served.values():
            self._back(served, Side.HOST)

    def _virtual_back(self, served: Served) -> None:
        self._back(served, Side.VIRTUAL)

    def _back(self, served: Served, side: Side) -> None:
        for informer in served.link.informers.values():
            if informer.store.side is side:
                informer.hurry()
        if self.host_connection.up and served.connection.up:
            self.queue.resume(served.link.name)

    def _queue_state(self) -> QueueState:
        now, running = self.clock(), list(self.queue.running().values())
        times = [now - begun for begun in running]
        return QueueState(self.queue.depth(), sum(times), max(times, default=0.0))


class _Listener:
    """Hears the informers of one link."""

    def __init__(self, engine: Engine, made: Link) -> None:
        self._engine, self._link = engine, made

    def synced(self, informer: Informer) -> None:
        self._engine.filled(self._link, informer.store)

    def watching(self, informer: Informer) -> None:
        if informer.restarts > 1:
            self._engine.metrics.watch_restarted(informer.store.side.value, str(informer.store.resource))

    def failed(self, informer: Informer, error: SyncerError) -> None:
        if isinstance(error, Unreachable) and error.status == 0:
            self._engine.lost(self._link, informer.store.side, error)
        else:
            log.warning("can't list or watch", what=str(informer), error=str(error))
            self._engine.filled(self._link)

    def working(self, informer: Informer) -> None:
        log.info("watching again", what=str(informer))
        self._engine.refresh_discovery()
