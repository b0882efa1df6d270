"""The engine: reflectors fill stores, stores notify the queue, workers take requests from it."""

import asyncio
import gc
import math
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from syncer.api.config import Config
from syncer.api.context import Settings
from syncer.api.errors import SyncerError
from syncer.api.objects import Obj, Request, Side
from syncer.api.optional_roles import Live
from syncer.api.roles import Syncer
from syncer.cache.shared import SharedWatches
from syncer.clusters.client import Cluster
from syncer.clusters.discovery import Discovery
from syncer.clusters.fenced import Fenced
from syncer.daemon.connections import Connection, Connections
from syncer.daemon.listener import Listener
from syncer.daemon.own_controllers import OwnControllers
from syncer.engine.controllers.builder import build_pair, leave
from syncer.engine.controllers.lifecycle import SHARED_SECONDS, DiscoveryLoop, Entry, Lifecycle, Roster
from syncer.engine.controllers.pair import ClusterPair, Condition
from syncer.engine.controllers.request_status import RequestStatuses
from syncer.engine.controllers.worker import Workers
from syncer.engine.duties.kubernetes_service import is_kept, keep
from syncer.engine.duties.left_out import let_in_what_was_left_out
from syncer.engine.patrol.patroller import Patroller
from syncer.engine.patrol.patrollers import beside_workers
from syncer.engine.reconcile.policies.contention import OFF, ContentionRules
from syncer.engine.stores.informers import SideInformer, store_of
from syncer.observe.events import EventRecorder
from syncer.observe.logs import get_logger
from syncer.observe.metrics import Metrics
from syncer.resources.kinds import NAMESPACES
from syncer.workqueue.queue import Queue

#: Number of looks whether the requests in work on a removed virtual cluster have ended, and seconds between two.
LEAVE_LOOKS, LEAVE_PAUSE = 500, 0.02

#: The reason for which the requests of a virtual cluster wait that another process leads.
STANDBY = "standby"

#: The virtual Namespace with the events about no object of a tenant's; every cluster has it.
_TENANTS_HOME: Obj = {"metadata": {"name": "default"}}

log = get_logger(__name__)


#: Work on a virtual cluster while this process leads, beside the workers.
Duty = Callable[[], Coroutine[Any, Any, None]]


#: The reason why a virtual cluster isn't served that hasn't been tried yet.
NOT_BEGUN = Condition("it has not begun yet", "it has not begun yet")

#: Stand for all Secrets of a namespace, which aren't listed, and for those that are more than it may have.
UNLISTED, BEYOND = "(all)", "(further)"


