"""Small scripted HTTP servers for the tests of the clusters package."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import trustme

from kube_envtest import ApiServer
from syncer.api import Side
from syncer.clusters.client import SideClient
from syncer.clusters.connection import ConnectionSettings, connect
from syncer.clusters.credentials import LoginCredentials
from syncer.clusters.http_transport import HttpTransport
from syncer.clusters.login import Login
from syncer.clusters.transport import Endpoint

#: Seconds, after which a test gives up.
PATIENCE = 60.0


@dataclass
class Call:
    """One request as the server saw it, and the connection to answer on."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes
    connection: int
    writer: asyncio.StreamWriter

    def header(self, name: str) -> str | None:
        return dict(self.headers).get(name)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        with contextlib.suppress(ConnectionError):
            await self.writer.drain()

    async def reply(self, status: int = 200, body: bytes = b"{}", headers: str = "") -> None:
        head = f"HTTP/1.1 {status} Whatever\r\nContent-Type: application/json\r\n{headers}"
        await self.send(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    async def start_chunked(self, status: int = 200) -> None:
        head = f"HTTP/1.1 {status} Whatever\r\nContent-Type: application/json\r\n"
        await self.send(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())

    async def chunk(self, data: bytes) -> None:
        """One chunk; an empty one ends the reply."""
        await self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def cut(self) -> None:
        """End the connection at once, whatever state the reply is in."""
        self.writer.transport.abort()


Answer = Callable[[Call], Awaitable[None]]


@dataclass
class Peer:
    """A running server: where it is, what it was asked, how many connections it has seen."""

    answer: Answer
    port: int = 0
    calls: list[Call] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    most_open: int = 0
    server_names: list[str | None] = field(default_factory=list)

    def endpoint(self, *, tls: bool = False, prefix: str = "", server_name: str = "") -> Endpoint:
        return Endpoint("127.0.0.1", self.port, tls, prefix, server_name, source="the test")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        number = self.connections
        try:
            while (call := await read_call(reader, writer, number)) is not None:
                self.calls.append(call)
                await self.answer(call)
        except (ConnectionError, ssl.SSLError):
            pass
        finally:
            self.open -= 1
            writer.transport.abort()


async def read_call(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> Call | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    length = int({name.lower(): value for name, value in headers}.get("content-length", "0"))
    method, path, _ = first.split(" ")
    return Call(method, path, headers, await reader.readexactly(length), number, writer)


@asynccontextmanager
async def serve(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[Peer]:
    peer = Peer(answer)
    tasks: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with contextlib.suppress(asyncio.CancelledError):
            await peer.serve(reader, writer)
        tasks.discard(task)

    if tls is not None:
        tls.sni_callback = lambda _socket, name, _context: peer.server_names.append(name)
    server = await asyncio.start_server(one, "127.0.0.1", 0, ssl=tls)
    peer.port = server.sockets[0].getsockname()[1]
    try:
        yield peer
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks)


@asynccontextmanager
async def over_tls(folder: Path) -> AsyncIterator[tuple[ApiServer, SideClient]]:
    """Yield an API server, and a client that talks to it over TLS with the token of a kubeconfig."""
    server = ApiServer(rbac=True)
    await server.start(tls=True)
    settings = ConnectionSettings(kubeconfig=str(server.kubeconfig(folder / "config")))
    cluster = connect(settings, side=Side.HOST, environ={})
    try:
        yield server, cluster
    finally:
        await cluster.close()
        await server.stop()


def plain_transport(endpoint: Endpoint) -> HttpTransport:
    """Return the default transport, without credentials."""
    return HttpTransport(endpoint, LoginCredentials(Login(endpoint)))


async def free_port() -> int:
    """Return a port on which nothing listens."""
    server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port


def server_context(certificate: trustme.LeafCert, ca: trustme.CA | None = None) -> ssl.SSLContext:
    """Return a server's TLS context; with ``ca`` it asks clients for certificates by that authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    if ca is not None:
        ca.configure_trust(context)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context
