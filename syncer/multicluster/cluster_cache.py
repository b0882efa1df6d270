"""Connections to many clusters by name: each found, connected, probed and renewed by itself."""

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from syncer.api import selectors
from syncer.api.errors import NotConnected
from syncer.api.objects import Resource
from syncer.cache.handlers import Handler
from syncer.clusters.client import Client
from syncer.clusters.connection import manager_of, origin_of
from syncer.clusters.credentials import LoginCredentials
from syncer.clusters.http_transport import HttpTransport
from syncer.clusters.login import Login
from syncer.clusters.rate_limit import RateLimited
from syncer.clusters.transport import Transport
from syncer.multicluster import watchdog
from syncer.multicluster.arguments import must_be
from syncer.multicluster.cache_options import ClusterCacheOptions
from syncer.multicluster.callbacks import name_of
from syncer.multicluster.cluster import Cluster
from syncer.multicluster.cluster_connection import ClusterConnection, NamedWatch
from syncer.multicluster.cluster_events import ClusterSource, MapCluster
from syncer.multicluster.cluster_options import Part
from syncer.multicluster.cluster_status import ClusterStatus, Health, State
from syncer.multicluster.clusters import ClusterReader
from syncer.multicluster.controller import Controller
from syncer.multicluster.errors import ClusterNotFound, NotRunning
from syncer.multicluster.kept_transport import KeptTransport
from syncer.multicluster.lifecycles import Backoff, Lifecycles
from syncer.multicluster.providers import LOOK_SECONDS, ProvidedCluster, Provider
from syncer.observe.logs import get_logger

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

#: Between the names of a provider and of its cluster.
SEPARATOR = "#"
#: Least seconds between two attempts to connect to a cluster.
LEAST_DELAY = 1.0

log = get_logger(__name__)

#: Opens the transport of a cluster.
Dial = Callable[[LoginCredentials, ClusterCacheOptions], Transport]


def dial(credentials: LoginCredentials, options: ClusterCacheOptions) -> Transport:
    """Return an HTTP transport; nothing is sent yet."""
    return HttpTransport(credentials.login.endpoint, credentials, user_agent=options.user_agent)


