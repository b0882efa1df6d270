"""The transports that every transport test runs on."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import uvloop

from syncer.clusters.aiohttp_transport import AiohttpTransport
from syncer.clusters.credentials import Credentials, LoginCredentials
from syncer.clusters.httptools_transport import HttptoolsTransport
from syncer.clusters.login import Login
from syncer.clusters.transport import Endpoint, Transport


@dataclass(frozen=True)
class Kind:
    """A transport and the loop that it runs on."""

    transport: type[HttptoolsTransport] | type[AiohttpTransport]
    run: Callable[[Coroutine[Any, Any, None]], None]

    @asynccontextmanager
    async def open(
        self, endpoint: Endpoint, credentials: Credentials | None = None, *, connections: int = 32
    ) -> AsyncIterator[Transport]:
        transport = self.transport(endpoint, credentials or LoginCredentials(Login(endpoint)), connections=connections)
        try:
            yield transport
        finally:
            await transport.close()


KINDS = {
    "httptools": Kind(HttptoolsTransport, asyncio.run),
    "httptools-uvloop": Kind(HttptoolsTransport, uvloop.run),
    "aiohttp": Kind(AiohttpTransport, asyncio.run),
}
