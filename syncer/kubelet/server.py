"""The kubelet of a virtual cluster's nodes: a request is authenticated, authorised, and taken to
the host.
"""

import asyncio
import functools
import json
import re
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from syncer.api.context import Settings
from syncer.clusters.client import SideClient
from syncer.clusters.dialer import Dialer
from syncer.clusters.transport import ConnectionFailed
from syncer.kubelet import http, pages
from syncer.kubelet.cadvisor import HostKubelets
from syncer.kubelet.client import ClientConnection
from syncer.kubelet.errors import RefusedRequest
from syncer.kubelet.http import MOST_HELD, MessageHead
from syncer.kubelet.listener import Bounds, KubeletPort, listen
from syncer.kubelet.pods import HostedPod, Pods
from syncer.kubelet.relay import Pace, Relay, Upstream
from syncer.kubelet.routes import RequestKind, Route, route, subresources, verb
from syncer.kubelet.usage import Usages
from syncer.kubelet.users import Users

#: Seconds until the host's API server must have accepted a connection.
CONNECT_SECONDS = 15.0
#: Seconds until it must have agreed to another protocol. A log may be silent for as long as its
#: container is.
UPGRADE_SECONDS = 60.0
#: Seconds until the body of a refusal must have come.
REFUSAL_SECONDS = 5.0
#: Seconds without a byte after which an upgraded connection is closed (the kubelet's
#: ``streamingConnectionIdleTimeout``).
IDLE_SECONDS = 4 * 3600.0

#: The protocols of streams. A proxy on the way to the host might take another one for a tunnel
#: (h2c).
_PROTOCOLS = {"spdy/3.1": "SPDY/3.1", "websocket": "websocket"}
#: The headers of an upgrade that the host needs, besides these protocols.
_UPGRADE = (
    "x-stream-protocol-version",
    "sec-websocket-key",
    "sec-websocket-version",
    "sec-websocket-protocol",
)
#: Most lines of these headers.
_MOST_UPGRADE = 20
_value = re.compile(r"[0-9A-Za-z.+/=, -]{1,500}").fullmatch
#: A WebSocket's protocol with this in its name is a bearer token, which the host might accept.
_BEARER = "bearer.authorization"
#: The headers of the host's agreement that the client needs.
_AGREEMENT = (
    "connection",
    "upgrade",
    "x-stream-protocol-version",
    "sec-websocket-accept",
    "sec-websocket-protocol",
)
#: The headers of a log. A log that isn't followed has no length and no chunks: the API server's
#: WebSocket loses the bytes that it reads together with the end of a body.
_BODY = ("content-type", "transfer-encoding")


