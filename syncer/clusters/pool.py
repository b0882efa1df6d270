"""The keep-alive connections to one API server: the last one used goes first, and who finds none waits in line."""

import asyncio
import ssl
from collections import deque
from collections.abc import Awaitable, Callable

from syncer.clusters.credentials import Access
from syncer.clusters.http1 import Exchange
from syncer.clusters.transport import DeadlineExceeded

#: Connections to one API server; more do not make it faster, and a server that hangs must not collect them.
CONNECTIONS = 32
#: Seconds after which an idle connection is not used again: below the 90 s after which a kube-apiserver closes it,
#: so that no request is lost to a connection that the server closes at the same moment.
IDLE_SECONDS = 60.0

Open = Callable[[Access, float], Awaitable[Exchange]]


class Pool:
    """Up to ``size`` connections, opened by ``open_connection(access, deadline)``.

    A request first takes one of ``size`` places, then an idle connection or, where there is none, a new one; so
    there are never more connections than places.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, open_connection: Open, *, size: int = CONNECTIONS) -> None:
        self._loop, self._open, self._size = loop, open_connection, size
        self._places = size
        self._idle: list[Exchange] = []
        self._busy: set[Exchange] = set()
        self._waiters: deque[asyncio.Future[None]] = deque()

    async def acquire(self, access: Access, *, deadline: float) -> Exchange:
        """Return a connection that was made with the TLS context of this access, once there is a place for it.

        Raises:
            DeadlineExceeded: All places were taken until the deadline.
            ConnectionFailed: A new connection could not be made.
        """
        if self._places:
            self._places -= 1
        else:
            await self._wait(deadline)
        connection = self._take(access.tls)
        if connection is None:
            try:
                connection = await self._open(access, deadline)
            except BaseException:
                self._free_place()
                raise
        self._busy.add(connection)
        return connection

    def release(self, connection: Exchange) -> None:
        """Give a connection back after its reply."""
        self._busy.discard(connection)
        if connection.open:
            connection.idle_since = self._loop.time()
            self._idle.append(connection)
        self._free_place()

    def discard(self, connection: Exchange) -> None:
        """Give a connection back that must not be used again."""
        connection.close()
        self.release(connection)

    def drop_idle(self) -> None:
        """Close every connection that is not in use."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    def close(self) -> None:
        """Close every connection; requests under way fail."""
        self.drop_idle()
        for connection in tuple(self._busy):
            connection.close()

    def _take(self, tls: ssl.SSLContext | None) -> Exchange | None:
        fresh = self._loop.time() - IDLE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if connection.open and connection.tls is tls and connection.idle_since > fresh:
                return connection
            connection.close()
        return None

    async def _wait(self, deadline: float) -> None:
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout_at(deadline):
                await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled():
                self._free_place()
            if isinstance(error, TimeoutError):
                raise DeadlineExceeded(f"all {self._size} connections were busy until the deadline") from None
            raise

    def _free_place(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._places += 1
