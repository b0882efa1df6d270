"""The second transport, on aiohttp: for proxies, and to tell a fault of our own HTTP from other faults.

Imported only where it is used: it costs 170 ms of CPU and 22 MB. Its defaults that cost or harm are off: the look into
environment and netrc for each request (350 µs of CPU), gzip, cookies, redirects.
"""

import asyncio
import io
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import SimpleNamespace
from typing import Any

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from syncer.clusters.credentials import Access, Credentials
from syncer.clusters.pool import CONNECTIONS, IDLE_SECONDS
from syncer.clusters.transport import (
    USER_AGENT,
    ConnectionFailed,
    DeadlineExceeded,
    Endpoint,
    HttpRequest,
    HttpResponse,
    Lines,
    Stream,
)

#: aiohttp warns of longer bodies that are given as bytes.
_LONG_BODY = 1 << 20


class AiohttpTransport:
    """One API server through an aiohttp session, by way of the endpoint's proxy if it has one."""

    def __init__(self, endpoint: Endpoint, credentials: Credentials, *, connections: int = CONNECTIONS) -> None:
        self.endpoint = endpoint
        self._credentials = credentials
        self._requests = _session(connections)
        self._streams = _session(0)
        self._open: set[aiohttp.ClientResponse] = set()

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request; on 401 once more with renewed credentials, if there are others to be had."""
        headers = {"Accept": request.accept}
        headers |= {"Content-Type": request.content_type} if request.body is not None else {}
        method, path, body = request.method, request.path, request.body
        async with self._failures(request.timeout):
            access = await self._credentials.access()
            reply = await self._send(access, method, path, headers, body)
            if reply.status == 401 and await self._credentials.refused(access):
                reply = await self._send(await self._credentials.access(), method, path, headers, body)
        return reply

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[Stream]:
        """GET a path on a connection of its own, line by line."""
        return self._stream(request.path, request.timeout, request.idle_timeout)

    async def close(self) -> None:
        """End all connections."""
        for response in self._open:
            # aiohttp closes the connection but leaves who reads from it waiting.
            response.content.set_exception(ConnectionFailed("closed by us"))
        await self._requests.close()
        await self._streams.close()

    async def _send(
        self, access: Access, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> HttpResponse:
        """One request; once more where a reused connection had died before the first byte of a reply."""
        trace = SimpleNamespace(reused=False)
        try:
            return await self._send_once(access, method, path, headers, body, trace)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            if not trace.reused:
                raise
        return await self._send_once(access, method, path, headers, body, trace)

    async def _send_once(
        self,
        access: Access,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None,
        trace: SimpleNamespace,
    ) -> HttpResponse:
        data = body if body is None or len(body) < _LONG_BODY else io.BytesIO(body)
        arguments = self._arguments(access, headers)
        url = self._url(path)
        async with self._requests.request(method, url, data=data, trace_request_ctx=trace, **arguments) as response:
            return HttpResponse(response.status, _lower(response), await response.read())

    @asynccontextmanager
    async def _stream(self, path: str, connect_timeout: float, idle_timeout: float | None) -> AsyncIterator[Stream]:
        async with self._failures(connect_timeout):
            access = await self._credentials.access()
            response = await self._start_stream(access, path)
            if response.status == 401 and await self._credentials.refused(access):
                response.close()
                response = await self._start_stream(await self._credentials.access(), path)
        self._open.add(response)
        try:
            yield _ResponseStream(response, self._failures, idle_timeout)
        finally:
            self._open.discard(response)
            response.close()

    async def _start_stream(self, access: Access, path: str) -> aiohttp.ClientResponse:
        arguments = self._arguments(access, {"Accept": "application/json"})
        return await self._streams.get(self._url(path), **arguments)

    def _url(self, path: str) -> URL:
        return URL(self.endpoint.url + path, encoded=True)

    def _arguments(self, access: Access, headers: Mapping[str, str]) -> dict[str, Any]:
        return {
            "headers": CIMultiDict([("User-Agent", USER_AGENT), *headers.items(), *access.headers]),
            "ssl": access.tls if access.tls is not None else True,
            "server_hostname": self.endpoint.server_name or None,
            "proxy": self.endpoint.proxy or None,
            "allow_redirects": False,
        }

    @asynccontextmanager
    async def _failures(self, seconds: float | None) -> AsyncIterator[None]:
        """A deadline, and aiohttp's and the system's errors as ours."""
        address = self.endpoint.authority
        try:
            async with asyncio.timeout(seconds):
                yield
        except (ConnectionFailed, asyncio.CancelledError):
            raise
        except TimeoutError:
            raise DeadlineExceeded(f"no reply from {address} in time") from None
        except aiohttp.ClientConnectorError as error:
            reason = getattr(error, "certificate_error", error.os_error)
            if isinstance(reason, ssl.SSLError):
                raise ConnectionFailed(await self._credentials.explain(reason)) from error
            raise ConnectionFailed(f"no connection to {address}: {reason}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionFailed(f"no reply from {address}: {error or type(error).__name__}") from error


class _ResponseStream:
    """An aiohttp response as a :class:`~syncer.clusters.transport.Stream`."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        failures: Callable[[float | None], AbstractAsyncContextManager[None]],
        idle_timeout: float | None,
    ) -> None:
        self._response, self._failures, self._idle_timeout = response, failures, idle_timeout
        self.status = response.status
        self.headers = _lower(response)

    async def __aiter__(self) -> AsyncIterator[list[bytes]]:
        lines = Lines()
        while piece := await self._read():
            lines.feed(piece)
            if lines.ready:
                yield lines.take()
        lines.finish()
        if lines.ready:
            yield lines.take()

    async def body(self) -> bytes:
        """The whole body."""
        pieces = []
        while piece := await self._read():
            pieces.append(piece)
        return b"".join(pieces)

    async def _read(self) -> bytes:
        async with self._failures(self._idle_timeout):
            return await self._response.content.readany()


def _session(limit: int) -> aiohttp.ClientSession:
    trace = aiohttp.TraceConfig()
    trace.on_connection_reuseconn.append(_note_reuse)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=limit, keepalive_timeout=IDLE_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        skip_auto_headers=("Accept-Encoding",),
        trace_configs=[trace],
    )


async def _note_reuse(
    session: aiohttp.ClientSession, context: SimpleNamespace, parameters: aiohttp.TraceConnectionReuseconnParams
) -> None:
    if context.trace_request_ctx is not None:
        context.trace_request_ctx.reused = True


def _lower(response: aiohttp.ClientResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}
