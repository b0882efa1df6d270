"""Connect to a cluster from its settings: read the login, and create the transport and client."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypedDict
from weakref import WeakSet

from syncer.api.errors import Unreachable
from syncer.api.objects import Side
from syncer.byte_budget import ByteBudget
from syncer.clusters import kubeconfig
from syncer.clusters.client import Client, SideClient
from syncer.clusters.codec import DecodeError
from syncer.clusters.credentials import LoginCredentials
from syncer.clusters.dialer import Dialer
from syncer.clusters.discovery import ServerVersion, version_of
from syncer.clusters.errors import ClusterOrigin
from syncer.clusters.http_transport import HttpTransport
from syncer.clusters.login import Login
from syncer.clusters.login_files import LoginFiles
from syncer.clusters.rate_limit import RateLimited
from syncer.clusters.transport import REQUEST_SECONDS, USER_AGENT, Transport


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """The settings of a connection to a cluster.

    Without ``kubeconfig``, kubectl's files are used, or the Pod's service account; ``in_cluster``
    requires the latter. ``server`` is a URL to use instead of the kubeconfig's. ``qps`` and
    ``burst`` limit requests per second; 0 is no limit. ``timeout`` is the deadline of a request, in
    seconds. ``user_agent`` names the program in audit logs, and ``field_manager`` in
    ``managedFields``; by default, as with API servers, the latter is the user agent up to its first
    ``/``.
    """

    kubeconfig: str = ""
    context: str = ""
    server: str = ""
    in_cluster: bool = False
    qps: float = 0.0
    burst: int = 0
    timeout: float = REQUEST_SECONDS
    user_agent: str = USER_AGENT
    field_manager: str = ""


def _nothing() -> None:
    return None


def connect(
    settings: ConnectionSettings,
    *,
    side: Side,
    environ: Mapping[str, str],
    name: str = "",
    replies: ByteBudget | None = None,
    moved: Callable[[], None] = _nothing,
) -> SideClient:
    """Create the client of a virtual cluster or of the host, in a running event loop.

    Nothing is sent yet. The kubeconfig is read again when it changes. ``moved`` is called if it
    then names another server; the client stays with the former one. ``replies`` is for large
    replies while they arrive, None without a limit.

    Raises:
        ConfigError: The kubeconfig can't be used.
    """
    credentials = _credentials(settings, environ, moved)
    return SideClient(name or side, side, **_parts(credentials, settings, replies))


def client(
    settings: ConnectionSettings,
    *,
    name: str,
    environ: Mapping[str, str],
    moved: Callable[[], None] = _nothing,
) -> Client:
    """Create the client of a cluster, in a running event loop; nothing is sent yet.

    ``moved`` as for :func:`connect`.

    Raises:
        ConfigError: The kubeconfig can't be used.
    """
    credentials = _credentials(settings, environ, moved)
    manager = settings.field_manager or manager_of(settings.user_agent)
    return Client(name, **_parts(credentials, settings), field_manager=manager)


def client_of(credentials: LoginCredentials, *, name: str) -> Client:
    """Create the client of a cluster with credentials that the caller renews."""
    return Client(name, **_parts(credentials, ConnectionSettings()))


def _credentials(
    settings: ConnectionSettings,
    environ: Mapping[str, str],
    moved: Callable[[], None],
) -> LoginCredentials:
    if settings.in_cluster:
        return LoginCredentials(kubeconfig.in_cluster(environ))
    files = LoginFiles(
        settings.kubeconfig,
        context=settings.context,
        environ=environ,
        server=settings.server,
    )
    return LoginCredentials(files.login, reread=files.reread, moved=moved)


class ReplaceableLogin:
    """A login that is in no file; :meth:`put` replaces it."""

    def __init__(self, login: Login) -> None:
        self.login = login
        self._users: WeakSet[LoginCredentials] = WeakSet()

    def put(self, login: Login) -> None:
        """Use a login from now on.

        Clients of the former login whose server has changed are notified, see :meth:`credentials`.
        """
        self.login = login
        for each in list(self._users):
            each.look()

    def credentials(self, moved: Callable[[], None]) -> LoginCredentials:
        """Return credentials that are renewed with the login; ``moved`` as for :func:`connect`."""
        used = self.login

        def reread() -> Login | None:
            nonlocal used
            if self.login is used:
                return None
            used = self.login
            return used

        credentials = LoginCredentials(used, reread=reread, moved=moved)
        self._users.add(credentials)
        return credentials


def connect_with_login(
    login: ReplaceableLogin,
    settings: ConnectionSettings,
    *,
    side: Side,
    name: str,
    replies: ByteBudget | None = None,
    moved: Callable[[], None] = _nothing,
) -> SideClient:
    """Create the client of a cluster with a login that is in no file; else like :func:`connect`."""
    return SideClient(name, side, **_parts(login.credentials(moved), settings, replies))


def origin_of(credentials: LoginCredentials) -> ClusterOrigin:
    """Return the origin of a cluster for its messages."""
    endpoint = credentials.login.endpoint

    def described() -> str:
        return str(credentials.login)  # which may have been replaced

    return ClusterOrigin(
        endpoint.authority,
        endpoint.source,
        described,
        credentials.complaint,
        credentials.ends,
    )


class _Parts(TypedDict):
    """The parts of a client."""

    transport: Transport
    origin: ClusterOrigin
    timeout: float
    dialer: Dialer


def _parts(
    credentials: LoginCredentials,
    settings: ConnectionSettings,
    replies: ByteBudget | None = None,
) -> _Parts:
    http = HttpTransport(
        credentials.login.endpoint,
        credentials,
        user_agent=settings.user_agent,
        replies=replies,
    )
    transport: Transport = http
    if settings.qps:
        transport = RateLimited(transport, qps=settings.qps, burst=settings.burst)
    return _Parts(
        transport=transport,
        origin=origin_of(credentials),
        timeout=settings.timeout,
        dialer=http.dialer,
    )


def manager_of(user_agent: str) -> str:
    """Return the field manager of a program, as API servers take it from its user agent."""
    return user_agent.partition("/")[0]


def read_login(settings: ConnectionSettings, environ: Mapping[str, str]) -> Login:
    """Return the address of the cluster and our credentials.

    Raises:
        ConfigError: The kubeconfig can't be used.
    """
    if settings.in_cluster:
        return kubeconfig.in_cluster(environ)
    return kubeconfig.read(
        settings.kubeconfig,
        context=settings.context,
        server=settings.server,
        environ=environ,
    )


async def first_contact(cluster: SideClient) -> ServerVersion:
    """Check that the API server answers, and return its version.

    The messages of the errors name the address, the file and the certificate at fault.

    Raises:
        Unreachable: There is no response, or not that of an API server, or the server isn't
            trusted.
        Unauthorized: The credentials aren't accepted.
    """
    try:
        return version_of(await cluster.fetch("/version"))
    except DecodeError as error:
        where = f"{cluster.title} ({cluster.origin.address})"
        raise Unreachable(f"{where} doesn't answer as an API server: {error}") from None
