"""Relays bytes between two connections, at the pace of the slower side."""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import cast

from syncer.clusters.http1 import GONE, LARGEST_WRITE
from syncer.clusters.read_buffer import read_buffer
from syncer.clusters.sockets import read
from syncer.kubelet.http import MOST_HELD, body_of

#: Bytes that the kernel keeps of what is received or sent; Linux doubles it. It is also the most
#: that is read at once, and the buffers of TLS stay as large as the largest read and write.
KERNEL_BUFFER = 32 << 10
#: Bytes per second that all relays of a virtual cluster pass: the rest of the event loop's time is
#: for the syncers.
BYTES_A_SECOND = 64 << 20
#: Bytes that they pass at once.
BYTES_AT_ONCE = 4 << 20
#: Bytes that are added for each read, which is about its cost.
BYTES_OF_A_READ = 8 << 10
#: Seconds in which a side must receive the last bytes after the other side has ended.
LINGER_SECONDS = 300.0


class Pace:
    """Limits the bytes that relays pass, so that they leave time for the rest of the event loop."""

    __slots__ = ("_at", "_bytes", "_now", "_rate")

    def __init__(self, rate: float = BYTES_A_SECOND) -> None:
        self._now = asyncio.get_running_loop().time
        self._rate = rate
        self._bytes = float(BYTES_AT_ONCE)
        self._at = self._now()

    def spend(self, size: int) -> float:
        """Count bytes; return the seconds after which more may be read."""
        now = self._now()
        available = min(self._bytes + (now - self._at) * self._rate, BYTES_AT_ONCE)
        left = available - size - BYTES_OF_A_READ
        self._bytes = left
        self._at = now
        return -left / self._rate if left < 0 else 0.0


class Relay:
    """Passes the bytes of each of two connections to the other one, until one of them ends.

    Unless the connections are ``upgraded``, the first one may only receive: its bytes would be a
    second request on the other connection, which has the daemon's credentials. ``ended`` is called
    once, when both connections are closed.
    """

    __slots__ = ("_ended", "_finished", "_open", "_sides", "_timer", "active", "pace", "upgraded")

    def __init__(self, ended: Callable[[], None], pace: Pace, *, upgraded: bool) -> None:
        self.pace = pace
        #: True if the bytes are those of another protocol than HTTP.
        self.upgraded = upgraded
        #: Becomes True when a byte passes; :meth:`.KubeletServer.close_idle` sets it to False.
        self.active = True
        self._ended = ended
        self._sides: tuple[_Side, ...] = ()
        self._open = self._finished = 0
        self._timer: asyncio.TimerHandle | None = None

    def join(self, one: asyncio.Transport, other: asyncio.Transport) -> None:
        """Begin: each transport's bytes go to the other one from now on."""
        keep_little(one)
        one.set_write_buffer_limits(high=MOST_HELD)
        other.set_write_buffer_limits(high=MOST_HELD)

        kind_of_client = _Side if self.upgraded else _LogReader
        first = kind_of_client(self, one, other)
        second = _Side(self, other, one)
        first.opposite = second
        second.opposite = first
        self._sides = (first, second)
        self._open = 2
        for side in self._sides:
            side.here.set_protocol(side)
            read(side.here, on=True, ahead=MOST_HELD)

    def close(self) -> None:
        """End at once; waiting bytes are lost."""
        for side in self._sides:
            side.here.abort()

    def finished(self) -> bool:
        """Handle that a side sends no more. Return True if the other side still sends."""
        self._finished += 1
        return self._finished == 1

    def lost(self, other: asyncio.Transport) -> None:
        """Handle the end of a side: the other one gets the bytes read so far, and is closed."""
        self._open -= 1
        if self._open == 0:
            self._end()
        elif self._open == 1:  # it is negative after _abandon
            self._timer = asyncio.get_running_loop().call_later(
                LINGER_SECONDS,
                self._abandon,
                other,
            )
            other.close()

    def _abandon(self, other: asyncio.Transport) -> None:
        """End a side that doesn't end by itself, or that ended before it was joined."""
        other.abort()
        if self._open > 0:
            self._open = 0
            self._end()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()  # the timer refers to a transport
        for side in self._sides:
            side.let_go()
        self._ended()


