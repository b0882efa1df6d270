"""The connection of a cluster: one state machine, kept by one task.

::

    Unknown ──> Connecting ──> Connected ──┐
                  ^   │                    │ failures of the probe, 401, another server
                  │   v                    v
                Disconnected <─────────────┘

Whatever asks for the connection reads attributes: no lock is held, and nothing waits. The cluster's
caches outlive a connection where something stands on them: a sticky watch, an index, or the watch
of a controller.
"""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from syncer.api.errors import NotConnected
from syncer.api.objects import Resource
from syncer.cache.handlers import Handler
from syncer.clusters.client import Client
from syncer.clusters.credentials import LoginCredentials
from syncer.clusters.login import Login
from syncer.clusters.transport import Transport
from syncer.multicluster.cache_options import ClusterCacheOptions
from syncer.multicluster.cluster import Cluster
from syncer.multicluster.cluster_events import ClusterEvent, Happening
from syncer.multicluster.cluster_informer import ClusterInformer
from syncer.multicluster.cluster_options import Part
from syncer.multicluster.cluster_status import Health, State
from syncer.multicluster.errors import CacheTooLarge
from syncer.multicluster.handshake import from_inside, greet, is_here, probe, reason_of
from syncer.multicluster.logins import CannotConnect, Reason
from syncer.multicluster.providers import ProvidedCluster
from syncer.observe.logs import get_logger
from syncer.steps import STEP_OBJECTS

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    from syncer.multicluster.cluster_events import ClusterSource

#: Seconds until the next step where nothing else says: also after a login that couldn't be read.
FALLBACK = 10.0
#: Seconds within which a probe counts as due: a timer may fire before its time by what is rounded
#: off.
SOON = 1e-6
#: Seconds after which a cluster of too many objects is connected again: each attempt may list as
#: many as are kept.
TOO_LARGE_SECONDS = 60.0
_KEY_BITS = 2048

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class NamedWatch:
    """A named watch of a cluster."""

    name: str
    resource: Resource
    handler: Handler
    part: Part
    sticky: bool

    @property
    def owner(self) -> str:
        """The owner of its subscription."""
        return f"watch {self.name}"


class Surroundings(Protocol):
    """What the connections of a cache share."""

    options: ClusterCacheOptions
    environ: Mapping[str, str]
    dials: asyncio.Semaphore

    def now(self) -> float:
        """Return the time of the clock."""
        ...

    def retry_delay(self, failures: int) -> float:
        """Return a random delay before another attempt to connect after some failures in a row, in
        seconds.
        """
        ...

    def client(self, name: str, credentials: LoginCredentials) -> tuple[Client, Transport]:
        """Return a new client of a cluster, and its transport without the limit of requests."""
        ...

    def sources(self) -> "list[ClusterSource]":
        """Return the consumers of events."""
        ...

    def probed(self, name: str, *, ok: bool) -> None:
        """Count a probe."""
        ...

    def turned(self, connection: "ClusterConnection") -> None:
        """Have the controllers begin with a cluster that is connected now, or wait for one that
        isn't any more.
        """
        ...


def requeue(*durations: float | None) -> float:
    """Return the seconds until the next step: the least of these, or else :data:`FALLBACK`."""
    given = [each for each in durations if each is not None]
    return max(0.0, min(given, default=FALLBACK))


