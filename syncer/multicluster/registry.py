"""Controllers that are started in each of several clusters, by the cluster's name."""

import asyncio
import copy
import os
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple, Self, TypeVar, overload

from syncer.api.errors import Unreachable
from syncer.clusters.client import Client
from syncer.clusters.codec import DecodeError
from syncer.clusters.connection import ConnectionSettings, client
from syncer.clusters.rate_limit import RateLimited
from syncer.multicluster import watchdog
from syncer.multicluster.callbacks import call, name_of
from syncer.multicluster.cluster import Cluster
from syncer.multicluster.cluster_options import ClusterOptions
from syncer.multicluster.controller import Controller
from syncer.multicluster.errors import (
    CallbackTimeout,
    CannotStart,
    ClusterNameTaken,
    ClusterNotFound,
    NotSynced,
    StillRunning,
)
from syncer.multicluster.lifecycles import Backoff, Lifecycles
from syncer.multicluster.process import Manager
from syncer.observe.logs import get_logger

T = TypeVar("T")

#: Default seconds in which controllers have to start.
START_SECONDS = 60.0
#: Default seconds in which controllers have to end.
STOP_SECONDS = 30.0
#: Seconds between attempts to start controllers again whose cluster has moved: at most this for the
#: first, doubled each time, and a random part of it.
FIRST_ATTEMPT = 1.0
#: Most seconds between two of these attempts.
LAST_ATTEMPT = 60.0
BACKOFF = Backoff(first=FIRST_ATTEMPT, last=LAST_ATTEMPT)

log = get_logger(__name__)


class StackState(StrEnum):
    """The state of a cluster's controllers."""

    STARTING = "Starting"
    RUNNING = "Running"
    STOPPING = "Stopping"
    FAILED = "Failed"


class StackStatus(NamedTuple):
    """The state of a cluster's controllers, and the reason why they failed, or why the cluster
    can't be read.
    """

    state: StackState
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Spawned:
    """What a factory makes a controller of.

    ``manage`` is the management cluster; it is run by its owner.
    """

    name: str
    cluster: Cluster
    manage: Cluster


#: Makes a controller, with its watches, for a cluster. It is called in the event loop, as
#: controllers are made there, and may be async.
ControllerFactory = Callable[[Spawned], Controller | Awaitable[Controller]]


@dataclass(eq=False)
class _Stack:
    """The controllers of a cluster."""

    name: str
    connection: ConnectionSettings | Client
    #: Done once they run for the first time, or can't.
    started: asyncio.Future[None]
    state: StackState = StackState.STARTING
    #: The factory that makes a controller at present.
    factory: str = ""
    cluster: Cluster | None = None
    #: Runs the controllers and their caches.
    task: "asyncio.Task[None] | None" = None
    error: BaseException | None = None


