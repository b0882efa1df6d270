"""Whether the clusters of a daemon answer, and accept its credentials.

Its connections are those of a cache of clusters. The cache probes each cluster at intervals, and at
once when a request got no answer or a 401; no request finds out for itself when the cluster is
back.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable, Mapping

from syncer.api.errors import (
    NoCredentials,
    NotConnected,
    SyncerError,
    TooMany,
    Unauthorized,
    Unreachable,
)
from syncer.api.objects import Side
from syncer.clusters.client import SideClient
from syncer.clusters.connection import first_contact
from syncer.clusters.discovery import ServerVersion
from syncer.multicluster.cache_options import ClusterCacheOptions
from syncer.multicluster.cluster_cache import ClusterCache
from syncer.multicluster.cluster_status import ClusterStatus, State
from syncer.multicluster.logins import Reason
from syncer.multicluster.providers import ProvidedCluster
from syncer.observe.logs import get_logger

#: Seconds between two probes of a cluster that answers. Each checks the files of its credentials,
#: too.
PROBE_INTERVAL = 10.0
#: Probes in a row without an answer after which a cluster is lost; one, if a request got no answer
#: either.
PROBES_LOST = 3
#: Maximum seconds between two probes of a cluster that doesn't answer.
LAST_PROBE = 5.0
#: Timeout of a probe, in seconds.
PROBE_SECONDS = 5.0
#: Virtual clusters that are dialled at the same time: at a start, or after an outage, all of them
#: are due. One that doesn't answer keeps its turn for one or two timeouts of a probe.
DIALS = 50
#: The host among the names of virtual clusters, of which none has a blank.
_HOST = "the host"

#: The errors of a cluster that is lost, by the reason; all others are :class:`Unreachable`.
_KINDS: Mapping[str, type[Unauthorized | Unreachable]] = {
    Reason.UNAUTHORIZED: Unauthorized,
    Reason.NO_CREDENTIALS: NoCredentials,
}

log = get_logger(__name__)


class Connections:
    """The connections of a daemon, over the transports of its clients."""

    def __init__(self, *, clock: Callable[[], float], rng: random.Random) -> None:
        """Create them, in a running event loop; nothing is sent yet."""
        options = ClusterCacheOptions(
            user_agent="vsyncer",
            probe_path="/readyz",
            login_path="/api",
            probe_interval=PROBE_INTERVAL,
            probe_timeout=PROBE_SECONDS,
            probe_threshold=PROBES_LOST,
            answers=_is_answer,
            max_retry_delay=LAST_PROBE,
            dials=DIALS,
        )
        self._cache = ClusterCache([], options, environ={}, clock=clock, rng=rng)
        self._source = self._cache.source("daemon")
        self._all: dict[str, Connection] = {}

    def add(
        self,
        cluster: SideClient,
        *,
        lost: Callable[[], None],
        back: Callable[[], None],
    ) -> "Connection":
        """Return the connection of a cluster.

        It is kept from :meth:`Connection.reach`, or while its :meth:`Connection.run` runs.

        ``lost`` is called when the cluster doesn't answer any more, and ``back`` when it does
        again.
        """
        name = _HOST if cluster.side is Side.HOST else cluster.virtual_cluster
        return Connection(self, name, cluster, lost, back)

    async def run(self) -> None:
        """Keep them until cancelled."""
        try:
            async for name, _ in self._source:
                if name in self._all:
                    self._all[name].look()
        finally:
            await self.close()

    async def close(self) -> None:
        """Keep none any longer. The clients stay open."""
        self._all.clear()
        await self._cache.close()

    def begin(self, connection: "Connection") -> None:
        """Keep a connection; nothing changes if it is kept already."""
        self._all[connection.name] = connection
        is_host = connection.cluster.side is Side.HOST
        self._cache.put(
            connection.name,
            ProvidedCluster(client=connection.cluster, queue=not is_host),
        )

    def end(self, connection: "Connection") -> None:
        """Keep a connection no longer, if it is kept."""
        if self._all.get(connection.name) is connection:
            del self._all[connection.name]
            self._cache.remove(connection.name)

    async def removed(self, name: str) -> None:
        """Wait until a connection that is no longer kept has ended, with its probe."""
        await self._cache.removed(name)

    async def dialled(self, name: str) -> None:
        """Wait until a cluster has its turn to be dialled."""
        await self._cache.dialled(name)

    async def attempted(self, name: str) -> ClusterStatus:
        """Wait until a connection is up, or the next attempt has failed; return its state then."""
        return await self._cache.attempted(name)

    def suspect(self, name: str) -> None:
        """Probe a cluster now."""
        self._cache.suspect(name)

    def status(self, name: str) -> ClusterStatus:
        """Return the state of a connection."""
        return self._cache.get_status(name)


class Connection:
    """The state of a connection.

    It is up at first. It is down after some probes have failed in a row, or one after a request got
    no answer or a 401, and up again after a probe that succeeds. If a cluster answers the probe,
    only the request was lost.
    """

    def __init__(
        self,
        among: Connections,
        name: str,
        cluster: SideClient,
        lost: Callable[[], None],
        back: Callable[[], None],
    ) -> None:
        self.name = name
        self.cluster = cluster
        #: The version of the API server, as of :meth:`reach`.
        self.version = ServerVersion()
        self._error: SyncerError | None = None
        self._among = among
        self._on_lost = lost
        self._on_back = back
        #: The keys of log lines about the connection.
        self._about = {"cluster": cluster.virtual_cluster, "side": cluster.side}

    @property
    def up(self) -> bool:
        """True if the cluster answered last time, and accepted the credentials."""
        return self._error is None

    @property
    def error(self) -> SyncerError | None:
        """Why the cluster is lost, of a class that says how: it doesn't accept the credentials,
        there are none, or it doesn't answer; None if it isn't lost.
        """
        if self._error is not None:
            status = self._among.status(self.name)
            if status.state is not State.CONNECTED and type(self._error) is not _kind_of(status):
                self._error = _error_of(status)  # the cause has changed
        return self._error

    @property
    def trouble(self) -> str:
        """Why the cluster is lost, in a sentence without addresses; ``""`` if it isn't."""
        match self.error:
            case None:
                return ""
            case Unauthorized():
                return f"the {self.cluster.side} cluster does not accept the daemon's credentials"
            case NoCredentials():
                why = f"there are no credentials for the {self.cluster.side} cluster"
                return f"{why}: the program that gives them has not answered"
            case _:
                return f"the {self.cluster.side} cluster does not answer"

    @property
    def reason(self) -> str:
        """Why the cluster is lost, with the error, which may name addresses; ``""`` if it isn't."""
        return f"{self.trouble}: {self.error}" if self.error is not None else ""

    def lost(self, error: SyncerError) -> None:
        """Report a request that got no answer, or a 401."""
        if self.up:
            self._among.suspect(self.name)
            self._look(error)

    async def reach(self, seconds: float) -> None:
        """Keep the connection until :meth:`end`, and wait until the cluster gives any answer.

        Raises:
            SyncerError: It hasn't answered in so many seconds from its first turn to be dialled, or
                not as an API server that accepts the credentials.
        """
        self._among.begin(self)
        limit = asyncio.timeout(None)
        turn = asyncio.create_task(self._begin_time(limit, seconds))
        failure: Unreachable | None = None
        is_logged = False
        try:
            async with limit:
                while failure := await self._attempted():
                    if not is_logged:
                        log.warning("no answer yet; retrying", **self._about, error=str(failure))
                    is_logged = True
        except TimeoutError:
            raise failure or self._silent(seconds) from None
        finally:
            turn.cancel()

    async def _begin_time(self, limit: asyncio.Timeout, seconds: float) -> None:
        """Let a wait end so many seconds after the first turn to be dialled."""
        with contextlib.suppress(NotConnected):  # it has left
            await self._among.dialled(self.name)
            limit.reschedule(asyncio.get_running_loop().time() + seconds)

    async def _attempted(self) -> Unreachable | None:
        """Wait until the cluster answers; return the error of an attempt that got no answer.

        Raises:
            SyncerError: As for :meth:`reach`.
        """
        status = await self._among.attempted(self.name)
        if status.state is not State.CONNECTED and status.reason == Reason.NO_CREDENTIALS:
            return NoCredentials(status.message)
        try:
            self.version = await self._version()
        except Unreachable as error:
            if status.state is not State.CONNECTED:
                return error
            # Otherwise, a single request was lost.
        except TooMany:
            pass  # an API server that asks to come back is there
        if status.state is not State.CONNECTED and status.reason == Reason.UNAUTHORIZED:
            raise _error_of(status)  # the version is served without credentials, too
        log.info("connected", **self._about, version=self.version.text)
        return None

    async def _version(self) -> ServerVersion:
        """Query the version, whose errors explain most.

        Raises:
            Unreachable: There is no answer.
            SyncerError: There is another one than that of an API server that accepts the
                credentials.
        """
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                return await first_contact(self.cluster)
        except TimeoutError:
            raise self._silent(PROBE_SECONDS) from None

    def _silent(self, seconds: float) -> Unreachable:
        where = f"{self.cluster.title} ({self.cluster.origin.address})"
        return Unreachable(f"{where} has given no answer within {seconds:g} s")

    async def run(self) -> None:
        """Keep the connection until cancelled."""
        self._among.begin(self)
        try:
            await asyncio.Event().wait()
        finally:
            self.end()

    def end(self) -> None:
        """Keep the connection no longer, if it is kept."""
        self._among.end(self)

    async def ended(self) -> None:
        """Wait, after :meth:`end`, until nothing uses the client for the connection."""
        await self._among.removed(self.name)

    def look(self) -> None:
        """Check the state of the connection, which may have changed."""
        self._look(None)

    def _look(self, error: SyncerError | None) -> None:
        status = self._among.status(self.name)
        if self.up and status.health.failures and status.state is not State.CONNECTED:
            self._error = error or _error_of(status)
            log.warning("cluster lost; its requests wait", **self._about, error=str(self.error))
            self._on_lost()
        elif not self.up and status.state is State.CONNECTED:
            self._error = None
            log.info("cluster back", **self._about)
            self._on_back()


def _is_answer(status: int) -> bool:
    """Return True if an HTTP status shows that an API server is there and works."""
    return status < 500


def _error_of(status: ClusterStatus) -> SyncerError:
    return _kind_of(status)(status.message)


def _kind_of(status: ClusterStatus) -> type[Unauthorized | Unreachable]:
    return _KINDS.get(status.reason, Unreachable)
