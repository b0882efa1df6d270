"""The clients of the host and the virtual clusters, as configured."""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property

from syncer.api.errors import ConfigError, Problem
from syncer.api.objects import Side
from syncer.byte_budget import ByteBudget
from syncer.clusters.client import SideClient
from syncer.clusters.connection import (
    ConnectionSettings,
    ReplaceableLogin,
    connect,
    connect_with_login,
    read_login,
)
from syncer.clusters.login import Login
from syncer.config import ConnectionSection, SyncerConfig, VirtualCluster
from syncer.daemon.connections import Connections
from syncer.daemon.start.sides import one_cluster, warnings_of
from syncer.observe.logs import get_logger
from syncer.observe.metrics import Metrics
from syncer.version import VERSION

#: Seconds that a cluster may take for its first answer; it may be starting at the same time as the
#: daemon.
START_SECONDS = 60.0

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SideClients:
    """Clients of the host and, by name, of virtual clusters."""

    host: SideClient
    virtual: Mapping[str, SideClient]

    def __iter__(self) -> Iterator[SideClient]:
        yield from (self.host, *self.virtual.values())


def _nothing() -> None:
    """Do nothing about a change of a connection."""


@asynccontextmanager
async def connected(
    config: SyncerConfig, cluster: VirtualCluster | None
) -> AsyncIterator[Mapping[Side, SideClient]]:
    """Yield clients of a virtual cluster and the host, once both answer. Nothing is written.

    The clients wait while an API server asks to come back later. With None there is that of the
    host alone.

    Raises:
        SyncerError: A cluster can't be reached.
    """
    async with AsyncExitStack() as stack:
        virtual = () if cluster is None else (cluster,)
        clients = connect_all(config, virtual, Metrics(version=VERSION), stack)
        connections = Connections(
            clock=asyncio.get_running_loop().time,
            rng=random.Random(),  # noqa: S311 — jitter
        )
        stack.push_async_callback(connections.close)
        each = [connections.add(client, lost=_nothing, back=_nothing) for client in clients]
        await asyncio.gather(*(connection.reach(START_SECONDS) for connection in each))

        by_side = {Side.HOST: clients.host.patient()}
        if cluster is not None:
            by_side[Side.VIRTUAL] = clients.virtual[cluster.name].patient()
        yield by_side


@dataclass(frozen=True)
class SecretCluster(VirtualCluster):
    """A virtual cluster that a Secret names."""

    login: ReplaceableLogin
    #: The options that all virtual clusters of its entry have, to compare with those of another
    #: load.
    common: object

    @classmethod
    def of(
        cls,
        cluster: VirtualCluster,
        login: ReplaceableLogin,
        common: object,
    ) -> "SecretCluster":
        """Return a virtual cluster with its login."""
        given = {each.name: getattr(cluster, each.name) for each in fields(cluster)}
        return cls(**given, login=login, common=common)

    @cached_property
    def options(self) -> object:
        """All its options, for comparison. The login is one of them: that of another Secret belongs
        to another virtual cluster.
        """
        return self.common, self.name, self.host_namespace, self.login


def login_to(cluster: VirtualCluster) -> Login:
    """Return the login of a virtual cluster.

    Raises:
        ConfigError: Its kubeconfig can't be used.
    """
    if isinstance(cluster, SecretCluster):
        return cluster.login.login
    return login_of(cluster.connection)


def login_of(given: ConnectionSection) -> Login:
    """Return the login of a configured connection.

    Raises:
        ConfigError: Its kubeconfig can't be used.
    """
    return read_login(ConnectionSettings(given.kubeconfig, given.context, given.server), os.environ)


