"""Open a connection to an API server, directly or through an HTTP proxy."""

import asyncio
import re
import ssl
from typing import cast

from syncer.clusters.proxy import Proxy
from syncer.clusters.sockets import tune_transport
from syncer.clusters.transport import USER_AGENT, ConnectionFailed, Endpoint

#: Longest head of a proxy's response that is read, in bytes.
_LONGEST_HEAD = 16 << 10
_status_line = re.compile(rb"HTTP/1\.[01] (\d{3})(?: ([ -~]*))?\r?\n").match


async def dial(
    protocol: asyncio.BaseProtocol,
    endpoint: Endpoint,
    tls: ssl.SSLContext | None,
    proxy_tls: ssl.SSLContext | None = None,
) -> None:
    """Connect a protocol to an API server, through the endpoint's proxy if it has one.

    With ``tls``, the proxy opens a tunnel (CONNECT); without, it gets the requests themselves.
    ``proxy_tls`` is for a proxy that is reached by https.

    Raises:
        ConnectionFailed: The proxy can't be reached, is not trusted, or refuses.
        OSError: The API server can't be reached; ``ssl.SSLError`` if it is not trusted.
    """
    loop = asyncio.get_running_loop()
    if endpoint.proxy is None:
        name = None
        if tls is not None:
            name = endpoint.server_name or endpoint.host
        transport, _ = await loop.create_connection(
            lambda: protocol,
            endpoint.host,
            endpoint.port,
            ssl=tls,
            server_hostname=name,
        )
        tune_transport(transport)
    elif tls is None:
        await _reach(protocol, endpoint.proxy, proxy_tls)
    else:
        await _tunnel(protocol, endpoint, endpoint.proxy, tls, proxy_tls)


async def _reach(protocol: asyncio.BaseProtocol, proxy: Proxy, tls: ssl.SSLContext | None) -> None:
    """Connect a protocol to a proxy."""
    loop = asyncio.get_running_loop()
    context = tls if proxy.tls else None
    try:
        transport, _ = await loop.create_connection(
            lambda: protocol,
            proxy.host,
            proxy.port,
            ssl=context,
        )
    except ssl.SSLCertVerificationError as error:
        raise ConnectionFailed(
            f"the certificate of {proxy} is not trusted: {error.verify_message}",
        ) from error
    except OSError as error:
        raise ConnectionFailed(f"no connection to {proxy}: {error}") from error
    tune_transport(transport)


async def _tunnel(
    protocol: asyncio.BaseProtocol,
    endpoint: Endpoint,
    proxy: Proxy,
    tls: ssl.SSLContext,
    proxy_tls: ssl.SSLContext | None,
) -> None:
    """Ask a proxy for a tunnel to the API server, and start TLS with the server through it."""
    loop = asyncio.get_running_loop()
    asking = _Asking(endpoint.authority, proxy)
    await _reach(asking, proxy, proxy_tls)
    try:
        await asking.answered
        name = endpoint.server_name or endpoint.host
        secured = await loop.start_tls(asking.transport, protocol, tls, server_hostname=name)
        if secured is None or secured.is_closing():
            raise ConnectionFailed(f"{proxy} closed the tunnel to {endpoint.authority}")
    except BaseException:
        asking.transport.abort()
        raise
    protocol.connection_made(secured)


class _Asking(asyncio.Protocol):
    """Sends CONNECT, and sets ``answered`` when the proxy accepts or refuses."""

    transport: asyncio.Transport

    def __init__(self, target: str, proxy: Proxy) -> None:
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._target = target
        self._proxy = proxy
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        lines = [
            f"CONNECT {self._target} HTTP/1.1",
            f"Host: {self._target}",
            f"User-Agent: {USER_AGENT}",
        ]
        if self._proxy.authorization:
            lines.append(f"Proxy-Authorization: {self._proxy.authorization}")
        self.transport.write("".join(f"{line}\r\n" for line in (*lines, "")).encode("ascii"))

    def data_received(self, data: bytes) -> None:
        self._head += data
        end = self._head.find(b"\r\n\r\n")
        if self.answered.done() or (end < 0 and len(self._head) <= _LONGEST_HEAD):
            return
        found = _status_line(self._head) if end >= 0 else None
        if found is None:
            self._fail("gave an answer that is not HTTP/1.1")
            return

        status = found[1].decode()
        phrase = (found[2] or b"").decode()
        if status == "200":
            if len(self._head) == end + 4:
                self.answered.set_result(None)
            else:
                self._fail(f"sent something before the tunnel to {self._target} was used")
        elif status == "407":
            if self._proxy.authorization:
                self._fail("does not accept the user and password in its URL")
            else:
                form = "http://USER:PASSWORD@HOST:PORT"
                self._fail(f"wants a user and a password. Write them into its URL: {form}")
        else:
            answer = f"{status} {phrase}".strip()
            self._fail(f"refuses a tunnel to {self._target}: {answer}")

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(f"closed the connection before there was a tunnel to {self._target}")

    def _fail(self, why: str) -> None:
        if not self.answered.done():
            self.answered.set_exception(ConnectionFailed(f"{self._proxy} {why}"))
            self.answered.exception()  # retrieved, even if nothing waits for it any more
