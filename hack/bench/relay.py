"""The kubelet's relay: its CPU a megabyte beside a bare relay's, by turns, and its memory for many
open logs.

Both relays have TLS on both sides, with a client certificate, on uvloop, each in a process of its
own.
"""

import asyncio
import contextlib
import json
import os
import resource
import ssl
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import click
import trustme
import uvloop

from hack.endings import interrupt_on_sigterm
from syncer.api import Key, Obj, Settings, Side
from syncer.byte_budget import ByteBudget
from syncer.cli.run import spare_memory
from syncer.clusters.client import SideClient
from syncer.clusters.credentials import LoginCredentials
from syncer.clusters.dialer import Dialer
from syncer.clusters.login import Login, Material
from syncer.clusters.transport import Endpoint, HttpRequest, HttpResponse
from syncer.kubelet import certificates
from syncer.kubelet.certificates import Serving
from syncer.kubelet.listener import Bounds, connections
from syncer.kubelet.server import KubeletServer
from syncer.names import SingleNamespace
from syncer.resources.kinds import PODS

SETTINGS = Settings("shop", "vc-shop", SingleNamespace(cluster="shop", namespace="vc-shop"))
NODE = "node"
POD = Key("web", "front")
HOST_KEY = SETTINGS.names.to_host(PODS, POD)
PATH = f"/containerLogs/{POD.namespace}/{POD.name}/main?follow=true"
REQUEST = f"GET {PATH} HTTP/1.1\r\nHost: node\r\n\r\n".encode()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
PIECE = b"x" * (32 << 10)
#: Bytes of a log whose end is asked for.
SHORT = 4 << 20


# -- the relays ------------------------------------------------------------------------------------


class Answers:
    """API servers that know a single Pod and allow everything."""

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Answer a review or a read."""
        if request.method == "POST":
            return HttpResponse(201, {}, b'{"status":{"allowed":true}}')
        pod = _copy() if HOST_KEY.name in request.path else _virtual()
        return HttpResponse(200, {}, json.dumps(pod).encode())

    def stream(self, request: HttpRequest) -> Any:
        """Open no stream: logs are relayed."""
        raise AssertionError(f"a stream of {request.path}")

    async def close(self) -> None:
        """Do nothing."""


def _virtual() -> Obj:
    metadata = {"name": POD.name, "namespace": POD.namespace, "uid": "u"}
    spec = {"nodeName": NODE, "containers": [{"name": "main"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _copy() -> Obj:
    marks = SETTINGS.marks
    metadata = {
        "name": HOST_KEY.name,
        "namespace": HOST_KEY.namespace,
        "labels": marks.labels(SETTINGS.identity, POD),
        "annotations": marks.annotations(PODS, _virtual(), HOST_KEY),
    }
    return {**_virtual(), "metadata": metadata}


async def anywhere(namespace: str) -> bool:
    """Return True: the copy is where it is looked for."""
    return True


async def serve(kind: str, folder: Path, upstream: int) -> None:
    """Run a relay to a port until stdin ends; print its port,
    and answer each line with CPU and memory.
    """
    if kind == "ours":
        spare_memory()
    serving = Serving.of((folder / "server.crt").read_bytes(), (folder / "server.key").read_bytes())
    tls = certificates.context(serving, (folder / "ca.crt").read_bytes())
    endpoint = Endpoint("127.0.0.1", upstream)
    loop = asyncio.get_running_loop()
    if kind == "ours":
        login = Login(endpoint, ca=Material(path=folder / "ca.crt"), token="t")
        dialer = Dialer(endpoint, LoginCredentials(login))
        virtual, host = (
            SideClient(str(side), side, Answers(), dialer=dialer)
            for side in (Side.VIRTUAL, Side.HOST)
        )
        server = KubeletServer(
            SETTINGS,
            virtual,
            host,
            tls=lambda: tls,
            to_virtual_text=lambda pod, text: text,
            pods_of=lambda node: (),
            holds_copies=anywhere,
            bounds=Bounds(ByteBudget()),
        )
        server.listen(NODE, "127.0.0.1", 0)
        port = server.nodes[NODE].port
    else:
        to = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        bare = await loop.create_server(lambda: Bare(upstream, to), "127.0.0.1", 0, ssl=tls)
        port = bare.sockets[0].getsockname()[1]
    print(port, flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline):
        used = resource.getrusage(resource.RUSAGE_SELF)
        rss = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")  # noqa: ASYNC240
        print(json.dumps({"cpu": used.ru_utime + used.ru_stime, "rss": rss}), flush=True)


class Bare(asyncio.Protocol):
    """Passes bytes to another server and back, and nothing more."""

    def __init__(self, upstream: int, tls: ssl.SSLContext) -> None:
        self.upstream = upstream
        self.tls = tls
        self.other: Any = None
        self.early = b""

    def connection_made(self, transport: Any) -> None:
        """Connect to the other server."""
        self.transport = transport
        self.task = asyncio.ensure_future(self._connect())

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        self.other, _ = await loop.create_connection(
            lambda: Back(self.transport), "127.0.0.1", self.upstream, ssl=self.tls
        )
        self.other.write(self.early)

    def data_received(self, data: bytes) -> None:
        """Pass bytes on."""
        if self.other is None:
            self.early += data
        else:
            self.other.write(data)

    def pause_writing(self) -> None:
        """Stop reading from the other side."""
        self.other.pause_reading()

    def resume_writing(self) -> None:
        """Read again."""
        self.other.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the other side."""
        if self.other is not None:
            self.other.close()


class Back(asyncio.Protocol):
    """The way back of a bare relay."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def data_received(self, data: bytes) -> None:
        """Pass bytes on."""
        self.client.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the client."""
        self.client.close()


