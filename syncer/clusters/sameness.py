"""Whether two clients are of the same cluster, and dangers in their logins."""

import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

from syncer.api.errors import Forbidden, Missing
from syncer.api.objects import Key, Resource, Side, uid_of
from syncer.clusters.client import SideClient
from syncer.clusters.login import Login

_NAMESPACES = Resource("v1", "Namespace", "namespaces", namespaced=False)
#: Every cluster has it, with a uid of its own, which is commonly taken for that of the cluster.
_EVERYWHERE = "kube-system"
#: Where a Pod finds the credentials of its service account.
_SERVICE_ACCOUNTS = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def is_same_server(one: str, other: str) -> bool:
    """Return True if two addresses (``host:port``) are the same, also after their names are looked
    up.
    """
    if one == other:
        return True
    (host, _, port), (other_host, _, other_port) = one.rpartition(":"), other.rpartition(":")
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

    ``host_namespaces`` are those that the host's user surely may read; None for all. Where none of
    them tells, ``kube-system`` is asked for.

    Raises:
        ClusterError: A request failed.
    """
    for name in (*(host_namespaces or ()), _EVERYWHERE):
        key = Key("", name)
        try:
            on_host = await host.get(_NAMESPACES, key)
        except (Forbidden, Missing):
            continue
        try:
            return uid_of(await virtual.get(_NAMESPACES, key)) == uid_of(on_host)
        except Missing:
            return False
        except Forbidden:
            continue
    return None


def dangers(login: Login, side: Side) -> Iterator[str]:
    """Yield warnings about a login that is used although it is not safe."""
    if login.insecure:
        yield "insecure-skip-tls-verify is set: whoever is between the daemon and this server reads all Secrets"
    elif not (login.endpoint.tls or login.endpoint.host in ("localhost", "127.0.0.1", "::1")):
        yield "the address begins with http://: whoever is between the daemon and this server reads all Secrets"
    if side is Side.VIRTUAL and login.plugin is not None:
        yield "the kubeconfig of the virtual cluster runs a program: write it yourself, take none from a tenant"


def is_own_token(login: Login) -> bool:
    """Return True if the token is that of the Pod's own service account, which is one of the
    host's.
    """
    if login.token_file is None:
        return False
    file = login.token_file.resolve()
    own = _SERVICE_ACCOUNTS.resolve()
    return own in file.parents or Path("/run/secrets/kubernetes.io/serviceaccount") in file.parents
