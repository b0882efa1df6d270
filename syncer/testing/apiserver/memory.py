"""The transport straight into the server: no sockets and no HTTP, so that virtual time works."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

from syncer.clusters.transport import ConnectionFailed, DeadlineExceeded, HttpRequest, HttpResponse, Stream
from syncer.testing.apiserver.rbac import User
from syncer.testing.apiserver.request import Request, Response, make_request
from syncer.testing.apiserver.watch import Watch, WatchCut


class ConnectionLost(Exception):
    """The connection ends without an answer."""


class Server(Protocol):
    """What the transport needs of an API server."""

    async def serve(self, request: Request) -> Response | Watch:
        """Answer a request."""

    async def passable(self) -> None:
        """Wait while the server is frozen."""


class MemoryTransport:
    """Requests and streams as one user; the contract of ``syncer.clusters.transport.Transport``."""

    def __init__(self, server: Server, user: User, agent: str = "syncer") -> None:
        self._server = server
        self._user = user
        self._agent = agent
        self._closed = False

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request and wait for the whole reply; errors as the protocol says."""
        answer = await self._answer(request)
        if isinstance(answer, Watch):
            answer.close()
            raise ValueError(f"{request.path} is a watch: use stream()")
        return HttpResponse(answer.status, _headers(answer), answer.body)

    async def _answer(self, request: HttpRequest) -> Response | Watch:
        headers = {"content_type": request.content_type, "accept": request.accept, "agent": self._agent}
        asked = make_request(request.method, request.path, request.body or b"", self._user, **headers)
        if self._closed:
            raise ConnectionFailed("the transport is closed")
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(request.timeout):
                return await self._server.serve(asked)
        except TimeoutError:
            raise DeadlineExceeded(f"no reply within {request.timeout:g} s") from None
        except ConnectionLost as lost:
            raise ConnectionFailed(str(lost)) from None

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[Stream]:
        """Send a request and hand over the reply line by line."""
        answer = await self._answer(request)
        try:
            yield MemoryStream(self._server, answer, request.idle_timeout)
        finally:
            if isinstance(answer, Watch):
                answer.close()

    async def close(self) -> None:
        """Refuse further requests."""
        self._closed = True


class MemoryStream:
    """An open watch, or a reply that is no watch."""

    def __init__(self, server: Server, answer: Response | Watch, idle_timeout: float | None) -> None:
        self._server = server
        self._answer = answer
        self._idle = idle_timeout

    @property
    def status(self) -> int:
        """The HTTP status of the reply."""
        return self._answer.status if isinstance(self._answer, Response) else 200

    @property
    def headers(self) -> Mapping[str, str]:
        """The reply's headers; names are lower-case."""
        return _headers(self._answer) if isinstance(self._answer, Response) else {"content-type": "application/json"}

    async def __aiter__(self) -> AsyncIterator[list[bytes]]:
        """Yield what has arrived since the last batch."""
        if isinstance(self._answer, Response):
            yield self._answer.body.splitlines()
            return
        batches = self._answer.batches()
        while True:
            try:
                async with asyncio.timeout(self._idle):
                    batch = await anext(batches)
                    await self._server.passable()
            except TimeoutError:
                raise DeadlineExceeded(f"nothing came for {self._idle:g} s") from None
            except WatchCut:
                raise ConnectionFailed("the connection was reset in the middle of the stream") from None
            except StopAsyncIteration:
                return
            yield batch

    async def body(self) -> bytes:
        """The whole body, for a status other than 200."""
        return self._answer.body if isinstance(self._answer, Response) else b""


def _headers(answer: Response) -> dict[str, str]:
    named = {name.lower(): value for name, value in answer.headers.items()}
    return {"content-type": answer.content_type, "content-length": str(len(answer.body)), **named}
