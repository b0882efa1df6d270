"""Measure the CPU of a request: POSTs of 3 KB over TLS, answered with 4.6 KB by a server of its
own. Then the memory of connections: idle ones, and once each has carried a request and a response
of a megabyte.

Each variant runs in its own process against the same server, which runs in another; a JSON line for
each variant.
"""

import argparse
import asyncio
import json
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httptools
import trustme
import uvloop

from hack.bench.store import rss
from hack.commands import SECONDS
from syncer.api.objects import Obj, Resource, Side
from syncer.cli.run import spare_memory
from syncer.clusters.client import SideClient
from syncer.clusters.credentials import LoginCredentials
from syncer.clusters.http_transport import HttpTransport
from syncer.clusters.login import Login, Material
from syncer.clusters.pool import CONNECTIONS
from syncer.clusters.transport import Endpoint, HttpRequest, Transport

REPLY_BYTES = 4600
BODY_BYTES = 3000
LARGE_BYTES = 1_000_000
#: The query of a request that is answered with a large object.
LARGE = b"?large"
CONFIGMAPS = Resource("v1", "ConfigMap", "configmaps")
#: variant → event loop, and True to go through the client (including encoding and decoding JSON)
VARIANTS = {
    "transport": ("uvloop", False),
    "asyncio": ("asyncio", False),
    "client": ("uvloop", True),
}
MEMORY = "memory"
SELF = (sys.executable, "-m", "hack.bench.transport")
Run = Callable[[Any], Any]


class Server(asyncio.Protocol):
    """Answers each request with the same object, or with a large one."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport for the responses."""
        self._transport = transport
        self._parser = httptools.HttpRequestParser(self)
        self._reply = _reply(REPLY_BYTES)
        self._large_reply = _reply(LARGE_BYTES)
        self._large = False

    def data_received(self, data: bytes) -> None:
        """Parse a part of a request."""
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        """Note whether the answer is to be large."""
        self._large = url.endswith(LARGE)

    def on_message_complete(self) -> None:
        """Answer the request."""
        self._transport.write(self._large_reply if self._large else self._reply)  # type: ignore[attr-defined]


def _reply(size: int) -> bytes:
    body = json.dumps(config_map(size)).encode()
    fields = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"HTTP/1.1 201 Created\r\n{fields}\r\n".encode() + body


def config_map(size: int) -> Obj:
    """Return a ConfigMap of about this size in bytes, in values of 100."""
    data = {f"key-{index}": "x" * 100 for index in range((size - 200) // 112)}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "shop"},
        "data": data,
    }


async def serve(directory: Path) -> None:
    """Create certificates, listen, write the port down, and serve."""
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    ca.cert_pem.write_to_path(str(directory / "ca.pem"))
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, ssl=context)
    (directory / "port.new").write_text(str(server.sockets[0].getsockname()[1]))
    (directory / "port.new").rename(directory / "port")
    await server.serve_forever()


async def measure(directory: Path, variant: str, n: int, concurrency: int) -> dict[str, object]:
    """Send ``n`` requests from ``concurrency`` tasks, after a tenth of them to warm up."""
    _, through_client = VARIANTS[variant]
    transport = _transport(directory)
    send = _by_client(transport) if through_client else _bare(transport)
    await _repeat(send, n // 10, concurrency)
    cpu = time.process_time()
    wall = time.perf_counter()
    await _repeat(send, n, concurrency)
    cpu = time.process_time() - cpu
    wall = time.perf_counter() - wall
    await transport.close()
    return {
        "bench": "transport",
        "variant": variant,
        "n": n,
        "cpu_us_per_request": round(cpu / n * 1e6, 1),
        "requests_per_s": round(n / wall),
    }


async def measure_memory(directory: Path, n: int) -> dict[str, object]:
    """Return the memory that ``n`` connections take that are open at a time."""
    spare_memory()
    transport = _transport(directory)
    path = CONFIGMAPS.collection("shop")
    small = json.dumps(config_map(BODY_BYTES)).encode()
    large = json.dumps(config_map(LARGE_BYTES)).encode()
    await transport.send(HttpRequest("POST", path, body=small))
    before = rss()
    found = {}
    for step, request in (
        ("idle", HttpRequest("POST", path, body=small)),
        ("after_large_requests", HttpRequest("POST", path, body=large)),
        ("after_large_responses", HttpRequest("GET", path + LARGE.decode())),
    ):
        for _ in range(3):
            await asyncio.gather(*(transport.send(request) for _ in range(n)))
        await asyncio.sleep(2)  # closed connections end
        found[f"{step}_kb"] = round((rss() - before) / 1000 / n)
    await transport.close()
    return {"bench": "transport", "variant": MEMORY, "connections": n, **found}


def _transport(directory: Path) -> Transport:
    endpoint = Endpoint("127.0.0.1", int((directory / "port").read_text()))
    return HttpTransport(
        endpoint, LoginCredentials(Login(endpoint, ca=Material(path=directory / "ca.pem")))
    )


def _bare(transport: Transport) -> Callable[[], Awaitable[object]]:
    body = json.dumps(config_map(BODY_BYTES)).encode()
    return lambda: transport.send(HttpRequest("POST", CONFIGMAPS.collection("shop"), body=body))


def _by_client(transport: Transport) -> Callable[[], Awaitable[object]]:
    cluster = SideClient("host", Side.HOST, transport)
    obj = config_map(BODY_BYTES)
    return lambda: cluster.create(CONFIGMAPS, obj)


async def _repeat(send: Callable[[], Awaitable[object]], n: int, concurrency: int) -> None:
    left = iter(range(n))

    async def worker() -> None:
        for _ in left:
            await send()

    await asyncio.gather(*(worker() for _ in range(concurrency)))


def _runner(loop: str) -> Run:
    return uvloop.run if loop == "uvloop" else asyncio.run


def main() -> None:
    """Start the server, then each variant in order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=20_000, help="requests a variant")
    parser.add_argument("-c", "--concurrency", type=int, default=16, help="requests at a time")
    parser.add_argument("--variant", choices=[*VARIANTS, MEMORY], help="only this one")
    parser.add_argument("--part", nargs=2, metavar=("PART", "DIRECTORY"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part is None:
        return _all(options)
    part = options.part[0]
    directory = Path(options.part[1])
    if part == "server":
        return uvloop.run(serve(directory))
    if part == MEMORY:
        print(json.dumps(uvloop.run(measure_memory(directory, CONNECTIONS))))
        return None
    run = _runner(VARIANTS[part][0])
    print(json.dumps(run(measure(directory, part, options.n, options.concurrency))))
    return None


def _all(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="syncer-bench-") as directory:
        server = subprocess.Popen([*SELF, "--part", "server", directory])
        try:
            while not (Path(directory) / "port").exists():
                server.poll() is None or sys.exit("the server did not start")
                time.sleep(0.05)
            for variant in [options.variant] if options.variant else [*VARIANTS, MEMORY]:
                arguments = [
                    "-n",
                    str(options.n),
                    "-c",
                    str(options.concurrency),
                    "--part",
                    variant,
                    directory,
                ]
                subprocess.run([*SELF, *arguments], check=True, timeout=SECONDS)
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
