"""Checks that the two sides of a virtual cluster are two clusters, and of their logins."""

import asyncio
from collections.abc import Iterator

from syncer.api.context import Settings
from syncer.api.errors import ClusterError, ConfigError, Forbidden, NotFound, Problem, Unauthorized
from syncer.api.objects import Key, Side
from syncer.clusters.client import SideClient
from syncer.clusters.codec import DecodeError
from syncer.clusters.login import Login
from syncer.clusters.sameness import dangers, is_own_token, is_same_cluster, is_same_server
from syncer.resources.kinds import NAMESPACES

#: Deadline of a comparison before the start, in seconds.
COMPARE_SECONDS = 5.0


async def must_differ(virtual: SideClient, host: SideClient, settings: Settings) -> None:
    """Refuse the same cluster on both sides, which would be synced into itself.

    Two addresses may lead to one cluster, and one address to two, by the name in the TLS handshake.
    So the uids of a namespace decide; if they can't be read, the addresses do.

    Raises:
        ConfigError: Both sides are the same cluster.
        ClusterError: A request failed.
    """
    same = await is_same_cluster(virtual, host, settings.names.host_namespaces())
    if same is None:
        same = is_same_server(virtual.origin.address, host.origin.address)
    if same:
        raise one_cluster(settings.cluster, virtual, host)


async def namespace_problem(host: SideClient, settings: Settings) -> Problem | None:
    """Return the problem of a configured host namespace; None without any.

    It isn't there, or can't be read.

    A daemon with only the rights of a Role in a namespace may not read other namespaces, whether
    they exist or not.

    Raises:
        ClusterError: A request failed.
    """
    for name in settings.names.host_namespaces() or ():
        try:
            await host.get(NAMESPACES, Key("", name))
        except NotFound:
            why = f"the namespace {name} doesn't exist on the host."
            hint = "Create it, or correct the name."
        except Forbidden:
            why = f"the daemon may not read the namespace {name} of the host"
            why = f"{why}: it doesn't exist, or gives it no rights."
            hint = "Correct the name, or create it and apply what `syncer rbac --side host` prints."
        else:
            continue
        return Problem(why, path=f"host namespace of virtual cluster {settings.cluster}", hint=hint)
    return None


def one_cluster(name: str, virtual: SideClient, host: SideClient) -> ConfigError:
    """Return the error that both sides are the same cluster."""
    addresses = sorted({virtual.origin.address, host.origin.address})
    why = f"the virtual and the host cluster are the same cluster, at {' and '.join(addresses)}."
    hint = "Its objects would be copied into itself. Name the kubeconfig of each."
    return ConfigError(Problem(why, path=f"kubeconfig of virtual cluster {name}", hint=hint))


async def compared(virtual: SideClient, host: SideClient, settings: Settings) -> str:
    """Compare the two sides before the start; return why they can't be, or ``""``.

    Raises:
        ConfigError: Both sides are the same cluster, or the host namespace isn't there.
        Unauthorized: A side doesn't accept the credentials.
    """
    try:
        async with asyncio.timeout(COMPARE_SECONDS):
            await must_differ(virtual, host, settings)
            if problem := await namespace_problem(host, settings):
                raise ConfigError(problem)
    except Unauthorized:
        raise
    except (ClusterError, TimeoutError) as error:
        if is_same_server(virtual.origin.address, host.origin.address):
            raise one_cluster(settings.cluster, virtual, host) from error
        return f"not compared with its host: {error or f'no answer within {COMPARE_SECONDS:g} s'}"
    return ""


async def must_accept(cluster: SideClient) -> None:
    """Query a path of a side that requires credentials. A side without an answer is passed over.

    Raises:
        Unauthorized: It doesn't accept the credentials.
    """
    try:
        async with asyncio.timeout(COMPARE_SECONDS):
            await cluster.fetch("/api")
    except Unauthorized:
        raise
    except (ClusterError, DecodeError, TimeoutError):
        return


def warnings_of(login: Login, side: Side, path: str, *, may_run_programs: bool) -> Iterator[str]:
    """Yield warnings about the login of a side; ``path`` is where its kubeconfig is configured.

    Raises:
        ConfigError: The login runs a program, and may not, or would send the daemon's own token to
            the tenant's API server.
    """
    if login.plugin is not None and not may_run_programs:
        why = "it runs a program for its credentials"
        why = f"{why}, and allowExec of this virtual cluster is false."
        hint = "Use a token or a client certificate"
        hint = f"{hint}, or set allowExec to true if you wrote this kubeconfig yourself."
        raise ConfigError(Problem(why, path=path, hint=hint))
    if side is Side.VIRTUAL and is_own_token(login):
        why = "its tokenFile is the token of this Pod's own service account, which is the host's."
        hint = "The tenant's API server would get it. Use a token of the virtual cluster."
        raise ConfigError(Problem(why, path=path, hint=hint))
    yield from dangers(login, side)
