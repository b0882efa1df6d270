"""The engine: reflectors fill stores, stores notify the queue, workers take requests from it."""

import asyncio
import gc
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tenacity import AsyncRetrying, retry_if_exception_type, wait_exponential

from syncer.api.config import Config
from syncer.api.context import Settings
from syncer.api.errors import Missing, SyncerError, Unreachable
from syncer.api.objects import Obj, Request, Resource, Side
from syncer.api.optional_roles import Live, OwnController
from syncer.api.roles import Syncer
from syncer.clusters.client import Cluster
from syncer.clusters.discovery import Discovery
from syncer.engine.cache.informer import Informer
from syncer.engine.cache.reflector import Reflector
from syncer.engine.controllers.builder import build_pair
from syncer.engine.controllers.connection import Connection
from syncer.engine.controllers.lifecycle import DiscoveryLoop, Entry, Lifecycle, Roster
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.controllers.request_status import RequestStatuses
from syncer.engine.controllers.tenant_messages import translated
from syncer.engine.controllers.worker import Workers
from syncer.engine.patrol.patroller import Patroller
from syncer.engine.patrol.patrollers import beside_workers
from syncer.engine.reconcile.controller import Controller
from syncer.engine.reconcile.policies.contention import OFF, ContentionRules
from syncer.engine.workqueue.queue import Queue
from syncer.observe.events import EventRecorder
from syncer.observe.logs import get_logger
from syncer.observe.metrics import Metrics

#: Seconds before a controller that raised is run again: the first delay, doubled up to the last.
FIRST_RERUN, LAST_RERUN = 1.0, 300.0

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Served:
    """The parts of the engine for a virtual cluster."""

    pair: ClusterPair
    discovery: Discovery
    connection: Connection
    events: EventRecorder
    activation: Lifecycle
    patroller: Patroller | None