class ClusterRegistry:
    """Starts and stops the controllers of clusters, at any time.

    Each cluster gets a controller of each factory, and a client and caches of its own; their
    controllers serve no port and elect no leader. What happens in a cluster concerns no other: no
    lock is held while anything is awaited, so a callback may use the registry, and a cluster that
    hangs delays nobody. The failure of a cluster ends neither the process nor another cluster::

        def pods(spawned: Spawned) -> Controller:
            return pods_controller(spawned.cluster, spawned.manage)

        async with ClusterRegistry(manage, factories=[pods]) as registry:
            await registry.spawn("eu", ConnectionSettings(context="eu"))
            await registry.with_client("eu", lambda eu: eu.create(PODS, pod))
    """

    def __init__(
        self,
        manage: Cluster,
        *,
        factories: Iterable[ControllerFactory] = (),
        options: ClusterOptions | None = None,
        start_timeout: float = START_SECONDS,
        qps: float = 0.0,
        burst: int = 0,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """``options`` are those of each spawned cluster; ``start_timeout`` is in seconds, and also
        the longest time of a factory that is async.

        ``qps`` and ``burst`` limit the requests per second to each cluster, whose connection
        settings have no limit of their own; 0 is no limit.
        """
        self.manage = manage
        self._factories = list(factories)
        self._options = options
        self._start_timeout = start_timeout
        self._environ = os.environ if environ is None else environ
        self._qps = qps
        self._burst = burst
        self._stacks: dict[str, _Stack] = {}
        self._lifecycles = Lifecycles(self._run, failed=self._failed, retry_delay=_retry_delay)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def add(self, factory: ControllerFactory) -> None:
        """Add a controller to every cluster that is spawned from now on."""
        self._factories.append(factory)

    async def spawn(self, name: str, connection: ConnectionSettings | Client) -> None:
        """Start the controllers of a cluster, and return when their caches are filled.

        A client is closed when they end. If they can't be started, nothing of them is left. Tokens
        and certificates of a kubeconfig are read again when they change; if it leads to another
        server, the controllers are started again.

        Raises:
            ClusterNameTaken: The name is taken.
            ClusterNotFound: They were stopped before they had started.
            ConfigError: The kubeconfig can't be used.
            ClusterError: The cluster refuses the first request, or doesn't answer as an API server.
            CannotStart: The caches aren't filled in time, or a factory raised.
        """
        if name in self._stacks:
            message = f"the controllers of cluster {name} have already been started"
            raise ClusterNameTaken(name, message)
        stack = _Stack(name, connection, asyncio.get_running_loop().create_future())
        self._stacks[name] = stack
        self._lifecycles.put(name, stack)
        try:
            await stack.started
        except BaseException:
            self._begin_end(stack)
            await self._ended(stack, STOP_SECONDS)
            raise

    async def stop(self, name: str, *, timeout: float = STOP_SECONDS) -> None:  # noqa: ASYNC109
        """Stop the controllers of a cluster, wait for their end, and forget them.

        If they don't end within ``timeout`` seconds they stay, so that this can be called again.

        Raises:
            ClusterNotFound: There are none.
            StillRunning: They haven't ended in time.
        """
        stack = self._stacks.get(name)
        if stack is None:
            raise _not_found(name)
        self._begin_end(stack)
        await self._ended(stack, timeout)
        log.info("controllers were stopped", cluster=name)

    async def replace(
        self,
        name: str,
        connection: ConnectionSettings | Client,
        *,
        timeout: float = STOP_SECONDS,  # noqa: ASYNC109
    ) -> None:
        """Start the controllers of a cluster with another connection, after stopping those that
        there are.

        Raises:
            StillRunning: The former ones haven't ended in time; they stay.
            SyncerError: As for :meth:`spawn`.
        """
        if name in self._stacks:
            await self.stop(name, timeout=timeout)
        await self.spawn(name, connection)

    async def converge(self, desired: Mapping[str, ConnectionSettings]) -> Mapping[str, Exception]:
        """Spawn, replace and stop until the controllers of exactly these clusters run.

        All are started at the same time. Return the failures, by name. Call it at the start of
        the process, and whenever the desired clusters change; with failures, again later.
        """

        async def bring(name: str) -> None:
            wanted = desired.get(name)
            stack = self._stacks.get(name)
            if wanted is None:
                await self.stop(name)
            elif stack is None or stack.connection != wanted or stack.state is StackState.FAILED:
                await self.replace(name, wanted)

        names = {**desired, **self._stacks}
        results = await asyncio.gather(*(bring(name) for name in names), return_exceptions=True)
        failures: dict[str, Exception] = {}
        for name, result in zip(names, results, strict=True):
            if isinstance(result, Exception):
                failures[name] = result
                log.warning("controllers can't be brought in step", cluster=name, error=str(result))
            elif result is not None:
                raise result
        return failures

    @overload
    async def with_client(
        self,
        name: str,
        use: Callable[[Cluster], Awaitable[T]],
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> T: ...

    @overload
    async def with_client(
        self,
        name: str,
        use: Callable[[Cluster], T],
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> T: ...

    async def with_client(
        self,
        name: str,
        use: Callable[[Cluster], Any],
        *,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> Any:
        """Call a function with a running cluster, and return its result.

        ``cluster.get`` reads from caches, ``cluster.client`` doesn't. A function that isn't async
        runs in a thread. An exception of the function is passed on as it is. After ``timeout``
        seconds the function is cancelled; a thread goes on, but nobody waits for it.

        Raises:
            ClusterNotFound: The cluster's controllers don't run, or were stopped before the
                function could finish.
            CallbackTimeout: The function hasn't returned in time.
        """
        stack = self._stacks.get(name)
        if stack is None or stack.cluster is None or stack.state is not StackState.RUNNING:
            why = ""
            if stack is not None:
                why = f"their state is {stack.state}"
            raise _not_found(name, why)
        cluster = stack.cluster
        try:
            return await call(use, cluster, what=f"the callback of {name}", timeout=timeout)
        except (Unreachable, NotSynced) as error:
            if stack.cluster is cluster and stack.state is StackState.RUNNING:
                raise
            raise _not_found(name, "they were stopped meanwhile") from error

    def status(self) -> Mapping[str, StackStatus]:
        """Return the state of each cluster's controllers."""
        found: dict[str, StackStatus] = {}
        for name, stack in self._stacks.items():
            error = stack.error
            if error is None and stack.cluster is not None:
                error = stack.cluster.error
            found[name] = StackStatus(stack.state, error)
        return found

    async def close(self) -> None:
        """Stop all controllers.

        Raises:
            StillRunning: Some haven't ended in time.
        """
        stops = [self.stop(name) for name in self._stacks]
        for error in await asyncio.gather(*stops, return_exceptions=True):
            if isinstance(error, BaseException) and not isinstance(error, ClusterNotFound):
                raise error

    # -- inside ------------------------------------------------------------------------------------

    async def _run(self, name: str, stack: _Stack) -> None:
        """Run the controllers of a cluster until cancelled, or until the kubeconfig leads to
        another server. Those that end by themselves aren't started again.
        """
        moved = asyncio.Event()
        stack.state = StackState.STARTING
        client = self._client(stack, moved)
        controllers: list[Controller] = []
        try:
            with watchdog.WATCHDOG.running():
                stack.cluster = Cluster(name, client, options=self._options)
                await self._start(stack, stack.cluster, controllers)
                await moved.wait()
        finally:
            await _completed(_end(stack, controllers, client))
        text = "the kubeconfig leads to another server; controllers are started again"
        log.info(text, cluster=name)

    def _client(self, stack: _Stack, moved: asyncio.Event) -> Client:
        """Return a client of a cluster, with the limit of requests."""
        connection = stack.connection
        if isinstance(connection, Client):
            if not self._qps:
                return connection
            limited = copy.copy(connection)
            limited.transport = RateLimited(connection.transport, qps=self._qps, burst=self._burst)
            return limited
        if not connection.qps:
            connection = replace(connection, qps=self._qps, burst=self._burst)
        return client(connection, name=stack.name, environ=self._environ, moved=moved.set)

    async def _start(self, stack: _Stack, cluster: Cluster, controllers: list[Controller]) -> None:
        """Start controllers, and return once their caches are filled.

        Raises:
            ClusterError: The cluster refuses the first request, or doesn't answer as an API server.
            CannotStart: The caches aren't filled in time, or a factory raised.
        """
        limit = asyncio.timeout(self._start_timeout)
        try:
            async with limit:
                await _greet(cluster)
                await self._make(stack, cluster, controllers)
                manager = Manager(foreign=[self.manage])
                for controller in controllers:
                    manager.add(controller)
                manager.engage(cluster)
                stack.task = asyncio.create_task(manager.run())
                await _filled(stack, stack.task, controllers)
        except TimeoutError:
            if not limit.expired():
                raise
            late = self._late(stack)
            raise late from late.__cause__
        stack.state = StackState.RUNNING
        stack.error = None
        stack.task.add_done_callback(lambda task: _has_ended(stack, task))
        if not stack.started.done():
            stack.started.set_result(None)
        log.info("controllers run", cluster=stack.name)

    async def _make(self, stack: _Stack, cluster: Cluster, controllers: list[Controller]) -> None:
        """Add the controllers of the factories to a list."""
        spawned = Spawned(stack.name, cluster, self.manage)
        try:
            for factory in self._factories:
                stack.factory = f"factory {name_of(factory)} of cluster {stack.name}"
                with watchdog.WATCHDOG.step(stack.factory):
                    made = factory(spawned)
                if not isinstance(made, Controller):
                    made = await watchdog.WATCHDOG.steps_of(made, stack.factory)
                controllers.append(made)
        except Exception as error:
            message = f"cluster {stack.name}: a controller can't be made: {error}"
            raise CannotStart(message) from error
        stack.factory = ""

    def _late(self, stack: _Stack) -> CannotStart:
        """Return the error of controllers that haven't started in time."""
        after = f"after {self._start_timeout:g} s"
        cause: BaseException | None = None
        if stack.factory:
            cause = CallbackTimeout(f"{stack.factory} hasn't returned {after}")
            message = f"cluster {stack.name}: a controller can't be made"
        else:
            message = f"cluster {stack.name}: caches aren't filled {after}"
            if stack.cluster is not None:
                cause = stack.cluster.error
        if cause is not None:
            message = f"{message}: {cause}"
        error = CannotStart(message)
        error.__cause__ = cause
        return error

    def _failed(self, name: str, stack: _Stack, error: Exception, _seconds: float) -> None:
        """Report that controllers can't be started, for the first time or after a move."""
        if not stack.started.done():
            stack.started.set_exception(error)
            return
        if stack.state is StackState.STARTING:
            stack.state = StackState.FAILED
            stack.error = error
        text = "controllers can't be started again, will try again"
        log.warning(text, cluster=name, error=str(error))

    def _begin_end(self, stack: _Stack) -> None:
        """End controllers, without waiting; a start that goes on raises."""
        stack.state = StackState.STOPPING
        if not stack.started.done():
            why = "they were stopped before they had started"
            stack.started.set_exception(_not_found(stack.name, why))
        if self._stacks.get(stack.name) is stack:
            self._lifecycles.remove(stack.name)

    async def _ended(self, stack: _Stack, seconds: float) -> None:
        """Wait for the end of controllers, and forget them.

        Raises:
            StillRunning: They haven't ended in time.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._lifecycles.removed(stack.name)
        except TimeoutError:
            why = f"the controllers of cluster {stack.name} haven't ended after {seconds:g} s"
            raise StillRunning(why) from None
        if self._stacks.get(stack.name) is stack:
            del self._stacks[stack.name]


async def _greet(cluster: Cluster) -> None:
    """Send the first request to a cluster.

    Raises:
        ClusterError: The cluster refuses it, or doesn't answer, or not as an API server.
    """
    try:
        await cluster.client.fetch("/version")
    except DecodeError as error:
        why = f"cluster {cluster.name}: its version can't be read: {error}"
        raise Unreachable(why, cluster=cluster.name) from error


async def _filled(stack: _Stack, task: "asyncio.Task[None]", controllers: list[Controller]) -> None:
    """Wait until the caches of controllers are filled.

    Raises:
        CannotStart: The controllers have ended.
    """
    filled = asyncio.create_task(_all_filled(controllers, stack.name))
    try:
        await asyncio.wait({task, filled}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        filled.cancel()
        await asyncio.gather(filled, return_exceptions=True)
    if task.done():
        cause = _error_of(task)
        message = f"cluster {stack.name}: its controllers ended at once: {cause}"
        raise CannotStart(message) from cause


async def _all_filled(controllers: Iterable[Controller], name: str) -> None:
    for controller in controllers:
        await controller.filled(name)


def _has_ended(stack: _Stack, task: "asyncio.Task[None]") -> None:
    """Record that controllers have ended by themselves, which only an error of theirs can do."""
    if stack.state is StackState.RUNNING:
        stack.state = StackState.FAILED
        stack.error = _error_of(task)
        log.error("controllers have ended", cluster=stack.name, error=str(stack.error))


async def _end(stack: _Stack, controllers: Iterable[Controller], client: Client) -> None:
    """Cancel controllers, wait for their end, remove their watches, and close the client."""
    if stack.state is StackState.RUNNING:
        stack.state = StackState.STARTING  # the cluster has moved
    if stack.task is not None:
        stack.task.cancel()
        await asyncio.wait({stack.task})
        stack.task = None
    for controller in controllers:
        for name in controller.clusters:  # the management cluster goes on
            controller.disengage(name)
    await client.close()


async def _completed(work: Coroutine[Any, Any, None]) -> None:
    """Await something to its end, also if this is cancelled meanwhile: a cluster that has moved may
    be stopped while its former controllers end.
    """
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
    task.result()


def _error_of(task: "asyncio.Task[None]") -> BaseException | None:
    if task.cancelled():
        return None
    return task.exception()


def _retry_delay(failures: int) -> float:
    return BACKOFF.delay(failures - 1, random.uniform)


def _not_found(name: str, why: str = "") -> ClusterNotFound:
    message = f"the controllers of cluster {name} don't exist"
    if why:
        message = f"{message}: {why}"
    return ClusterNotFound(name, message)