class ClusterCache:
    """The clusters of some providers, by name.

    Each cluster has a task of its own, which connects, probes and reconnects, so a cluster that
    hangs delays no other. No getter waits for a cluster: it returns, or raises
    :class:`NotConnected`. Whoever gets that doesn't retry; a :meth:`source` says when the cluster
    is back::

        providers = [ClusterApiProvider(management, namespaces)]
        cache = ClusterCache(providers, ClusterCacheOptions(user_agent="me"))
        source = cache.source("machines")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(cache.run())
            async for event in source:
                pods = await cache.get_client(event.cluster).list(PODS)

    ``clock`` returns the time of health stamps, in seconds since 1970.
    """

    def __init__(
        self,
        providers: Sequence[Provider],
        options: ClusterCacheOptions,
        *,
        environ: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
        dial: Dial = dial,
        rng: random.Random | None = None,
    ) -> None:
        """Create a cache, in a running event loop; nothing is sent yet.

        Raises:
            ValueError: Two providers have the same name.
        """
        names = [provider.name for provider in providers]
        if len(set(names)) < len(names):
            why = "providers need names of their own, so that their clusters do"
            raise ValueError(f"{why}: {', '.join(names)}")
        self.options = options
        self.now = clock
        self.environ = os.environ if environ is None else environ
        self.dials = asyncio.Semaphore(options.dials)
        self._providers = providers
        self._dial = dial
        self._vary = (rng or random.Random()).uniform  # noqa: S311 — jitter, not a secret
        self._members: dict[str, ProvidedCluster] = {}
        self._connections: dict[str, ClusterConnection] = {}
        self._backoff = Backoff(first=1.0, last=options.max_retry_delay, least=LEAST_DELAY)
        self._lifecycles = Lifecycles(
            self._keep,
            failed=self._connection_failed,
            retry_delay=self.retry_delay,
        )
        self._sources: list[ClusterSource] = []
        self._controllers: list[Controller] = []
        #: What users run in each connected cluster.
        self._runs: list[Lifecycles[Cluster]] = []
        self._is_running = False
        #: Probes by cluster and result, ``success`` or ``error``.
        self.probes: dict[tuple[str, str], int] = {}

    # -- life --------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Find clusters and keep their connections, until cancelled.

        Raises:
            NotRunning: The cache runs already.
        """
        if self._is_running:
            raise NotRunning("the cache of clusters runs already")
        self._is_running = True
        try:
            with watchdog.WATCHDOG.running():
                async with asyncio.TaskGroup() as tasks:
                    for provider in self._providers:
                        tasks.create_task(self._follow(provider))
        finally:
            self._is_running = False
            await self.close()

    async def close(self) -> None:
        """Remove all clusters, and wait for the end of their connections, where they were
        :meth:`put` without a run.
        """
        for name in list(self._connections):
            self._drop(name)
        self._members.clear()
        await self._lifecycles.close()
        for runs in self._runs:
            await runs.close()

    async def _follow(self, provider: Provider) -> None:
        """Run a provider, again after it has failed; its clusters stay meanwhile."""
        prefix = ""
        if provider.name:
            prefix = f"{provider.name}{SEPARATOR}"
        fleet = _PrefixedFleet(self, prefix)
        what = f"provider {provider.name or name_of(provider)}"
        while True:
            try:
                await watchdog.WATCHDOG.steps_of(provider.run(fleet), what)
            except Exception:
                log.exception("a provider of clusters raised", provider=provider.name)
            await asyncio.sleep(LOOK_SECONDS * self._vary(0.75, 1.25))

    def put(self, name: str, member: ProvidedCluster) -> None:
        """Add a cluster, or replace it as its provider knows it now."""
        self._members[name] = member
        if not self._is_selected(name, member):
            self._drop(name)
        elif name in self._connections:
            self._connections[name].update(member)
        else:
            connection = ClusterConnection(name, member, self)
            self._connections[name] = connection
            self._lifecycles.put(name, connection)

    def remove(self, name: str) -> None:
        """Remove a cluster, without waiting for the end of its connection; unknown names are
        ignored.

        If the name is put again meanwhile, that cluster is connected to once the former connection
        has ended.
        """
        self._members.pop(name, None)
        self._drop(name)

    async def removed(self, name: str) -> None:
        """Wait until the connection of a removed cluster has ended, with its watches, its caches,
        its client and the functions of :meth:`for_every_cluster`.

        It is for whoever keeps something that these use, such as the client of a
        :class:`ProvidedCluster`. It returns at once if no removed cluster of this name is still
        ending.
        """
        await self._lifecycles.removed(name)
        for runs in self._runs:
            await runs.removed(name)

    def suspect(self, name: str) -> None:
        """Probe a connected cluster now, as a request got no answer: it is disconnected if the
        probe gets none either.

        Clusters that aren't connected, or are unknown, are ignored.
        """
        if name in self._connections:
            self._connections[name].suspect()

    async def dialled(self, name: str) -> None:
        """Wait until a cluster that is not connected has its turn to be dialled; others may have
        theirs before.

        Raises:
            NotConnected: It is unknown.
        """
        await self._known(name, "wait for its turn").dialled.wait()

    async def attempted(self, name: str) -> ClusterStatus:
        """Wait until a cluster is connected, or the next attempt to connect to it has failed;
        return its state then.

        Raises:
            NotConnected: It is unknown.
        """
        known = self._known(name, "wait for a connection")
        if not known.is_connected:
            await known.attempted.wait()
        return self.get_status(name)

    def _is_selected(self, name: str, member: ProvidedCluster) -> bool:
        options = self.options
        try:
            selector = options.selector
            if selector is not None and not selectors.matches(selector, member.labels):
                return False
            with watchdog.WATCHDOG.step(f"the filter of cluster {name}"):
                return options.select is None or options.select(name, member)
        except Exception:  # it must stop neither the provider nor its other clusters
            log.exception("a filter of clusters raised, the cluster isn't selected", cluster=name)
            return False

    def _drop(self, name: str) -> None:
        connection = self._connections.pop(name, None)
        if connection is None:
            return
        connection.leave()
        self._lifecycles.remove(name)
        for controller in self._engaged_in(name):
            controller.disengage(name)
        for runs in self._runs:
            runs.remove(name)
        self._forget(name)

    async def _keep(self, name: str, connection: ClusterConnection) -> None:
        try:
            await connection.run()
        finally:
            if name not in self._connections:
                self._forget(name)  # its disconnect was an event

    def _connection_failed(
        self,
        name: str,
        _connection: ClusterConnection,
        error: Exception,
        _seconds: float,
    ) -> None:
        text = "the connection of a cluster has ended badly and begins again"
        log.error(text, cluster=name, exc_info=error)

    def _forget(self, name: str) -> None:
        for source in self._sources:
            source.forget(name)
        for result in ("success", "error"):
            self.probes.pop((name, result), None)

    # -- getters: none of them waits ---------------------------------------------------------------

    def get_client(self, name: str) -> Cluster:
        """Return a cluster, whose reads are from caches and whose writes are live.

        Raises:
            NotConnected: It is unknown, or not connected.
        """
        return self._known(name, "get a client").connected("get a client")

    def get_reader(self, name: str) -> ClusterReader:
        """Return what reads from the caches of a cluster.

        Raises:
            NotConnected: It is unknown, or not connected.
        """
        return self._known(name, "get a reader").connected("get a reader")

    def get_uncached_client(self, name: str) -> Client:
        """Return a client that reads from the API server.

        Raises:
            NotConnected: It is unknown, or not connected.
        """
        return self._known(name, "get an uncached client").client

    def get_connection(self, name: str) -> Login:
        """Return the address and the credentials in use, for other clients.

        Raises:
            NotConnected: It is unknown, or not connected.
        """
        return self._known(name, "get the connection").login

    def get_private_key(self, name: str) -> "RSAPrivateKey":
        """Return the key of a cluster for client certificates: the same while the cluster is known.

        Raises:
            NotConnected: It isn't generated yet, since the cluster is unknown or was never
                connected.
            ValueError: The cache makes none.
        """
        if not self.options.private_keys:
            raise ValueError("the cache makes no keys: set private_keys in its options")
        found = self._connections.get(name)
        if found is None or found.key is None:
            why = f"the private key of cluster {name} is not generated yet"
            raise NotConnected(why, cluster=name)
        return found.key

    def get_last_probe_success(self, name: str) -> float | None:
        """Return the time of the last probe that succeeded; None for an unknown cluster, or before
        the first.
        """
        return self.get_health(name).last_success

    def get_health(self, name: str) -> Health:
        """Return what the probes of a cluster have found."""
        found = self._connections.get(name)
        if found is None:
            return Health()
        return found.health

    def get_status(self, name: str) -> ClusterStatus:
        """Return the state of a cluster; unknown ones are ``Unknown``."""
        found = self._connections.get(name)
        if found is None:
            return ClusterStatus(State.UNKNOWN, "", "", Health())
        return ClusterStatus(
            found.state,
            found.reason,
            found.message,
            found.health,
            found.login_error,
        )

    def get_namespaces(self, name: str) -> frozenset[str]:
        """Return the host namespaces that a cluster may lead to; none for an unknown cluster."""
        found = self._connections.get(name)
        if found is None:
            return frozenset()
        return found.member.namespaces

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._connections))

    def __contains__(self, name: object) -> bool:
        return name in self._connections

    # -- watches and events ------------------------------------------------------------------------

    def watch(
        self,
        name: str,
        watch: str,
        resource: Resource,
        handler: Handler,
        *,
        namespace: str = "",
        selector: str = "",
        fields: str = "",
        sticky: bool = False,
    ) -> None:
        """Call a handler for every change of a resource in a cluster, and for each object that is
        there.

        ``watch`` names it: while a watch of this name exists in the cluster, nothing is done. It
        ends with the connection. A sticky one stays: it may be declared while a known cluster is
        disconnected, and after a reconnect its handler is called for all that has changed or was
        deleted meanwhile.

        Raises:
            NotConnected: The cluster is unknown, or the watch isn't sticky and the cluster not
                connected.
            ValueError: It has no name, or its part can't be cached.
        """
        known = self._known(name, f"watch {watch}")
        part = Part(namespace, selector, fields)
        known.watch(NamedWatch(watch, resource, handler, part, sticky))

    def source(
        self,
        name: str,
        map_cluster: MapCluster | None = None,
        *,
        probe_failures: Collection[float] = (),
    ) -> ClusterSource:
        """Return a new queue of connects and disconnects of all clusters, from now on.

        It also has an event if the last successful probe of a cluster is longer ago than one of
        ``probe_failures``, in seconds: once for each failure and limit. ``map_cluster`` maps a
        cluster to the requests of the consumer, as in :meth:`ClusterSource.requests`.
        """
        made = ClusterSource(name, map_cluster, sorted(probe_failures))
        self._sources.append(made)
        return made

    def leave(self, source: ClusterSource) -> None:
        """Remove a source, whose consumer needs it no longer."""
        self._sources.remove(source)

    # -- controllers -------------------------------------------------------------------------------

    def add(self, controller: Controller) -> None:
        """Engage a controller in each cluster, now or once it is connected; run it by itself or by
        a manager.

        Its watches are on the caches that :meth:`get_client` reads from: they cost no further
        connection, and no watch of what is watched already. While a cluster is disconnected its
        requests wait; then the controller is shown all that has changed or was deleted meanwhile.
        It is disengaged when the cluster leaves the cache. Nothing happens if it was added before.

        Raises:
            TypeError: It is no controller.
        """
        must_be(controller, Controller, what="what is added to a cache of clusters")
        if controller in self._controllers:
            return
        self._controllers.append(controller)
        for connection in self._connections.values():
            if connection.is_connected:
                _engage(controller, connection)

    def for_every_cluster(self, run: Callable[[Cluster], Awaitable[None]]) -> None:
        """Run an async function in each cluster while it is connected, now or later.

        It is cancelled when the cluster is disconnected or leaves the cache, and called again with
        the next connection, once it has ended. If it raises, that is logged and it is called again,
        after a delay that grows from failure to failure as those between two attempts to connect
        do. If it returns, it is called again only with the next connection::

            async def count(cluster: Cluster) -> None:
                while True:
                    print(cluster.name, len(await cluster.list(PODS)))
                    await asyncio.sleep(60)

            cache.for_every_cluster(count)
        """
        what = name_of(run)

        async def run_until_disconnected(name: str, cluster: Cluster) -> None:
            await watchdog.WATCHDOG.steps_of(run(cluster), f"{what} of cluster {name}")
            await asyncio.Event().wait()

        def failed(name: str, _cluster: Cluster, error: Exception, _seconds: float) -> None:
            text = "a function of a cluster raised, will call it again"
            log.error(text, cluster=name, function=what, exc_info=error)

        lifecycles = Lifecycles(
            run_until_disconnected,
            failed=failed,
            retry_delay=self.retry_delay,
        )
        self._runs.append(lifecycles)
        for name, connection in self._connections.items():
            if connection.is_connected:
                lifecycles.put(name, connection.connected("run a function"))

    # -- for connections ---------------------------------------------------------------------------

    def turned(self, connection: ClusterConnection) -> None:
        """Have controllers and functions begin with a cluster that is connected now, or wait for
        one that isn't any more.
        """
        if self._connections.get(connection.name) is not connection:
            return  # it has left
        if connection.is_connected:
            for controller in self._controllers:
                _engage(controller, connection)
            for runs in self._runs:
                runs.put(connection.name, connection.connected("run a function"))
            return

        for runs in self._runs:
            runs.remove(connection.name)
        for controller in self._engaged_in(connection.name):
            if connection.cluster is None:
                controller.disengage(connection.name)
            else:
                controller.hold(connection.name)

    def _engaged_in(self, name: str) -> list[Controller]:
        """Return the controllers that are engaged in a cluster of this cache, and not in a
        Manager's of its name.
        """
        found = []
        for controller in self._controllers:
            cluster = controller.clusters.get(name)
            if cluster is not None and cluster.is_kept:
                found.append(controller)
        return found

    def sources(self) -> list[ClusterSource]:
        """Return the consumers of events."""
        return self._sources

    def retry_delay(self, failures: int) -> float:
        """Return a random delay before another attempt to connect after some failures in a row, in
        seconds.
        """
        return self._backoff.delay(failures, self._vary)

    def client(self, name: str, credentials: LoginCredentials) -> tuple[Client, Transport]:
        """Return a new client of a cluster, and its transport without the limit of requests."""
        transport = self._dial(credentials, self.options)
        limited: Transport = transport
        if self.options.qps:
            limited = RateLimited(transport, qps=self.options.qps, burst=self.options.burst)
        kept = KeptTransport(limited, name)
        dialer = None
        if isinstance(transport, HttpTransport):
            dialer = transport.dialer
        origin = origin_of(credentials)
        made = Client(
            name,
            kept,
            origin=origin,
            timeout=self.options.timeout,
            dialer=dialer,
            field_manager=self.options.field_manager or manager_of(self.options.user_agent),
        )
        return made, transport

    def probed(self, name: str, *, ok: bool) -> None:
        """Count a probe."""
        if name in self._connections:
            result = "success" if ok else "error"
            self.probes[name, result] = self.probes.get((name, result), 0) + 1

    def _known(self, name: str, what: str) -> ClusterConnection:
        found = self._connections.get(name)
        if found is None:
            raise ClusterNotFound(name, f"{what}: cluster {name} is not known")
        return found


def _engage(controller: Controller, connection: ClusterConnection) -> None:
    try:
        controller.engage(connection.connected("engage a controller"))
    except Exception:  # it must stop neither another controller nor the connection
        about = {"cluster": connection.name, "controller": controller.name}
        log.exception("a controller can't be engaged", **about)


class _PrefixedFleet:
    """The fleet as a provider sees it: its names get the provider's."""

    def __init__(self, cache: ClusterCache, prefix: str) -> None:
        self._cache = cache
        self._prefix = prefix

    def put(self, name: str, member: ProvidedCluster) -> None:
        if self._is_its_own(name):
            self._cache.put(self._prefix + name, member)
        else:
            wrong = "a provider names a cluster as if it were of another provider"
            text = f"{wrong}, it isn't connected to"
            log.warning(text, cluster=name)

    def remove(self, name: str) -> None:
        if self._is_its_own(name):
            self._cache.remove(self._prefix + name)

    def _is_its_own(self, name: str) -> bool:
        """Return False for a name that could be that of another provider's cluster, as a file's or
        a context's may be.
        """
        return SEPARATOR not in name