class Engine:
    """The daemon without configuration files, signals, leadership and HTTP.

    Create it in a running event loop.
    """

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
        self.queue = Queue(
            clock=self.clock, spread=self.rng.random, added=lambda cluster: metrics.queue(cluster).added()
        )
        self.statuses = RequestStatuses()
        #: Returns True while this process leads; called before each write.
        self.may_write: Callable[[], bool] = lambda: True
        self.pairs: dict[str, ClusterPair] = {}
        self.served: dict[str, Served] = {}
        self.host_discovery = Discovery(host)
        self.host_connection = Connection(host, lost=self._host_lost, back=self._host_back)
        self._count = workers
        self.workers = Workers(self.queue, self.pairs, self.statuses, self, metrics, clock=self.clock)
        self.discovery_loop = DiscoveryLoop(self._discoveries, waiting=self._is_awaited, looked=self._looked)
        #: Why a syncer's own controller doesn't run at present, by cluster and syncer.
        self.broken: dict[tuple[str, str], str] = {}
        self._own_controllers: dict[tuple[str, str], asyncio.Task[None]] = {}
        #: True once discovery has run, so that it is known which stores must be filled.
        self.prepared = False
        self._working = self._frozen = False

    # -- building ----------------------------------------------------------------------------------

    def add(
        self,
        settings: Settings,
        enabled: Iterable[tuple[Syncer, Config]],
        *,
        virtual: Cluster,
        entries: Iterable[Entry] = (),
        contention: ContentionRules = OFF,
    ) -> ClusterPair:
        """Serve a virtual cluster.

        ``entries`` become syncers once the clusters serve their resources.
        """
        name = settings.cluster
        discovery = Discovery(virtual)
        connection = Connection(
            virtual, lost=lambda: self.queue.pause(name), back=lambda: self._virtual_back(self.served[name])
        )

        def has_status(side: Side, resource: Resource) -> bool:
            return (self.host_discovery if side is Side.HOST else discovery).has_status(resource)

        pair = build_pair(
            settings,
            (),
            virtual=virtual,
            host=self.host,
            queue=self.queue,
            clock=self.clock,
            utcnow=self.utcnow,
            has_status=has_status,
            ordered=lambda side: (self.host_discovery if side is Side.HOST else discovery).orders_versions,
            may_write=lambda: self.may_write(),
            rules=contention,
        )
        pair.definitions_changed = self.discovery_loop.soon
        pair.paused_or_not = lambda: self._paused_or_not(pair)
        self.pairs[name] = pair
        activation = Lifecycle(
            pair,
            Roster(settings, tuple(enabled), tuple(entries), discovery, self.host_discovery),
            _Listener(self, pair),
            live=lambda syncer: self._live(pair, syncer),
            rng=self.rng,
            left=lambda syncer: self._left(name, syncer),
        )
        events = EventRecorder(virtual, cluster=name, clock=self.clock, utcnow=self.utcnow)
        self.served[name] = Served(pair, discovery, connection, events, activation, beside_workers(self, pair))
        return pair

    # -- running -----------------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Discover both sides and initialise the syncers, before the caches start.

        Raises:
            ClusterError: Discovery failed.
        """
        await asyncio.gather(*(discovery.refresh() for discovery in self._discoveries()))
        for served in self.served.values():
            await served.activation.update()
        self.prepared = True

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the stores filled while the block runs; :meth:`work` uses them."""
        async with asyncio.TaskGroup() as tasks:
            background = [tasks.create_task(each) for each in self._background()]
            for served in self.served.values():
                served.activation.start(tasks)
            try:
                yield
            finally:
                for task in background:
                    task.cancel()
                for served in self.served.values():
                    served.activation.stop()

    def _background(self) -> Iterator[Coroutine[Any, Any, None]]:
        yield self.discovery_loop.run()
        yield self.host_connection.run()
        for served in self.served.values():
            yield served.connection.run()
            yield served.events.run()

    async def work(self) -> None:
        """Process the queue, and run the syncers' own controllers, until the queue is closed or
        this is cancelled.
        """
        for pair, controller in self._parts():
            if controller.ready:
                pair.ask_all(controller)
        self._working = True
        self._run_controllers()
        patrols = [asyncio.create_task(each.run()) for each in self.patrollers() if each.options.enabled]
        try:
            await self.workers.run(self._count)
        finally:
            self._working = False
            own, self._own_controllers = list(self._own_controllers.values()), {}
            for task in (*own, *patrols):
                task.cancel()
            await asyncio.gather(*own, *patrols, return_exceptions=True)

    def _run_controllers(self) -> None:
        """Run the syncers' own controllers while this process works on the queue, except during a pause."""
        for pair, controller in self._parts() if self._working else ():
            place, syncer = (pair.name, controller.name), controller.syncer
            if isinstance(syncer, OwnController) and place not in self._own_controllers and pair.may_run(syncer.name):
                own = self._own(syncer, self._live(pair, syncer.name))
                self._own_controllers[place] = asyncio.create_task(own)

    def _paused_or_not(self, pair: ClusterPair) -> None:
        """Stop the own controllers of paused syncers, and run them again afterwards."""
        for place, task in list(self._own_controllers.items()):
            if place[0] == pair.name and not task.done() and not pair.may_run(place[1]):
                self._own_controllers.pop(place).cancel()
        self._run_controllers()

    async def _own(self, syncer: OwnController, live: Live) -> None:
        """Run a controller until it returns; if it raises, run it again with increasing delays."""
        place = (live.cluster, live.syncer)

        async def register() -> None:
            self.broken.pop(place, None)
            try:
                await syncer.register(live)
            except Exception as error:
                what = "a syncer's own controller raised, and is run again"
                log.exception(what, cluster=live.cluster, syncer=live.syncer)
                self.broken[place] = f"its own controller raised {type(error).__name__}: {error}"
                raise

        wait = wait_exponential(multiplier=FIRST_RERUN, max=LAST_RERUN)
        await AsyncRetrying(retry=retry_if_exception_type(Exception), wait=wait)(register)

    def _left(self, cluster: str, syncer: str) -> None:
        """Clean up after a syncer that has stopped."""
        self.workers.drop(cluster, syncer)
        self.pairs[cluster].policies.breaker.drop(syncer)
        self.broken.pop((cluster, syncer), None)
        own = self._own_controllers.pop((cluster, syncer), None)
        if own:
            own.cancel()

    def patrollers(self) -> list[Patroller]:
        """Return the patrollers of all virtual clusters."""
        return [served.patroller for served in self.served.values() if served.patroller is not None]

    def silent(self, pair: ClusterPair) -> str | None:
        """Return which cluster of a pair doesn't answer; None if both do."""
        connections = (self.host_connection, self.served[pair.name].connection)
        return next((f"the {one.cluster.side} cluster does not answer" for one in connections if not one.up), None)

    def _live(self, pair: ClusterPair, name: str) -> Live:
        return Live(pair.name, name, pair.virtual, pair.host, lambda key: self.queue.add(Request(pair.name, name, key)))

    def _parts(self) -> Iterator[tuple[ClusterPair, Controller]]:
        for pair in list(self.pairs.values()):
            for controller in list(pair.controllers.values()):
                yield pair, controller

    # -- notifications of reflectors and workers ---------------------------------------------------

    def filled(self, pair: ClusterPair, store: Informer | None = None) -> None:
        """Handle a store that was filled or given up: syncers that have all they need begin."""
        self._run_controllers()
        if store is not None and store.synced:
            pair.policies.breaker.listed(store)
        for controller in pair.controllers.values():
            if store in controller.missed:
                controller.missed.discard(store)
                pair.ask_all(controller)
        begun = [
            controller
            for controller in pair.controllers.values()
            if not controller.ready and not pair.lacks(controller)
        ]
        for controller in begun:
            pair.begin(controller)
        for controller in begun:
            log.info("ready", cluster=pair.name, syncer=controller.syncer.name)
        if begun and not self._frozen and all(controller.ready for controller in pair.controllers.values()):
            self._frozen = True
            gc.collect(1)  # collect the garbage of the start; what remains stays for good
            gc.freeze()

    def lost(self, pair: ClusterPair, side: Side, error: SyncerError) -> None:
        """Handle a request that got no answer from a side."""
        connection = self.host_connection if side is Side.HOST else self.served[pair.name].connection
        connection.lost(error)

    def warn(self, pair: ClusterPair, request: Request, reason: str, message: str, *, about: Obj | None) -> None:
        """Record an event for the owner of the virtual object, with virtual names."""
        syncer = pair.controllers[request.syncer].syncer
        virtual = about or pair.informers.get(Side.VIRTUAL, syncer.resource, request.key)
        if virtual is None:
            return
        host = pair.controllers[request.syncer].place(request.key)
        known = {str(host): str(request.key), host.name: request.key.name}
        told = translated(pair.settings, message, resources=(syncer.host_resource,), known=known)
        self.served[pair.name].events.warning(syncer.resource, virtual, reason, told)

    async def _looked(self) -> None:
        """Handle a completed discovery: syncers join and leave."""
        for served in self.served.values():
            if await served.activation.update():
                self.filled(served.pair)
                self._run_controllers()

    def _is_awaited(self) -> bool:
        return any(served.activation.roster.waiting for served in self.served.values())

    def _discoveries(self) -> list[Discovery]:
        return [self.host_discovery, *(served.discovery for served in self.served.values())]

    def _host_lost(self) -> None:
        for name in self.served:
            self.queue.pause(name)

    def _host_back(self) -> None:
        for served in self.served.values():
            self._back(served, Side.HOST)

    def _virtual_back(self, served: Served) -> None:
        self._back(served, Side.VIRTUAL)

    def _back(self, served: Served, side: Side) -> None:
        for reflector in served.pair.reflectors.values():
            if reflector.store.side is side:
                reflector.hurry()
        if self.host_connection.up and served.connection.up:
            self.queue.resume(served.pair.name)


