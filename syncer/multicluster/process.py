"""A process with controllers and the clusters that they work in."""

import asyncio
import contextlib
import signal
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry

from syncer.leaderelection.lease import Lease
from syncer.multicluster import watchdog
from syncer.multicluster.arguments import must_be
from syncer.multicluster.cluster import Cluster
from syncer.multicluster.cluster_cache import ClusterCache
from syncer.multicluster.controller import Controller
from syncer.multicluster.errors import NotRunning
from syncer.multicluster.pages import ControllerCollector, checks_of, serve_pages
from syncer.observe.health import Heartbeat
from syncer.observe.logs import get_logger

#: Seconds that reconciles have to end, as in controller-runtime (``GracefulShutdownTimeout``).
GRACE_SECONDS = 30.0

log = get_logger(__name__)


class Manager:
    """Runs controllers and their clusters, each cache once.

    Nothing waits for all clusters: a controller begins on a cluster when its own caches there are
    filled, and an unreachable cluster is retried while the others are worked on. With a Lease,
    controllers work in one process at a time, and the caches of the others are kept filled::

        manager = Manager()
        manager.add(controller)
        manager.engage(Cluster("eu", ConnectionSettings(context="eu")))
        manager.add(home)  # the cluster of a provider, in which no controller is engaged
        manager.add(ClusterCache([provider], options))  # more clusters, which come and go
        await manager.run_until_signalled()
    """

    def __init__(
        self,
        *,
        lease: Lease | None = None,
        foreign: Iterable[Cluster] = (),
        metrics_address: str = "",
        health_address: str = "",
        grace_period: float = GRACE_SECONDS,
    ) -> None:
        """Create a manager.

        Args:
            lease: The controllers work while this is held.
            foreign: Clusters, in which controllers may have watches too, that are run by another
                owner.
            metrics_address: Where ``/metrics`` is served, such as ``:8080``; ``""`` for nowhere.
            health_address: Where ``/livez``, ``/readyz`` and ``/healthz`` are served, on a thread
                of their own.
            grace_period: Seconds that reconciles in work have to end after SIGTERM or SIGINT; then
                they are cancelled.
        """
        self._grace_period = grace_period
        self._lease = lease
        self._foreign = tuple(foreign)
        self._metrics_address = metrics_address
        self._health_address = health_address
        #: What ``/metrics`` shows; register collectors of your own.
        self.registry = CollectorRegistry()
        self.registry.register(ControllerCollector(lambda: self._controllers))
        #: The ports of the pages, by ``metrics_address`` and ``health_address``, while it runs.
        self.ports: Mapping[str, int] = {}
        self._controllers: list[Controller] = []
        self._caches: list[ClusterCache] = []
        self._engaged: dict[str, Cluster] = {}
        #: Clusters that are run here, and engaged by no controller for that.
        self._added: list[Cluster] = []
        #: The clusters that are run here, without their aliases.
        self._running: dict[Cluster, asyncio.Task[None]] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._work: asyncio.TaskGroup | None = None

    def add(self, what: Controller | ClusterCache | Cluster) -> None:
        """Add a controller, or a cluster or a cache of clusters that is run here, at any time.

        All controllers are engaged in the clusters of :meth:`engage` and in those of the caches,
        but not in a cluster that is only added, such as the management cluster of a provider.
        Nothing happens if the cluster or the cache was added before.

        Raises:
            TypeError: It is none of them.
            ClusterNameTaken: The controller has a cluster of a cache by the name of one of the
                manager's; it isn't added.
        """
        must_be(what, Controller, ClusterCache, Cluster, what="what is added to a manager")
        if isinstance(what, Controller):
            self._add_controller(what)
        elif isinstance(what, ClusterCache):
            self._add_cache(what)
        elif what not in self._added:
            self._added.append(what)
            self._run_clusters()

    def _add_cache(self, cache: ClusterCache) -> None:
        if cache in self._caches:
            return
        self._caches.append(cache)
        for controller in self._controllers:
            cache.add(controller)
        if self._tasks is not None:
            self._tasks.create_task(cache.run())

    def _add_controller(self, controller: Controller) -> None:
        before = set(controller.clusters)
        try:
            for cluster in self._engaged.values():
                controller.engage(cluster)
        except BaseException:
            for name in controller.clusters.keys() - before:
                controller.disengage(name)
            raise
        self._controllers.append(controller)
        for cache in self._caches:
            cache.add(controller)
        self._run_clusters()
        if self._work is not None:
            self._work.create_task(controller.run())

    def engage(self, cluster: Cluster) -> None:
        """Add a cluster to all controllers, at any time; it replaces another one of this name.

        Raises:
            TypeError: It is no cluster.
            ClusterNameTaken: A controller has a cluster of a
                :class:`~syncer.multicluster.ClusterCache` by this name; no controller gets this
                one.
        """
        must_be(cluster, Cluster, what="what is engaged")
        known = self._engaged.get(cluster.name)
        if known is not None and not known.is_alias_of(cluster):
            self.disengage(cluster.name)
        self._engaged[cluster.name] = cluster
        try:
            for controller in self._controllers:
                controller.engage(cluster)
        except BaseException:
            self.disengage(cluster.name)
            raise
        self._run_clusters()

    def disengage(self, name: str) -> None:
        """Remove an engaged cluster from all controllers, and stop it, at any time.

        A cluster that was also added, or is engaged under another name, goes on, and so does one
        that a :class:`~syncer.multicluster.ClusterCache` keeps. A name that isn't known does
        nothing. The client is closed if the cluster made it, from
        :class:`~syncer.multicluster.ConnectionSettings`.
        """
        self._engaged.pop(name, None)
        for controller in self._controllers:
            known = controller.clusters.get(name)
            if known is not None and not known.is_kept:
                controller.disengage(name)
        wanted = list(self._clusters())
        for cluster in list(self._running):
            if not any(cluster.is_alias_of(other) for other in wanted):
                self._running.pop(cluster).cancel()

    async def run(self) -> None:
        """Run until cancelled, or until a controller or a cluster raises: its error is raised, and
        the others end.

        A cluster that is run by another owner already, or that a
        :class:`~syncer.multicluster.ClusterCache` keeps, is left to it.

        Raises:
            NotRunning: The manager, or one of its controllers, runs already.
            ConfigError: The address of a page is malformed, or can't be listened on.
        """
        if self._tasks is not None:
            raise NotRunning("the manager runs already")
        with contextlib.ExitStack() as stack:
            stack.enter_context(watchdog.WATCHDOG.running())
            heartbeat = Heartbeat()
            checks = checks_of(
                lambda: self._controllers,
                lambda: self._caches,
                self._lease,
                heartbeat,
            )
            addresses = {"metrics": self._metrics_address, "health": self._health_address}
            self.ports = serve_pages(stack, **addresses, registry=self.registry, checks=checks)
            stack.callback(self._forget_ports)
            await self._run(heartbeat)

    async def run_until_signalled(self) -> None:
        """Run as :meth:`run`, until SIGTERM or SIGINT, which then end nothing else.

        No reconcile begins after the signal, and those in work have the grace period to end, with
        the Lease held.

        Raises:
            NotRunning: As :meth:`run`.
            ConfigError: As :meth:`run`.
        """
        if self._engaged and not self._controllers:
            log.warning("a manager without controllers does nothing in its clusters: add some")
        loop = asyncio.get_running_loop()
        ending = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ending.set)
        running = asyncio.create_task(self.run())
        signalled = asyncio.create_task(ending.wait())
        try:
            await asyncio.wait({running, signalled}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                await self._drain()
            if running.done():
                running.result()
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
            for task in (running, signalled):
                task.cancel()
            await asyncio.wait({running, signalled})

    async def _drain(self) -> None:
        """Let the reconciles in work end, within the grace period.

        With a grace period of 0 none is waited for.
        """
        if not self._controllers or not self._grace_period:
            return
        draining = [asyncio.create_task(controller.drain()) for controller in self._controllers]
        _, late = await asyncio.wait(draining, timeout=self._grace_period)
        if late:
            log.warning(
                "reconciles did not end within the grace period and are cancelled",
                seconds=self._grace_period,
            )
        for task in late:
            task.cancel()

    def _forget_ports(self) -> None:
        self.ports = {}

    async def _run(self, heartbeat: Heartbeat) -> None:
        try:
            async with asyncio.TaskGroup() as self._tasks:
                self._tasks.create_task(heartbeat.keep())
                self._run_clusters()
                for cache in self._caches:
                    self._tasks.create_task(cache.run())
                if self._lease is None:
                    await self._run_controllers()
                else:
                    await self._lease.lead(self._run_controllers)
        except ExceptionGroup as group:
            first, *others = _errors_in(group)
            for other in others:
                log.error("a manager has ended with further errors", exc_info=other)
            raise first from None
        finally:
            self._tasks = None
            self._running.clear()

    async def _run_controllers(self) -> None:
        try:
            async with asyncio.TaskGroup() as self._work:
                for controller in self._controllers:
                    self._work.create_task(controller.run())
                await asyncio.Event().wait()
        finally:
            self._work = None

    def _clusters(self) -> Iterator[Cluster]:
        yield from self._engaged.values()
        yield from self._added
        for controller in self._controllers:
            yield from controller.clusters.values()

    def _run_clusters(self) -> None:
        """Run the clusters that aren't."""
        if self._tasks is None:
            return
        for cluster in self._clusters():
            is_known = any(cluster.is_alias_of(other) for other in (*self._running, *self._foreign))
            if not (is_known or cluster.is_kept or cluster.is_running):
                self._running[cluster] = self._tasks.create_task(_run_and_close(cluster))


async def _run_and_close(cluster: Cluster) -> None:
    """Run a cluster, and close the client that it has made for itself."""
    try:
        await cluster.run()
    finally:
        if cluster.owns_client:
            await cluster.close()


def _errors_in(group: ExceptionGroup[Exception]) -> Iterator[Exception]:
    for error in group.exceptions:
        if isinstance(error, ExceptionGroup):
            yield from _errors_in(error)
        else:
            yield error
