"""Each connection to an API server, or to a proxy, lets the kernel notice a peer that has vanished."""

import asyncio
import socket

import pytest
from cluster_servers import Call, plain_transport, serve

from syncer.clusters.sockets import VANISHED_SECONDS
from syncer.clusters.transport import HttpRequest

#: Seconds in which a peer that has vanished is to be noticed.
MOST = 60
pytestmark = pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="this system has no such option")


def noticed_after(transport: asyncio.BaseTransport) -> tuple[int, float]:
    """Return the seconds after which a peer is given up that acknowledges no question, and no data."""
    sock = transport.get_extra_info("socket")
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    idle, again, most = (
        sock.getsockopt(socket.IPPROTO_TCP, option)
        for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
    )
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    return idle + again * most, sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) / 1000


def test_peer_that_vanishes_is_noticed_by_each_connection() -> None:
    class Other(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport

    async def main() -> None:
        async with serve(Call.reply) as peer:
            transport = plain_transport(peer.endpoint())
            await transport.send(HttpRequest("GET", "/"))
            [request] = transport._pool._idle
            later = asyncio.get_running_loop().time() + MOST
            relayed, _ = await transport.dialer.open(Other(), "GET", "/", (), later)
            for each in (request._transport, relayed.transport):
                assert noticed_after(each) == (VANISHED_SECONDS, VANISHED_SECONDS)
            async with transport.stream(HttpRequest("GET", "/watch")):
                [stream] = transport._streams
                assert noticed_after(stream._transport) == (VANISHED_SECONDS, VANISHED_SECONDS)
            relayed.transport.close()
            await transport.close()

    asyncio.run(main())
    assert VANISHED_SECONDS <= MOST
