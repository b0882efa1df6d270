"""A virtual cluster that a process serves.

Its stores are filled, and it is worked on while the process leads it.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from syncer.api.config import Config
from syncer.api.context import Settings
from syncer.api.objects import Key, Obj, Resource, Side, SyncRequest
from syncer.api.optional_roles import Live
from syncer.api.roles import Syncer
from syncer.byte_budget import ByteBudget
from syncer.cache.shared import SharedWatches
from syncer.clusters.client import SideClient
from syncer.clusters.discovery import Discovery
from syncer.clusters.fenced import Fenced
from syncer.clusters.shared_reads import SHARED_SECONDS
from syncer.daemon.connections import Connection, Connections
from syncer.daemon.frozen_objects import FrozenObjects
from syncer.daemon.listener import Listener
from syncer.daemon.own_controllers import OwnControllers
from syncer.engine.controllers.builder import build_pair, leave
from syncer.engine.controllers.lifecycle import (
    DiscoveryLoop,
    LateSyncers,
    Lifecycle,
    Roster,
)
from syncer.engine.controllers.pair import ClusterPair, Condition
from syncer.engine.controllers.request_status import RequestStatuses
from syncer.engine.controllers.worker import Workers
from syncer.engine.duties.kubernetes_service import is_kept, keep
from syncer.engine.duties.left_out import let_in_what_was_left_out
from syncer.engine.duties.long_waits import notify_of_long_waits
from syncer.engine.patrol.patrollers import beside_workers
from syncer.engine.reconcile.policies.contention import OFF, ContentionRules
from syncer.engine.stores.informers import SideInformer, store_of
from syncer.observe.events import EventRecorder, EventType
from syncer.observe.logs import get_logger
from syncer.observe.metrics import Metrics
from syncer.resources.kinds import NAMESPACES
from syncer.workqueue.queue import Queue

#: Seconds between two checks whether work of the process itself has ended.
LOOK = 0.02

#: The reason for which the requests of a virtual cluster wait while another process leads it.
STANDBY = "standby"

#: The virtual Namespace with the events that are about no object; every cluster has it.
_TENANTS_HOME: Obj = {"metadata": {"name": "default"}}

log = get_logger(__name__)

#: Work on a virtual cluster while this process leads, beside the workers.
Duty = Callable[[], Coroutine[Any, Any, None]]


class ProcessParts(Protocol):
    """The parts of a process that its virtual clusters share."""

    host: SideClient
    host_at_start: SideClient
    metrics: Metrics
    queue: Queue
    statuses: RequestStatuses
    workers: Workers
    connections: Connections
    host_connection: Connection
    host_discovery: Discovery
    host_watches: SharedWatches
    frozen_objects: FrozenObjects
    clock: Callable[[], float]
    utcnow: Callable[[], datetime]
    rng: random.Random
    leads: Callable[[str], bool]
    until: Callable[[str], float]
    #: False if this process may write for ever, as no other one does.
    is_bounded: bool
    is_working: bool


class ServedCluster:
    """A virtual cluster with its syncers, connections, discovery, events, and duties."""

    def __init__(
        self,
        process: ProcessParts,
        settings: Settings,
        enabled: Iterable[tuple[Syncer, Config]],
        *,
        virtual: SideClient,
        entries: Iterable[LateSyncers] = (),
        contention: ContentionRules = OFF,
        budget: ByteBudget | None = None,
    ) -> None:
        """Create a virtual cluster as it is configured; nothing is sent yet.

        ``entries`` become syncers once their kinds are served.
        """
        self.name = settings.cluster
        self._process = process
        self.discovery = Discovery(virtual.patient())
        self.connection = process.connections.add(virtual, lost=self._lost, back=self._back)
        #: The connections to both sides, first that to the host, which all virtual clusters share.
        self.connections: Mapping[Side, Connection] = {
            Side.HOST: process.host_connection,
            Side.VIRTUAL: self.connection,
        }
        self._roster = Roster(
            settings,
            tuple(enabled),
            tuple(entries),
            self.discovery,
            process.host_discovery,
        )
        self.discovery_loop = DiscoveryLoop(
            (process.host_discovery, self.discovery), waiting=self._has_waiting, looked=self._looked
        )
        #: The client of the host for the start: what others ask at the same time is asked once.
        self.host_at_start = self._fenced(process.host_at_start)
        self.pair = self._build_pair(settings, virtual, contention=contention, budget=budget)
        self.own_controllers = OwnControllers(
            self.pair,
            live=self._live,
            is_worked_on=self._is_worked_on,
        )
        listener = Listener(
            self.pair,
            self.connections,
            filled=self.filled,
            discover=self.discovery_loop.soon,
            watch_restarted=process.metrics.watch_restarted,
        )
        self._lifecycle = Lifecycle(
            self.pair,
            self._roster,
            listener,
            watches=process.host_watches,
            live=partial(self._live, host=self.host_at_start),
            rng=process.rng,
            left=self._left,
        )
        self.events = EventRecorder(
            self.pair.virtual,
            cluster=self.name,
            clock=process.clock,
            utcnow=process.utcnow,
        )
        self.patroller = beside_workers(process, self.pair, self.silent, self.notify)
        self._duties: list[Duty] = [
            partial(let_in_what_was_left_out, self.pair),
            partial(
                notify_of_long_waits, self.pair, process.statuses, self.notify, clock=process.clock
            ),
        ]
        if self.patroller is not None and self.patroller.options.enabled:
            self._duties.append(self.patroller.run)
        #: True once discovery has run, so that it is known which stores must be filled.
        self.prepared = False
        #: Why the start waits; ``""`` if it doesn't.
        self._awaited = ""
        self._is_running = False
        #: The duties at work.
        self._work: list[asyncio.Task[None]] = []

    def _build_pair(
        self,
        settings: Settings,
        virtual: SideClient,
        *,
        contention: ContentionRules,
        budget: ByteBudget | None,
    ) -> ClusterPair:
        process = self._process
        discoveries = {Side.HOST: process.host_discovery, Side.VIRTUAL: self.discovery}

        def has_status(side: Side, resource: Resource) -> bool:
            return discoveries[side].has_status(resource)

        def ordered(side: Side) -> bool:
            return discoveries[side].orders_versions

        def minor(side: Side) -> int:
            return discoveries[side].minor

        def paused_or_not() -> None:
            self.own_controllers.pause()

        return build_pair(
            settings,
            (),
            virtual=self._fenced(virtual),
            host=self._fenced(process.host),
            queue=process.queue,
            clock=process.clock,
            utcnow=process.utcnow,
            has_status=has_status,
            ordered=ordered,
            minor=minor,
            rules=contention,
            budget=budget,
            definitions_changed=self.discovery_loop.soon,
            paused_or_not=paused_or_not,
        )

    def _fenced(self, client: SideClient) -> SideClient:
        """Return a client that sends no write that this process may not make.

        Without such a time, there is nothing that it has to ask before each write.
        """
        process = self._process
        if not process.is_bounded:
            return client

        def until() -> float:
            return process.until(self.name)

        return client.over(Fenced(client.transport, until, process.clock))

    def _has_waiting(self) -> bool:
        """Return True while a syncer waits for its resources."""
        return bool(self._roster.waiting)

    def may_write(self) -> bool:
        """Return True while this process may write to or for the virtual cluster."""
        return self._process.clock() < self._process.until(self.name)

    def _is_worked_on(self) -> bool:
        """Return True while this process works on its queue, and leads the virtual cluster."""
        return self._process.is_working and self._process.leads(self.name)

    # -- from its start to its end -----------------------------------------------------------------

    async def prepare(self) -> None:
        """Discover both sides and initialise the syncers, before the caches start.

        Raises:
            ClusterError: Discovery failed.
        """
        self.discovery.minor = self.connection.version.minor
        await asyncio.gather(
            self._process.host_discovery.refresh(shared=SHARED_SECONDS),
            self.discovery.refresh(),
        )
        await self._lifecycle.update()
        self.prepared = True

    async def serve(self) -> None:
        """Keep the stores of the prepared cluster filled until this is cancelled.

        Do the duties while this process works on the queue.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                for each in (self.discovery_loop, self.connection, self.events):
                    tasks.create_task(each.run())
                self._lifecycle.start(tasks)
                self._is_running = True
                if self._is_worked_on():
                    self.begin()
        finally:
            self._is_running = False
            self._lifecycle.stop()
            await self.end()

    def begin(self) -> None:
        """Queue everything, and run the duties and own controllers, if the stores are filled."""
        if not self._is_running:
            return
        for controller in list(self.pair.controllers.values()):
            if controller.ready:
                self.pair.ask_all(controller)
        self._work = [self._begin_duty(duty) for duty in self._duties]
        if is_kept(self.pair):  # known only once the virtual cluster is prepared
            self._work.append(self._begin_duty(partial(keep, self.pair)))
        self.own_controllers.begin()

    def _begin_duty(self, duty: Duty) -> "asyncio.Task[None]":
        """Run a duty as a task whose failure is logged at once."""
        task = asyncio.create_task(duty())
        task.add_done_callback(self._duty_ended)
        return task

    def _duty_ended(self, task: "asyncio.Task[None]") -> None:
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            failure = "a duty failed; it restarts when this process next begins the work"
            log.error(failure, cluster=self.name, exc_info=error)

    def add_duty(self, duty: Duty) -> None:
        """Do a further duty from the next begin of the work on."""
        self._duties.append(duty)

    def remove_duty(self, duty: Duty) -> None:
        """Forget a duty. It is not begun again."""
        self._duties.remove(duty)

    def end(self) -> "asyncio.Future[list[BaseException | None]]":
        """End the duties and the own controllers.

        Await what this returns for their end. Their exceptions are in it, and have been logged.
        """
        duties = self._work
        self._work = []
        for task in duties:
            task.cancel()
        return asyncio.gather(*duties, *self.own_controllers.stop(), return_exceptions=True)

    def lead(self) -> None:
        """Work on it from now on: this process leads it."""
        self._process.queue.resume(self.name, STANDBY)
        if self._process.is_working:
            self.begin()

    async def stand_by(self) -> None:
        """Begin no work from now on. Return once the requests in work have ended."""
        self._process.queue.pause(self.name, STANDBY)
        await self.end()
        while self.is_in_work():  # noqa: ASYNC110 — the hot path sets no events
            await asyncio.sleep(LOOK)

    def is_in_work(self) -> bool:
        """Return True while workers are at its requests."""
        return any(request.cluster == self.name for request in self._process.queue.running())

    def leave(self) -> None:
        """Forget its syncers and empty its stores, when it no longer runs."""
        self.connection.end()
        for syncer in list(self.pair.controllers):
            leave(self.pair, syncer)
            self._left(syncer)
        for store in self.pair.informers:
            store.empty()

    # -- its state ---------------------------------------------------------------------------------

    def silent(self) -> str | None:
        """Return why one of its clusters is lost: no answer, or no accepted credentials.

        None if both clusters answer.
        """
        lost = self.lost_connection()
        return lost.trouble if lost else None

    def lost_connection(self) -> Connection | None:
        """Return the lost connection, the host's if both are lost; None if both clusters answer."""
        for connection in self.connections.values():
            if not connection.up:
                return connection
        return None

    def waiting(self) -> Mapping[str, str]:
        """Return why syncers wait for the resources that they need, by name."""
        return dict(self._roster.waiting)

    def wait_for(self, reason: str) -> bool:
        """Show why the start waits, in words that name nothing of the host; ``""`` if it doesn't.

        Return True if it waited until now.
        """
        has_waited = bool(self._awaited)
        self._awaited = reason
        return has_waited

    def unfilled(self) -> list[str]:
        """Return the stores that are neither filled nor given up, without names.

        Before there are any, return the reason why the start waits.
        """
        if not self.prepared:
            return [self._awaited or "discovery has not finished yet"]
        unfilled = []
        for reflector in list(self.pair.reflectors.values()):
            store = store_of(reflector)
            if not store.synced and not self.pair.given_up(store):
                unfilled.append(str(store))
        return unfilled

    # -- what happens to it ------------------------------------------------------------------------

    def filled(self, store: SideInformer | None = None) -> None:
        """Handle a store that was filled or given up: syncers that have all they need begin."""
        pair = self.pair
        self._lifecycle.filled()
        self.own_controllers.run()
        if store is not None and store.synced:
            pair.policies.breaker.listed(store)
        for controller in pair.controllers.values():
            if store in controller.missed:
                controller.missed.discard(store)
                pair.ask_all(controller)
        waiting = [each for each in pair.controllers.values() if not each.ready]
        complete = [each for each in waiting if pair.is_complete(each, since=store)]
        for controller in complete:
            pair.begin(controller)
        for controller in complete:
            log.info("ready", cluster=self.name, syncer=controller.syncer.name)
        if complete and all(controller.ready for controller in pair.controllers.values()):
            self._process.frozen_objects.freeze(self.name)

    def _lost(self) -> None:
        """Handle a virtual cluster that doesn't answer any more."""
        self._process.queue.pause(self.name)

    def _back(self) -> None:
        """Handle a virtual cluster that answers again."""
        self.hurry(Side.VIRTUAL)

    def hurry(self, side: Side) -> None:
        """Handle a cluster that answers again: its lists and watches continue.

        The queue continues, too, if both clusters answer.
        """
        for reflector in self.pair.reflectors.values():
            if store_of(reflector).side is side:
                reflector.hurry()
        if all(each.up for each in self.connections.values()):
            self._process.queue.resume(self.name)

    def notify(
        self,
        request: SyncRequest,
        reason: str,
        message: str,
        *,
        about: Obj | None = None,
        level: EventType = "Warning",
        once: bool = False,
    ) -> None:
        """Record an event for the owner of the virtual object, or of ``about``, with virtual names.

        Without that object, it is about the object for whose copy the host makes the host object.
        ``level`` and ``once`` are those of :meth:`.EventRecorder.record`.
        """
        pair = self.pair
        controller = pair.controllers[request.syncer]
        syncer = controller.syncer
        resource = syncer.resource
        virtual = about
        if virtual is None:
            virtual = pair.informers.get(Side.VIRTUAL, resource, request.key)
        if virtual is None and (maker := pair.references.maker(resource, request.key)):
            resource = maker[0]
            virtual = pair.informers.get(Side.VIRTUAL, *maker)
        if virtual is None:
            return
        host_key = controller.host_key(request.key)
        known = {str(host_key): str(request.key), host_key.name: request.key.name}
        names = pair.host_names(syncer.host_resource, known)
        text = names.virtual(message)
        self.events.record(resource, virtual, reason, text, level=level, once=once)

    async def _looked(self) -> None:
        """Handle a completed discovery: syncers join and leave."""
        if await self._lifecycle.update():
            self.filled()

    def _left(self, syncer: str) -> None:
        """Clean up after a syncer that has stopped."""
        self._process.workers.drop(self.name, syncer)
        self.pair.policies.breaker.drop(syncer)
        self.pair.policies.pause.drop(syncer)
        self.pair.recover(syncer)
        self.own_controllers.drop(syncer)

    def _live(self, syncer: str, host: SideClient | None = None) -> Live:
        """Return the live clients of a syncer, with that of the pair's host by default."""

        def ask(key: Key) -> None:
            self._process.queue.add(SyncRequest(self.name, syncer, key))

        settings = self.pair.settings
        report = partial(self._degraded, syncer)
        return Live(
            self.name,
            syncer,
            self.pair.virtual,
            host or self.pair.host,
            ask,
            settings=settings,
            tell=report,
        )

    def _degraded(self, syncer: str, sentence: str, detail: str) -> None:
        """Show a condition of a syncer, log it, and warn the tenant by an event; ``""`` ends it."""
        if not sentence:
            if self.pair.recover(syncer):
                log.info("syncer no longer degraded", cluster=self.name, syncer=syncer)
            return
        message = f"{sentence} ({detail})" if detail else sentence
        condition = Condition(message, sentence)
        if self.pair.degrade(syncer, condition):
            log.warning(condition.message, cluster=self.name, syncer=syncer)
        if self._is_worked_on():
            self.events.warning(
                NAMESPACES,
                _TENANTS_HOME,
                "SyncerDegraded",
                f"{syncer}: {sentence}",
            )
