"""Checks whether two clients connect to the same cluster, and dangers in their logins."""

import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

from syncer.api.errors import Forbidden, NotFound
from syncer.api.objects import Key, Resource, Side, uid_of
from syncer.clusters.client import SideClient
from syncer.clusters.login import Login

_NAMESPACES = Resource("v1", "Namespace", "namespaces", namespaced=False)
#: Every cluster has this namespace; its uid commonly identifies the cluster.
_EVERYWHERE = "kube-system"
_EXPOSED = "an attacker between the daemon and this server can read all Secrets"
#: The folder in a Pod with the credentials of its service account.
_SERVICE_ACCOUNTS = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def is_same_server(one: str, other: str) -> bool:
    """Return True if two addresses (``host:port``) are the same, or their names resolve so."""
    if one == other:
        return True
    host, _, port = one.rpartition(":")
    other_host, _, other_port = other.rpartition(":")
    return port == other_port and bool(_looked_up(host) & _looked_up(other_host))


def _looked_up(host: str) -> frozenset[str]:
    try:
        found = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)
    except OSError:
        return frozenset()
    return frozenset(str(address[0]) for *_, address in found)


async def is_same_cluster(
    virtual: SideClient,
    host: SideClient,
    host_namespaces: Sequence[str] | None,
) -> bool | None:
    """Return True if a namespace has the same uid on both sides; None if that can't be read.

    ``host_namespaces`` are the namespaces that the host's user may certainly read; None for all.
    ``kube-system`` is tried last.

    Raises:
        ClusterError: A request failed.
    """
    for name in (*(host_namespaces or ()), _EVERYWHERE):
        key = Key("", name)
        try:
            on_host = await host.get(_NAMESPACES, key)
        except (Forbidden, NotFound):
            continue
        try:
            return uid_of(await virtual.get(_NAMESPACES, key)) == uid_of(on_host)
        except NotFound:
            return False
        except Forbidden:
            continue
    return None


def dangers(login: Login, side: Side) -> Iterator[str]:
    """Yield warnings about a login that is used although it is not safe."""
    if login.insecure:
        yield f"insecure-skip-tls-verify is set: {_EXPOSED}"
    elif not (login.endpoint.tls or login.endpoint.host in ("localhost", "127.0.0.1", "::1")):
        yield f"the address begins with http://: {_EXPOSED}"
    if side is Side.VIRTUAL and login.plugin is not None:
        advice = "write it yourself, take none from a tenant"
        yield f"the kubeconfig of the virtual cluster runs a program: {advice}"


def is_own_token(login: Login) -> bool:
    """Return True if the token is that of the Pod's own service account, so of the host."""
    if login.token_file is None:
        return False
    file = login.token_file.resolve()
    own = _SERVICE_ACCOUNTS.resolve()
    return own in file.parents or Path("/run/secrets/kubernetes.io/serviceaccount") in file.parents
