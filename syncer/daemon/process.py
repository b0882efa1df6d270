"""A process: reflectors fill stores, stores notify the queue, workers take requests from it."""

import asyncio
import math
import random
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from syncer.api.config import Config
from syncer.api.context import Settings
from syncer.api.errors import SyncerError
from syncer.api.objects import Obj, Side, SyncRequest
from syncer.api.roles import Syncer
from syncer.byte_budget import ByteBudget
from syncer.cache.shared import SharedWatches
from syncer.clusters.client import SideClient
from syncer.clusters.discovery import Discovery
from syncer.clusters.shared_reads import SharedReads
from syncer.daemon.connections import Connections
from syncer.daemon.frozen_objects import FrozenObjects
from syncer.daemon.served_cluster import LOOK, STANDBY, ServedCluster
from syncer.daemon.unserved import Unserved
from syncer.engine.controllers.lifecycle import LateSyncers
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.controllers.request_status import RequestStatuses
from syncer.engine.controllers.worker import Workers
from syncer.engine.patrol.patroller import Patroller
from syncer.engine.reconcile.policies.contention import OFF, ContentionRules
from syncer.observe.events import EventType
from syncer.observe.metrics import Metrics
from syncer.workqueue.queue import Queue

#: Number of checks whether the requests in work on a removed virtual cluster have ended.
LEAVE_LOOKS = 500


def _always(cluster: str) -> bool:
    return True


def _for_ever(cluster: str) -> float:
    return math.inf


def _utcnow() -> datetime:
    return datetime.now(UTC)


