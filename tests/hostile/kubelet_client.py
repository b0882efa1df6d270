"""The virtual API server as a client of the daemon's kubelet server, and the host as a server of logs."""

import http.client
import json
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack
from functools import cached_property
from typing import Any

import trustme

from hack.ports import free_port
from kube_envtest import ApiServer
from kube_envtest.apiserver.request import Request, Response, reply
from kube_envtest.apiserver.watch import Watch
from syncer.api import Obj
from syncer.resources.kinds import CONFIG_MAPS
from syncer.testing.objects import build

#: The headers of an upgrade to a WebSocket.
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
#: Requests of the host about containers of its pods.
OF_CONTAINERS = ("/log", "/exec", "/attach")


class ReviewingServer(ApiServer):
    """An API server that lets every user do everything."""

    async def serve(self, request: Request) -> Response | Watch:
        """Answer a request, and allow whatever it is asked about."""
        if request.path.endswith("/subjectaccessreviews"):
            return reply(201, {**json.loads(request.body), "status": {"allowed": True}})
        return await super().serve(request)


_UNVERIFIED = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_UNVERIFIED.check_hostname = False
_UNVERIFIED.verify_mode = ssl.CERT_NONE


class EndlessLog:
    """A log that never ends."""

    async def batches(self) -> AsyncIterator[list[bytes]]:
        while True:
            yield [b"x" * (64 << 10)]

    def close(self) -> None:
        """Nothing is open."""


def with_logs(server: ApiServer) -> None:
    """Let a server answer requests for logs of pods, which never end."""
    serve = server.serve

    async def serving(request: Any) -> Any:
        if request.path.partition("?")[0].endswith("/log"):
            return EndlessLog()
        return await serve(request)

    server.serve = serving  # type: ignore[method-assign]


def follow(port: int, pod: str, stack: ExitStack) -> bytes:
    """Follow the log of a Pod, and return how the answer begins; the rest is never read."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection = stack.enter_context(_UNVERIFIED.wrap_socket(connection, server_hostname="127.0.0.1"))
    line = f"GET /containerLogs/{pod}/app?follow=true HTTP/1.1"
    connection.sendall(f"{line}\r\nHost: n\r\nAuthorization: Bearer admin-token\r\n\r\n".encode())
    return connection.recv(300)


class KubeletClient:
    """A client with a certificate that the daemon trusts, once its authority is in the virtual cluster."""

    def __init__(self) -> None:
        self._ca = trustme.CA()

    def authority(self) -> Obj:
        """Return the ConfigMap in which a virtual API server publishes the authority of its clients."""
        data = {"client-ca-file": self._ca.cert_pem.bytes().decode()}
        return build(CONFIG_MAPS, "extension-apiserver-authentication", namespace="kube-system", data=data)

    def section(self, ports: int) -> dict[str, Any]:
        """Return the section `kubelet` of a configuration with so many ports."""
        return {
            "enabled": True,
            "address": "127.0.0.1",
            "listen": "127.0.0.1",
            "firstPort": free_port(),
            "ports": ports,
            "metrics": False,
        }

    def ask(self, path: str, port: int, headers: Mapping[str, str] = {}, *, timeout: float = 60.0) -> int:
        """Return the status of a request to the kubelet at a port.

        Raises:
            OSError: There is no answer.
        """
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=self._context, timeout=timeout)
        try:
            connection.request("GET", path, headers=dict(headers))
            return connection.getresponse().status
        except http.client.HTTPException as error:
            raise OSError(f"no answer: {error!r}") from error
        finally:
            connection.close()

    @cached_property
    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self._ca.issue_cert(common_name="apiserver", organization_name="masters").configure_cert(context)
        return context
