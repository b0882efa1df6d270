"""The default transport: HTTP/1.1 on asyncio and httptools, about a third of the CPU that aiohttp takes for a request.

Measured with ``hack/bench/transport``. Requests share a pool of keep-alive connections, each watch has its own.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

from syncer.clusters.credentials import Access, Credentials
from syncer.clusters.http1 import Connection, Exchange
from syncer.clusters.http1_stream import LineStream
from syncer.clusters.pool import CONNECTIONS, Pool
from syncer.clusters.transport import (
    REQUEST_SECONDS,
    USER_AGENT,
    ConnectionFailed,
    DeadlineExceeded,
    Endpoint,
    Reply,
    Stream,
    check_path,
)

C = TypeVar("C", bound=Connection)


class HttptoolsTransport:
    """One API server over HTTP/1.1 with a bounded pool of connections."""

    def __init__(self, endpoint: Endpoint, credentials: Credentials, *, connections: int = CONNECTIONS) -> None:
        self.endpoint = endpoint
        self._credentials = credentials
        self._loop = asyncio.get_running_loop()
        self._pool = Pool(self._loop, self._open_exchange, size=connections)
        self._streams: set[LineStream] = set()
        self._access: Access | None = None
        self._head = b""

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        timeout: float = REQUEST_SECONDS,  # noqa: ASYNC109  (a part of the interface)
    ) -> Reply:
        """Send a request; on 401 once more with renewed credentials, if there are others to be had."""
        deadline = self._loop.time() + timeout
        rest = _rest_of_head(accept, content_type, body)
        access = await self._credentials.access()
        reply = await self._send(access, method, path, rest, deadline)
        if reply.status == 401 and await self._credentials.refused(access):
            access = await self._credentials.access()
            reply = await self._send(access, method, path, rest, deadline)
        return reply

    def stream(
        self, path: str, *, connect_timeout: float = REQUEST_SECONDS, idle_timeout: float | None = None
    ) -> AbstractAsyncContextManager[Stream]:
        """GET a path on a connection of its own, line by line."""
        return self._stream(path, connect_timeout, idle_timeout)

    async def close(self) -> None:
        """End all connections."""
        self._pool.close()
        for stream in tuple(self._streams):
            stream.fail(ConnectionFailed("closed by us"))

    async def _send(self, access: Access, method: str, path: str, rest: bytes, deadline: float) -> Reply:
        data = self._encode(access, method, path, rest)
        head_only = method == "HEAD"
        connection = await self._pool.acquire(access.tls, deadline=deadline)
        try:
            reply = await connection.exchange(data, deadline=deadline, head_only=head_only)
        except ConnectionFailed as error:
            self._pool.discard(connection)
            if not connection.used_before or connection.answered or isinstance(error, DeadlineExceeded):
                raise
        except BaseException:
            self._pool.discard(connection)
            raise
        else:
            self._pool.release(connection)
            return reply
        return await self._send_again(access, data, deadline, head_only)

    async def _send_again(self, access: Access, data: bytes, deadline: float, head_only: bool) -> Reply:
        """Once more on a new connection, because the reused one had died before the first byte of a reply.

        The server may have carried the request out and died after it. That is harmless here: a second create
        answers 409 AlreadyExists, a second update 409 Conflict, a second delete 404, all of which the caller
        settles from fresh state. (A create by ``generateName`` would make a second object; the daemon sends none.)
        """
        self._pool.drop_idle()
        connection = await self._pool.acquire(access.tls, deadline=deadline)
        try:
            reply = await connection.exchange(data, deadline=deadline, head_only=head_only)
        except BaseException:
            self._pool.discard(connection)
            raise
        self._pool.release(connection)
        return reply

    @asynccontextmanager
    async def _stream(self, path: str, connect_timeout: float, idle_timeout: float | None) -> AsyncIterator[Stream]:
        deadline = self._loop.time() + connect_timeout
        access = await self._credentials.access()
        stream = await self._start_stream(access, path, deadline)
        if stream.status == 401 and await self._credentials.refused(access):
            self._end_stream(stream)
            stream = await self._start_stream(await self._credentials.access(), path, deadline)
        stream.idle_timeout = idle_timeout
        try:
            yield stream
        finally:
            self._end_stream(stream)

    async def _start_stream(self, access: Access, path: str, deadline: float) -> LineStream:
        data = self._encode(access, "GET", path, _rest_of_head("application/json", "", None))
        stream = await self._open(LineStream(self._loop, access.tls), deadline)
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

    def _encode(self, access: Access, method: str, path: str, rest: bytes) -> bytes:
        check_path(path)
        if access is not self._access:
            self._access, self._head = access, self._fixed_head(access)
        return f"{method} {self.endpoint.prefix}{path} HTTP/1.1\r\n".encode("ascii") + self._head + rest

    def _fixed_head(self, access: Access) -> bytes:
        """The header lines that are the same for all requests with one access."""
        lines = (("Host", self.endpoint.authority), ("User-Agent", USER_AGENT), *access.headers)
        return "".join(f"{name}: {value}\r\n" for name, value in lines).encode("latin-1")

    async def _open_exchange(self, tls: ssl.SSLContext | None, deadline: float) -> Exchange:
        return await self._open(Exchange(self._loop, tls), deadline)

    async def _open(self, connection: C, deadline: float) -> C:
        """Connect; every way of failing becomes a ConnectionFailed that names the address."""
        try:
            async with asyncio.timeout_at(deadline):
                await self._connect(connection)
        except TimeoutError:
            raise DeadlineExceeded(f"no connection to {self.endpoint.authority} in time") from None
        except ssl.SSLError as error:
            raise ConnectionFailed(await self._credentials.explain(error)) from error
        except OSError as error:
            raise ConnectionFailed(f"no connection to {self.endpoint.authority}: {error}") from error
        return connection

    async def _connect(self, connection: Connection) -> None:
        endpoint = self.endpoint
        await self._loop.create_connection(
            lambda: connection,
            endpoint.host,
            endpoint.port,
            ssl=connection.tls,
            server_hostname=(endpoint.server_name or endpoint.host) if connection.tls is not None else None,
        )


def _rest_of_head(accept: str, content_type: str, body: bytes | None) -> bytes:
    """The header lines that belong to one request, and its body."""
    if body is None:
        return f"Accept: {accept}\r\n\r\n".encode("ascii")
    head = f"Accept: {accept}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode("ascii") + body
