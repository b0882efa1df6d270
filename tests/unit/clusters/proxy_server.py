"""A small HTTP proxy: tunnels for CONNECT, whole URLs for plain HTTP, a user and password where the test says so."""

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from syncer.clusters.proxy import Proxy

USER, PASSWORD = "ann", "p@ss:word"
ALLOWED = f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"


@dataclass
class ProxyServer:
    """A running proxy; ``asked`` has the first line of each request, ``answer`` replaces its answer to CONNECT."""

    tls: bool = False
    with_password: bool = False
    answer: bytes | None = None
    port: int = 0
    asked: list[str] = field(default_factory=list)
    #: Tunnels that are open, to be cut.
    tunnels: list[asyncio.StreamWriter] = field(default_factory=list)

    def proxy(self, authorization: str = "", host: str = "127.0.0.1") -> Proxy:
        return Proxy(host, self.port, self.tls, authorization, "the test")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        line, *lines = head.decode("latin-1").strip().split("\r\n")
        self.asked.append(line)
        method, target, _ = line.split(" ")
        if self.with_password and f"Proxy-Authorization: {ALLOWED}" not in lines:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        elif self.answer is not None:
            writer.write(self.answer)
        elif method == "CONNECT":
            host, _, port = target.rpartition(":")
            await self.tunnel(reader, writer, host, int(port), b"")
        else:
            there = urlsplit(target)
            kept = [line for line in lines if not line.startswith("Proxy-")]
            first = f"{method} {target.removeprefix(f'http://{there.netloc}')} HTTP/1.1"
            forwarded = "\r\n".join([first, *kept, "", ""]).encode("latin-1")
            await self.tunnel(reader, writer, str(there.hostname), int(there.port or 80), forwarded)
        await writer.drain()

    async def tunnel(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int, first: bytes
    ) -> None:
        there_reader, there_writer = await asyncio.open_connection(host, port)
        self.tunnels.append(writer)
        if first:
            there_writer.write(first)
        else:
            writer.write(b"HTTP/1.1 200 Connected\r\nVia: test\r\n\r\n")
        await asyncio.gather(pump(reader, there_writer), pump(there_reader, writer))


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except (ConnectionError, ssl.SSLError):
        writer.transport.abort()
    finally:
        writer.close()


@asynccontextmanager
async def proxy_server(proxy: ProxyServer, context: ssl.SSLContext | None = None) -> AsyncIterator[ProxyServer]:
    tasks: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with contextlib.suppress(asyncio.CancelledError, ConnectionError, asyncio.IncompleteReadError):
                await proxy.serve(reader, writer)
        finally:
            writer.close()
            tasks.discard(task)

    server = await asyncio.start_server(one, "127.0.0.1", 0, ssl=context)
    proxy.port, proxy.tls = server.sockets[0].getsockname()[1], context is not None
    try:
        yield proxy
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks)
        await asyncio.sleep(0)  # the connections are closed at the next turn of the loop
