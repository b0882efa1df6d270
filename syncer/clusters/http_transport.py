"""The HTTP transport: HTTP/1.1 on asyncio and httptools.

A request takes about a third of aiohttp's CPU, measured with ``hack/bench/transport``. Requests
share a pool of keep-alive connections. Each watch has its own connection, which it takes from the
pool if one is idle: at a start those of the lists, which saves half of the handshakes.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from syncer.byte_budget import ByteBudget
from syncer.clusters.credentials import Access, Credentials
from syncer.clusters.dialer import Dialer
from syncer.clusters.http1 import Exchange
from syncer.clusters.http1_stream import LineStream
from syncer.clusters.large_replies import LargeReplies
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


class HttpTransport:
    """An API server over HTTP/1.1, with a bounded pool of connections.

    Large replies take bytes of ``replies`` while they arrive; without it there is no limit.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        credentials: Credentials,
        *,
        connections: int = CONNECTIONS,
        user_agent: str = USER_AGENT,
        replies: ByteBudget | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.dialer = Dialer(endpoint, credentials, user_agent=user_agent)
        self._credentials = credentials
        self._loop = asyncio.get_running_loop()
        self._pool = Pool(self._loop, self._open_exchange, size=connections)
        self._streams: set[LineStream] = set()
        self._replies = LargeReplies(replies or ByteBudget(), server=endpoint.authority)
        self._access: Access | None = None
        self._head = ""

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request; after a 401 once more with renewed credentials, if there are any."""
        deadline = self._loop.time() + request.timeout
        access = await self._credentials.access(deadline)
        response = await self._send(access, request, deadline)
        if response.status == 401 and await self._credentials.refused(access, deadline):
            access = await self._credentials.access(deadline)
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
        head = self._head_of(access, request)
        body = request.body or b""
        head_only = request.method == "HEAD"
        connection = self._pool.at_once(access.tls)
        if connection is None:
            connection = await self._pool.acquire(access, deadline=deadline, urgent=request.urgent)
        try:
            request.check_may_send()
            response = await connection.exchange(
                head,
                body,
                deadline=deadline,
                head_only=head_only,
                most=request.most,
            )
        except ConnectionFailed as error:
            self._pool.discard(connection)
            if not connection.used_before or connection.answered:
                raise
            if isinstance(error, DeadlineExceeded):
                raise
        except BaseException:
            self._pool.discard(connection)
            raise
        else:
            self._pool.release(connection)
            return response
        return await self._send_again(access, request, head, deadline)

    async def _send_again(
        self,
        access: Access,
        request: HttpRequest,
        head: bytes,
        deadline: float,
    ) -> HttpResponse:
        """Send a request once more, on a new connection: the reused one died before a response.

        The server may have carried the request out and died after it. That is harmless here: a
        second create gets 409 AlreadyExists, a second update 409 Conflict, a second delete 404, all
        of which the caller resolves from fresh state. (A create by ``generateName`` would create a
        second object; the daemon sends none.)
        """
        self._pool.drop_idle()
        body = request.body or b""
        head_only = request.method == "HEAD"
        connection = await self._pool.acquire(access, deadline=deadline, urgent=request.urgent)
        try:
            request.check_may_send()
            response = await connection.exchange(
                head,
                body,
                deadline=deadline,
                head_only=head_only,
                most=request.most,
            )
        except BaseException:
            self._pool.discard(connection)
            raise
        self._pool.release(connection)
        return response

    @asynccontextmanager
    async def _stream(self, request: HttpRequest) -> AsyncIterator[Stream]:
        deadline = self._loop.time() + request.timeout
        access = await self._credentials.access(deadline)
        stream = await self._start_stream(access, request, deadline)
        if stream.status == 401 and await self._credentials.refused(access, deadline):
            self._end_stream(stream)
            access = await self._credentials.access(deadline)
            stream = await self._start_stream(access, request, deadline)
        stream.idle_timeout = request.idle_timeout
        try:
            yield stream
        finally:
            self._end_stream(stream)

    async def _start_stream(
        self,
        access: Access,
        request: HttpRequest,
        deadline: float,
    ) -> LineStream:
        data = self._head_of(access, request) + (request.body or b"")
        stream = LineStream(self._loop, access.tls, self._replies)
        idle = self._pool.take(access.tls)
        if idle is not None:
            idle.hand_over(stream)
            try:
                return await self._begin(stream, data, deadline)
            except ConnectionFailed as error:
                if stream.answered or isinstance(error, DeadlineExceeded):
                    raise
            self._pool.drop_idle()
            stream = LineStream(self._loop, access.tls, self._replies)
        await self.dialer.connect(stream, access, deadline)
        return await self._begin(stream, data, deadline)

    async def _begin(self, stream: LineStream, data: bytes, deadline: float) -> LineStream:
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

    def _head_of(self, access: Access, request: HttpRequest) -> bytes:
        """Encode the head of a request: all before the body."""
        if access is not self._access:
            self._access = access
            self._head = self.dialer.fixed_head(access)
        of_body = ""
        if request.body is not None:
            of_body = (
                f"Content-Type: {request.content_type}\r\nContent-Length: {len(request.body)}\r\n"
            )
        return (
            f"{request.method} {self.dialer.prefix}{request.path} HTTP/1.1\r\n"
            f"{self._head}Accept: {request.accept}\r\n{of_body}\r\n"
        ).encode("latin-1")

    async def _open_exchange(self, access: Access, deadline: float) -> Exchange:
        return await self.dialer.connect(
            Exchange(self._loop, access.tls, self._replies), access, deadline
        )