@dataclass(slots=True)
class Served:
    """The parts of the engine for a virtual cluster."""

    pair: ClusterPair
    discovery: Discovery
    connection: Connection
    events: EventRecorder
    activation: Lifecycle
    discovery_loop: DiscoveryLoop
    patroller: Patroller | None
    own_controllers: OwnControllers
    duties: list[Duty] = field(default_factory=list)
    #: True once discovery has run, so that it is known which stores must be filled.
    prepared: bool = False
    is_running: bool = False
    #: The duties at work.
    work: list[asyncio.Task[None]] = field(default_factory=list)


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
        leads: Callable[[str], bool] = lambda cluster: True,
        until: Callable[[str], float] = lambda cluster: math.inf,
        clock: Callable[[], float] | None = None,
        utcnow: Callable[[], datetime] = lambda: datetime.now(UTC),
        rng: random.Random | None = None,
    ) -> None:
        """Create a process without virtual clusters; nothing is sent yet.

        Args:
            host: The client of the host.
            metrics: What is counted and measured.
            workers: The number of requests in work at the same time.
            leads: Returns True if work on a virtual cluster of this name may begin here; see :meth:`lead` and
                :meth:`stand_by`.
            until: Returns until when this process may write to or for a virtual cluster, in seconds of ``clock``;
                ``-inf``: not at all.
            clock: Returns seconds; the event loop's by default.
            utcnow: Returns the present time.
            rng: Varies delays.
        """
        self.host, self.metrics = host, metrics
        self.leads, self.until = leads, until
        self.clock = clock or asyncio.get_running_loop().time
        self.utcnow = utcnow
        self.rng = rng or random.Random()  # noqa: S311 — jitter, not a secret
        self.queue = Queue(
            clock=self.clock,
            workers=workers,
            spread=self.rng.random,
            added=lambda cluster: metrics.queue(cluster).added(),
        )
        self.statuses = RequestStatuses()
        self.pairs: dict[str, ClusterPair] = {}
        self.served: dict[str, Served] = {}
        self.host_discovery = Discovery(host.patient())
        self.host_watches = SharedWatches(host)
        self._connections = Connections(clock=self.clock, rng=self.rng)
        self.host_connection = self._connections.add(host, lost=self._host_lost, back=self._host_back)
        self._count = workers
        self.workers = Workers(self.queue, self.pairs, self.statuses, self, metrics, clock=self.clock)
        #: The addresses and ports at which kubelets of the virtual clusters answer.
        self.kubelet_ports: set[tuple[str, int]] = set()
        #: Why a virtual cluster can't be served at present, by its name; ``NOT_BEGUN`` if it hasn't been tried yet.
        self.absent: dict[str, Condition] = {}
        #: Why Secrets of the host are no virtual clusters, by namespace and name, ``UNLISTED`` or ``BEYOND``.
        self.refused: Mapping[tuple[str, str], Condition] = {}
        self._working = False
        #: The virtual clusters whose objects of the start are no longer looked at by the garbage collector.
        self._frozen: set[str] = set()

    # -- building ----------------------------------------------------------------------------------

    def add(
        self,
        settings: Settings,
        enabled: Iterable[tuple[Syncer, Config]],
        *,
        virtual: Cluster,
        entries: Iterable[Entry] = (),
        contention: ContentionRules = OFF,
        weight: float = 1.0,
    ) -> ClusterPair:
        """Know a virtual cluster. It is served once it has been prepared and runs.

        ``entries`` become syncers once the clusters serve their resources. ``weight``, above 0, is for its share of
        the workers.
        """
        name = settings.cluster
        self.queue.join(name, weight=weight)
        if not self.leads(name):
            self.queue.pause(name, STANDBY)
        discovery = Discovery(virtual.patient())
        connection = self._connections.add(
            virtual, lost=lambda: self.queue.pause(name), back=lambda: self._virtual_back(self.served[name])
        )

        pair = self.pairs[name] = self._pair(settings, virtual, discovery, contention)
        activation = Lifecycle(
            pair,
            Roster(settings, tuple(enabled), tuple(entries), discovery, self.host_discovery),
            Listener(self, pair),
            watches=self.host_watches,
            live=lambda syncer: self._live(pair, syncer),
            rng=self.rng,
            left=lambda syncer: self._left(pair, syncer),
        )
        events = EventRecorder(pair.virtual, cluster=name, clock=self.clock, utcnow=self.utcnow)
        loop = DiscoveryLoop(
            (self.host_discovery, discovery),
            waiting=lambda: bool(activation.roster.waiting),
            looked=lambda: self._looked(served),
        )
        pair.definitions_changed = loop.soon
        own_controllers = OwnControllers(
            pair, live=lambda syncer: self._live(pair, syncer), is_worked_on=lambda: self._works_on(name)
        )
        pair.paused_or_not = own_controllers.pause
        served = Served(
            pair, discovery, connection, events, activation, loop, beside_workers(self, pair), own_controllers
        )
        served.duties.append(partial(let_in_what_was_left_out, pair))
        if served.patroller is not None and served.patroller.options.enabled:
            served.duties.append(served.patroller.run)
        self.served[name] = served
        return pair

    def _pair(
        self, settings: Settings, virtual: Cluster, discovery: Discovery, contention: ContentionRules
    ) -> ClusterPair:
        """Return a pair without syncers."""
        discoveries, name = {Side.HOST: self.host_discovery, Side.VIRTUAL: discovery}, settings.cluster
        return build_pair(
            settings,
            (),
            virtual=self._fenced(virtual, name),
            host=self._fenced(self.host, name),
            queue=self.queue,
            clock=self.clock,
            utcnow=self.utcnow,
            has_status=lambda side, resource: discoveries[side].has_status(resource),
            ordered=lambda side: discoveries[side].orders_versions,
            minor=lambda side: discoveries[side].minor,
            may_write=lambda: self.may_write(name),
            rules=contention,
        )

    def _fenced(self, cluster: Cluster, name: str) -> Cluster:
        """Return a client that writes only while this process may write for a virtual cluster of this name."""
        return cluster.over(Fenced(cluster.transport, lambda: self.until(name), self.clock))

    def may_write(self, name: str) -> bool:
        """Return True while this process may write to or for a virtual cluster."""
        return self.clock() < self.until(name)

    async def remove(self, name: str) -> None:
        """Forget a virtual cluster that no longer runs, once the requests in work on it have ended."""
        self.queue.leave(name)
        for _ in range(LEAVE_LOOKS):
            if not self._is_in_work(name):
                break
            await asyncio.sleep(LEAVE_PAUSE)
        self.served[name].connection.end()
        pair = self.pairs.pop(name)
        for syncer in list(pair.controllers):
            leave(pair, syncer)
            self._left(pair, syncer)
        for store in pair.informers:
            store.empty()
        del self.served[name]
        self.queue.leave(name)  # what has been added meanwhile
        self.metrics.drop(name)
        if self._frozen:
            self._frozen.clear()
            gc.unfreeze()

    # -- running -----------------------------------------------------------------------------------

    async def close(self) -> None:
        """End the connections that nobody runs; the clients stay open."""
        await self._connections.close()

    async def prepare(self) -> None:
        """Prepare all virtual clusters, before the caches start.

        Raises:
            ClusterError: Discovery failed.
        """
        await asyncio.gather(*(self.prepare_one(name) for name in self.served))

    async def prepare_one(self, name: str) -> None:
        """Discover both sides of a virtual cluster and initialise its syncers.

        Raises:
            ClusterError: Discovery failed.
        """
        served = self.served[name]
        await asyncio.gather(self.host_discovery.refresh(shared=SHARED_SECONDS), served.discovery.refresh())
        await served.activation.update()
        served.prepared = True

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the stores of all prepared virtual clusters filled while the block runs; :meth:`work` uses them.

        Others that are prepared later are served by :meth:`serve`.
        """
        async with asyncio.TaskGroup() as tasks:
            background = [tasks.create_task(each.run()) for each in (self._connections, self.host_connection)]
            background += [tasks.create_task(self.serve(name)) for name in self.served]
            await asyncio.sleep(0)  # they have begun
            try:
                yield
            finally:
                for task in background:
                    task.cancel()

    async def serve(self, name: str) -> None:
        """Keep the stores of a prepared virtual cluster filled, and do its duties while this process works on the
        queue, until this is cancelled.
        """
        served = self.served[name]
        try:
            async with asyncio.TaskGroup() as tasks:
                for each in (served.discovery_loop, served.connection, served.events):
                    tasks.create_task(each.run())
                served.activation.start(tasks)
                served.is_running = True
                if self._works_on(name):
                    self._begin_work(served)
        finally:
            served.is_running = False
            served.activation.stop()
            await self._end_work([served])

    async def work(self) -> None:
        """Process the queue, and run the syncers' own controllers, until the queue is closed or
        this is cancelled. Virtual clusters that another process leads wait for :meth:`lead`.
        """
        self._working = True
        for name, served in self.served.items():
            if served.is_running and self.leads(name):
                self._begin_work(served)
        try:
            await self.workers.run(self._count)
        finally:
            self._working = False
            await self._end_work(self.served.values())

    def lead(self, name: str) -> None:
        """Work on a virtual cluster from now on: this process leads it."""
        self.queue.resume(name, STANDBY)
        served = self.served[name]
        if served.is_running and self._working:
            self._begin_work(served)

    async def stand_by(self, name: str) -> None:
        """Begin no work on a virtual cluster from now on. Return once the requests in work on it have ended."""
        self.queue.pause(name, STANDBY)
        await self._end_work([self.served[name]])
        while self._is_in_work(name):  # noqa: ASYNC110 — the hot path sets no events
            await asyncio.sleep(LEAVE_PAUSE)

    def _is_in_work(self, name: str) -> bool:
        return any(request.cluster == name for request in self.queue.running())

    def _works_on(self, name: str) -> bool:
        return self._working and self.leads(name)

    def _begin_work(self, served: Served) -> None:
        for controller in list(served.pair.controllers.values()):
            if controller.ready:
                served.pair.ask_all(controller)
        served.work = [asyncio.create_task(duty()) for duty in served.duties]
        if is_kept(served.pair):  # known only once the virtual cluster is prepared
            served.work.append(asyncio.create_task(keep(served.pair)))
        served.own_controllers.run()

    async def _end_work(self, ended: Iterable[Served]) -> None:
        tasks: list[asyncio.Task[None]] = []
        for served in ended:
            tasks += served.work
            served.work = []
            tasks += served.own_controllers.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _left(self, pair: ClusterPair, syncer: str) -> None:
        """Clean up after a syncer that has stopped."""
        self.workers.drop(pair.name, syncer)
        pair.policies.breaker.drop(syncer)
        pair.policies.pause.drop(syncer)
        pair.conditions.pop(syncer, None)
        self.served[pair.name].own_controllers.drop(syncer)

    def patrollers(self) -> list[Patroller]:
        """Return the patrollers of all virtual clusters."""
        return [served.patroller for served in self.served.values() if served.patroller is not None]

    def silent(self, pair: ClusterPair) -> str | None:
        """Return which cluster of a pair doesn't answer, or not to us; None if both do."""
        lost = self.lost_connection(pair)
        return lost.trouble if lost else None

    def lost_connection(self, pair: ClusterPair) -> Connection | None:
        """Return the connection of a pair that is lost, of two that of the host; None if both clusters answer."""
        connections = (self.host_connection, self.served[pair.name].connection)
        return next((one for one in connections if not one.up), None)

    def _live(self, pair: ClusterPair, name: str) -> Live:
        return Live(
            pair.name,
            name,
            pair.virtual,
            pair.host,
            lambda key: self.queue.add(Request(pair.name, name, key)),
            settings=pair.settings,
            tell=lambda sentence, detail: self._tell(pair, name, sentence, detail),
        )

    def _tell(self, pair: ClusterPair, syncer: str, sentence: str, detail: str) -> None:
        """Show a condition of a syncer, log it, and tell the tenant in an event; ``""`` ends it."""
        if not sentence:
            if pair.conditions.pop(syncer, None):
                log.info("a condition has ended", cluster=pair.name, syncer=syncer)
            return
        condition = Condition(f"{sentence} ({detail})" if detail else sentence, sentence)
        if pair.conditions.get(syncer) != condition:
            pair.conditions[syncer] = condition
            log.warning(condition.message, cluster=pair.name, syncer=syncer)
        if self._works_on(pair.name):
            self.served[pair.name].events.warning(NAMESPACES, _TENANTS_HOME, "SyncerDegraded", f"{syncer}: {sentence}")

    # -- notifications of reflectors and workers ---------------------------------------------------

    def filled(self, pair: ClusterPair, store: SideInformer | None = None) -> None:
        """Handle a store that was filled or given up: syncers that have all they need begin."""
        self.served[pair.name].own_controllers.run()
        if store is not None and store.synced:
            pair.policies.breaker.listed(store)
        for controller in pair.controllers.values():
            if store in controller.missed:
                controller.missed.discard(store)
                pair.ask_all(controller)
        begun = [
            controller
            for controller in pair.controllers.values()
            if not controller.ready and next(pair.lacks(controller), None) is None
        ]
        for controller in begun:
            pair.begin(controller)
        for controller in begun:
            log.info("ready", cluster=pair.name, syncer=controller.syncer.name)
        is_new = begun and pair.name not in self._frozen
        if is_new and all(controller.ready for controller in pair.controllers.values()):
            self._frozen.add(pair.name)
            gc.collect(1)  # collect the garbage of the start; what remains stays for good
            gc.freeze()

    def lost(self, pair: ClusterPair, side: Side, error: SyncerError) -> None:
        """Handle a request that got no answer from a side."""
        self._connection(pair, side).lost(error)

    def answers(self, pair: ClusterPair, side: Side) -> bool:
        """Return True unless a side is known not to answer."""
        return self._connection(pair, side).up

    def _connection(self, pair: ClusterPair, side: Side) -> Connection:
        return self.host_connection if side is Side.HOST else self.served[pair.name].connection

    def watch_restarted(self, pair: ClusterPair, store: SideInformer) -> None:
        """Count a watch that began again."""
        self.metrics.watch_restarted(pair.name, store.side.value, str(store.resource))

    def discover(self, pair: ClusterPair) -> None:
        """Repeat the discovery of both sides soon."""
        self.served[pair.name].discovery_loop.soon()

    def warn(self, pair: ClusterPair, request: Request, reason: str, message: str, *, about: Obj | None) -> None:
        """Record an event for the owner of the virtual object, with virtual names.

        Without that object, it is about the object for whose copy the host makes the host object.
        """
        syncer = pair.controllers[request.syncer].syncer
        resource, virtual = syncer.resource, about
        if virtual is None:
            virtual = pair.informers.get(Side.VIRTUAL, resource, request.key)
        if virtual is None and (maker := pair.references.maker(resource, request.key)):
            resource, virtual = maker[0], pair.informers.get(Side.VIRTUAL, *maker)
        if virtual is None:
            return
        host = pair.controllers[request.syncer].place(request.key)
        known = {str(host): str(request.key), host.name: request.key.name}
        names = pair.host_names(syncer.host_resource, known)
        self.served[pair.name].events.warning(resource, virtual, reason, names.virtual(message))

    async def _looked(self, served: Served) -> None:
        """Handle a completed discovery: syncers join and leave."""
        if await served.activation.update():
            self.filled(served.pair)

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
            if store_of(reflector).side is side:
                reflector.hurry()
        if self.host_connection.up and served.connection.up:
            self.queue.resume(served.pair.name)