class KubeletServer:
    """Answers on a port for each node.

    ``to_virtual_text`` translates the names in a text of the host about a pod. ``pods_of`` returns
    the virtual Pods of a node, encoded; ``holds_copies`` is the argument of :class:`.Pods`. Without
    ``usages`` there are no figures of Pods, and without ``kubelets`` no metrics of containers.
    """

    def __init__(
        self,
        settings: Settings,
        virtual: SideClient,
        host: SideClient,
        *,
        tls: Callable[[], ssl.SSLContext],
        to_virtual_text: Callable[[HostedPod, str], str],
        pods_of: Callable[[str], Iterable[bytes]],
        holds_copies: Callable[[str], Awaitable[bool]],
        usages: Usages | None = None,
        kubelets: HostKubelets | None = None,
        bounds: Bounds,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._virtual = _dialer(virtual)
        self._host = _dialer(host)
        self._users = Users(virtual)
        self._pods = Pods(settings, virtual, host, holds_copies=holds_copies)
        self._tls = tls
        self._to_virtual_text = to_virtual_text
        self._idle_seconds = idle_seconds
        self._pods_of = pods_of
        self._usages = usages
        self._kubelets = kubelets
        self.bounds = bounds
        self._listeners: dict[str, KubeletPort] = {}
        self._relays: set[Relay] = set()
        self._pace = Pace()
        #: The trusted clients that aren't answered yet.
        self._waiting: set[ClientConnection] = set()

    @property
    def nodes(self) -> Mapping[str, KubeletPort]:
        """The listeners by node."""
        return self._listeners

    def listen(self, node: str, host: str, port: int) -> None:
        """Answer for a node at an address.

        Raises:
            OSError: The address can't be listened on.
        """
        answer = functools.partial(self._answer, node)
        self._listeners[node] = KubeletPort(listen(host, port), answer, self._tls, self.bounds)

    def leave(self, node: str) -> None:
        """Stop answering for a node; open connections continue."""
        self._listeners.pop(node).close()
        if self._kubelets is not None:
            self._kubelets.leave(node)

    def close(self) -> None:
        """Close everything."""
        for node in list(self._listeners):
            self.leave(node)
        for client in (*self.bounds.young, *self._waiting):
            client.drop()
        for relay in list(self._relays):
            relay.close()

    async def close_idle(self) -> None:
        """Close upgraded connections that say nothing for long, until cancelled."""
        while True:
            await asyncio.sleep(self._idle_seconds)
            for relay in list(self._relays):
                if not relay.active and relay.upgraded:
                    relay.close()
                relay.active = False

    async def _answer(self, node: str, client: ClientConnection, head: MessageHead) -> None:
        """Answer a request, or begin the relay that answers it.

        Raises:
            RefusedRequest: The request is refused.
        """
        user = await self._users.user(client.certificate, head.get("authorization"))
        await self._users.authorize(
            user,
            verb(head.method, head.target),
            node,
            subresources(head.target),
        )
        found = route(head.method, head.target)
        namespace = found.pod.namespace
        self.bounds.trust(client, namespace)
        relayed = False
        self._waiting.add(client)
        try:
            if found.pod.name:
                relayed = await self._to_pod(node, client, head, found)
            else:
                await self.bounds.send(client, await self._page(node, found.page), namespace)
        finally:
            self._waiting.discard(client)
            if not relayed:
                self.bounds.answered(client, namespace)

    async def _page(self, node: str, page: RequestKind) -> bytes:
        """Return the response with a page about a node.

        Raises:
            RefusedRequest: There is no such page, or the page would be too large.
        """
        if page == "healthz":
            return http.reply(200, b"ok\n")
        if page == "pods":
            return http.reply(200, pages.pod_list(self._pods_of(node)), pages.JSON)
        if page == "cadvisor":
            if self._kubelets is None:
                raise RefusedRequest(
                    404,
                    "there are no metrics of containers: kubelet.cadvisor is off",
                )
            return http.reply(200, await self._kubelets.metrics(node), pages.TEXT)
        if self._usages is None:
            raise RefusedRequest(404, "there are no figures of Pods: kubelet.metrics is off")

        pods = await self._usages.pods()
        nodes = await self._usages.nodes()
        on_node = [pod for pod in pods.values() if pod.node == node]
        of_node = nodes.get(node)
        if page == "resource":
            return http.reply(200, pages.metrics(of_node, on_node), pages.TEXT)
        return http.reply(200, pages.summary(node, of_node, on_node), pages.JSON)

    async def _to_pod(
        self,
        node: str,
        client: ClientConnection,
        head: MessageHead,
        found: Route,
    ) -> bool:
        """Relay a request to the host's pod.

        Return True if a relay has begun, which continues by itself, False if all is sent.

        Raises:
            RefusedRequest: There is no such pod, or the host refuses the request.
        """
        if found.upgrades:
            headers = _upgrade(head, found.page)
            expected_status = 101
        else:
            headers = [("connection", "close")]
            expected_status = 200

        pod = await self._pods.find(node, found)
        target = f"/api/v1/namespaces/{pod.key.namespace}/pods/{pod.key.name}/{found.page}"
        if found.query:
            target += f"?{found.query}"
        upstream = Upstream(http.LONGEST_HEAD)
        try:
            reply = await self._send(upstream, (head.method, target, headers), found)
            if reply.status != expected_status:
                raise await self._refusal(upstream, reply, found, pod)
            await self._pods.confirm(pod)

            ahead = client.rest()
            if ahead and not found.upgrades:
                raise RefusedRequest(400, "a request has no body here, and nothing follows it")
            if client.transport.is_closing():
                raise RefusedRequest(503, "the client has disconnected")
        except BaseException:
            upstream.abort()
            raise

        lines = reply.only(_AGREEMENT)
        if not found.upgrades:
            lines = [*reply.only(_BODY), ("connection", "close")]
        response = http.encode_response(reply.status, lines) + upstream.rest()
        if upstream.transport.is_closing():  # the host has sent everything
            client.send(response)
            return False

        def ended() -> None:
            self._relays.discard(relay)
            self.bounds.leave(found.pod.namespace)

        relay = Relay(ended, self._pace, upgraded=found.upgrades)
        self._relays.add(relay)
        client.transport.write(response)
        if ahead:
            upstream.transport.write(ahead)
        relay.join(client.transport, upstream.transport)
        return True

    async def _send(
        self,
        upstream: Upstream,
        request: tuple[str, str, http.HeaderLines],
        found: Route,
    ) -> MessageHead:
        """Send a request (method, target, headers) to the host; return the head of its response.

        Raises:
            RefusedRequest: The host doesn't answer.
        """
        method, target, headers = request
        seconds = UPGRADE_SECONDS if found.upgrades else None
        version = "1.1" if found.goes_on else "1.0"
        deadline = asyncio.get_running_loop().time() + CONNECT_SECONDS
        try:
            _, data = await self._host.open(
                upstream,
                method,
                target,
                headers,
                deadline,
                version=version,
            )
            upstream.transport.write(data)
            async with asyncio.timeout(seconds):
                return http.response_head(await upstream.head())
        except (ConnectionFailed, ConnectionError, TimeoutError, ValueError) as error:
            raise RefusedRequest(503, "the host cluster does not answer") from error

    async def _refusal(
        self,
        upstream: Upstream,
        reply: MessageHead,
        found: Route,
        pod: HostedPod,
    ) -> RefusedRequest:
        """Return the refusal of the host, in words for a tenant."""
        if reply.status == 401:
            await self._host.refused()
        if reply.status in (401, 403):
            return RefusedRequest(
                403,
                f"the syncer has no right to pods/{found.page} on the host;"
                " its operator has to grant it",
            )

        body = await upstream.body(MOST_HELD, REFUSAL_SECONDS)
        message = message_of(body)
        if 400 <= reply.status < 500:
            return RefusedRequest(reply.status, self._to_virtual_text(pod, message))
        if _not_running(message):
            return RefusedRequest(404, "this container does not run in the Pod")
        return RefusedRequest(502, "the host's node does not answer")


def _upgrade(head: MessageHead, page: str) -> http.HeaderLines:
    """Return the headers of an upgrade for the host.

    Raises:
        RefusedRequest: The client asks for no upgrade, or not for a protocol of streams.
    """
    wanted = _PROTOCOLS.get(head.get("upgrade").lower())
    lines = head.only(_UPGRADE)
    if wanted is None or "upgrade" not in head.get("connection").lower():
        raise RefusedRequest(
            400,
            f"{page} needs a connection that is upgraded to SPDY/3.1 or a WebSocket",
        )
    are_valid = all(_value(value) and _BEARER not in value for _, value in lines)
    if len(lines) > _MOST_UPGRADE or not are_valid:
        raise RefusedRequest(400, "the headers of the upgrade name no protocol of streams")
    return [("connection", "Upgrade"), ("upgrade", wanted), *lines]


#: Matches the message of a kubelet, with a status of 500, about a container that has ended or never
#: began (``GetExec`` and ``GetAttach`` of ``pkg/kubelet/kubelet_pods.go``).
_not_running = re.compile(r'container (not found \("|\S+ not found in pod )').match


def message_of(body: bytes) -> str:
    """Return the message of a refusal: that of a ``Status``, or the text itself."""
    text = body.decode("utf-8", "replace").strip()
    try:
        found = json.loads(text)
    except ValueError:
        return text
    message: Any = found.get("message") if isinstance(found, dict) else None
    return message if isinstance(message, str) else "the host refuses this"


def _dialer(cluster: SideClient) -> Dialer:
    if cluster.dialer is None:
        raise TypeError(f"the {cluster.side} cluster has no network connections")
    return cluster.dialer
