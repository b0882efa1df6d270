"""The options of TCP sockets, and how reading pauses.

Small messages go out at once, and a peer that has vanished is noticed.
"""

import asyncio
import socket
from collections.abc import Callable

#: Seconds without a byte of the peer after which the kernel sends a probe.
KEEPALIVE_SECONDS = 20
#: Seconds between two probes.
KEEPALIVE_AGAIN = 10
#: How many probes in a row may stay unanswered.
KEEPALIVE_MOST = 3
#: Seconds after which a connection fails if the peer acknowledges neither probes nor data: no watch
#: shows that by itself, and the kernel would send the data again for a quarter of an hour.
VANISHED_SECONDS = KEEPALIVE_SECONDS + KEEPALIVE_AGAIN * KEEPALIVE_MOST

_OPTIONS = {
    "TCP_NODELAY": 1,
    "TCP_KEEPIDLE": KEEPALIVE_SECONDS,
    "TCP_KEEPINTVL": KEEPALIVE_AGAIN,
    "TCP_KEEPCNT": KEEPALIVE_MOST,
    "TCP_USER_TIMEOUT": VANISHED_SECONDS * 1000,
}


def tune(sock: socket.socket) -> None:
    """Set the options of a TCP socket that this system has."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _OPTIONS.items():
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def tune_transport(transport: asyncio.BaseTransport) -> None:
    """Set the options of the socket of a transport, if that is one of TCP."""
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
        tune(sock)


def read(transport: asyncio.Transport, *, on: bool, ahead: int | None = None) -> None:
    """Read from a connection, or stop it.

    uvloop continues to read below TLS, and loses these bytes when the connection ends. So it gets
    no buffer for that: the kernel keeps the unread bytes, and the end after them. Once reading is
    ``on``, it may read ``ahead`` so many bytes, None for as many as by default.
    """
    if transport.is_closing():
        return
    limits: Callable[..., None] | None = getattr(transport, "set_read_buffer_limits", None)
    if not on:
        transport.pause_reading()
        if limits is not None:
            limits(high=1)
        return
    transport.resume_reading()  # below TLS, what is there comes in a step of its own
    if limits is not None:
        asyncio.get_running_loop().call_soon(_make_room, transport, limits, ahead)


def _make_room(
    transport: asyncio.Transport, limits: Callable[..., None], ahead: int | None
) -> None:
    """Let uvloop read below TLS again, after it has passed on the bytes that it had there."""
    if transport.is_reading() and not transport.is_closing():
        limits(high=ahead, low=None if ahead is None else ahead // 2)
