"""Controllers that are started in each of several clusters, by the cluster's name."""

import asyncio
import copy
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple, Self, TypeVar, overload

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential

from syncer.api.errors import SyncerError, Unreachable
from syncer.clusters.client import Client
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
from syncer.multicluster.process import Manager
from syncer.observe.logs import get_logger

T = TypeVar("T")

#: Default seconds in which controllers have to start, and to end.
START_SECONDS, STOP_SECONDS = 60.0, 30.0
#: Seconds between attempts to start controllers again whose cluster has moved: at most the first,
#: doubled up to the last, each time a random part of it.
FIRST_ATTEMPT, LAST_ATTEMPT = 1.0, 60.0

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
    state: StackState = StackState.STARTING
    #: The factory that makes a controller at present.
    factory: str = ""
    cluster: Cluster | None = None
    controllers: list[Controller] = field(default_factory=list)
    task: "asyncio.Task[None] | None" = None
    #: Ends the start, if it is stopped meanwhile.
    starting: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))
    ended: asyncio.Event = field(default_factory=asyncio.Event)
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
        self._moves: dict[str, asyncio.Task[None]] = {}

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
            ClusterError: The cluster refuses the first request, or doesn't answer.
            CannotStart: The caches aren't filled in time, or a factory raised.
        """
        if name in self._stacks:
            raise ClusterNameTaken(name, f"the controllers of cluster {name} have already been started")
        stack = self._stacks[name] = _Stack(name, connection)
        try:
            with watchdog.WATCHDOG.running():
                async with stack.starting:
                    stack.starting.reschedule(
                        asyncio.get_running_loop().time() + self._start_timeout,
                    )
                    await self._start(stack)
        except BaseException as error:
            is_late = isinstance(error, TimeoutError) and stack.starting.expired()
            instead = self._not_started(stack) if is_late else None
            await self._discard(stack)
            if instead is not None:
                raise instead from instead.__cause__
            raise
        stack.state = StackState.RUNNING
        log.info("controllers run", cluster=name)

    async def stop(self, name: str, *, timeout: float = STOP_SECONDS) -> None:  # noqa: ASYNC109
        """Stop the controllers of a cluster, wait for their end, and forget them.

        If they don't end within ``timeout`` seconds they stay, so that this can be called again.

        Raises:
            ClusterNotFound: There are none.
            StillRunning: They haven't ended in time.
        """
        move = self._moves.pop(name, None)
        if move is not None and move is not asyncio.current_task():
            move.cancel()
            await _within(asyncio.wait({move}), timeout, name)
        stack = self._stacks.get(name)
        if stack is None:
            if move is not None:
                return
            raise _not_found(name)
        if stack.state is StackState.STARTING:
            stack.state = StackState.STOPPING
            stack.starting.reschedule(asyncio.get_running_loop().time())
            await _within(stack.ended.wait(), timeout, name)
            return
        stack.state = StackState.STOPPING
        await _within(self._end(stack), timeout, name)
        self._forget(stack)
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

        names = [*desired, *(name for name in self._stacks if name not in desired)]
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
            raise _not_found(name, f"their state is {stack.state}" if stack else "")
        try:
            return await call(use, stack.cluster, what=f"the callback of {name}", timeout=timeout)
        except (Unreachable, NotSynced) as error:
            if stack.state is StackState.RUNNING:
                raise
            raise _not_found(name, "they were stopped meanwhile") from error

    def status(self) -> Mapping[str, StackStatus]:
        """Return the state of each cluster's controllers."""
        return {
            name: StackStatus(
                stack.state,
                stack.error or (stack.cluster.error if stack.cluster else None),
            )
            for name, stack in self._stacks.items()
        }

    async def close(self) -> None:
        """Stop all controllers.

        Raises:
            StillRunning: Some haven't ended in time.
        """
        ended = await asyncio.gather(
            *(self.stop(name) for name in {*self._stacks, *self._moves}), return_exceptions=True
        )
        for error in ended:
            if isinstance(error, BaseException) and not isinstance(error, ClusterNotFound):
                raise error

    # -- inside ------------------------------------------------------------------------------------

    async def _start(self, stack: _Stack) -> None:
        cluster = stack.cluster = Cluster(stack.name, self._client(stack), options=self._options)
        await cluster.client.fetch("/version")
        manager = Manager(foreign=[self.manage])
        try:
            for factory in self._factories:
                stack.factory = f"factory {name_of(factory)} of cluster {stack.name}"
                stack.controllers.append(
                    await _made(factory, Spawned(stack.name, cluster, self.manage), stack.factory),
                )
            stack.factory = ""
        except Exception as error:
            raise CannotStart(
                f"cluster {stack.name}: a controller can't be made: {error}",
            ) from error
        for controller in stack.controllers:
            manager.add(controller)
        manager.engage(cluster)
        stack.task = asyncio.create_task(manager.run())
        filled = asyncio.create_task(_all_filled(stack.controllers, stack.name))
        try:
            await asyncio.wait({stack.task, filled}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            filled.cancel()
            await asyncio.gather(filled, return_exceptions=True)
        if stack.task.done():
            why = _error_of(stack.task)
            raise CannotStart(
                f"cluster {stack.name}: its controllers ended at once: {why}",
            ) from why
        stack.task.add_done_callback(lambda task: self._has_ended(stack, task))

    def _client(self, stack: _Stack) -> Client:
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
        return client(
            connection,
            name=stack.name,
            environ=self._environ,
            moved=lambda: self._moved(stack),
        )

    def _not_started(self, stack: _Stack) -> SyncerError:
        if stack.state is StackState.STOPPING:
            return _not_found(stack.name, "they were stopped before they had started")
        if stack.factory:
            late = CallbackTimeout(
                f"{stack.factory} hasn't returned after {self._start_timeout:g} s",
            )
            return _caused(
                CannotStart(f"cluster {stack.name}: a controller can't be made: {late}"),
                late,
            )
        why = stack.cluster.error if stack.cluster else None
        message = f"cluster {stack.name}: caches aren't filled after {self._start_timeout:g} s"
        if why:
            message = f"{message}: {why}"
        return _caused(CannotStart(message), why)

    def _has_ended(self, stack: _Stack, task: "asyncio.Task[None]") -> None:
        """Record that controllers have ended by themselves, which only an error of theirs can do."""
        if stack.state is not StackState.STOPPING:
            stack.state = StackState.FAILED
            stack.error = _error_of(task)
            log.error("controllers have ended", cluster=stack.name, error=str(stack.error))

    async def _end(self, stack: _Stack) -> None:
        """Cancel the controllers, wait for their end, remove their watches, and close the client."""
        if stack.task is not None:
            stack.task.cancel()
            await asyncio.wait({stack.task})
        for controller in stack.controllers:
            for name in controller.clusters:  # the management cluster goes on
                controller.disengage(name)
        if stack.cluster is not None:
            await stack.cluster.close()
        elif isinstance(stack.connection, Client):
            await stack.connection.close()

    async def _discard(self, stack: _Stack) -> None:
        """Remove what has not started."""
        stack.state = StackState.STOPPING
        try:
            await _within(self._end(stack), STOP_SECONDS, stack.name)
        finally:
            self._forget(stack)
            stack.ended.set()

    def _forget(self, stack: _Stack) -> None:
        if self._stacks.get(stack.name) is stack:
            del self._stacks[stack.name]

    def _moved(self, stack: _Stack) -> None:
        """Start the controllers again in the background: the kubeconfig leads to another server
        now.
        """
        if self._stacks.get(stack.name) is stack and stack.name not in self._moves:
            log.info(
                "the kubeconfig leads to another server; controllers are started again",
                cluster=stack.name,
            )
            self._moves[stack.name] = asyncio.create_task(self._follow(stack))

    async def _follow(self, stack: _Stack) -> None:
        wait = wait_random_exponential(multiplier=FIRST_ATTEMPT, max=LAST_ATTEMPT)
        retry = retry_if_exception_type(SyncerError)
        try:
            await AsyncRetrying(retry=retry, wait=wait, before_sleep=_not_followed(stack.name))(
                self._again,
                stack,
            )
        except Exception:
            log.exception("controllers can't be started again", cluster=stack.name)
        finally:
            if self._moves.get(stack.name) is asyncio.current_task():
                del self._moves[stack.name]

    async def _again(self, stack: _Stack) -> None:
        current = self._stacks.get(stack.name)
        if current is not None and current is not stack:
            return  # another one was spawned meanwhile
        if current is not None:
            current.state = StackState.STOPPING
            await _within(self._end(current), STOP_SECONDS, stack.name)
            self._forget(current)
        await self.spawn(stack.name, stack.connection)


def _not_followed(name: str) -> Callable[[RetryCallState], None]:
    def say(attempt: RetryCallState) -> None:
        error = attempt.outcome.exception() if attempt.outcome else None
        log.warning(
            "controllers can't be started again, will try again",
            cluster=name,
            error=str(error),
        )

    return say


async def _made(factory: ControllerFactory, of: Spawned, what: str) -> Controller:
    with watchdog.WATCHDOG.step(what):
        made = factory(of)
    return made if isinstance(made, Controller) else await watchdog.WATCHDOG.steps_of(made, what)


def _caused(error: SyncerError, cause: BaseException | None) -> SyncerError:
    error.__cause__ = cause
    return error


async def _all_filled(controllers: Iterable[Controller], name: str) -> None:
    for controller in controllers:
        await controller.filled(name)


def _error_of(task: "asyncio.Task[None]") -> BaseException | None:
    return None if task.cancelled() else task.exception()


async def _within(work: Awaitable[object], seconds: float, name: str) -> None:
    try:
        async with asyncio.timeout(seconds):
            await work
    except TimeoutError:
        raise StillRunning(
            f"the controllers of cluster {name} haven't ended after {seconds:g} s",
        ) from None


def _not_found(name: str, why: str = "") -> ClusterNotFound:
    message = f"the controllers of cluster {name} don't exist"
    if why:
        message = f"{message}: {why}"
    return ClusterNotFound(name, message)
