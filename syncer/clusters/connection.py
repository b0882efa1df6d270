"""Connect to a cluster from its settings: read the login, create the transport, and explain
problems at the start.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from syncer.api.objects import Side
from syncer.clusters import kubeconfig
from syncer.clusters.client import Cluster
from syncer.clusters.credentials import LoginCredentials
from syncer.clusters.errors import Origin
from syncer.clusters.http_transport import HttpTransport
from syncer.clusters.login import Login
from syncer.clusters.rate_limit import RateLimited
from syncer.clusters.transport import REQUEST_SECONDS, Transport


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How to reach a cluster.

    Without ``kubeconfig`` it is found as by kubectl, or the Pod's service account is used;
    ``in_cluster`` requires the latter. ``qps`` and ``burst`` limit requests per second; 0 is no
    limit. ``timeout`` is the deadline of a request, in seconds.
    """

    kubeconfig: str = ""
    context: str = ""
    in_cluster: bool = False
    qps: float = 0.0
    burst: int = 0
    timeout: float = REQUEST_SECONDS


def connect(
    settings: ConnectionSettings,
    *,
    side: Side,
    environ: Mapping[str, str],
    name: str = "",
) -> Cluster:
    """Create the client of a cluster, in a running event loop; nothing is sent yet.

    Raises:
        ConfigError: The kubeconfig can't be used.
    """
    login = read_login(settings, environ)
    credentials = LoginCredentials(login)
    origin = Origin(login.endpoint.authority, login.endpoint.source, lambda: str(login), credentials.complaint)
    transport: Transport = HttpTransport(login.endpoint, credentials)
    if settings.qps:
        transport = RateLimited(transport, qps=settings.qps, burst=settings.burst)
    return Cluster(name or side, side, transport, origin=origin, timeout=settings.timeout)


def read_login(settings: ConnectionSettings, environ: Mapping[str, str]) -> Login:
    """Return the address of the cluster and our credentials.

    Raises:
        ConfigError: The kubeconfig can't be used.
    """
    if settings.in_cluster:
        return kubeconfig.in_cluster(environ)
    return kubeconfig.read(settings.kubeconfig, context=settings.context, environ=environ)


async def first_contact(cluster: Cluster) -> str:
    """Return the API server's version, such as ``v1.36.3``: it is there, trusted, and accepts the
    credentials.

    The messages of the errors name the address, the file and the certificate at fault.

    Raises:
        Unreachable: There is no response, or the server isn't trusted.
        Unauthorized: The credentials aren't accepted.
    """
    return str((await cluster.fetch("/version")).get("gitVersion", ""))
