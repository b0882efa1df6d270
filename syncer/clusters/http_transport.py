"""The HTTP transport: HTTP/1.1 on asyncio and httptools, with about a third of aiohttp's CPU per
request.

Measured with ``hack/bench/transport``. Requests share a pool of keep-alive connections; each watch
has its own.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

from syncer.clusters.credentials import Access, Credentials
from syncer.clusters.dial import dial
from syncer.clusters.http1 import Connection, Exchange
from syncer.clusters.http1_stream import LineStream
from syncer.clusters.pool import CONNECTIONS, Pool
from syncer.clusters.transport import (
    USER_AGENT,
    ConnectionFailed,
    DeadlineExceeded,
    Endpoint,
    HttpRequest,
    HttpResponse,
    Stream,
)

C = TypeVar("C", bound=Connection)


class HttpTransport:
    """An API server over HTTP/1.1, with a bounded pool of connections."""

    def __init__(self, endpoint: Endpoint, credentials: Credentials, *, connections: int = CONNECTIONS) -> None:
        self.endpoint = endpoint
        #: A proxy without a tunnel gets whole URLs.
        self._prefix = endpoint.url if endpoint.proxy and not endpoint.tls else endpoint.prefix
        self._credentials = credentials
        self._loop = asyncio.get_running_loop()
        self._pool = Pool(self._loop, self._open_exchange, size=connections)
        self._streams: set[LineStream] = set()
        self._access: Access | None = None
        self._head = ""

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request; after a 401 once more with renewed credentials, if there are any."""
        deadline = self._loop.time() + request.timeout
        access = await self._credentials.access()
        response = await self._send(access, request, deadline)
        if response.status == 401 and await self._credentials.refused(access):
            access = await self._credentials.access()
            response = await self._send(access, request, deadline)
        return response

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[Stream]:
        """Send a request on a connection of its own, and read the response line by line."""
        return self._stream(request)

    async def close(self) -> None:
        """Close all connections."""
        self._pool.close()
        for stream in tuple(self._streams):
            stream.fail(ConnectionFailed("closed by us"))

    async def _send(self, access: Access, request: HttpRequest, deadline: float) -> HttpResponse:
        data = self._encode(access, request)
        head_only = request.method == "HEAD"
        connection = await self._pool.acquire(access, deadline=deadline)
        try:
            response = await connection.exchange(data, deadline=deadline, head_only=head_only)
        except ConnectionFailed as error:
            self._pool.discard(connection)
            if not connection.used_before or connection.answered or isinstance(error, DeadlineExceeded):
                raise
        except BaseException:
            self._pool.discard(connection)
            raise
        else:
            self._pool.release(connection)
            return response
        return await self._send_again(access, data, deadline, head_only)

    async def _send_again(self, access: Access, data: bytes, deadline: float, head_only: bool) -> HttpResponse:
        """Send a request once more on a new connection, because the reused one had died before a
        response.

        The server may have carried the request out and died after it. That is harmless here: a
        second create gets 409 AlreadyExists, a second update 409 Conflict, a second delete 404, all
        of which the caller resolves from fresh state. (A create by ``generateName`` would create a
        second object; the daemon sends none.)
        """
        self._pool.drop_idle()
        connection = await self._pool.acquire(access, deadline=deadline)
        try:
            response = await connection.exchange(data, deadline=deadline, head_only=head_only)
        except BaseException:
            self._pool.discard(connection)
            raise
        self._pool.release(connection)
        return response

    @asynccontextmanager
    async def _stream(self, request: HttpRequest) -> AsyncIterator[Stream]:
        deadline = self._loop.time() + request.timeout
        access = await self._credentials.access()
        stream = await self._start_stream(access, request, deadline)
        if stream.status == 401 and await self._credentials.refused(access):
            self._end_stream(stream)
            stream = await self._start_stream(await self._credentials.access(), request, deadline)
        stream.idle_timeout = request.idle_timeout
        try:
            yield stream
        finally:
            self._end_stream(stream)

    async def _start_stream(self, access: Access, request: HttpRequest, deadline: float) -> LineStream:
        data = self._encode(access, request)
        stream = await self._open(LineStream(self._loop, access.tls), access, deadline)
        self._streams.add(stream)
        try:
            await stream.start(data, deadline=deadline)
        except BaseException:
            self._end_stream(stream)
            raise
        return stream

    def _end_stream(self, stream: LineStream) -> None:
        self._streams.discard(stream)
        stream.abort()

    def _encode(self, access: Access, request: HttpRequest) -> bytes:
        """Encode a request."""
        if access is not self._access:
            self._access, self._head = access, self._fixed_head(access)
        body = request.body
        line = f"{request.method} {self._prefix}{request.path} HTTP/1.1\r\n"
        head = f"{line}{self._head}Accept: {request.accept}\r\n"
        if body is None:
            return (head + "\r\n").encode("latin-1")
        head += f"Content-Type: {request.content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode("latin-1") + body

    def _fixed_head(self, access: Access) -> str:
        """Return the header lines that all requests with an access share."""
        lines = [("Host", self.endpoint.authority), ("User-Agent", USER_AGENT), *access.headers]
        proxy = self.endpoint.proxy
        if proxy is not None and proxy.authorization and not self.endpoint.tls:
            lines.append(("Proxy-Authorization", proxy.authorization))
        return "".join(f"{name}: {value}\r\n" for name, value in lines)

    async def _open_exchange(self, access: Access, deadline: float) -> Exchange:
        return await self._open(Exchange(self._loop, access.tls), access, deadline)

    async def _open(self, connection: C, access: Access, deadline: float) -> C:
        """Connect; any failure becomes a ConnectionFailed that names the address."""
        endpoint = self.endpoint
        try:
            async with asyncio.timeout_at(deadline):
                await dial(connection, endpoint, access.tls, access.proxy_tls)
        except ConnectionFailed:
            raise
        except TimeoutError:
            through = f" through {endpoint.proxy}" if endpoint.proxy else ""
            raise DeadlineExceeded(f"no connection to {endpoint.authority}{through} in time") from None
        except ssl.SSLError as error:
            raise ConnectionFailed(await self._credentials.explain(error)) from error
        except OSError as error:
            raise ConnectionFailed(f"no connection to {endpoint.authority}: {error}") from error
        return connection