# -- the measurement -------------------------------------------------------------------------------


class Process:
    """A relay's process."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self._process = process
        self.port = port

    async def usage(self) -> dict[str, float]:
        """Return its seconds of CPU and its bytes of memory."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\n")
        found: dict[str, float] = json.loads(await self._process.stdout.readline())
        return found


@contextlib.asynccontextmanager
async def relay(kind: str, folder: Path, upstream: int) -> AsyncIterator[Process]:
    """Run a relay in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hack.bench.relay", "serve", kind, str(folder), str(upstream)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Process(process, int(await process.stdout.readline()))
    finally:
        process.stdin.close()
        process.terminate()
        await process.wait()


async def measure(megabytes: int, turns: int, logs: int) -> dict[str, Any]:
    """Return the figures."""
    with tempfile.TemporaryDirectory(prefix="syncer-bench-") as name:
        folder = Path(name)
        ca = trustme.CA()
        ca.cert_pem.write_to_path(folder / "ca.crt")
        issued = ca.issue_cert("127.0.0.1", common_name="apiserver")
        issued.private_key_pem.write_to_path(folder / "server.key")
        for each in issued.cert_chain_pems:
            each.write_to_path(folder / "server.crt", append=True)
        tls = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        issued.configure_cert(tls)
        of_source = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        issued.configure_cert(of_source)
        source = await asyncio.start_server(
            lambda r, w: _source(r, w, megabytes), "127.0.0.1", 0, ssl=of_source
        )
        port: int = source.sockets[0].getsockname()[1]
        cpu: dict[str, list[float]] = {"bare": [], "ours": []}
        for turn in range(2 * turns):
            kind = ("bare", "ours")[turn % 2]
            async with relay(kind, folder, port) as process:
                cpu[kind].append(await _cpu(process, tls, megabytes))
        async with relay("ours", folder, port) as process:
            memory = await _memory(process, tls, logs)
        async with relay("ours", folder, port) as process:
            left = await _left(process, tls, logs)
        source.close()
    seconds = {kind: statistics.median(found) for kind, found in cpu.items()}
    return {
        "megabytes": megabytes,
        "cpu_ms_a_mb": {kind: round(value * 1000, 3) for kind, value in seconds.items()},
        "ratio": round(seconds["ours"] / seconds["bare"], 3),
        "logs": logs,
        "logs_mb": round(memory / 2**20, 1),
        "logs_that_ended_mb": round(left / 2**20, 1),
    }


async def _source(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, megabytes: int
) -> None:
    """Write a log: a line if it is followed quietly, a short one if its end is asked for,
    else many bytes.
    """
    head = await reader.readuntil(b"\r\n\r\n")
    writer.write(HEAD)
    if b"tailLines" in head:
        writer.write(b"a line\n")
        await writer.drain()
        await reader.read()
    else:
        size = SHORT if b"limitBytes" in head else megabytes << 20
        for _ in range(size // len(PIECE)):
            writer.write(PIECE)
            await writer.drain()
    writer.close()


async def _cpu(process: Process, tls: ssl.SSLContext, megabytes: int) -> float:
    """Return the seconds of CPU a megabyte of a relay."""
    await _read(process.port, tls)  # the first connection loads code
    before = await process.usage()
    got = await _read(process.port, tls)
    after = await process.usage()
    assert got >= megabytes << 20, f"{got} bytes arrived"
    return (after["cpu"] - before["cpu"]) / megabytes


async def _read(port: int, tls: ssl.SSLContext, request: bytes = REQUEST) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, limit=1 << 20)
    writer.write(request)
    size = 0
    while data := await reader.read(1 << 20):
        size += len(data)
    writer.close()
    return size


async def _memory(process: Process, tls: ssl.SSLContext, logs: int) -> float:
    """Return the bytes that open logs take."""
    writers = [await _follow(process.port, tls)]
    before = await process.usage()
    writers += [await _follow(process.port, tls) for _ in range(logs)]
    after = await process.usage()
    for writer in writers:
        writer.transport.abort()
    return after["rss"] - before["rss"]


async def _left(process: Process, tls: ssl.SSLContext, logs: int) -> float:
    """Return the bytes that are still taken after logs have been read, one after the other."""
    request = REQUEST.replace(b"?follow", b"?limitBytes=%d&follow" % SHORT)
    await _read(process.port, tls, request)
    before = await process.usage()
    for _ in range(logs):
        await _read(process.port, tls, request)
    after = await process.usage()
    return after["rss"] - before["rss"]


async def _follow(port: int, tls: ssl.SSLContext) -> asyncio.StreamWriter:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    writer.write(REQUEST.replace(b"?follow", b"?tailLines=1&follow"))
    await reader.readuntil(b"a line\n")
    return writer


@click.group(invoke_without_command=True)
@click.option("--megabytes", default=200, show_default=True, help="Size of a log.")
@click.option(
    "--turns", default=3, show_default=True, help="Measurements of each relay; the median counts."
)
@click.option(
    "--logs", default=500, show_default=True, help="Number of logs that are followed at once."
)
@click.pass_context
def main(context: click.Context, megabytes: int, turns: int, logs: int) -> None:
    """Measure the kubelet's relay beside a bare one, and print JSON."""
    if context.invoked_subcommand is None:
        connections()  # this process has both ends of each log
        print(json.dumps(uvloop.run(measure(megabytes, turns, logs)), indent=2))


@main.command("serve", hidden=True)
@click.argument("kind", type=click.Choice(["ours", "bare"]))
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("upstream", type=int)
def serve_command(kind: str, folder: Path, upstream: int) -> None:
    """Run a relay."""
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(serve(kind, folder, upstream))


if __name__ == "__main__":
    interrupt_on_sigterm()
    main()