def connect_all(
    config: SyncerConfig,
    served: Sequence[VirtualCluster],
    metrics: Metrics,
    stack: AsyncExitStack,
) -> SideClients:
    """Return the clients, which are closed with ``stack``; nothing is sent yet.

    Raises:
        ConfigError: A kubeconfig can't be used, or both sides are the same cluster.
    """
    virtual = {}
    for each in served:
        virtual[each.name] = connect_virtual(each, metrics, stack)
    host = connect_host(config, metrics, stack)
    for name, cluster in virtual.items():
        must_be_another(name, cluster, host)
    return SideClients(host, virtual)


def connect_host(
    config: SyncerConfig,
    metrics: Metrics,
    stack: AsyncExitStack,
    *,
    replies: ByteBudget | None = None,
    moved: Callable[[], None] = _nothing,
) -> SideClient:
    """Return the client of the host, which is closed with ``stack``; nothing is sent yet.

    ``replies`` is for large replies while they arrive, None without a limit. ``moved`` is called
    when its kubeconfig is of another server or program than before.

    Raises:
        ConfigError: Its kubeconfig can't be used.
    """
    option = "host.kubeconfig"
    host = _connect(config.host, Side.HOST, "", option, metrics, replies, moved)
    stack.push_async_callback(host.close)
    return host


def connect_virtual(
    cluster: VirtualCluster,
    metrics: Metrics,
    stack: AsyncExitStack,
    *,
    replies: ByteBudget | None = None,
    moved: Callable[[], None] = _nothing,
) -> SideClient:
    """Return the client of a virtual cluster, as :func:`connect_host`.

    Raises:
        ConfigError: Its kubeconfig isn't given, or can't be used.
    """
    option = f"kubeconfig of virtual cluster {cluster.name}"
    if isinstance(cluster, SecretCluster):
        virtual = _connect_with_login(cluster, metrics, replies, moved)
    elif cluster.connection.kubeconfig or cluster.connection.context:
        connection = cluster.connection
        virtual = _connect(connection, Side.VIRTUAL, cluster.name, option, metrics, replies, moved)
    else:
        why = "is required to run: a kubeconfig (or a context) of its API server"
        raise ConfigError(Problem(why, path=option))
    stack.push_async_callback(virtual.close)
    return virtual


def must_be_another(name: str, virtual: SideClient, host: SideClient) -> None:
    """Compare the addresses of the two sides of a virtual cluster.

    Raises:
        ConfigError: They are the same.
    """
    if virtual.origin.address == host.origin.address:
        raise one_cluster(name, virtual, host)


def _connect(
    given: ConnectionSection,
    side: Side,
    name: str,
    option: str,
    metrics: Metrics,
    replies: ByteBudget | None,
    moved: Callable[[], None],
) -> SideClient:
    """Return a client by the files of a configured connection; ``option`` is for messages.

    Raises:
        ConfigError: The files can't be used.
    """
    settings = ConnectionSettings(
        given.kubeconfig,
        given.context,
        given.server,
        qps=given.qps,
        burst=given.burst,
    )
    try:
        login = read_login(settings, os.environ)
        for warning in warnings_of(login, side, option, may_run_programs=given.may_run_programs):
            log.warning(warning, cluster=name, side=side)
        client = connect(
            settings, side=side, environ=os.environ, name=name, replies=replies, moved=moved
        )
    except ConfigError as error:
        problems = [replace(each, path=each.path or option) for each in error.problems]
        raise type(error)(*problems) from error
    client.observer = metrics.client(client.virtual_cluster, side.value, client.origin.address)
    return client


def _connect_with_login(
    cluster: SecretCluster,
    metrics: Metrics,
    replies: ByteBudget | None,
    moved: Callable[[], None],
) -> SideClient:
    """Return a client by the login of a Secret."""
    settings = ConnectionSettings(qps=cluster.connection.qps, burst=cluster.connection.burst)
    side = Side.VIRTUAL
    client = connect_with_login(
        cluster.login,
        settings,
        side=side,
        name=cluster.name,
        replies=replies,
        moved=moved,
    )
    client.observer = metrics.client(client.virtual_cluster, side.value, client.origin.address)
    return client
