"""The options of TCP sockets.

Small messages go out at once, and a peer that has vanished is noticed.
"""

import asyncio
import socket

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
