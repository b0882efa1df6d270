"""The metrics of a tenant's containers, under virtual names.

They come from ``/metrics/cadvisor`` of the host's kubelets. A kubelet shows the containers of all
Pods on its node; only the samples of the tenant's containers are kept. This takes the right to
``nodes/metrics``, which gives no access to the Pods, as ``nodes/proxy`` would.
"""

import asyncio
import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from syncer.api.errors import ClusterError
from syncer.api.objects import Key, Obj
from syncer.api.paths import dig
from syncer.clusters.client import SideClient
from syncer.clusters.http_transport import HttpTransport
from syncer.clusters.transport import ConnectionFailed, Endpoint, HttpRequest
from syncer.kubelet import pages
from syncer.kubelet.errors import RefusedRequest
from syncer.kubelet.usage import KEPT_SECONDS
from syncer.resources.kinds import NODES

#: Seconds for which the host's kubelet may be silent.
SILENT_SECONDS = 20.0
#: The port of a kubelet if its Node's status has none.
PORT = 10250

_NO_METRICS = "the host's node gives no metrics of containers"
_label = re.compile(rb'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(,|\})').match


@dataclass(frozen=True, slots=True)
class Own:
    """A Pod of the tenant, by the virtual key, with the containers that were sent to the host."""

    key: Key
    containers: Collection[str]


class HostKubelets:
    """Asks the host's kubelets, and keeps the answers for a moment.

    ``copies`` returns the tenant's Pods on a node of the host by the host keys of their copies; a
    kubelet whose node has none isn't asked. ``say`` is
    called with the reason why there are no metrics, in words for everybody and in detail; both are
    empty if there are metrics.
    """

    def __init__(
        self,
        host: SideClient,
        copies: Callable[[str], Mapping[Key, Own]],
        say: Callable[[str, str], None],
    ) -> None:
        self._host = host
        self._copies = copies
        self._say = say
        self._locks: dict[str, asyncio.Lock] = {}
        self._kept: dict[str, tuple[float, bytes | RefusedRequest]] = {}

    async def metrics(self, node: str) -> bytes:
        """Return the metrics of the tenant's containers on a node, in Prometheus' text format.

        Raises:
            RefusedRequest: The node's kubelet gives no metrics, or they are too large.
        """
        async with self._locks.setdefault(node, asyncio.Lock()):
            clock = asyncio.get_running_loop().time
            until, answer = self._kept.get(node, (0.0, b""))
            if clock() >= until:
                answer = await self._query(node)
                self._kept[node] = (clock() + KEPT_SECONDS, answer)

        if isinstance(answer, RefusedRequest):
            raise RefusedRequest(answer.status, answer.text)
        return answer

    def leave(self, node: str) -> None:
        """Forget a node."""
        self._kept.pop(node, None)
        self._locks.pop(node, None)

    async def _query(self, node: str) -> bytes | RefusedRequest:
        """Return the metrics of a node, or the refusal; report which of them it is."""
        try:
            metrics = await self._read(node)
        except RefusedRequest as refused:
            return refused
        except (ClusterError, ConnectionFailed, ValueError) as error:
            self._say(_NO_METRICS, f"{node}: {error}")
            return RefusedRequest(503, _NO_METRICS)
        self._say("", "")
        return metrics

    async def _read(self, node: str) -> bytes:
        """Query a kubelet, and keep the tenant's part of the answer.

        Raises:
            RefusedRequest: This part is too large.
            ClusterError: The Node can't be read from the host.
            ConnectionFailed: The kubelet doesn't answer.
            ValueError: The Node has no address, or the kubelet refuses.
        """
        if self._host.dialer is None:
            raise ValueError("the host cluster has no network connections")
        copies = self._copies(node)
        if not copies:
            # The answer doesn't depend on whether the host has such a node.
            return b""

        address = endpoint(await self._host.get(NODES, Key("", node)))
        transport = HttpTransport(address, self._host.dialer.credentials)
        request = HttpRequest(
            "GET",
            "/metrics/cadvisor",
            accept="text/plain",
            timeout=SILENT_SECONDS,
            idle_timeout=SILENT_SECONDS,
        )
        samples: list[bytes] = []
        size = 0
        try:
            async with transport.stream(request) as stream:
                if stream.status != 200:
                    raise ValueError(f"its kubelet answers with status {stream.status}")

                # The comments before a metric are kept with its first sample.
                comments = b""
                async for batch in stream:
                    for line in batch:
                        if line.startswith(b"# TYPE"):
                            comments += line + b"\n"
                        elif line.startswith(b"#"):
                            comments = line + b"\n"
                        elif sample := renamed(line, copies):
                            samples.append(comments + sample + b"\n")
                            size += len(samples[-1])
                            comments = b""
                    if size > pages.LARGEST_PAGE:
                        raise RefusedRequest(
                            413,
                            f"the answer would take more than {pages.LARGEST_PAGE >> 20} MiB",
                        )
        finally:
            await transport.close()
        return b"".join(samples)


def endpoint(node: Obj) -> Endpoint:
    """Return where the kubelet of a host node listens.

    Raises:
        ValueError: The node has no address.
    """
    for address in dig(node, "status.addresses") or ():
        if address.get("type") == "InternalIP":
            port = dig(node, "status.daemonEndpoints.kubeletEndpoint.Port") or PORT
            return Endpoint(address["address"], port)
    raise ValueError("it has no InternalIP")


def renamed(line: bytes, copies: Mapping[Key, Own]) -> bytes:
    """Return a sample with virtual names; empty if the sample isn't of a Pod of the tenant.

    The path of a control group contains the uid of the host's pod, so it becomes a checksum.
    """
    name, brace, rest = line.partition(b"{")
    if not brace:
        return b""
    labels = dict(_labels(rest))
    if b"" not in labels:
        return b""
    value = labels.pop(b"")

    namespace = labels.get(b"namespace", b"").decode()
    pod = labels.get(b"pod", b"").decode()
    container = labels.get(b"container", b"").decode()
    own = copies.get(Key(namespace, pod))
    if own is None or container not in ("", "POD", *own.containers):
        return b""

    labels[b"namespace"] = own.key.namespace.encode()
    labels[b"pod"] = own.key.name.encode()
    if labels.get(b"id"):
        labels[b"id"] = hashlib.sha256(labels[b"id"]).hexdigest()[:16].encode()
    written = b",".join(b'%s="%s"' % label for label in labels.items())
    return name + b"{" + written + b"}" + value


def _labels(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the labels of a sample, and after the last one the sample's value under an empty name.

    There is no value if the labels are malformed.
    """
    at = 0
    while found := _label(text, at):
        yield found[1], found[2]
        at = found.end()
        if found[3] == b"}":
            yield b"", text[at:]
            return
