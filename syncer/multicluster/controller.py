"""A controller: watches resources in clusters, and reconciles the requests that they lead to."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any

from syncer.api import objects
from syncer.api.errors import Conflict, NotConnected, SyncerError, TooMany, Unreachable
from syncer.api.objects import Key, Obj, Resource, key_of, uid_of
from syncer.multicluster import watchdog
from syncer.multicluster.arguments import must_be
from syncer.multicluster.callbacks import call, name_of
from syncer.multicluster.cluster import Cluster
from syncer.multicluster.cluster_events import ClusterSource
from syncer.multicluster.cluster_informer import ClusterInformer
from syncer.multicluster.errors import ClusterNameTaken, ClusterNotFound, NotRunning
from syncer.multicluster.references import REFERENCE_ANNOTATION, owner_of
from syncer.multicluster.requests import Reconcile, Request, Result
from syncer.multicluster.watch_options import EVERYTHING, WatchOptions
from syncer.observe.logs import get_logger
from syncer.token_bucket import TokenBucket
from syncer.workqueue.queue import LAST_RETRY, Queue

#: Seconds in which the log names an API server once that doesn't answer.
SILENCE_SECONDS = 60.0
#: Makes watches of different controllers distinct; names of controllers needn't be.
_numbers = itertools.count(1)
#: Adds watches and indexes for a cluster.
Setup = Callable[[Cluster], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions:
    """The options of a controller.

    ``name`` is for log lines; by default that of the reconcile function. ``workers`` is the most
    requests that are reconciled at a time, and ``cluster_workers`` the most of a cluster (0: no
    limit), so that a slow cluster leaves workers to the others. ``rate`` is the most reconciles a
    second, of all clusters (0: no limit), and as many at once after a pause. ``weights`` gives a
    cluster another weight than 1, above 0: busy clusters share the workers' time in proportion, and
    none holds all of them. ``max_retry_delay`` is the longest delay of a retry, in seconds: of a
    reconcile, and of a map function, predicate or setup that has raised. ``timeout`` is the longest
    time of a reconcile, in seconds; one that takes longer is cancelled, and retried (the thread of
    one that isn't async goes on, though). ``annotation`` has the owner of an object in another
    cluster. ``queue`` and ``log`` replace the controller's own.

    A reconcile that raises :class:`~syncer.multicluster.NotConnected` of the very cluster of its
    request isn't retried: the next change of the object is awaited, or the cluster's return to its
    :class:`~syncer.multicluster.ClusterCache`. :class:`~syncer.multicluster.ClusterNotFound` is one
    of these errors. Without ``ignore_lost_clusters`` they are errors like others.
    """

    name: str = ""
    workers: int = 256
    cluster_workers: int = 4
    rate: float = 0.0
    weights: Mapping[str, float] = field(default_factory=dict)
    max_retry_delay: float = LAST_RETRY
    timeout: float | None = None
    annotation: str = REFERENCE_ANNOTATION
    ignore_lost_clusters: bool = True
    queue: Queue | None = None
    log: Any = None


@dataclass(slots=True)
class _Engaged:
    """A cluster of a controller, with its watches."""

    cluster: Cluster
    #: The informers of its watches, each with the owner of the map function there.
    watches: list[tuple[ClusterInformer, str]] = field(default_factory=list)
    #: The names of clusters in requests that its watches lead to by themselves.
    names: set[str] = field(default_factory=set)
    is_ready: bool = False
    #: True while its requests wait for it to be engaged again.
    is_on_hold: bool = False
    #: How often its requests had to wait so.
    holds: int = 0
    settling: "asyncio.Task[None] | None" = None
    #: The setups that have raised there, and are called again.
    raised_setups: list["Setup"] = field(default_factory=list)
    #: How often in a row one has raised.
    setup_failures: int = 0
    #: Set while none has raised.
    is_set_up: asyncio.Event = field(default_factory=asyncio.Event)
    setting_up: "asyncio.Task[None] | None" = None


class Controller:
    """Reconciles objects of many clusters by a single function.

    Equal requests that come while another one waits are reconciled once, and never two equal ones
    at a time. A request whose reconcile raises is retried after a delay that grows with each
    failure; it delays no request that has not failed, and those that have share a budget of retries
    for each cluster. Clusters come and go at any time: requests of a cluster that has gone are
    dropped, and its running reconciles cancelled. Work on a cluster begins when all caches of the
    controller's watches there are filled, whatever other clusters do; workers are shared fairly
    between clusters, by time. A map function, predicate or setup that raises is called again for
    the same object or cluster, too, and everything else goes on::

        async def reconcile(request: Request) -> None:
            print(request)

        controller = Controller(reconcile)
        controller.for_every_cluster(lambda cluster: controller.watch_object(cluster, PODS))
        controller.engage(cluster)
    """

    def __init__(self, reconcile: Reconcile, options: ControllerOptions | None = None) -> None:
        """Create a controller, in a running event loop.

        Raises:
            TypeError: There is no reconcile function.
        """
        if not callable(reconcile):
            raise TypeError(
                f"a controller needs an async function that takes a Request, not {reconcile!r}",
            )
        self.options = options or ControllerOptions()
        self.name = self.options.name or name_of(reconcile)
        self._reconcile = reconcile
        self._clock = asyncio.get_running_loop().time
        self._queue = self.options.queue or Queue(
            clock=self._clock, weights=self.options.weights, workers=self.options.workers
        )
        self._log = self.options.log or get_logger(__name__)
        self._setups: list[Setup] = []
        self._sources: list[ClusterSource] = []
        self._engaged: dict[str, _Engaged] = {}
        #: How many engaged clusters lead to requests of a cluster's name by themselves.
        self._names: Counter[str] = Counter()
        #: The requests being reconciled.
        self._in_flight: dict[objects.SyncRequest, asyncio.Task[None]] = {}
        #: The reconciles that have ended, by the cluster of their request and their result.
        self._results: Counter[tuple[str, str]] = Counter()
        self._room = asyncio.Semaphore(self.options.workers)
        rate = self.options.rate
        self._turns = TokenBucket(rate=rate, burst=rate, now=self._clock()) if rate else None
        #: When an API server was last named that doesn't answer, and how often it didn't since, by
        #: cluster.
        self._silent: dict[str, tuple[float, int]] = {}
        #: True once the log says that it watches nothing.
        self._is_named = False
        self._tasks: asyncio.TaskGroup | None = None
        #: Takes requests from the queue, while it runs and isn't draining.
        self._taking: asyncio.Task[None] | None = None

    # -- clusters ----------------------------------------------------------------------------------

    def for_every_cluster(self, setup: Setup) -> None:
        """Call a function, which adds watches and indexes, for every cluster that is engaged or
        will be.

        If it raises for a cluster, its watches there are removed, and it is called again after a
        delay that grows with each failure. The cluster isn't ready until it has succeeded; other
        clusters and controllers go on.

        Raises:
            TypeError: It is no function.
        """
        if not callable(setup):
            why = f"what is called for every cluster is no function: {setup!r}"
            raise TypeError(f"controller {self.name}: {why}")
        self._setups.append(setup)
        for engaged in list(self._engaged.values()):
            self._set_up(engaged, setup)

    def engage(self, cluster: Cluster) -> None:
        """Add a cluster, at any time; its owner runs it.

        It replaces another cluster of this name. If it is engaged already, only a :meth:`hold`
        ends.

        Raises:
            TypeError: It is no cluster.
            ClusterNameTaken: One of the two is of a :class:`~syncer.multicluster.ClusterCache`, and
                the other isn't.
        """
        must_be(cluster, Cluster, what=f"controller {self.name}: what is engaged")
        known = self._engaged.get(cluster.name)
        if known is not None:
            if known.cluster.is_kept != cluster.is_kept:
                message = (
                    f"controller {self.name} has a cluster {cluster.name!r} already, which another "
                    "one would replace: a Manager's cluster and one of a ClusterCache need "
                    "different names"
                )
                raise ClusterNameTaken(cluster.name, message)
            if known.cluster.is_alias_of(cluster):
                if known.is_on_hold:
                    known.is_on_hold = False
                    self._settle(known)
                return
            self.disengage(cluster.name)
        engaged = _Engaged(cluster)
        self._engaged[cluster.name] = engaged
        engaged.is_set_up.set()
        self._serve(engaged, cluster.name)
        for setup in self._setups:
            self._set_up(engaged, setup)

    def _set_up(self, engaged: _Engaged, setup: Setup) -> None:
        """Call a setup for a cluster; if it raises, undo its watches, and call it again later."""
        cluster = engaged.cluster
        before = {name: len(each.watches) for name, each in self._engaged.items()}
        try:
            with watchdog.WATCHDOG.step(f"controller {self.name}: setup of {cluster}"):
                setup(cluster)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001
            # A setup isn't async, so a cancellation is not ours.
            for name, each in self._engaged.items():
                for informer, owner in each.watches[before.get(name, 0) :]:
                    informer.forget(owner)
                del each.watches[before.get(name, 0) :]
            engaged.raised_setups.append(setup)
            engaged.is_set_up.clear()
            self._settle(engaged)
            about = {"cluster": cluster.name, "controller": self.name, "setup": name_of(setup)}
            self._log.error("a setup of a cluster raised, will try again", **about, exc_info=error)

    async def _set_up_again(self, engaged: _Engaged) -> None:
        """Call the setups that have raised for a cluster again, until none does."""
        while engaged.raised_setups:
            delay = self._queue.backoff(
                engaged.setup_failures,
                at_most=self.options.max_retry_delay,
            )
            await asyncio.sleep(delay)
            engaged.setup_failures += 1
            again = engaged.raised_setups
            engaged.raised_setups = []
            for setup in again:
                self._set_up(engaged, setup)
        engaged.setup_failures = 0
        engaged.is_set_up.set()
        self._settle(engaged)

    def hold(self, name: str) -> None:
        """Let the requests of a cluster wait until it is engaged again, such as while it has no
        connection.

        Its watches stay. Nothing happens if there is none.
        """
        engaged = self._engaged.get(name)
        if engaged is not None:
            engaged.holds += not engaged.is_on_hold
            engaged.is_on_hold = True
            self._settle(engaged)

    def disengage(self, name: str) -> None:
        """Remove a cluster, its watches and its requests, at any time; nothing happens if there is
        none.
        """
        engaged = self._engaged.pop(name, None)
        if engaged is None:
            return
        for task in (engaged.settling, engaged.setting_up):
            if task is not None:
                task.cancel()
        for informer, owner in engaged.watches:
            informer.forget(owner)
        for served in engaged.names:
            self._names[served] -= 1
            if not self._names[served]:
                self._leave(served)
        for other in self._engaged.values():
            if engaged.names & other.names:
                self._settle(other)  # its requests waited for this cluster's caches

    def _leave(self, name: str) -> None:
        """Drop the requests with the name of a cluster."""
        del self._names[name]
        self._silent.pop(name, None)
        for counted in [each for each in self._results if each[0] == name]:
            del self._results[counted]
        self._queue.leave(name)
        for request, task in self._in_flight.items():
            if request.cluster == name:
                task.cancel()

    # -- numbers; they may be read on any thread
    # ---------------------------------------------------------

    def results(self) -> Mapping[tuple[str, str], int]:
        """Return the number of reconciles that have ended, by the cluster of their request and
        their result: ``success``, ``error``, ``requeue`` or ``requeue_after``. Those of a cluster
        go with it.
        """
        return dict(list(self._results.items()))

    def active(self) -> Mapping[tuple[str], int]:
        """Return the number of reconciles in work, by the cluster of their request."""
        busy = Counter(request.cluster for request in list(self._in_flight))
        return {(name,): busy[name] for name in list(self._names)}

    def depths(self) -> Mapping[tuple[str], int]:
        """Return the number of requests that wait for a worker, by cluster."""
        depths = self._queue.depths()
        return {(name,): depths.get(name, 0) for name in list(self._names)}

    @property
    def clusters(self) -> Mapping[str, Cluster]:
        """The engaged clusters, by name."""
        return {name: engaged.cluster for name, engaged in self._engaged.items()}

    def cluster(self, name: str) -> Cluster:
        """Return an engaged cluster.

        Raises:
            ClusterNotFound: There is none of this name; a reconcile may pass that on.
        """
        engaged = self._engaged.get(name)
        if engaged is None:
            raise ClusterNotFound(name, f"there is no cluster {name!r} in controller {self.name}")
        return engaged.cluster

    def is_ready(self, name: str) -> bool:
        """Return True if a cluster is engaged, set up and not held, and all caches of its watches
        are filled.
        """
        engaged = self._engaged.get(name)
        return engaged is not None and engaged.is_ready

    def is_set_up(self, name: str) -> bool:
        """Return True if a cluster is engaged, and no function of :meth:`for_every_cluster` has to
        be called again.
        """
        engaged = self._engaged.get(name)
        return engaged is not None and engaged.is_set_up.is_set()

    async def filled(self, name: str) -> None:
        """Wait until a cluster is set up and all caches of the watches there are filled, however
        long that takes.

        Raises:
            KeyError: The cluster isn't engaged.
        """
        engaged = self._engaged[name]
        await engaged.is_set_up.wait()
        for informer, _ in list(engaged.watches):
            await informer.filled()

    # -- watches -----------------------------------------------------------------------------------

    def watch_object(
        self,
        cluster: Cluster,
        resource: Resource | ClusterInformer,
        options: WatchOptions = EVERYTHING,
        *,
        as_cluster: str = "",
        attach_uid: bool = False,
    ) -> None:
        """Request each object that appears, changes or goes; the cluster is engaged if it isn't.

        ``as_cluster`` is the name of the cluster in the requests, instead of the cluster's own.
        With ``attach_uid`` requests have the object's uid, so that an object that is deleted and
        its successor of the same name are two requests.

        Raises:
            ValueError: Another cluster of this name is engaged.
            TypeError: It is no cluster, or no resource: :meth:`.Cluster.resource` finds one by its
                name.
        """
        engaged = self._engaged_as(cluster)
        name = as_cluster or cluster.name
        self._serve(engaged, name)

        def itself(obj: Obj) -> Iterable[Request]:
            uid = ""
            if attach_uid:
                uid = uid_of(obj)
            return [Request(name, *key_of(obj), uid)]

        self._watch(cluster, resource, itself, options)

    def watch_owner(
        self,
        cluster: Cluster,
        resource: Resource | ClusterInformer,
        owners: Resource,
        options: WatchOptions = EVERYTHING,
    ) -> None:
        """Request the controlling owner of each object that appears, changes or goes, if it is of
        the resource ``owners``.

        The owner is in the same cluster, by ``ownerReferences``, or else in another engaged one, by
        the annotation of the options.

        Raises:
            ValueError: Another cluster of this name is engaged.
            TypeError: It is no cluster, or no resource: :meth:`.Cluster.resource` finds one by its
                name.
        """

        def owner(obj: Obj) -> Iterable[Request]:
            found = owner_of(obj, owners, cluster=cluster.name, annotation=self.options.annotation)
            if found is None:
                return []
            return [found]

        self._watch(cluster, resource, owner, options)

    def watch_map_func(
        self,
        cluster: Cluster,
        resource: Resource | ClusterInformer,
        requests: Callable[[Obj], Iterable[Request]],
        options: WatchOptions = EVERYTHING,
    ) -> None:
        """Request what a function returns for each object that appears, changes or goes.

        After a change these are the requests of the object as it is, and as it was. Requests of a
        cluster that isn't engaged wait until it is, while there are objects that lead to them.

        Raises:
            ValueError: Another cluster of this name is engaged.
            TypeError: It is no cluster, or no resource: :meth:`.Cluster.resource` finds one by its
                name.
        """
        self._watch(cluster, resource, requests, options)

    def watch_source(self, source: ClusterSource) -> None:
        """Request what a source maps the clusters to that connect, disconnect, or fail to answer.

        Requests of clusters that aren't engaged are dropped.

        Raises:
            ValueError: The source has no function that maps clusters.
        """
        if not source.is_mapped:
            raise ValueError(f"source {source.name} maps clusters to nothing: give it a function")
        self._sources.append(source)
        if self._tasks is not None:
            self._tasks.create_task(self._follow(source))

    async def _follow(self, source: ClusterSource) -> None:
        failures = Counter[str]()
        async for event in source:
            try:
                self.enqueue(list(source.requests_of(event)))
                del failures[event.cluster]
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 — as for a setup
                seconds = self._queue.backoff(
                    failures[event.cluster],
                    at_most=self.options.max_retry_delay,
                )
                failures[event.cluster] += 1
                asyncio.get_running_loop().call_later(seconds, source.repeat, event)
                about = {"cluster": event.cluster, "controller": self.name, "source": source.name}
                text = "a source's function raised, will ask again about the cluster"
                self._log.error(text, **about, retry_in=round(seconds, 3), exc_info=error)

    def _engaged_as(self, cluster: Cluster) -> _Engaged:
        """Return the state of a cluster, which is engaged if its name isn't.

        Raises:
            ValueError: Another cluster of this name is engaged.
            TypeError: It is no cluster.
        """
        must_be(cluster, Cluster, what=f"controller {self.name}: where a resource is watched")
        known = self._engaged.get(cluster.name)
        if known is not None and not known.cluster.is_alias_of(cluster):
            raise ValueError(f"another cluster is engaged as {cluster.name!r}; disengage it first")
        self.engage(cluster)
        return self._engaged[cluster.name]

    def _watch(
        self,
        cluster: Cluster,
        resource: Resource | ClusterInformer,
        requests: Callable[[Obj], Iterable[Request]],
        options: WatchOptions,
    ) -> None:
        must_be(
            resource,
            Resource,
            ClusterInformer,
            what=f"controller {self.name}: what is watched",
        )
        engaged = self._engaged_as(cluster)
        if not isinstance(resource, ClusterInformer):
            resource = cluster.informer(resource)
        informer = resource
        owner = f"{self.name} {next(_numbers)}"
        engaged.watches.append((informer, owner))
        self._settle(engaged)
        what = f"controller {self.name}: the map function of {informer}"

        def mapped(obj: Obj) -> Iterable[Request]:
            with watchdog.WATCHDOG.step(what):
                try:
                    if not options.selects(obj):
                        return ()
                    return list(requests(obj))
                except asyncio.CancelledError as error:  # it would end the watch
                    raise RuntimeError(f"{what} asked for a result that was cancelled") from error

        def again(key: Key, error: Exception) -> None:
            seconds = self._queue.retry(
                objects.SyncRequest(cluster.name, owner, key),
                at_most=self.options.max_retry_delay,
            )
            about = {
                "cluster": cluster.name,
                "controller": self.name,
                "kind": informer.resource.kind,
                "key": key,
            }
            text = "a map function or predicate raised, will ask again about the object"
            self._log.error(text, **about, retry_in=round(seconds, 3), exc_info=error)

        informer.add_map_function(mapped, "change", self.enqueue, owner=owner, on_error=again)

    def _map_again(self, item: objects.SyncRequest) -> None:
        """Have a watch map an object for which its function or predicate has raised."""
        engaged = self._engaged.get(item.cluster)
        if engaged is not None:
            for informer, owner in engaged.watches:
                if owner == item.syncer and not informer.map_again(item.key, owner=owner):
                    return  # it has raised again, and is asked for again
        self._queue.forget(item)

    def _serve(self, engaged: _Engaged, name: str) -> None:
        """Take requests with the name of a cluster, which wait until the caches of the engaged one
        are filled.
        """
        if name in engaged.names:
            return
        engaged.names.add(name)
        self._names[name] += 1
        if self._names[name] == 1 and self.options.cluster_workers:
            self._queue.limit(name, self.name, concurrency=self.options.cluster_workers)
        self._settle(engaged)
        if self._names[name] == 1:
            self.enqueue(self._awaited(name))

    def _awaited(self, name: str) -> Collection[Request]:
        """Return the requests of a cluster to which objects of others led before it was engaged."""
        requests: set[Request] = set()
        for other in self._engaged.values():
            if other.cluster.name == name:
                continue
            for informer, owner in other.watches:
                mapped = informer.handlers.mapped_keys(owner)
                requests.update(request for request in mapped if request.cluster == name)
        return requests

    def _settle(self, engaged: _Engaged) -> None:
        """Hold requests until the caches are filled; those that come under another name, too."""
        engaged.is_ready = False
        for name in self._gated_by(engaged):
            self._queue.pause(name)
        if engaged.settling is not None:
            engaged.settling.cancel()
            engaged.settling = None
        if self._tasks is None:
            return
        if engaged.raised_setups:
            if engaged.setting_up is None or engaged.setting_up.done():
                engaged.setting_up = self._tasks.create_task(self._set_up_again(engaged))
        elif not engaged.is_on_hold:
            engaged.settling = self._tasks.create_task(self._when_filled(engaged))

    async def _when_filled(self, engaged: _Engaged) -> None:
        for informer, _ in engaged.watches:
            await informer.filled()
        engaged.is_ready = True
        engaged.settling = None
        self._must_watch()
        for name in self._gated_by(engaged):
            self._queue.resume(name)

    def _must_watch(self) -> None:
        """Name a controller, once, that was engaged in clusters and watches nothing there."""
        if self._is_named or self._setups or self._sources:
            return
        if any(engaged.watches for engaged in self._engaged.values()):
            return
        self._is_named = True
        message = "a controller watches nothing: call its watch methods"
        self._log.warning(message, controller=self.name)

    def _gated_by(self, engaged: _Engaged) -> list[str]:
        """Return the names whose requests wait for a cluster's caches: those of another engaged one
        don't.
        """
        own = engaged.cluster.name
        return [name for name in engaged.names if name == own or name not in self._engaged]

    def enqueue(self, requests: Iterable[Request]) -> None:
        """Reconcile requests soon; those of clusters that aren't engaged are dropped."""
        for request in requests:
            if request.cluster in self._names:
                self._queue.add(_item(request, self.name))

    # -- work --------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Reconcile until cancelled. It can be called again afterwards: no request is lost in
        between.

        Raises:
            NotRunning: The controller runs already.
        """
        if self._tasks is not None:
            raise NotRunning(f"controller {self.name} runs already")
        with watchdog.WATCHDOG.running():
            await self._run()

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as self._tasks:
                for engaged in self._engaged.values():
                    self._settle(engaged)
                for source in self._sources:
                    self._tasks.create_task(self._follow(source))
                self._taking = self._tasks.create_task(self._take_requests(self._tasks))
                await asyncio.Event().wait()
        finally:
            self._tasks = None
            self._taking = None

    async def drain(self) -> None:
        """Take no further request, and wait until the reconciles in work have ended.

        It is for the end of a process: only after another :meth:`run` are requests taken again, and
        those that wait stay. Nothing happens if the controller doesn't run.
        """
        if self._taking is None:
            return
        self._taking.cancel()
        while self._in_flight:
            await asyncio.wait(self._in_flight.values())

    async def _take_requests(self, tasks: asyncio.TaskGroup) -> None:
        """Begin with each request of the queue while there is room."""
        while True:
            await self._room.acquire()
            try:
                if self._turns is not None:
                    await asyncio.sleep(self._turns.take(self._clock()))
                request, _ = await self._queue.get()
            except BaseException:
                self._room.release()
                raise
            task = tasks.create_task(self._work(request))
            self._in_flight[request] = task
            task.add_done_callback(partial(self._ended, request, self._clock()))

    async def _work(self, item: objects.SyncRequest) -> None:
        if item.syncer != self.name:
            self._map_again(item)
            return
        holds = self._holds(item.cluster)
        request = _request(item)
        what = f"controller {self.name}: reconcile of {request}"
        try:
            result: Result | None = await call(
                self._reconcile,
                request,
                what=what,
                timeout=self.options.timeout,
            )
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            if item.cluster not in self._names:
                return
            is_lost = isinstance(error, NotConnected) and error.cluster == item.cluster
            if self.options.ignore_lost_clusters and is_lost:
                self._lost(item, error, is_back=self._holds(item.cluster) != holds)
            else:
                self._failed(item, error)
            return
        if item.cluster not in self._names:
            return
        result = result or Result()
        self._results[item.cluster, _kind(result)] += 1
        if result.requeue_after > 0:
            self._queue.forget(item)
            self._queue.add(item, after=result.requeue_after)
        elif result.requeue:
            self._queue.retry(item, at_most=self.options.max_retry_delay)
        else:
            self._queue.forget(item)

    def _holds(self, name: str) -> int:
        engaged = self._engaged.get(name)
        if engaged is None:
            return 0
        return engaged.holds

    def _lost(self, item: objects.SyncRequest, error: BaseException, *, is_back: bool) -> None:
        """Drop a request whose cluster is lost, or let it wait for a cluster that is held or was so
        meanwhile.
        """
        engaged = self._engaged.get(item.cluster)
        is_kept = is_back or (engaged is not None and engaged.is_on_hold)
        self._queue.forget(item)
        if is_kept:
            self._queue.add(item)
        about = {"cluster": item.cluster, "controller": self.name, "key": item.key}
        self._log.debug(
            "the cluster of a request is lost",
            **about,
            error=str(error),
            waits=is_kept,
        )

    def _failed(self, item: objects.SyncRequest, error: BaseException) -> None:
        self._results[item.cluster, "error"] += 1
        at_least = 0.0
        if isinstance(error, TooMany):
            at_least = error.retry_after
        seconds = self._queue.retry(item, at_least=at_least, at_most=self.options.max_retry_delay)
        about = {
            "cluster": item.cluster,
            "controller": self.name,
            "key": item.key,
            "retry_in": round(seconds, 3),
        }
        if isinstance(error, Conflict):
            self._log.debug(
                "an object has changed meanwhile, will try again",
                **about,
                error=str(error),
            )
        elif isinstance(error, Unreachable):
            self._log_silence(error, about)
        elif isinstance(error, SyncerError):
            self._log.warning("a reconcile failed, will try again", **about, error=str(error))
        else:
            self._log.error("a reconcile raised, will try again", **about, exc_info=error)

    def _log_silence(self, error: Unreachable, about: Mapping[str, object]) -> None:
        """Warn of a cluster that doesn't answer, once in a while: all its requests fail alike."""
        since, others = self._silent.get(error.cluster, (-inf, 0))
        if self._clock() - since < SILENCE_SECONDS:
            self._silent[error.cluster] = (since, others + 1)
            self._log.debug("a reconcile failed, will try again", **about, error=str(error))
            return
        self._silent[error.cluster] = (self._clock(), 0)
        more = {}
        if others:
            more["others_before"] = others
        self._log.warning("a reconcile failed, will try again", **about, error=str(error), **more)

    def _ended(self, item: objects.SyncRequest, since: float, task: "asyncio.Task[None]") -> None:
        """Finish a request, also one that was cancelled before it began."""
        del self._in_flight[item]
        self._room.release()
        if task.cancelled() and item.cluster in self._names:
            self._queue.add(item)
        self._queue.done(item, seconds=self._clock() - since)


def _kind(result: Result) -> str:
    """Return the result as controller-runtime's metrics call it."""
    if result.requeue_after > 0:
        return "requeue_after"
    if result.requeue:
        return "requeue"
    return "success"


def _item(request: Request, controller: str) -> objects.SyncRequest:
    """Return the item of the queue for a request.

    A uid stands where the host's key is otherwise, so that items differ by it.
    """
    uid = None
    if request.uid:
        uid = Key("", request.uid)
    return objects.SyncRequest(request.cluster, controller, request.key, uid)


def _request(item: objects.SyncRequest) -> Request:
    uid = ""
    if item.host_key is not None:
        uid = item.host_key.name
    return Request(item.cluster, *item.key, uid)
