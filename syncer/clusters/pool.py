"""A pool of keep-alive connections to an API server.

The last used goes first; requests wait in line for a free one.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from syncer.clusters.credentials import Access
from syncer.clusters.http1 import Exchange
from syncer.clusters.transport import DeadlineExceeded

#: Maximum number of connections to an API server; more are not faster, and a hanging server must
#: not collect them.
CONNECTIONS = 32
#: Seconds after which an idle connection is closed: less than the 90 s after which a kube-apiserver
#: closes it, so that no request is lost to a connection that is closed at the same moment.
IDLE_SECONDS = 60.0
#: Maximum number of idle connections to all API servers together that are kept for so long, for the
#: next burst. Each takes 60 kB here and at the API server. A burst of 50 Pods would otherwise open
#: some 60, each with a handshake of 0.8 ms of CPU.
SPARES = 128
#: Seconds after which an idle connection is closed while there are more than :data:`SPARES`.
SPARE_SECONDS = 10.0
#: Maximum number of idle connections whose buffers a large response has stretched: as many such
#: requests as a virtual cluster has at a time, for the handshake of another one takes 0.7 ms of
#: CPU.
STRETCHED = 4
#: As how many of :data:`SPARES` such a one counts, by its memory.
STRETCHED_WEIGHT = 10

Open = Callable[[Access, float], Awaitable[Exchange]]


@dataclass(slots=True)
class _Idle:
    """The idle connections of all pools of an event loop."""

    #: Their number; one with stretched buffers counts as :data:`STRETCHED_WEIGHT`.
    weight: int = 0


_idle_of: WeakKeyDictionary[asyncio.AbstractEventLoop, _Idle] = WeakKeyDictionary()


def _weight(connection: Exchange) -> int:
    if connection.stretched:
        return STRETCHED_WEIGHT
    return 1


class Pool:
    """Up to ``size`` connections, opened by ``open_connection(access, deadline)``.

    A request first takes one of ``size`` slots, then an idle connection or, if there is none, a new
    one; so there are never more connections than slots, but for those of urgent requests.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        open_connection: Open,
        *,
        size: int = CONNECTIONS,
    ) -> None:
        self._loop = loop
        self._open = open_connection
        self._size = size
        self._free_slots = size
        self._idle: list[Exchange] = []
        self._idle_of_all = _idle_of.setdefault(loop, _Idle())
        self._busy: set[Exchange] = set()
        self._waiters: deque[asyncio.Future[None]] = deque()

    def at_once(self, tls: ssl.SSLContext | None) -> Exchange | None:
        """Return an idle connection of this TLS context, with a slot; None if either is missing.

        Then :meth:`acquire` waits for a slot, or opens a connection.
        """
        if self._free_slots <= 0:
            return None
        connection = self.take(tls)
        if connection is not None:
            self._free_slots -= 1
            self._busy.add(connection)
        return connection

    async def acquire(self, access: Access, *, deadline: float, urgent: bool = False) -> Exchange:
        """Return a connection with the TLS context of this access, once there is a free slot.

        An ``urgent`` request doesn't wait for a slot.

        Raises:
            DeadlineExceeded: All slots were taken until the deadline.
            ConnectionFailed: A new connection could not be made.
        """
        if self._free_slots > 0 or urgent:
            self._free_slots -= 1
        else:
            await self._wait(deadline)
        connection = self.take(access.tls)
        if connection is None:
            try:
                connection = await self._open(access, deadline)
            except BaseException:
                self._free_slot()
                raise
        self._busy.add(connection)
        return connection

    def release(self, connection: Exchange) -> None:
        """Return a connection to the pool after its response."""
        self._busy.discard(connection)
        if connection.stretched and sum(one.stretched for one in self._idle) >= STRETCHED:
            connection.close()
        if connection.open:
            now = self._loop.time()
            connection.idle_since = now
            self._idle.append(connection)
            self._idle_of_all.weight += _weight(connection)
            if self._idle[0].idle_since < now - SPARE_SECONDS:
                self._close_spare(now)
        self._free_slot()

    def discard(self, connection: Exchange) -> None:
        """Return a connection that must not be used again; it is aborted."""
        connection.abort()
        self.release(connection)

    def drop_idle(self) -> None:
        """Close all idle connections."""
        while self._idle:
            self._pop().close()

    def close(self) -> None:
        """Close all connections; requests in progress fail.

        The event loop may end next, so nothing waits for an answer of the other side.
        """
        while self._idle:
            self._pop().abort()
        for connection in self._busy:
            connection.abort()

    def take(self, tls: ssl.SSLContext | None) -> Exchange | None:
        """Remove and return the idle connection of this TLS context that was used last, if any."""
        fresh = self._loop.time() - IDLE_SECONDS
        while self._idle:
            connection = self._pop()
            if connection.open and connection.tls is tls and connection.idle_since > fresh:
                return connection
            connection.close()
        return None

    def _close_spare(self, now: float) -> None:
        """Close the connections that have been idle for too long, the oldest first."""
        while True:
            seconds = IDLE_SECONDS
            if self._idle_of_all.weight > SPARES:
                seconds = SPARE_SECONDS
            if self._idle[0].idle_since >= now - seconds:
                return
            self._pop(0).close()

    def _pop(self, at: int = -1) -> Exchange:
        connection = self._idle.pop(at)
        self._idle_of_all.weight -= _weight(connection)
        return connection

    async def _wait(self, deadline: float) -> None:
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout_at(deadline):
                await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled():
                self._free_slot()
            if isinstance(error, TimeoutError):
                raise DeadlineExceeded(
                    f"all {self._size} connections were busy until the deadline",
                ) from None
            raise

    def _free_slot(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._free_slots += 1
