"""Checks of a configuration before a start, without writing anything."""

from contextlib import AsyncExitStack

from syncer.api.errors import ConfigError
from syncer.api.objects import Side
from syncer.clusters.login import Login
from syncer.config import SyncerConfig
from syncer.engine import api_server
from syncer.engine.connecting import connect_all, login_of
from syncer.engine.sides import compared, warnings_of
from syncer.engine.startup import untrusted
from syncer.observe.metrics import Metrics
from syncer.version import VERSION


def check_api_servers(config: SyncerConfig) -> None:
    """Check before a start that the address of each virtual API server for pods is known. Nothing is connected to.

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


async def compare(config: SyncerConfig) -> list[str]:
    """Compare both sides of each virtual cluster before a start; return what couldn't be, and warnings.

    Sides are not compared if a kubeconfig can't be used, as it may be on another machine, or if it runs
    a program.

    Raises:
        ConfigError: Both sides are the same cluster, the host namespace isn't there, pods can't reach
            their API server, or the tenant's API server would get the daemon's own token.
    """
    said = []
    for each in config.clusters():
        place = f"kubeconfig of virtual cluster {each.name}"
        logins: dict[Side, Login] = {}
        reasons = []
        for given, side, path in ((each.connection, Side.VIRTUAL, place), (config.host, Side.HOST, "host.kubeconfig")):
            if side is Side.VIRTUAL and not (given.kubeconfig or given.context):
                reasons.append(f"{path}: is not given")
                continue
            try:
                login = logins[side] = login_of(given)
            except ConfigError as error:
                reasons.extend(f"{path}: {problem}" for problem in error.problems)
                continue
            if login.plugin:
                reasons.append(f"{path}: it runs a program, which is left alone here")
        for side, login in logins.items():
            may_run = side is Side.HOST or each.connection.may_run_programs
            warnings = warnings_of(login, side, place, may_run_programs=may_run)
            said += [f"{each.name}: {side}: {warning}" for warning in warnings]
        said += [f"{each.name}: not compared with its host: {reason}" for reason in reasons]
        if not reasons:
            async with AsyncExitStack() as stack:
                clusters = connect_all(config, (each,), Metrics(version=VERSION), stack)
                problem = await compared(clusters.virtual[each.name], clusters.host, each.settings())
                problem = problem or await untrusted(each.settings(), logins[Side.VIRTUAL], clusters.host)
                said += [f"{each.name}: {problem}"] if problem else []
    return said
