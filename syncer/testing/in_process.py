"""The in-process API server of kube-envtest, which the daemon's client reaches through memory."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

import kube_envtest
from kube_envtest.apiserver.memory import MemoryStream
from syncer.clusters.transport import (
    ConnectionFailed,
    DeadlineExceeded,
    HttpRequest,
    HttpResponse,
    Stream,
)

#: The User-Agent, which the server uses as the field manager.
AGENT = "syncer"


class ApiServer(kube_envtest.ApiServer):
    """An API server in this process to which a ``Cluster`` can be connected without sockets, in
    virtual time too.

    ::

        host = Cluster("host", Side.HOST, ApiServer().transport())
    """

    def transport(self, user: str | kube_envtest.User = "admin") -> "MemoryTransport":
        """Return a transport into the server; ``user`` is a name in ``tokens``, or another user."""
        return MemoryTransport(self, user)


class MemoryTransport:
    """Requests and streams of a user, by the protocol ``syncer.clusters.transport.Transport``."""

    def __init__(
        self,
        server: kube_envtest.ApiServer,
        user: str | kube_envtest.User = "admin",
    ) -> None:
        self._client = server.client(user, agent=AGENT)

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request and return the whole response; errors as in the protocol."""
        request.check_may_send()
        with _errors():
            reply = await self._client.request(
                request.method,
                request.path,
                body=request.body,
                content_type=request.content_type,
                accept=request.accept,
                timeout=request.timeout,
            )
        return HttpResponse(*reply)

    @asynccontextmanager
    async def stream(self, request: HttpRequest) -> AsyncIterator[Stream]:
        """Send a GET and yield its response line by line; errors as in the protocol."""
        opening = self._client.stream(
            request.path,
            accept=request.accept,
            connect_timeout=request.timeout,
            idle_timeout=request.idle_timeout,
        )
        async with AsyncExitStack() as stack:
            with _errors():
                stream = await stack.enter_async_context(opening)
            yield _MemoryStream(stream)

    async def close(self) -> None:
        """Refuse further requests."""
        await self._client.close()


class _MemoryStream:
    def __init__(self, stream: MemoryStream) -> None:
        self._stream = stream
        self._batches = aiter(stream)

    @property
    def status(self) -> int:
        return self._stream.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._stream.headers

    def __aiter__(self) -> AsyncIterator[list[bytes]]:
        return self

    async def __anext__(self) -> list[bytes]:
        with _errors():
            return await anext(self._batches)

    async def body(self) -> bytes:
        return await self._stream.body()


@contextmanager
def _errors() -> Iterator[None]:
    """Convert Python's errors to those of the protocol."""
    try:
        yield
    except TimeoutError as late:
        raise DeadlineExceeded(str(late)) from None
    except ConnectionError as lost:
        raise ConnectionFailed(str(lost)) from None