class ClusterConnection:
    """The connection of a cluster, with its health, watches and caches."""

    def __init__(self, name: str, member: ProvidedCluster, around: Surroundings) -> None:
        self.name = name
        self.member = member
        self.state = State.UNKNOWN
        self.reason = ""
        self.message = ""
        self.health = Health()
        #: The caches; None before the first connect.
        self.cluster: Cluster | None = None
        self.key: RSAPrivateKey | None = None
        self._around = around
        self._options = around.options
        self._client: Client | None = None
        self._probe_over: Transport | None = None
        self._credentials: LoginCredentials | None = None
        #: The login that was read, before its address was replaced.
        self._read: Login | None = None
        self._runs_here = False
        self._running: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._showing: set[asyncio.Task[None]] = set()
        self._watches: dict[str, NamedWatch] = {}
        self._informers: dict[str, ClusterInformer] = {}
        self._wake = asyncio.Event()
        self._not_before = float("-inf")
        #: Why the present login can't be used, while a connected cluster uses the former one.
        self.login_error: CannotConnect | None = None
        #: When to read the login again, which may have changed; None if it hasn't.
        self._look_at: float | None = None
        self._attempt = asyncio.timeout(None)
        #: Set once the next attempt to connect has ended, or there will be none.
        self.attempted = asyncio.Event()
        #: Set while it is dialled or connected, and once it has left.
        self.dialled = asyncio.Event()
        self._is_suspected = False
        self._has_left = False

    # -- its state ---------------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        """True while the cluster is connected."""
        return self.state is State.CONNECTED

    @property
    def client(self) -> Client:
        """The live client.

        Raises:
            NotConnected: The cluster isn't connected.
        """
        if self._client is None:
            raise self.not_connected("get an uncached client")
        return self._client

    @property
    def login(self) -> Login:
        """The login in use.

        Raises:
            NotConnected: The cluster isn't connected, or its provider has given a client.
        """
        if self._credentials is not None:
            return self._credentials.login
        if self._client is not None:
            why = f"get the connection: cluster {self.name} has none of its own"
            raise NotConnected(why, cluster=self.name)
        raise self.not_connected("get the connection")

    def connected(self, what: str) -> Cluster:
        """Return the cluster with its caches.

        Raises:
            NotConnected: The cluster isn't connected; ``what`` was to be done.
        """
        if self.cluster is None or not self.is_connected:
            raise self.not_connected(what)
        return self.cluster

    def not_connected(self, what: str) -> NotConnected:
        """Return the error of what needs a connection."""
        text = f"{what}: the connection to cluster {self.name} is down"
        if self.reason:
            text = f"{text}: {self.reason}"
        return NotConnected(text, cluster=self.name)

    # -- for the cache -----------------------------------------------------------------------------

    def update(self, member: ProvidedCluster) -> None:
        """Replace what is known of the cluster: a login that may have changed is read at once."""
        if member.version != self.member.version:
            self._look_at = float("-inf")
            self._not_before = float("-inf")
            if self.state is State.CONNECTING and not self._attempt.expired():
                self._attempt.reschedule(asyncio.get_running_loop().time())
        self.member = member
        self._wake.set()

    def leave(self) -> None:
        """Let go whoever waits for a connection: the cluster is removed, and :meth:`run` is
        cancelled.
        """
        self._has_left = True
        self.attempted.set()
        self.dialled.set()

    def suspect(self) -> None:
        """Probe at once if the cluster is connected, and disconnect it if that fails."""
        self._is_suspected = self.is_connected
        self._wake.set()

    def watch(self, watch: NamedWatch) -> None:
        """Begin a watch, unless one of its name exists.

        Raises:
            ValueError: It has no name, or its part can't be cached.
            NotConnected: The cluster isn't connected, and the watch isn't sticky.
        """
        if not watch.name:
            raise ValueError("a watch needs a name, so that it is begun once only")
        if watch.name in self._watches:
            return
        if not self.is_connected and not watch.sticky:
            raise self.not_connected(f"watch {watch.name}")
        limit = self._options.clusters.namespace
        if limit and watch.resource.namespaced and watch.part.namespace not in ("", limit):
            why = f"cluster {self.name} caches namespace {limit} alone"
            raise ValueError(f"watch {watch.name}: {why}")
        if self.cluster is not None:
            self._attach(watch, self.cluster)
        self._watches[watch.name] = watch

    # -- the state machine -------------------------------------------------------------------------

    async def run(self) -> None:
        """Connect, probe, and connect again, until cancelled."""
        try:
            while True:
                self._wake.clear()
                try:
                    delay = await self._step()
                except Exception as error:
                    # A bug of ours, or of a provider, must end no other cluster.
                    log.exception("a step of a connection raised", cluster=self.name)
                    self._disconnect(Reason.UNREADABLE, f"{type(error).__name__}: {error}")
                    delay = FALLBACK
                self._notify_failures()
                if delay == math.inf:
                    delay = None
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(delay):
                        await self._wake.wait()
        finally:
            why = "its connection has ended badly"
            if self._has_left:
                why = "the cluster has left"
            self._disconnect("", why)
            for task in self._showing:
                task.cancel()
            if self._showing:
                await asyncio.wait(self._showing)
            if self._ending is not None:
                await self._ending

    async def _step(self) -> float | None:
        """Do what is due; return the seconds until the next step, None to wait for a change."""
        if not self.is_connected:
            return await self._try_to_connect()

        if self._running is not None and self._running.done():
            error = _error_of(self._running)
            if not isinstance(error, CacheTooLarge):
                self._disconnect(Reason.NOT_SYNCED, "its caches have ended by themselves")
                return 0.0
            self._disconnect(Reason.TOO_LARGE, str(error), drop_caches=True)
            return self._try_later(TOO_LARGE_SECONDS)

        if self._look_at is not None and self._look_at <= self._around.now():
            await self._look_at_login()
            if not self.is_connected:
                return 0.0

        probed = self.health.last_probe
        due = 0.0
        if probed is not None and not self._is_suspected:
            due = probed + self._options.probe_interval - self._around.now()
        if due <= SOON:
            due = await self._probe()

        look_due = None
        if self.is_connected and self._look_at is not None:
            look_due = self._look_at - self._around.now()
        return requeue(due, look_due)

    async def _try_to_connect(self) -> float | None:
        now = self._around.now()
        if not self.member.ready:
            self._set(State.DISCONNECTED, Reason.NOT_READY, "its provider says that it isn't ready")
            return None
        if now < self._not_before:
            return requeue(self._not_before - now, self._next_failure())

        # Reason and message are those of the last attempt, until this one has ended.
        self._set(State.CONNECTING, self.reason, self.message)
        self._look_at = None
        self._attempt = asyncio.timeout(None)
        self.dialled.clear()
        try:
            return await self._attempted()
        finally:
            self.attempted.set()
            self.attempted = asyncio.Event()

    async def _attempted(self) -> float | None:
        try:
            async with self._attempt:
                await self._connect()
        except TimeoutError:
            if not self._attempt.expired():
                raise
            self._set(State.DISCONNECTED, "", "its login has changed")
            return 0.0
        except CannotConnect as error:
            self._set(State.DISCONNECTED, error.reason, str(error))
            if error.reason is Reason.UNREADABLE:
                return requeue(FALLBACK)
            self.health = self.health.probed(self._around.now(), ok=False)
            if error.reason is Reason.TOO_LARGE:
                return self._try_later(TOO_LARGE_SECONDS)
            return self._try_later(self._around.retry_delay(self.health.failures))

        self.health = self.health.probed(self._around.now(), ok=True)
        self._set(State.CONNECTED, "", "")
        self._notify(Happening.CONNECTED)
        if self._options.private_keys and self.key is None:
            self._start(self._make_key())
        return requeue(self._options.probe_interval)

    async def _connect(self) -> None:
        """Connect, in the order in which a failure says most.

        Raises:
            CannotConnect: There is no connection; nothing is left open.
        """
        if self._ending is not None:
            await self._ending

        given = self.member.client
        if given is not None:
            async with self._turn():
                await greet(self.name, given, given.transport, self._options)
            await self._fill(given)
            self._client = given
            self._probe_over = given.transport
            return

        login = await self._read_login()
        async with contextlib.AsyncExitStack() as undo:
            async with self._turn():
                credentials, client, transport = self._opened(login, undo)
                await greet(self.name, client, transport, self._options)
                self._runs_here = await is_here(client, self._around.environ)
                if self._runs_here:
                    await client.close()
                    inside = from_inside(login, self._around.environ)
                    credentials, client, transport = self._opened(inside, undo)
                    await greet(self.name, client, transport, self._options)
            await self._fill(client)
            undo.pop_all()
        self._credentials = credentials
        self._client = client
        self._probe_over = transport
        self._read = login

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait until the cluster may be dialled."""
        if not self.member.queue:
            self.dialled.set()
            yield
            return
        async with self._around.dials:
            self.dialled.set()
            yield

    async def _read_login(self) -> Login:
        try:
            async with asyncio.timeout(self._options.timeout):
                return await self.member.read()
        except CannotConnect:
            raise
        except TimeoutError as error:
            if self._attempt.expired():
                raise
            raise CannotConnect(Reason.UNREADABLE, "its login can't be read in time") from error
        except Exception as error:
            raise CannotConnect(Reason.UNREADABLE, f"its login can't be read: {error}") from error

    def _opened(
        self,
        login: Login,
        undo: contextlib.AsyncExitStack,
    ) -> tuple[LoginCredentials, Client, Transport]:
        credentials = LoginCredentials(login)
        client, transport = self._around.client(self.name, credentials)
        undo.push_async_callback(client.close)
        return credentials, client, transport

    async def _fill(self, client: Client) -> None:
        """Fill the caches that something stands on.

        Raises:
            CannotConnect: They aren't filled in time; they are stopped.
        """
        if self.cluster is None:
            self.cluster = Cluster(self.name, client, options=self._options.clusters)
            self.cluster.keep()
            for index in self._options.indexes:
                self.cluster.add_index(*index)
            for watch in self._watches.values():
                self._attach(watch, self.cluster)
        else:
            self.cluster.forget_unused()  # what was read while it was disconnected
            self.cluster.use(client)

        running = asyncio.create_task(self.cluster.run())
        await asyncio.sleep(0)
        filled = asyncio.create_task(_all_current(self.cluster))
        try:
            async with asyncio.timeout(self._options.initial_sync):
                await asyncio.wait({running, filled}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                self.cluster = None  # with its memory
                self._around.turned(self)
                error = _error_of(running)
                reason = Reason.NOT_SYNCED
                if isinstance(error, CacheTooLarge):
                    reason = Reason.TOO_LARGE
                raise CannotConnect(reason, f"its caches have ended: {error}") from error
        except BaseException as error:
            running.cancel()
            filled.cancel()
            await asyncio.wait({running, filled})
            if isinstance(error, TimeoutError) and not self._attempt.expired():
                assert self.cluster is not None
                text = f"cluster {self.name} isn't listed within {self._options.initial_sync:g} s"
                failed = [each for each in self.cluster.informers() if each.error]
                reasons = [f"{each}: {each.error}" for each in failed]
                raise CannotConnect(Reason.NOT_SYNCED, "; ".join([text, *reasons])) from error
            raise
        running.add_done_callback(self._has_ended)
        self._running = running

    def _has_ended(self, task: asyncio.Task[None]) -> None:
        if task is self._running:  # by itself
            self._wake.set()

    async def _look_at_login(self) -> None:
        """Use a login that renews the former one in place; disconnect for any other, and for
        another client.

        One that can't be used is looked at again later.
        """
        if self._credentials is None:
            self._look_at = None
            self._disconnect("", "its provider gives another client")
            return
        assert self._read is not None
        assert self._credentials is not None
        self._look_at = None
        try:
            login = await self._read_login()
            if login.renews(self._read):
                in_use = login
                if self._runs_here:
                    in_use = from_inside(login, self._around.environ)
                self._credentials.use(in_use)
                self._read = login
                self.login_error = None
            else:
                self._disconnect("", "its login leads to another server")
        except (CannotConnect, OSError) as error:
            self._keep_login(error)

    def _keep_login(self, error: CannotConnect | OSError) -> None:
        if isinstance(error, OSError):
            error = CannotConnect(Reason.UNREADABLE, f"its login can't be read: {error}")
        if str(error) != str(self.login_error):
            text = "a changed login can't be used, the former stays"
            log.warning(text, cluster=self.name, error=str(error))
        self.login_error = error
        if self._look_at is None:  # it hasn't changed meanwhile
            self._look_at = self._around.now() + FALLBACK

    async def _probe(self) -> float:
        assert self._probe_over is not None
        assert self._client is not None
        error = await probe(self._client, self._probe_over, self._options)
        self.health = self.health.probed(self._around.now(), ok=error is None)
        self._around.probed(self.name, ok=error is None)
        was_suspected = self._is_suspected
        self._is_suspected = False
        if error is None:
            return requeue(self._options.probe_interval, self._next_failure())

        reason = reason_of(error)
        if reason is Reason.UNAUTHORIZED:
            self._disconnect(reason, str(error))
            self._not_before = float("-inf")
            return 0.0
        if was_suspected or self.health.failures >= self._options.probe_threshold:
            self._disconnect(reason, str(error))
            return self._try_later(self._around.retry_delay(self.health.failures))
        return requeue(self._options.probe_interval, self._next_failure())

    def _try_later(self, seconds: float) -> float:
        """Connect no earlier; return the seconds until the next step."""
        self._not_before = self._around.now() + seconds
        return requeue(seconds, self._next_failure())

    def _disconnect(self, reason: str, message: str, *, drop_caches: bool = False) -> None:
        """End the connection without waiting; health and sticky watches stay, and their caches
        unless they are dropped.
        """
        if self._running is None or self._client is None:
            self._set(State.DISCONNECTED, reason, message)
            return

        assert self.cluster is not None
        own_client = None
        if self._credentials is not None:
            own_client = self._client
        self._ending = asyncio.create_task(self._end(self._running, own_client, self.cluster))
        self._running = None
        self._client = None
        self._credentials = None
        self._probe_over = None
        self.login_error = None

        for watch in list(self._watches.values()):
            if not watch.sticky:
                self._informers.pop(watch.name).forget(watch.owner)
                del self._watches[watch.name]
        if drop_caches:
            self.cluster = None
        self._set(State.DISCONNECTED, reason, message)
        self._notify(Happening.DISCONNECTED)

    async def _end(
        self,
        running: asyncio.Task[None],
        client: Client | None,
        cluster: Cluster,
    ) -> None:
        running.cancel()
        for ended in await asyncio.gather(running, return_exceptions=True):
            if isinstance(ended, Exception) and not isinstance(ended, CacheTooLarge):
                text = "the caches of a cluster ended by themselves"
                log.error(text, cluster=self.name, error=str(ended))
        cluster.forget_unused()
        if client is not None:
            await client.close()

    # -- inside ------------------------------------------------------------------------------------

    def _attach(self, watch: NamedWatch, cluster: Cluster) -> None:
        informer = cluster.informer(watch.resource, **watch.part._asdict())
        informer.add_handler(watch.handler, owner=watch.owner)
        self._informers[watch.name] = informer
        if informer.synced:
            self._start(self._show_all(watch, informer))

    async def _show_all(self, watch: NamedWatch, informer: ClusterInformer) -> None:
        """Show the handler of a watch the objects that were there before it, while the watch is
        there.
        """
        has_raised = False
        for number, key in enumerate(list(informer.keys()), start=1):
            if self._watches.get(watch.name) is not watch:
                return
            obj = informer.get(key)
            if obj is not None:
                try:
                    watch.handler(key, obj)
                except Exception:
                    if not has_raised:
                        about = {"cluster": self.name, "watch": watch.name}
                        log.exception("the handler of a watch raised", **about)
                    has_raised = True
            if not number % STEP_OBJECTS:
                await asyncio.sleep(0)

    async def _make_key(self) -> None:
        self.key = await asyncio.to_thread(_new_key)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._showing.add(task)
        task.add_done_callback(self._has_shown)

    def _has_shown(self, task: asyncio.Task[None]) -> None:
        self._showing.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("work beside a connection raised", cluster=self.name, exc_info=error)

    def _set(self, state: State, reason: str, message: str) -> None:
        if state is not self.state:
            self._log_change(state, reason, message)
        self.state = state
        self.reason = reason
        self.message = message

    def _log_change(self, state: State, reason: str, message: str) -> None:
        if self.member.client is not None:
            return  # its owner logs that
        if state is State.CONNECTED:
            log.info("a cluster is connected", cluster=self.name)
        elif state is State.DISCONNECTED and self._has_left:
            log.info("a cluster has left", cluster=self.name)
        elif state is State.DISCONNECTED:
            about = {"cluster": self.name, "reason": reason}
            log.warning("a cluster is disconnected", **about, error=message)

    def _notify(self, happening: Happening) -> None:
        self._around.turned(self)
        now = self._around.now()
        for source in self._around.sources():
            source.notify(ClusterEvent(self.name, happening), now)

    def _notify_failures(self) -> None:
        if self.health.failures:
            now = self._around.now()
            for source in self._around.sources():
                source.notify_failure(self.name, success=self.health.last_success, now=now)

    def _next_failure(self) -> float | None:
        if not self.health.failures:
            return None
        now = self._around.now()
        success = self.health.last_success
        each = [source.next_failure(success, now) for source in self._around.sources()]
        to_come = [seconds for seconds in each if seconds is not None]
        if not to_come:
            return None
        return min(to_come) + 0.001  # a limit is over only afterwards


async def _all_current(cluster: Cluster) -> None:
    for informer in cluster.informers():
        await informer.current.wait()


def _error_of(task: asyncio.Task[None]) -> BaseException | None:
    if task.cancelled():
        return None
    return task.exception()


def _new_key() -> "RSAPrivateKey":
    from cryptography.hazmat.primitives.asymmetric import rsa

    return rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)
