"""The server's HTTP side, for kubectl and other programs."""

import asyncio
import socket
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from aiohttp import web

from kube_envtest.apiserver.bodies import LARGEST
from kube_envtest.apiserver.errors import ApiError
from kube_envtest.apiserver.memory import ConnectionLost
from kube_envtest.apiserver.rbac import User
from kube_envtest.apiserver.request import JSON, Request, Response, make_request
from kube_envtest.apiserver.rest import refusal
from kube_envtest.apiserver.watch import Watch, WatchCut

if TYPE_CHECKING:
    from kube_envtest.apiserver.server import ApiServer

#: Steps of the event loop in which connections come to their end: those that were just accepted, those in their
#: handshake, and closed ones.
CLOSING_STEPS = 5


class Site:
    """A listening server."""

    def __init__(self, server: "ApiServer", certificate: str) -> None:
        self.certificate = certificate
        self.url = ""
        self._server = server
        self._socket: socket.socket | None = None
        self._runner: web.ServerRunner | None = None
        self._web: web.Server | None = None

    async def listen(self, host: str, port: int, context: ssl.SSLContext | None) -> None:
        """Start to listen; ``port`` 0 is any free port."""
        self._web = web.Server(self._handle, access_log=None, handler_cancellation=True)
        self._runner = web.ServerRunner(self._web, shutdown_timeout=0.1)
        await self._runner.setup()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family)
        await web.SockSite(self._runner, self._socket, ssl_context=context).start()
        bound = self._runner.addresses[0][1]
        self.url = f"{'https' if context else 'http'}://{host}:{bound}"

    async def stop(self) -> None:
        """Stop to listen, and close every connection.

        A connection that has been accepted becomes one of the server's some steps of the event loop later. If the
        server has been closed by then, asyncio drops it and closes neither its transport nor its socket.
        """
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
        await _steps()
        self.reset()
        if self._runner is not None:
            await self._runner.cleanup()
        await _steps()

    def reset(self) -> None:
        """Break every connection, also one that is being closed: closing TLS politely takes the client's answer."""
        for connection in self._web.connections if self._web is not None else ():
            if isinstance(connection.transport, asyncio.Transport):
                connection.transport.abort()

    async def _handle(self, incoming: web.BaseRequest) -> web.StreamResponse:
        try:
            answer = await self._answer(incoming)
        except ConnectionLost:
            return _broken(incoming)
        if isinstance(answer, Response):
            headers = {"Content-Type": answer.content_type, **answer.headers}
            return web.Response(status=answer.status, body=answer.body, headers=headers)
        return await self._stream(incoming, answer)

    async def _answer(self, incoming: web.BaseRequest) -> Response | Watch:
        body = await _body(incoming)
        try:
            user = self._user(incoming)
        except ApiError as problem:
            return refusal(problem)
        if len(body) > LARGEST:
            text = f"Request entity too large: limit is {LARGEST}"
            return refusal(ApiError(413, "RequestEntityTooLarge", text, {}))
        return await self._server.serve(_request(incoming, body, user))

    def _user(self, incoming: web.BaseRequest) -> User:
        kind, _, credentials = incoming.headers.get("Authorization", "").partition(" ")
        token = ""
        if kind.lower() == "bearer":
            token = credentials.strip()
        user = self._server.authenticate(token)
        wanted = incoming.headers.get("Impersonate-User")
        if wanted is None:
            return user
        groups = incoming.headers.getall("Impersonate-Group", [])
        return self._server.impersonate(user, User(wanted, (*groups, "system:authenticated")))

    async def _stream(self, incoming: web.BaseRequest, watch: Watch) -> web.StreamResponse:
        reply = web.StreamResponse(headers={"Content-Type": JSON})
        reply.enable_chunked_encoding()
        await reply.prepare(incoming)
        try:
            async for batch in watch.batches():
                await self._server.passable()
                await reply.write(b"\n".join(batch) + b"\n")
        except (WatchCut, ConnectionError):
            return _broken(incoming)
        finally:
            watch.close()
        return reply


async def _steps() -> None:
    for _ in range(CLOSING_STEPS):
        await asyncio.sleep(0)


async def _body(incoming: web.BaseRequest) -> bytes:
    """Return the body; of a too large one only enough to show that."""
    pieces = []
    size = 0
    async for piece in incoming.content.iter_any():
        if size <= LARGEST:
            pieces.append(piece)
            size += len(piece)
    return b"".join(pieces)


def _request(incoming: web.BaseRequest, body: bytes, user: User) -> Request:
    headers = incoming.headers
    return make_request(
        incoming.method,
        incoming.raw_path,
        body,
        user,
        content_type=headers.get("Content-Type", JSON),
        accept=headers.get("Accept", JSON),
        agent=headers.get("User-Agent", ""),
    )


def _broken(incoming: web.BaseRequest) -> web.StreamResponse:
    if isinstance(incoming.transport, asyncio.Transport):
        incoming.transport.abort()
    return web.Response(status=500)


async def start(server: "ApiServer", host: str, port: int, *, tls: bool) -> Site:
    """Serve ``server``; with ``tls`` under a certificate of its own CA."""
    context, certificate = _certificate(host) if tls else (None, "")
    site = Site(server, certificate)
    await site.listen(host, port, context)
    return site


def _certificate(host: str) -> tuple[ssl.SSLContext, str]:
    import trustme

    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host, "localhost", "kubernetes").configure_cert(context)
    return context, authority.cert_pem.bytes().decode()


def write_kubeconfig(path: Path, site: Site, user: str, token: str) -> Path:
    """Write a self-contained kubeconfig that only its owner can read."""
    import base64

    cluster: dict[str, str] = {"server": site.url}
    if site.certificate:
        cluster["certificate-authority-data"] = base64.b64encode(site.certificate.encode()).decode()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "inprocess", "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "inprocess", "context": {"cluster": "inprocess", "user": user}}],
        "current-context": "inprocess",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content))
    return path