class _Side(asyncio.BufferedProtocol):
    """A side of a relay after the heads."""

    __slots__ = (
        "_buffer",
        "_is_early",
        "_is_faster",
        "_relay",
        "_there",
        "_write",
        "here",
        "opposite",
    )

    opposite: "_Side"

    def __init__(self, relay: Relay, here: asyncio.Transport, there: asyncio.Transport) -> None:
        self._relay = relay
        self.here = here
        self._there = there
        self._write = there.write
        self._buffer = read_buffer(asyncio.get_running_loop())
        #: Why nothing is read here: the relays together are too fast, or the other side is slower.
        self._is_early = self._is_faster = False

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where bytes are to be read to."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Pass bytes on."""
        self._relay.active = True
        for start in range(0, nbytes, LARGEST_WRITE):
            self._write(bytes(self._buffer[start : min(start + LARGEST_WRITE, nbytes)]))
        wait = self._relay.pace.spend(nbytes)
        if wait and not self._is_early:
            self._is_early = True
            read(self.here, on=False)
            asyncio.get_running_loop().call_later(wait, self._go_on)

    def let_go(self) -> None:
        """Forget the transports, which have ended."""
        self.here = self._there = GONE
        self._write = GONE.write

    def hold(self, *, is_faster: bool) -> None:
        """Stop reading because the other side is slower, or read again."""
        self._is_faster = is_faster
        if not self._is_early:
            read(self.here, on=not is_faster, ahead=MOST_HELD)

    def _go_on(self) -> None:
        self._is_early = False
        if not self._is_faster:
            read(self.here, on=True, ahead=MOST_HELD)

    def eof_received(self) -> bool:
        """Pass the end on if the other transport supports it; TLS has no half-open connections."""
        if self._there.can_write_eof() and not self._there.is_closing():
            self._there.write_eof()
            return self._relay.finished()
        return False

    def pause_writing(self) -> None:
        """Stop reading from the other side: this one is slower."""
        self.opposite.hold(is_faster=True)

    def resume_writing(self) -> None:
        """Read from the other side again."""
        self.opposite.hold(is_faster=False)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the other side."""
        self._relay.lost(self._there)


class _LogReader(_Side):
    """The side of a client that receives a log, and must send nothing."""

    __slots__ = ()

    def buffer_updated(self, nbytes: int) -> None:
        """End the relay."""
        self._relay.close()


def keep_little(transport: asyncio.BaseTransport) -> None:
    """Let the kernel keep few bytes of a connection that is to be relayed."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, KERNEL_BUFFER)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BUFFER)


class Upstream(asyncio.Protocol):
    """A connection to an API server, until the head of the response is received.

    Reading stops after the head.
    """

    def __init__(self, longest: int) -> None:
        self.transport = cast("asyncio.Transport", None)
        self._received: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._longest = longest
        self._data = b""
        self._end = 0
        self._more = asyncio.Event()
        self._lost = False

    async def head(self) -> bytes:
        """Return the head.

        Raises:
            ConnectionError: The connection ended before, or the head is too long.
        """
        self._end = await self._received
        return self._data[: self._end]

    def rest(self) -> bytes:
        """Return the bytes received after the head so far."""
        return self._data[self._end :]

    async def body(self, most: int, seconds: float) -> bytes:
        """Return the body, or its beginning if it is longer than ``most`` bytes or takes longer."""
        read(self.transport, on=True, ahead=MOST_HELD)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while len(self._data) < most and not self._lost:
                    _, is_complete = body_of(self._data)
                    if is_complete:
                        break
                    self._more.clear()
                    await self._more.wait()
        body, _ = body_of(self._data)
        return body[:most]

    def abort(self) -> None:
        """Close the connection, if there is one."""
        if self.transport is not None:
            self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast("asyncio.Transport", transport)
        keep_little(transport)

    def data_received(self, data: bytes) -> None:
        """Collect the head."""
        self._data += data
        self._more.set()
        end = self._data.find(b"\r\n\r\n")
        if end < 0 and len(self._data) > self._longest:
            self._fail("the head of the reply is too long")
        elif end >= 0 and not self._received.done():
            read(self.transport, on=False)
            self._received.set_result(end + 4)

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify those who wait for the response."""
        self._lost = True
        self.transport = GONE
        self._more.set()
        self._fail(f"connection lost: {exc or 'closed by the server'}")

    def _fail(self, why: str) -> None:
        if not self._received.done():
            self._received.set_exception(ConnectionError(why))
            self._received.exception()  # retrieved, even if nothing waits for it any more