class Process:
    """The daemon without configuration files, signals, leadership and HTTP.

    Create it in a running event loop.
    """

    def __init__(
        self,
        *,
        host: SideClient,
        metrics: Metrics,
        workers: int = 32,
        leads: Callable[[str], bool] = _always,
        until: Callable[[str], float] = _for_ever,
        clock: Callable[[], float] | None = None,
        utcnow: Callable[[], datetime] = _utcnow,
        rng: random.Random | None = None,
    ) -> None:
        """Create a process without virtual clusters; nothing is sent yet.

        Args:
            host: The client of the host.
            metrics: The metrics of the process.
            workers: The number of requests in work at the same time.
            leads: Returns True if work on a virtual cluster of this name may begin here; see
                :meth:`.ServedCluster.lead` and :meth:`.ServedCluster.stand_by`.
            until: Returns until when this process may write to or for a virtual cluster, in seconds
                of ``clock``; ``-inf``: not at all.
            clock: Returns seconds; the event loop's by default.
            utcnow: Returns the present time.
            rng: Varies delays.
        """
        self.host = host
        #: The same for what virtual clusters ask at their start.
        self.host_at_start = host.over(SharedReads(host.transport))
        self.metrics = metrics
        self.leads = leads
        self.until = until
        self.is_bounded = until is not _for_ever
        self.clock = clock or asyncio.get_running_loop().time
        self.utcnow = utcnow
        self.rng = rng or random.Random()  # noqa: S311 — jitter, not a secret
        self.queue = Queue(
            clock=self.clock,
            workers=workers,
            spread=self.rng.random,
            added=self._added,
        )
        self.statuses = RequestStatuses()
        self.pairs: dict[str, ClusterPair] = {}
        self.served: dict[str, ServedCluster] = {}
        self.host_discovery = Discovery(host.patient())
        self.host_watches = SharedWatches(host)
        self.connections = Connections(clock=self.clock, rng=self.rng)
        self.host_connection = self.connections.add(
            host,
            lost=self._host_lost,
            back=self._host_back,
        )
        self._count = workers
        self.workers = Workers(
            self.queue,
            self.pairs,
            self.statuses,
            self,
            metrics,
            clock=self.clock,
        )
        self.frozen_objects = FrozenObjects()
        self.unserved = Unserved()
        #: True while this process works on the queue.
        self.is_working = False
        #: The tasks of the virtual clusters that :meth:`running` serves.
        self._serving: dict[str, asyncio.Task[None]] = {}

    # -- its virtual clusters ----------------------------------------------------------------------

    def add(
        self,
        settings: Settings,
        enabled: Iterable[tuple[Syncer, Config]],
        *,
        virtual: SideClient,
        entries: Iterable[LateSyncers] = (),
        contention: ContentionRules = OFF,
        weight: float = 1.0,
        budget: ByteBudget | None = None,
        work: ByteBudget | None = None,
    ) -> ServedCluster:
        """Add a virtual cluster. It is served once it has been prepared and runs.

        ``entries`` become syncers once the clusters serve their resources. ``weight``, above 0, is
        for its share of the workers, ``budget`` for the memory of its stored objects, and ``work``
        for that of those in work, None without a limit.
        """
        name = settings.cluster
        self.queue.join(name, weight=weight, memory=work)
        if not self.leads(name):
            self.queue.pause(name, STANDBY)
        served = ServedCluster(
            self,
            settings,
            enabled,
            virtual=virtual,
            entries=entries,
            contention=contention,
            budget=budget,
        )
        self.pairs[name] = served.pair
        self.served[name] = served
        return served

    async def end(self, name: str) -> None:
        """End and remove a virtual cluster that :meth:`running` serves."""
        task = self._serving.pop(name)
        task.cancel()
        await asyncio.wait({task})
        await self.remove(name)

    async def remove(self, name: str) -> None:
        """Remove a virtual cluster that no longer runs, once the requests in work on it have ended.

        Its client isn't used afterwards.
        """
        served = self.served[name]
        self.queue.leave(name)
        for _ in range(LEAVE_LOOKS):
            if not served.is_in_work():
                break
            await asyncio.sleep(LOOK)
        del self.pairs[name]
        served.leave()
        del self.served[name]
        self.queue.leave(name)  # requests that have been added meanwhile
        self.metrics.drop(name)
        self.frozen_objects.thaw()
        await served.connection.ended()

    def patrollers(self) -> list[Patroller]:
        """Return the patrollers of all virtual clusters."""
        return [served.patroller for served in self.served.values() if served.patroller is not None]

    # -- running -----------------------------------------------------------------------------------

    async def close(self) -> None:
        """End the connections that don't run; the clients stay open."""
        await self.connections.close()

    async def prepare(self) -> None:
        """Prepare all virtual clusters, before the caches start.

        Raises:
            ClusterError: Discovery failed.
        """
        await asyncio.gather(*[served.prepare() for served in self.served.values()])

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the stores of all prepared virtual clusters filled while the block runs;
        :meth:`work` uses them.

        Others that are prepared later are served by :meth:`.ServedCluster.serve`. An error of the
        block comes out alone, and not in the group of the tasks.
        """
        failed: Exception | None = None
        async with asyncio.TaskGroup() as tasks:
            background = [
                tasks.create_task(self.connections.run()),
                tasks.create_task(self.host_connection.run()),
            ]
            for name, served in self.served.items():
                self._serving[name] = tasks.create_task(served.serve())
            await asyncio.sleep(0)  # they have begun
            try:
                yield
            except Exception as error:  # noqa: BLE001 — it is raised again below
                failed = error
            finally:
                for task in (*background, *self._serving.values()):
                    task.cancel()
        if failed is not None:
            raise failed

    async def work(self) -> None:
        """Process the queue, and run the syncers' own controllers, until the queue is closed or
        this is cancelled. Virtual clusters that another process leads wait for
        :meth:`.ServedCluster.lead`.
        """
        self.is_working = True
        for name, served in self.served.items():
            if self.leads(name):
                served.begin()
        try:
            await self.workers.run(self._count)
        finally:
            self.is_working = False
            await asyncio.gather(*[served.end() for served in self.served.values()])

    # -- notifications of workers and connections --------------------------------------------------

    def lost(self, pair: ClusterPair, side: Side, error: SyncerError) -> None:
        """Handle a request that got no answer from a side."""
        self.served[pair.name].connections[side].lost(error)

    def notify(
        self,
        pair: ClusterPair,
        request: SyncRequest,
        reason: str,
        message: str,
        *,
        about: Obj | None = None,
        level: EventType = "Warning",
        once: bool = False,
    ) -> None:
        """Record an event for the owner of the virtual object; see
        :meth:`.ServedCluster.notify`.
        """
        served = self.served[pair.name]
        served.notify(request, reason, message, about=about, level=level, once=once)

    def _added(self, cluster: str) -> None:
        self.metrics.queue(cluster).added()

    def _host_lost(self) -> None:
        for name in self.served:
            self.queue.pause(name)

    def _host_back(self) -> None:
        for served in self.served.values():
            served.hurry(Side.HOST)
