"""From settings to a connected cluster: reads the login, picks the transport, and says what is wrong at the start."""

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
    """How to reach one cluster.

    Without ``kubeconfig`` it is found as kubectl finds it, or the Pod's service account is used; ``in_cluster`` insists
    on the latter. ``qps`` and ``burst`` limit the requests a second; 0: no limit. ``timeout`` is the deadline of a
    request in seconds.
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
    """Make the client of a cluster, within a running event loop; nothing is sent yet.

    Raises :class:`~syncer.api.errors.ConfigError` where the kubeconfig can't be used.
    """
    login = read_login(settings, environ)
    credentials = LoginCredentials(login)
    origin = Origin(login.endpoint.authority, login.endpoint.source, lambda: str(login), credentials.complaint)
    transport: Transport = HttpTransport(login.endpoint, credentials)
    if settings.qps:
        transport = RateLimited(transport, qps=settings.qps, burst=settings.burst)
    return Cluster(name or side, side, transport, origin=origin, timeout=settings.timeout)


def read_login(settings: ConnectionSettings, environ: Mapping[str, str]) -> Login:
    """Where the cluster is and who we are to it; raises :class:`~syncer.api.errors.ConfigError`."""
    if settings.in_cluster:
        return kubeconfig.in_cluster(environ)
    return kubeconfig.read(settings.kubeconfig, context=settings.context, environ=environ)


async def first_contact(cluster: Cluster) -> str:
    """Ask the API server for its version, such as ``v1.36.3``: it is there, trusted, and accepts the credentials.

    Raises :class:`~syncer.api.errors.Unreachable` and :class:`~syncer.api.errors.Unauthorized`, whose messages name the
    address, the file and the certificate at fault.
    """
    return str((await cluster.fetch("/version")).get("gitVersion", ""))
