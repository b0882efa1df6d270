"""The ports of the nodes: they accept connections, and limit their number.

Connections of clients that aren't trusted yet have a limit of their own.
"""

import asyncio
import math
import resource
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable

from syncer.byte_budget import ByteBudget
from syncer.clusters.sockets import tune
from syncer.kubelet.client import ClientConnection
from syncer.kubelet.errors import RefusedRequest
from syncer.kubelet.http import MOST_HELD, MessageHead
from syncer.kubelet.relay import LINGER_SECONDS
from syncer.token_bucket import TokenBucket

#: Connections, in all, of clients that aren't trusted yet, or were answered and don't close. A
#: further one closes the oldest. A client is trusted after a few round trips, so it is served even
#: while others open connections and send nothing.
MOST_YOUNG = 256
#: Bytes that a connection of a trusted client takes while it is slow, with that to the host.
CONNECTION_OVERHEAD = 512 << 10
#: Connections that are accepted per second: a handshake and a review take about 2 ms of CPU.
ACCEPTED_A_SECOND = 150.0
#: Connections that are accepted at once.
ACCEPTED_AT_ONCE = 600
#: Open files of the process besides these connections, approximately.
OTHER_FILES = 256
#: Seconds that a TLS handshake may take.
HANDSHAKE_SECONDS = 10.0
#: Seconds before a connection is accepted again after an error.
PAUSE_SECONDS = 0.5
#: Connections that wait to be accepted.
BACKLOG = 256


def connections() -> float:
    """Return the number of connections of trusted clients that the process has files for.

    Each takes two files. The soft limit of open files is raised first, as Go programs do.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard == resource.RLIM_INFINITY:
        return math.inf
    return max((hard - MOST_YOUNG - OTHER_FILES) // 2, 1)


class Bounds:
    """Limits the connections of all nodes of a virtual cluster.

    Those of trusted clients, and large answers to them, take bytes of a ``budget``, which is
    divided between the namespaces of the Pods that they lead to. They also take files: of these
    there are enough for ``most``.
    """

    def __init__(
        self,
        budget: ByteBudget,
        *,
        most: float = math.inf,
        young: int = MOST_YOUNG,
    ) -> None:
        self._budget = budget
        self._most = most
        self._most_young = young
        #: The clients that aren't trusted yet, or no longer, the oldest first.
        self.young: dict[ClientConnection, None] = {}
        #: The number of trusted clients, by namespace; those of none ask about a node.
        self.trusted: Counter[str] = Counter()
        self._now = asyncio.get_running_loop().time
        self._accepted = TokenBucket(
            rate=ACCEPTED_A_SECOND,
            burst=ACCEPTED_AT_ONCE,
            now=self._now(),
        )

    async def admit(self) -> None:
        """Wait until a further connection may be accepted.

        Until then, clients wait in the kernel, or give up. Each port waits by itself, so a port
        with very many clients delays the others by one connection each.
        """
        await asyncio.sleep(self._accepted.take(self._now()))

    async def send(self, client: ClientConnection, response: bytes, namespace: str) -> None:
        """Answer a trusted client of a namespace with a whole response.

        Raises:
            RefusedRequest: There is no room for a large one.
        """
        size = len(response)
        if size <= MOST_HELD:
            client.send(response)
            return
        part = self._budget.of(namespace)
        if not part.has_room(size):
            why = f"there is no room for {size} bytes more of answers in the daemon's memory"
            raise RefusedRequest(503, f"{why}; try again later")
        part.take(size)
        try:
            await client.deliver(response)
        finally:
            part.give_back(size)

    def add(self, client: ClientConnection) -> None:
        """Add a client that isn't trusted yet; drop the oldest one if there are too many."""
        if len(self.young) >= self._most_young:
            oldest = next(iter(self.young))
            del self.young[oldest]
            oldest.drop()
        self.young[client] = None

    def trust(self, client: ClientConnection, namespace: str) -> None:
        """Count a client as trusted, of the namespace of a Pod, or ``""`` of a node.

        Raises:
            RefusedRequest: There is no room for it.
        """
        part = self._budget.of(namespace)
        if not part.has_room(CONNECTION_OVERHEAD):
            of_namespace = f" of the namespace {namespace}" if namespace else ""
            raise RefusedRequest(
                503,
                f"there are too many connections{of_namespace} for the daemon's memory;"
                " close some, or try again later",
            )
        if self.trusted.total() >= self._most:
            raise RefusedRequest(503, "the daemon has too many open files; try again later")
        part.take(CONNECTION_OVERHEAD)
        self.young.pop(client, None)
        self.trusted[namespace] += 1

    def answered(self, client: ClientConnection, namespace: str) -> None:
        """Count a trusted client as one that only has to close its connection."""
        self.leave(namespace)
        if not client.gone:
            self.add(client)

    def leave(self, namespace: str) -> None:
        """Forget a trusted client."""
        self._budget.of(namespace).give_back(CONNECTION_OVERHEAD)
        self.trusted[namespace] -= 1
        if not self.trusted[namespace]:
            del self.trusted[namespace]


class KubeletPort:
    """A port on which clients of a node's kubelet are accepted."""

    def __init__(
        self,
        listening: socket.socket,
        answer: Callable[[ClientConnection, MessageHead], Awaitable[None]],
        tls: Callable[[], ssl.SSLContext],
        bounds: Bounds,
    ) -> None:
        self._socket = listening
        self._answer = answer
        self._tls = tls
        self._bounds = bounds
        self._task = asyncio.create_task(self._accept())

    @property
    def port(self) -> int:
        """The number of the port."""
        port: int = self._socket.getsockname()[1]
        return port

    def close(self) -> None:
        """Stop accepting; open connections continue."""
        self._task.cancel()
        self._socket.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._socket)
                accepted.setblocking(False)
                tune(accepted)
            except OSError:
                # No files are left, or the new socket has a network error already, see accept(2).
                await asyncio.sleep(PAUSE_SECONDS)
                continue

            client = ClientConnection(self._answer, self._closed)
            self._bounds.add(client)
            client.accepting = asyncio.create_task(self._shake_hands(client, accepted))
            await self._bounds.admit()

    async def _shake_hands(self, client: ClientConnection, accepted: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                lambda: client,
                accepted,
                ssl=self._tls(),
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=LINGER_SECONDS,
            )
        except (OSError, asyncio.CancelledError):
            accepted.close()
            self._closed(client)

    def _closed(self, client: ClientConnection) -> None:
        self._bounds.young.pop(client, None)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; an empty host is all addresses of the machine.

    Raises:
        OSError: The port is taken, or the address isn't the machine's.
    """
    dual = not host and socket.has_dualstack_ipv6()
    family = socket.AF_INET
    if dual or ":" in host:
        family = socket.AF_INET6
    listening = socket.create_server(
        (host, port),
        family=family,
        backlog=BACKLOG,
        dualstack_ipv6=dual,
    )
    listening.setblocking(False)
    return listening
