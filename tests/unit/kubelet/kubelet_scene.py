"""A kubelet's server with TLS, between scripted API servers: what each is asked is written down."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme
from single_requests import SingleRequests

from syncer.api.context import Settings
from syncer.api.errors import ClusterError
from syncer.api.objects import Key, Obj, Side
from syncer.byte_budget import ByteBudget
from syncer.clusters.client import SideClient
from syncer.clusters.credentials import Access
from syncer.clusters.dialer import Dialer
from syncer.clusters.transport import Endpoint, HttpRequest, HttpResponse
from syncer.kubelet import certificates
from syncer.kubelet.cadvisor import HostKubelets
from syncer.kubelet.certificates import Serving
from syncer.kubelet.listener import Bounds
from syncer.kubelet.server import KubeletServer
from syncer.kubelet.usage import Usages
from syncer.names import SingleNamespace
from syncer.resources.kinds import PODS

#: Seconds, after which a test gives up.
PATIENCE = 60.0
NODE = "node1"
SETTINGS = Settings("shop", "vc-shop", SingleNamespace(cluster="shop", namespace="vc-shop"))
POD = Key("web", "front")
HOST_KEY = SETTINGS.names.to_host(PODS, POD)
LOGS = f"/containerLogs/{POD.namespace}/{POD.name}/main"
EXEC = f"/exec/{POD.namespace}/{POD.name}/main?command=id&output=1"
#: The annotation of a copy with the containers that were sent.
RECORD = "vsyncer.dev/containers"
PODS_OF_HOST = f"/api/v1/namespaces/{HOST_KEY.namespace}/pods"

#: Answers a request of the host: gets its head, and the streams.
Answer = Callable[[str, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def virtual_pod() -> Obj:
    """Return the tenant's Pod."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": POD.name, "namespace": POD.namespace, "uid": "u-1"},
        "spec": {"nodeName": NODE, "containers": [{"name": "main"}]},
    }


def host_pod() -> Obj:
    """Return its copy."""
    marks = SETTINGS.marks
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": HOST_KEY.name,
            "namespace": HOST_KEY.namespace,
            "uid": "h-1",
            "labels": marks.labels(SETTINGS.identity, POD),
            "annotations": marks.annotations(PODS, virtual_pod(), HOST_KEY) | {RECORD: '{"containers":["main"]}'},
        },
        "spec": {"nodeName": NODE, "containers": [{"name": "main"}], "ephemeralContainers": [{"name": "debug"}]},
    }


class Silent:
    """Answers of a host that says nothing; ``gone`` is set once the request to it has ended."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()

    async def __call__(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        self.gone.set()


@dataclass
class Api(SingleRequests):
    """An API server for single requests."""

    objects: dict[str, Obj] = field(default_factory=dict)
    #: The users that may use the nodes, and the tokens of users.
    allowed: set[str] = field(default_factory=set)
    tokens: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    #: The verbs that they may not use.
    refused: set[str] = field(default_factory=set)
    #: Another answer than the user of a token, and the seconds that each answer takes.
    reviewed: Any = None
    slow: float = 0.0

    async def send(self, request: HttpRequest) -> HttpResponse:
        body: Any = json.loads(request.body) if request.body else None
        path = request.path.partition("?")[0]
        self.asked.append((request.method, path, body))
        await asyncio.sleep(self.slow)
        if path.endswith("/tokenreviews") and self.reviewed is not None:
            return _reply(201, {"status": {"authenticated": True, "user": self.reviewed}})
        if path.endswith("/tokenreviews"):
            user = self.tokens.get(body["spec"]["token"])
            return _reply(201, {"status": {"authenticated": bool(user), "user": {"username": user} if user else {}}})
        if path.endswith("/subjectaccessreviews"):
            spec = body["spec"]
            may = spec["user"] in self.allowed and spec["resourceAttributes"]["verb"] not in self.refused
            return _reply(201, {"status": {"allowed": may}})
        found = self.objects.get(path)
        return _reply(200, found) if found else _reply(404, {"kind": "Status", "code": 404, "reason": "NotFound"})


def _reply(status: int, body: Any) -> HttpResponse:
    return HttpResponse(status, {}, json.dumps(body).encode())


class Bearer:
    """The daemon's credentials: a token."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self._tls = tls

    async def access(self, deadline: float | None = None) -> Access:
        return Access((("Authorization", "Bearer of-the-daemon"),), self._tls)

    async def refused(self, access: Access, deadline: float | None = None) -> bool:
        return False

    async def explain(self, error: ssl.SSLError) -> str:
        return str(error)