class _Listener:
    """Receives the notifications of a pair's reflectors."""

    def __init__(self, engine: Engine, pair: ClusterPair) -> None:
        self._engine, self._pair = engine, pair
        #: Reflectors whose resource was missing: a missing resource triggers discovery only once.
        self._missing: set[Reflector] = set()

    def synced(self, reflector: Reflector) -> None:
        self._engine.filled(self._pair, reflector.store)

    def watching(self, reflector: Reflector) -> None:
        if reflector.restarts > 1:
            side, resource = reflector.store.side.value, str(reflector.store.resource)
            self._engine.metrics.watch_restarted(self._pair.name, side, resource)

    def failed(self, reflector: Reflector, error: SyncerError) -> None:
        if isinstance(error, Unreachable) and error.status == 0:
            self._engine.lost(self._pair, reflector.store.side, error)
        else:
            log.warning("can't list or watch", cluster=self._pair.name, what=reflector, error=str(error))
            if isinstance(error, Missing) and reflector not in self._missing:
                self._missing.add(reflector)
                self._engine.discovery_loop.soon()
            self._engine.filled(self._pair)

    def went_back(self, reflector: Reflector) -> None:
        said = "the API server shows an older state than before, and all is decided anew from it"
        log.warning(said, cluster=self._pair.name, what=reflector)
        self._pair.applier.bound.clear()  # a Pod may be unbound again

    def working(self, reflector: Reflector) -> None:
        log.info("watching again", cluster=self._pair.name, what=reflector)
        self._missing.discard(reflector)
        self._engine.discovery_loop.soon()
