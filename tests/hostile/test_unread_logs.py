"""Logs that are followed and never read take no more of the daemon's memory than there is for them."""

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Any

import pytest
from hostile_scene import NAMESPACE, HostileScene, eventually

from hack.ports import free_port
from kube_envtest import ApiServer
from syncer.api.paths import dig
from syncer.testing.objects import pod

#: The limit of the container, and the logs that are followed; a quarter of the limit is for them.
LIMIT, LOGS = 32 << 20, 60
#: The most by which the daemon grows, in MB; it was 80.
GROWTH = 16
NODE = "n1"
TLS = ssl.create_default_context()
TLS.check_hostname = False
TLS.verify_mode = ssl.CERT_NONE


class EndlessLog:
    """A log that never ends."""

    async def batches(self) -> AsyncIterator[list[bytes]]:
        while True:
            yield [b"x" * (64 << 10)]

    def close(self) -> None:
        """Nothing is open."""


def _with_logs(server: ApiServer) -> None:
    """Let a server answer requests for logs of pods."""
    serve = server.serve

    async def serving(request: Any) -> Any:
        if request.path.partition("?")[0].endswith("/log"):
            return EndlessLog()
        return await serve(request)

    server.serve = serving  # type: ignore[method-assign]


def _followed(port: int, stack: ExitStack) -> bytes:
    """Follow the log of the Pod, and return how the answer begins; the rest is never read."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection = stack.enter_context(TLS.wrap_socket(connection, server_hostname="127.0.0.1"))
    line = f"GET /containerLogs/{NAMESPACE}/web/app?follow=true HTTP/1.1"
    connection.sendall(f"{line}\r\nHost: n\r\nAuthorization: Bearer admin-token\r\n\r\n".encode())
    return connection.recv(300)


@pytest.mark.translators("single-namespace", reason="a relay costs the same with any of them")
def test_unread_logs_take_the_memory_of_nobody_else(hostile: HostileScene) -> None:
    hostile.operator.call(_with_logs)
    kubelet = {
        "enabled": True,
        "address": "127.0.0.1",
        "listen": "127.0.0.1",
        "firstPort": free_port(),
        "ports": 1,
        "metrics": False,
    }
    hostile.start(command=hostile.limited(LIMIT), kubelet=kubelet)
    web = pod("web")
    hostile.tenant.put(web)
    hostile.copied(web)
    hostile.operator.patch("pods", str(hostile.host_key(web)), spec={"nodeName": NODE}, status={"phase": "Running"})
    path = "status.daemonEndpoints.kubeletEndpoint.Port"
    port = eventually(lambda: dig(hostile.tenant.get("nodes", NODE) or {}, path), "the Node has a port")
    before = hostile.daemon.rss()
    with ExitStack() as stack:
        answers = [_followed(port, stack) for _ in range(LOGS)]
        refused = [each for each in answers if each.startswith(b"HTTP/1.1 503")]
        followed = [each for each in answers if each.startswith(b"HTTP/1.1 200")]
        assert len(followed) + len(refused) == LOGS, answers
        assert 8 <= len(followed) <= 12
        assert all(b"there are too many connections of the namespace shop" in each for each in refused)
        hostile.serves_others()
        assert hostile.daemon.peak() - before < GROWTH
