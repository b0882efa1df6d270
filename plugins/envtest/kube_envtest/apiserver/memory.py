"""Direct access to the server, without sockets and HTTP, so that virtual time works."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple, Protocol

from kube_envtest.apiserver.rbac import User
from kube_envtest.apiserver.request import Request, Response, make_request
from kube_envtest.apiserver.watch import Watch, WatchCut

#: Timeout of a request, in seconds.
REQUEST_SECONDS = 30.0


class ConnectionLost(ConnectionError):
    """The connection ended without a response, or in the middle of a watch."""


class Reply(NamedTuple):
    """The server's response, whatever its status; header names are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Server(Protocol):
    """The parts of an API server that the client needs."""

    async def serve(self, request: Request) -> Response | Watch:
        """Answer a request."""

    async def passable(self) -> None:
        """Wait while the server is frozen."""


class MemoryClient:
    """Requests and watches of a user; ``agent`` is the User-Agent, which determines the field manager."""

    def __init__(self, server: Server, user: User, agent: str) -> None:
        self._server = server
        self._user = user
        self._agent = agent
        self._closed = False

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        timeout: float = REQUEST_SECONDS,  # noqa: ASYNC109 - as HTTP clients have it
    ) -> Reply:
        """Send a request to a path with its query; return the whole response.

        Raises:
            ConnectionLost: The connection ended without a response.
            TimeoutError: There was no response within `timeout` seconds.
            ValueError: The path is that of a watch.
        """
        headers = {"content_type": content_type, "accept": accept, "agent": self._agent}
        request = make_request(method, path, body or b"", self._user, **headers)
        answer = await self._answer(request, timeout)
        if isinstance(answer, Watch):
            answer.close()
            raise ValueError(f"{path} is a watch: use stream()")
        return Reply(answer.status, _headers(answer), answer.body)

    async def _answer(self, request: Request, seconds: float) -> Response | Watch:
        if self._closed:
            raise ConnectionLost("the client is closed")
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(seconds):
                return await self._server.serve(request)
        except TimeoutError:
            raise TimeoutError(f"no reply within {seconds:g} s") from None

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        accept: str = "application/json",
        connect_timeout: float = REQUEST_SECONDS,
        idle_timeout: float | None = None,
    ) -> AsyncIterator["MemoryStream"]:
        """GET a path, such as that of a watch, and read the response line by line.

        Raises:
            ConnectionLost: The connection ended, before the response or in the middle of it.
            TimeoutError: There was no response within `connect_timeout` seconds, or no line for
                `idle_timeout` seconds.
        """
        request = make_request("GET", path, b"", self._user, accept=accept, agent=self._agent)
        answer = await self._answer(request, connect_timeout)
        try:
            yield MemoryStream(self._server, answer, idle_timeout)
        finally:
            if isinstance(answer, Watch):
                answer.close()

    async def close(self) -> None:
        """Refuse further requests."""
        self._closed = True


class MemoryStream:
    """An open watch, or another response; iteration yields batches of lines."""

    def __init__(self, server: Server, answer: Response | Watch, idle_timeout: float | None) -> None:
        self._server = server
        self._answer = answer
        self._idle = idle_timeout

    @property
    def status(self) -> int:
        """The HTTP status of the response."""
        return self._answer.status if isinstance(self._answer, Response) else 200

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the response; names are lower-case."""
        return _headers(self._answer) if isinstance(self._answer, Response) else {"content-type": "application/json"}

    async def __aiter__(self) -> AsyncIterator[list[bytes]]:
        """Yield the lines that arrived since the last batch."""
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
                raise TimeoutError(f"nothing came for {self._idle:g} s") from None
            except WatchCut:
                raise ConnectionLost("the connection was reset in the middle of the stream") from None
            except StopAsyncIteration:
                return
            yield batch

    async def body(self) -> bytes:
        """Return the whole body, for a status other than 200."""
        return self._answer.body if isinstance(self._answer, Response) else b""


def _headers(answer: Response) -> dict[str, str]:
    named = {name.lower(): value for name, value in answer.headers.items()}
    return {"content-type": answer.content_type, "content-length": str(len(answer.body)), **named}