@dataclass
class Scene:
    """A running server."""

    server: KubeletServer
    port: int
    virtual: Api
    host: Api
    ca: trustme.CA
    #: The heads of requests that reached the host's pods.
    reached: list[str]

    def tls(self, user: str = "apiserver", *, ca: trustme.CA | None = None, certificate: bool = True) -> ssl.SSLContext:
        """Return the context of a client that trusts the server."""
        made = ssl.create_default_context(cadata=self.ca.cert_pem.bytes().decode())
        if certificate:
            issued = (ca or self.ca).issue_cert(common_name=user, organization_name="kubelets")
            issued.configure_cert(made)
        return made

    async def connect(self, tls: ssl.SSLContext | None = None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a connection."""
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=tls or self.tls())

    async def ask(
        self, target: str, *headers: str, method: str = "GET", tls: ssl.SSLContext | None = None
    ) -> tuple[int, bytes]:
        """Send a request; return the status and the body."""
        reader, writer = await self.connect(tls)
        try:
            writer.write(request(target, *headers, method=method))
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
            return int(head.split()[1]), body
        finally:
            writer.transport.abort()


def request(target: str, *headers: str, method: str = "GET") -> bytes:
    """Return the bytes of a request."""
    return "\r\n".join((f"{method} {target} HTTP/1.1", "Host: node1", *headers, "", "")).encode()


@asynccontextmanager
async def scene(
    answer: Answer | None = None,
    *,
    bounds: Bounds | None = None,
    usages: Usages | None = None,
    kubelets: HostKubelets | None = None,
    holds_copies: bool | ClusterError = True,
) -> AsyncIterator[Scene]:
    """Run a server for a node, with a tenant's running Pod, in whose host namespace there are copies."""
    reached: list[str] = []

    async def in_home(namespace: str) -> bool:
        if isinstance(holds_copies, ClusterError):
            raise holds_copies
        return holds_copies and namespace == HOST_KEY.namespace

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            reached.append(head)
            await (answer or _hello)(head, reader, writer)
        finally:
            writer.close()

    virtual, host, ca = Api(), Api(), trustme.CA()
    issued = ca.issue_cert("127.0.0.1")
    of_host, to_host = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    issued.configure_cert(of_host)
    ca.configure_trust(to_host)
    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=of_host)
    endpoint, credentials = Endpoint("127.0.0.1", listening.sockets[0].getsockname()[1]), Bearer(to_host)
    virtual.objects[f"/api/v1/namespaces/{POD.namespace}/pods/{POD.name}"] = virtual_pod()
    virtual.allowed, virtual.tokens = {"apiserver", "prometheus"}, {"secret": "prometheus", "weak": "alice"}
    host.objects[f"{PODS_OF_HOST}/{HOST_KEY.name}"] = host_pod()
    pem = b"".join(each.bytes() for each in issued.cert_chain_pems)
    tls = certificates.context(Serving.of(pem, issued.private_key_pem.bytes()), ca.cert_pem.bytes())
    server = KubeletServer(
        SETTINGS,
        SideClient("shop", Side.VIRTUAL, virtual, dialer=Dialer(endpoint, credentials)),
        SideClient("host", Side.HOST, host, dialer=Dialer(endpoint, credentials)),
        tls=lambda: tls,
        to_virtual_text=lambda pod, text: text.replace(pod.key.name, pod.virtual.name),
        bounds=bounds or Bounds(ByteBudget()),
        holds_copies=in_home,
        pods_of=lambda node: [json.dumps(virtual_pod()).encode()] if node == NODE else [],
        usages=usages,
        kubelets=kubelets,
    )
    server.listen(NODE, "127.0.0.1", 0)
    try:
        yield Scene(server, server.nodes[NODE].port, virtual, host, ca, reached)
    finally:
        server.close()
        listening.close()
        await asyncio.sleep(0)


async def _hello(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nAudit-Id: of-the-host\r\n\r\nhello from the log\n")
    await writer.drain()


async def wait_until(is_so: Callable[[], object]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(PATIENCE):
        while not is_so():  # noqa: ASYNC110 — of anything
            await asyncio.sleep(0.01)


def open_files() -> int:
    """Return the number of files of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))
