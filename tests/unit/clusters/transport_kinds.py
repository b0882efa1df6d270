"""The event loops that every transport test runs on."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import uvloop

from syncer.byte_budget import ByteBudget
from syncer.clusters.credentials import Credentials, LoginCredentials
from syncer.clusters.http1 import Http1Connection
from syncer.clusters.http_transport import HttpTransport
from syncer.clusters.login import Login
from syncer.clusters.transport import Endpoint, Transport


@dataclass(frozen=True)
class Kind:
    """A transport's event loop."""

    run: Callable[[Coroutine[Any, Any, None]], None]

    @asynccontextmanager
    async def open(
        self,
        endpoint: Endpoint,
        credentials: Credentials | None = None,
        *,
        connections: int = 32,
        replies: ByteBudget | None = None,
    ) -> AsyncIterator[Transport]:
        used = credentials or LoginCredentials(Login(endpoint))
        transport = HttpTransport(endpoint, used, connections=connections, replies=replies)
        try:
            yield transport
        finally:
            await transport.close()


KINDS = {
    "asyncio": Kind(asyncio.run),
    "uvloop": Kind(uvloop.run),
}


def receive(connection: Http1Connection, data: bytes) -> None:
    """Let a connection read these bytes."""
    connection.get_buffer(len(data))[: len(data)] = data
    connection.buffer_updated(len(data))
