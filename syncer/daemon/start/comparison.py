"""Checks of a configuration before a start, without writing anything."""

from contextlib import AsyncExitStack
from typing import NamedTuple

from syncer.api.errors import ConfigError, Unauthorized
from syncer.api.objects import Side
from syncer.clusters.login import Login
from syncer.config import SyncerConfig, VirtualCluster
from syncer.daemon.start import api_server
from syncer.daemon.start.connecting import connect_all, connect_host, connect_virtual, login_of
from syncer.daemon.start.sides import compared, must_accept, warnings_of
from syncer.daemon.start.startup import untrusted
from syncer.observe.metrics import Metrics
from syncer.version import VERSION


def check_api_servers(config: SyncerConfig) -> None:
    """Check before a start that the address of each virtual API server for pods is known.

    No connection is made.

    A kubeconfig that can't be read is passed over, as it may be on another machine.

    Raises:
        ConfigError: An address is neither given nor in the virtual kubeconfig.
    """
    for each in config.clusters():
        if each.connection.kubeconfig or each.connection.context:
            try:
                login = login_of(each.connection)
            except ConfigError:
                continue
            api_server.check(each.settings(), login)


class Comparison(NamedTuple):
    """The result of comparing both sides of each virtual cluster before a start, in sentences."""

    #: What couldn't be compared, and warnings.
    notes: list[str]
    #: Which clusters don't accept the credentials of their kubeconfigs.
    refusals: list[str]


async def compare(config: SyncerConfig) -> Comparison:
    """Compare both sides of each virtual cluster before a start.

    Sides are not compared if a kubeconfig can't be used, as it may be on another machine, or if it
    runs a program. Whether the other side accepts the credentials is checked nevertheless.

    Raises:
        ConfigError: Both sides are the same cluster, the host namespace isn't there, pods can't
            reach their API server, or the tenant's API server would get the daemon's own token.
    """
    notes: list[str] = []
    refusals = dict[str, None]()
    for each in config.clusters():
        virtual_path = f"kubeconfig of virtual cluster {each.name}"
        connections = (
            (each.connection, Side.VIRTUAL, virtual_path),
            (config.host, Side.HOST, "host.kubeconfig"),
        )
        logins: dict[Side, Login] = {}
        reasons: list[str] = []
        for given, side, path in connections:
            if side is Side.VIRTUAL and not (given.kubeconfig or given.context):
                reasons.append(f"{path}: is not given")
                continue
            try:
                login = login_of(given)
            except ConfigError as error:
                reasons.extend(f"{path}: {problem}" for problem in error.problems)
                continue
            logins[side] = login
            if login.plugin:
                reasons.append(f"{path}: the kubeconfig runs a program, which is not run here")

        for side, login in logins.items():
            may_run = side is Side.HOST or each.connection.may_run_programs
            warnings = warnings_of(login, side, virtual_path, may_run_programs=may_run)
            notes += [f"{each.name}: {side}: {warning}" for warning in warnings]
        notes += [f"{each.name}: not compared with its host: {reason}" for reason in reasons]

        try:
            if reasons:
                for side, login in logins.items():
                    if not login.plugin:
                        await _must_accept(config, each, side)
            elif problem := await _compared(config, each, logins[Side.VIRTUAL]):
                notes.append(f"{each.name}: {problem}")
        except Unauthorized as error:
            refusals[str(error)] = None
    return Comparison(notes, list(refusals))


async def _compared(config: SyncerConfig, cluster: VirtualCluster, login: Login) -> str:
    """Compare both sides of a virtual cluster.

    Return the problem of its API server's certificate, or why they can't be compared, or ``""``.

    Raises:
        SyncerError: As for :func:`compare` and :func:`.sides.compared`.
    """
    async with AsyncExitStack() as stack:
        clusters = connect_all(config, (cluster,), Metrics(version=VERSION), stack)
        problem = await compared(clusters.virtual[cluster.name], clusters.host, cluster.settings())
        return problem or await untrusted(cluster.settings(), login, clusters.host)


async def _must_accept(config: SyncerConfig, cluster: VirtualCluster, side: Side) -> None:
    """Ask a side of a virtual cluster whether it accepts the credentials.

    Raises:
        Unauthorized: It doesn't.
    """
    metrics = Metrics(version=VERSION)
    async with AsyncExitStack() as stack:
        if side is Side.HOST:
            await must_accept(connect_host(config, metrics, stack))
        else:
            await must_accept(connect_virtual(cluster, metrics, stack))
