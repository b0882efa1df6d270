"""Track whether a cluster answers: a single prober instead of each request finding out for itself."""

import asyncio
from collections.abc import Callable
from operator import not_

from tenacity import AsyncRetrying, retry_if_result, wait_random_exponential

from syncer.api.errors import SyncerError
from syncer.clusters.client import Cluster
from syncer.clusters.transport import ConnectionFailed, HttpRequest
from syncer.observe.logs import get_logger

#: Seconds between probes of a cluster that doesn't answer: at most the first delay, doubled up to
#: the last, each time a random part of it.
FIRST_PROBE, LAST_PROBE = 0.2, 5.0
#: Timeout of a probe, in seconds.
PROBE_SECONDS = 5.0
_PROBE = HttpRequest("GET", "/readyz", timeout=PROBE_SECONDS)

log = get_logger(__name__)


class Connection:
    """The state of a connection: up until a request got no answer and a probe gets none either, then
    down until a probe succeeds. A cluster that answers the probe is not lost: the request alone is.
    """

    def __init__(self, cluster: Cluster, *, lost: Callable[[], None], back: Callable[[], None]) -> None:
        self.cluster = cluster
        #: The reason why the cluster doesn't answer, or None.
        self.error: SyncerError | None = None
        self._tell_lost, self._tell_back = lost, back
        #: The error of the request whose probe is due.
        self._suspicion: SyncerError | None = None
        self._suspected = asyncio.Event()
        self._about = {"cluster": cluster.virtual_cluster, "side": cluster.side}

    @property
    def up(self) -> bool:
        """True if the cluster answered last time."""
        return self.error is None

    def lost(self, error: SyncerError) -> None:
        """Report a request that got no answer."""
        if self.error is None and self._suspicion is None:
            self._suspicion = error
            self._suspected.set()

    async def run(self) -> None:
        """Probe whenever a request got no answer, and while the cluster is lost, until cancelled."""
        wait = wait_random_exponential(multiplier=FIRST_PROBE, max=LAST_PROBE)
        until_it_answers = AsyncRetrying(retry=retry_if_result(not_), wait=wait)
        while True:
            await self._suspected.wait()
            lost = not await self._answers()
            self._suspected.clear()
            self.error, self._suspicion = self._suspicion if lost else None, None
            if not lost:
                continue
            log.warning("no answer from a cluster; its requests wait", **self._about, error=str(self.error))
            self._tell_lost()
            await until_it_answers(self._answers)
            self.error = None
            log.info("a cluster answers again", **self._about)
            self._tell_back()

    async def _answers(self) -> bool:
        try:
            reply = await self.cluster.transport.send(_PROBE)
        except ConnectionFailed:
            return False
        return reply.status < 500
