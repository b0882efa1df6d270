"""The client of the ``kubernetes`` package over our transport.

It is for plugins that use the models and helpers of the package. Its requests are sent like all
others: with the same credentials, renewed automatically, the same TLS, proxy and rate limit, and in
a dry run no write is sent. Only this module and :mod:`~syncer.clusters.legacy_provider` import the
package, on first use: it costs 0.3 s of CPU and 45 MB, and the classes for the kinds
(``CoreV1Api``) twice as much.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from http import HTTPStatus
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.client.rest import RESTClientObject
from multidict import CIMultiDict

from syncer.clusters.transport import USER_AGENT, DeadlineExceeded, HttpRequest, Stream, Transport

#: Headers that are taken from the request; all others are the connection's.
_HEADERS = ("accept", "content-type", "user-agent")


def api_client(transport: Transport, *, address: str) -> ApiClient:
    """Return a new ``ApiClient`` that uses a transport.

    ``address`` (host and port) is for messages.
    """
    configuration = Configuration(host=f"https://{address}")
    client = ApiClient(configuration)
    client.rest_client = _Rest(configuration, transport)
    client.user_agent = USER_AGENT
    return client


class _Rest(RESTClientObject):
    """The package's REST layer, which ends at our transport instead of aiohttp."""

    def __init__(self, configuration: Configuration, transport: Transport) -> None:
        super().__init__(configuration)
        self._transport = transport

    def _create_pool_manager(self) -> Any:
        return _Session(self._transport, self.configuration.host)


class _Session:
    """The part of an aiohttp session that the package uses."""

    def __init__(self, transport: Transport, host: str) -> None:
        self._transport = transport
        self._host = host

    async def request(
        self,
        *,
        method: str,
        url: str,
        headers: Mapping[str, str],
        timeout: Any,  # noqa: ASYNC109  (aiohttp's interface)
        data: str | bytes | None = None,
    ) -> "_Response":
        """Send a request; a watch and a followed log are read as they arrive.

        Raises:
            TimeoutError: There was no response in time, as with aiohttp.
            OSError: There was no response.
            ValueError: The request has values that our connection can't send.
        """
        request = _request(method, url.removeprefix(self._host), headers, timeout, data)
        with _late_as_timeout():
            if _is_endless(request):
                opened = self._transport.stream(request)
                return _Arriving(opened, await opened.__aenter__())
            return _Response(*await self._transport.send(request))

    async def close(self) -> None:
        """Leave the transport open: it is the daemon's."""


def _request(
    method: str,
    path: str,
    headers: Mapping[str, str],
    timeout: Any,
    data: str | bytes | None,
) -> HttpRequest:
    named = {name.lower(): value for name, value in headers.items()}
    for name in headers:
        if name.lower() not in _HEADERS:
            raise ValueError(
                f"the header {name} can't be sent: the daemon's connection has headers of its own",
            )
    if data is not None and not isinstance(data, str | bytes):
        raise ValueError(f"a body of {type(data).__name__} can't be sent, only JSON and other text")

    body = data.encode() if isinstance(data, str) else data
    seconds = getattr(timeout, "total", timeout)  # of aiohttp's ClientTimeout, or a number
    if isinstance(timeout, tuple):
        seconds = sum(timeout)
    return HttpRequest(
        method,
        path,
        body,
        content_type=named.get("content-type", "application/json"),
        accept=named.get("accept", "application/json"),
        timeout=seconds,
    )


def _is_endless(request: HttpRequest) -> bool:
    """Return True for a watch, and for a followed log."""
    if request.method != "GET":
        return False
    parameters = parse_qs(urlsplit(request.path).query)
    values = (*parameters.get("watch", ()), *parameters.get("follow", ()))
    return any(value.lower() in ("true", "1") for value in values)


@contextmanager
def _late_as_timeout() -> Iterator[None]:
    try:
        yield
    except DeadlineExceeded as late:
        raise TimeoutError(str(late)) from late


class _Response:
    """A whole response, with the part of aiohttp's interface that the package uses."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        self.status = status
        self.reason = _phrase(status)
        self.headers = CIMultiDict(headers)
        self.content = self
        self._body = body

    async def read(self) -> bytes:
        """Return the whole body."""
        return self._body

    async def text(self) -> str:
        """Return the whole body as text."""
        return (await self.read()).decode()

    async def json(self) -> Any:
        """Return the JSON in the body."""
        return json.loads(await self.read())

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def release(self) -> None:
        """Close the response."""
        self.close()


class _Arriving(_Response):
    """A response that is read line by line as it arrives; empty lines are left out."""

    #: The tasks that close streams; asyncio itself keeps no strong reference to a task.
    closing: ClassVar[set[asyncio.Task[Any]]] = set()

    def __init__(self, opened: AbstractAsyncContextManager[Stream], stream: Stream) -> None:
        super().__init__(stream.status, stream.headers)
        self._opened = opened
        self._batches = aiter(stream) if stream.status == 200 else _refusal(stream)
        self._lines: deque[bytes] = deque()
        self._closed = False

    async def readline(self) -> bytes:
        """Return the next line with its end, ``b""`` after the last.

        Raises:
            OSError: The connection was lost.
        """
        while not self._lines:
            try:
                self._lines.extend(await anext(self._batches))
            except StopAsyncIteration:
                return b""
        return self._lines.popleft() + b"\n"

    async def read(self) -> bytes:
        """Return the whole body, once the server has ended it."""
        lines: list[bytes] = []
        async for batch in self._batches:
            lines.extend(line + b"\n" for line in batch)
        return b"".join(lines)

    def close(self) -> None:
        """Close the connection."""
        if not self._closed:
            self._closed = True
            task = asyncio.ensure_future(self._opened.__aexit__(None, None, None))
            self.closing.add(task)
            task.add_done_callback(self.closing.discard)


async def _refusal(stream: Stream) -> AsyncIterator[list[bytes]]:
    """Yield the body of an error response, as a single batch of lines."""
    yield (await stream.body()).splitlines()


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
