"""Syncers of one's own in the form of Cluster API's VirtualCluster: what each learns of clusters
that come and go.

Of each virtual cluster, all syncers first name the caches that they need (``add_cluster``); when
these are filled, they begin (``watch_cluster``); and they end when the cluster goes
(``remove_cluster``).
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from syncer.api.errors import NotConnected
from syncer.api.objects import Resource
from syncer.multicluster.callbacks import call, name_of
from syncer.multicluster.cluster import Cluster
from syncer.multicluster.clusters import Clusters
from syncer.multicluster.controller import Controller, ControllerOptions
from syncer.multicluster.errors import ClusterNotFound
from syncer.multicluster.requests import Request, Result
from syncer.multicluster.watch_options import EVERYTHING, WatchOptions
from syncer.observe.logs import get_logger

#: Default seconds between two patrols of a patroller.
PATROL_SECONDS = 60.0
#: A period is multiplied by a random factor of this range, so that patrollers don't begin together.
PATROL_JITTER = (0.9, 1.1)

log = get_logger(__name__)


class ClusterListener(Protocol):
    """Learns of clusters that come and go."""

    def add_cluster(self, cluster: Cluster) -> None:
        """Name the caches that are needed of a cluster: none is filled yet."""

    def watch_cluster(self, cluster: Cluster) -> None:
        """Begin with a cluster whose caches are filled."""

    def remove_cluster(self, cluster: Cluster) -> None:
        """End with a cluster, which may not have begun."""


@runtime_checkable
class ConnectionListener(Protocol):
    """Is notified of clusters of a cache that lose their connection, too.

    A :class:`ClusterListener` may be one.
    """

    def hold_cluster(self, cluster: Cluster) -> None:
        """Wait: a cluster is disconnected."""

    def resume_cluster(self, cluster: Cluster) -> None:
        """Go on: a cluster is connected again.

        Its caches have notified their subscribers of all that changed or was deleted meanwhile.
        """


class ControllerListener:
    """Engages a controller in clusters, with a watch of a resource.

    With ``attach_uid`` (the default) requests have the uid of the object.
    """

    def __init__(
        self,
        controller: Controller,
        resource: Resource,
        options: WatchOptions = EVERYTHING,
        *,
        attach_uid: bool = True,
    ) -> None:
        self._controller = controller
        self._resource = resource
        self._options = options
        self._attach_uid = attach_uid

    def add_cluster(self, cluster: Cluster) -> None:
        """Have the resource cached."""
        cluster.informer(self._resource)

    def watch_cluster(self, cluster: Cluster) -> None:
        """Engage the controller, which is shown all objects."""
        self._controller.watch_object(
            cluster,
            self._resource,
            self._options,
            attach_uid=self._attach_uid,
        )

    def remove_cluster(self, cluster: Cluster) -> None:
        """Disengage the controller."""
        self._controller.disengage(cluster.name)

    def hold_cluster(self, cluster: Cluster) -> None:
        """Let the requests of the cluster wait."""
        self._controller.hold(cluster.name)

    def resume_cluster(self, cluster: Cluster) -> None:
        """Go on with the requests of the cluster."""
        self._controller.engage(cluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class PatrolOptions:
    """The options of a patroller: its name in log lines, and the seconds between two patrols.

    A period that isn't positive is the default, 60. ``timeout`` is the longest time of a patrol, in
    seconds; one that takes longer is cancelled (the thread of one that isn't async goes on,
    though).
    """

    name: str = ""
    period: float = PATROL_SECONDS
    timeout: float | None = None


class PeriodicTask:
    """Calls a function at intervals, first when it is run; an exception of it is logged.

    One that isn't async runs in a thread.
    """

    def __init__(
        self,
        patrol: Callable[[], Awaitable[None] | None],
        options: PatrolOptions | None = None,
    ) -> None:
        """Create a patroller.

        Raises:
            TypeError: There is no function.
        """
        if not callable(patrol):
            raise TypeError(f"a patroller needs a function, not {patrol!r}")
        options = options or PatrolOptions()
        self.name = options.name or name_of(patrol)
        self.period = options.period if options.period > 0 else PATROL_SECONDS
        self._patrol = patrol
        self._timeout = options.timeout

    async def run(self) -> None:
        """Patrol until cancelled."""
        vary = random.Random().uniform  # noqa: S311 — jitter, not a secret
        while True:
            try:
                await call(self._patrol, what=f"patroller {self.name}", timeout=self._timeout)
            except Exception:
                log.exception("a patrol raised", what=self.name)
            await asyncio.sleep(self.period * vary(*PATROL_JITTER))


class MultiClusterSyncer:
    """A syncer between many virtual clusters and a host; each part that isn't overridden does
    nothing.

    :meth:`reconcile` gets the requests of virtual objects, :meth:`back_populate` those of host
    objects, and :meth:`patrol` compares everything. Objects are plain JSON, so a custom resource
    needs no more than its :class:`Resource`::

        class Foos(MultiClusterSyncer):
            resource = Resource("example.org/v1", "Foo", "foos")

            async def reconcile(self, request: Request) -> None:
                foo = await self.cluster(request.cluster).get(self.resource, request.key)
                ...
    """

    #: The synced resource.
    resource: Resource

    def __init__(
        self,
        host: Cluster,
        *,
        options: ControllerOptions | None = None,
        patrol_options: PatrolOptions | None = None,
        watch_options: WatchOptions = EVERYTHING,
    ) -> None:
        """Create a syncer, in a running event loop.

        Raises:
            TypeError: The class has no resource.
        """
        if not isinstance(getattr(self, "resource", None), Resource):
            instead = "name a Resource(api_version, kind, plural)"
            raise TypeError(f"{type(self).__name__} has no `resource`: {instead}")
        self.host = host
        self.downward = Controller(self.reconcile, options)
        upward = options or ControllerOptions()
        if not upward.name:
            upward = replace(upward, name=name_of(self.back_populate))
        self.upward = Controller(self._back_populate, upward)
        #: Requests of host objects whose virtual cluster isn't there, by its name.
        self._awaiting: dict[str, set[Request]] = {}
        self.downward.for_every_cluster(self._has_joined)
        self.patroller = PeriodicTask(self.patrol, patrol_options)
        self.listener: ClusterListener = ControllerListener(
            self.downward,
            self.resource,
            watch_options,
        )
        if self._overrides("back_populate"):
            self.upward.watch_object(host, self.resource)

    def cluster(self, name: str) -> Cluster:
        """Return a virtual cluster that is being watched.

        A :meth:`back_populate` may pass the error on: the request then waits until the cluster
        comes.

        Raises:
            ClusterNotFound: There is none.
        """
        return self.downward.cluster(name)

    async def reconcile(self, request: Request) -> Result | None:
        """Bring the copy of a virtual object in step."""

    async def back_populate(self, request: Request) -> Result | None:
        """Bring the virtual object of a host object in step."""

    async def patrol(self) -> None:
        """Find and repair differences."""

    async def _back_populate(self, request: Request) -> Result | None:
        try:
            what = f"{self.upward.name} of {request}"
            result: Result | None = await call(self.back_populate, request, what=what, timeout=None)
        except ClusterNotFound as error:
            if error.cluster in self.downward.clusters:
                raise
            self._awaiting.setdefault(error.cluster, set()).add(request)
            return None
        return result

    def _has_joined(self, cluster: Cluster) -> None:
        self.upward.enqueue(self._awaiting.pop(cluster.name, ()))

    async def start_downward(self) -> None:
        """Reconcile, when the host's cache is filled, until cancelled."""
        await self.host.informer(self.resource).filled()
        await self.downward.run()

    async def start_upward(self) -> None:
        """Populate back until cancelled, if the class does."""
        if self._overrides("back_populate"):
            await self.upward.run()

    async def start_patrol(self) -> None:
        """Patrol, when the host's cache is filled, until cancelled, if the class does."""
        if self._overrides("patrol"):
            await self.host.informer(self.resource).filled()
            await self.patroller.run()

    async def run(self) -> None:
        """Run all parts until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for part in (self.start_downward, self.start_upward, self.start_patrol):
                tasks.create_task(part())

    def _overrides(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(MultiClusterSyncer, method)


class ListenedClusters:
    """Runs clusters, and notifies listeners of them. No cluster waits for another one.

    With :meth:`follow`, they are those of a cache, which runs them.
    """

    def __init__(self, listeners: Iterable[ClusterListener]) -> None:
        self._listeners = list(listeners)
        self._clusters: dict[str, tuple[Cluster, asyncio.Task[None]]] = {}
        #: The clusters that run, or haven't ended yet.
        self._running: set[asyncio.Task[None]] = set()

    def add(self, cluster: Cluster) -> None:
        """Add a cluster, and run it; nothing happens if it is there already. It replaces another
        one of its name.
        """
        known = self._clusters.get(cluster.name)
        if known is not None:
            if known[0].is_alias_of(cluster):
                return
            self.remove(cluster.name)
        for listener in self._listeners:
            listener.add_cluster(cluster)
        running = asyncio.create_task(self._run(cluster))
        self._clusters[cluster.name] = cluster, running
        self._running.add(running)
        running.add_done_callback(lambda task: self._has_ended(cluster, task))

    def remove(self, name: str) -> None:
        """Remove a cluster, and stop it; nothing happens if there is none."""
        cluster, running = self._clusters.pop(name, (None, None))
        if cluster is not None and running is not None:
            running.cancel()
            for listener in self._listeners:
                try:
                    listener.remove_cluster(cluster)
                except Exception:  # the next one has to end, too
                    log.exception("a listener raised", cluster=name, what=type(listener).__name__)

    async def follow(self, cache: Clusters) -> None:
        """Add each cluster of a cache once it is connected, and remove it once it has left the
        cache, until cancelled.

        Meanwhile a cluster that is disconnected is held, and resumed, by those listeners that are
        :class:`ConnectionListener`.
        """
        source = cache.source("listeners")
        try:
            for name in list(cache):
                self._look(cache, name)
            async for event in source:
                self._look(cache, event.cluster)
        finally:
            cache.leave(source)

    def _look(self, cache: Clusters, name: str) -> None:
        """Handle the state of a cluster of a cache."""
        if name not in cache:
            self.remove(name)
            return
        known = self._clusters.get(name)
        try:
            cluster = cache.get_client(name)
        except NotConnected:
            if known is not None:
                self._notify_connection(known[0], is_on_hold=True)
            return
        try:
            self.add(cluster)
        except Exception:  # the other clusters aren't to blame
            log.exception("a listener raised, the cluster isn't added", cluster=name)
            return
        if known is not None and known[0].is_alias_of(cluster):
            self._notify_connection(cluster, is_on_hold=False)

    def _notify_connection(self, cluster: Cluster, *, is_on_hold: bool) -> None:
        for listener in self._listeners:
            if isinstance(listener, ConnectionListener):
                try:
                    if is_on_hold:
                        listener.hold_cluster(cluster)
                    else:
                        listener.resume_cluster(cluster)
                except Exception:  # nor here
                    log.exception(
                        "a listener raised",
                        cluster=cluster.name,
                        what=type(listener).__name__,
                    )

    async def close(self) -> None:
        """Remove all clusters, and wait for their end."""
        for name in list(self._clusters):
            self.remove(name)
        if self._running:
            await asyncio.wait(self._running)

    def _has_ended(self, cluster: Cluster, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("a cluster has ended by itself", cluster=cluster.name, exc_info=error)

    async def _run(self, cluster: Cluster) -> None:
        async with asyncio.TaskGroup() as tasks:
            if not cluster.is_kept:
                tasks.create_task(cluster.run())
            for informer in cluster.informers():
                await informer.filled()
            for listener in self._listeners:
                try:
                    listener.watch_cluster(cluster)
                except Exception:
                    log.exception(
                        "a listener raised",
                        cluster=cluster.name,
                        what=type(listener).__name__,
                    )
