"""Of the metrics of a host's node, a tenant sees those of their own containers alone, under virtual names."""

import asyncio
import re
from collections.abc import Mapping

import pytest
from kubelet_scene import NODE, Bearer, scene
from single_requests import SingleRequests

from syncer.api.objects import Key, Obj, Side
from syncer.clusters.client import SideClient
from syncer.clusters.dialer import Dialer
from syncer.clusters.transport import Endpoint, HttpRequest, HttpResponse
from syncer.kubelet import cadvisor, pages
from syncer.kubelet.cadvisor import HostKubelets, Own, endpoint, renamed
from syncer.kubelet.errors import RefusedRequest

COPY = Key("vc-shop", "front-x-web-x-shop")
COPIES = {COPY: Own(Key("web", "front"), {"main"})}


def sample(labels: Mapping[str, str], name: str = "container_threads", value: str = " 3 1700000000000") -> bytes:
    """Return a line as a kubelet writes it."""
    return (name + "{" + ",".join(f'{key}="{text}"' for key, text in labels.items()) + "}" + value).encode()


OURS = {
    "container": "main",
    "id": "/kubepods/burstable/pod1234-5678/abc",
    "image": "nginx:1",
    "name": "abc",
    "namespace": COPY.namespace,
    "pod": COPY.name,
}


def test_sample_of_a_container_has_virtual_names_and_nothing_of_the_host() -> None:
    found = renamed(sample(OURS), COPIES)
    assert re.fullmatch(
        rb'container_threads\{container="main",id="[0-9a-f]{16}",image="nginx:1",name="abc",namespace="web",pod="front"\}'
        rb" 3 1700000000000",
        found,
    )


@pytest.mark.parametrize("container", ["", "POD"])
def test_sample_of_the_whole_pod_is_kept(container: str) -> None:
    assert b'pod="front"' in renamed(sample({**OURS, "container": container}), COPIES)


@pytest.mark.parametrize(
    "line",
    [
        sample({**OURS, "pod": "kube-dns"}),
        sample({**OURS, "namespace": "kube-system"}),
        sample({**OURS, "container": "istio-proxy"}),
        sample({"id": "/"}),
        b"machine_cpu_cores 2",
        b"machine_cpu_cores{} 2",
        b'container_threads{namespace="vc-shop",pod="front-x-web-x-shop" 3',
        b'container_threads{namespace="vc-shop",pod="front-x-web-x-shop',
        b'container_threads{pod="kube-dns",namespace="kube-system",image="x\\",namespace=\\"vc-shop\\",pod=\\"y"} 1',
        sample({**OURS, "pod": "kube-dns", "image": r"a\",pod=\"front-x-web-x-shop"}),
        "container_threads{é} 1".encode(),
        b"\xff\xfe{",
        b"",
    ],
)
def test_sample_of_anything_else_is_dropped(line: bytes) -> None:
    assert renamed(line, COPIES) == b""


def test_address_of_a_kubelet_is_that_of_its_node() -> None:
    addresses = [{"type": "Hostname", "address": "n"}, {"type": "InternalIP", "address": "10.0.0.7"}]
    node: Obj = {"status": {"addresses": addresses, "daemonEndpoints": {"kubeletEndpoint": {"Port": 10260}}}}
    assert (endpoint(node).host, endpoint(node).port, endpoint(node).tls) == ("10.0.0.7", 10260, True)
    assert endpoint({"status": {"addresses": addresses}}).port == 10250
    with pytest.raises(ValueError, match="no InternalIP"):
        endpoint({"status": {}})


class Host(SingleRequests):
    """A host whose node has a kubelet on the loopback, in plain text."""

    def __init__(self, page: bytes, status: int = 200, copies: Mapping[Key, Own] = COPIES) -> None:
        self.copies = copies
        self.page, self.status, self.asked = page, status, list[bytes]()
        self.reported: list[tuple[str, str]] = []

    async def __aenter__(self) -> HostKubelets:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self.server.sockets[0].getsockname()[1]
        cluster = SideClient(
            "host", Side.HOST, self, dialer=Dialer(Endpoint("127.0.0.1", port, tls=False), Bearer(None))
        )
        return HostKubelets(cluster, lambda node: self.copies, lambda *reported: self.reported.append(reported))

    async def __aexit__(self, *error: object) -> None:
        self.server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked.append(await reader.readuntil(b"\r\n\r\n"))
        head = f"HTTP/1.1 {self.status} X\r\nContent-Type: text/plain\r\nContent-Length: {len(self.page)}\r\n\r\n"
        writer.write(head.encode() + self.page)
        writer.close()

    async def send(self, request: HttpRequest) -> HttpResponse:
        assert request.path == f"/api/v1/nodes/{NODE}"
        port = self.server.sockets[0].getsockname()[1]
        addresses = '[{"type":"InternalIP","address":"127.0.0.1"}]'
        status = f'{{"addresses":{addresses},"daemonEndpoints":{{"kubeletEndpoint":{{"Port":{port}}}}}}}'
        return HttpResponse(200, {}, f'{{"metadata":{{"name":"{NODE}"}},"status":{status}}}'.encode())


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reach the kubelet without TLS."""
    made = cadvisor.endpoint
    monkeypatch.setattr(cadvisor, "endpoint", lambda node: Endpoint(made(node).host, made(node).port, tls=False))


PAGE = b"".join(
    (
        b"# HELP machine_cpu_cores Cores.\n# TYPE machine_cpu_cores gauge\nmachine_cpu_cores 2\n",
        b"# HELP container_threads Threads.\n# TYPE container_threads gauge\n",
        sample({**OURS, "pod": "kube-dns"}) + b"\n",
        sample(OURS) + b"\n",
    )
)


async def test_page_has_the_families_that_the_tenant_has_samples_of() -> None:
    host = Host(PAGE)
    async with host as kubelets, scene(kubelets=kubelets) as here:
        found = await asyncio.gather(*(here.ask("/metrics/cadvisor") for _ in range(3)))
    assert {status for status, _ in found} == {200}
    lines = found[0][1].splitlines()
    assert lines[:2] == [b"# HELP container_threads Threads.", b"# TYPE container_threads gauge"]
    assert len(lines) == 3
    assert b'namespace="web",pod="front"' in lines[2]
    [head] = host.asked
    assert head.startswith(b"GET /metrics/cadvisor HTTP/1.1\r\n")
    assert b"Authorization: Bearer of-the-daemon\r\n" in head


async def test_kubelet_of_a_node_without_copies_is_not_asked() -> None:
    """So nobody learns which nodes the host has."""
    host = Host(PAGE, copies={})
    async with host as kubelets:
        assert await kubelets.metrics("any") == b""
    assert (host.asked, host.reported) == ([], [("", "")])


async def test_kubelet_that_refuses_is_reported_and_not_queried_again_at_once() -> None:
    host = Host(b"Forbidden (user=system:serviceaccount:vsyncer:daemon)", 403)
    async with host as kubelets:
        for _ in range(2):
            with pytest.raises(RefusedRequest) as refused:
                await kubelets.metrics(NODE)
            assert (refused.value.status, "daemon" in refused.value.text) == (503, False)
    assert len(host.asked) == 1
    assert host.reported == [
        ("the host's node gives no metrics of containers", f"{NODE}: its kubelet answers with status 403")
    ]


async def test_page_that_would_be_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "LARGEST_PAGE", 1000)
    async with Host(PAGE + (sample(OURS) + b"\n") * 20) as kubelets:
        with pytest.raises(RefusedRequest) as refused:
            await kubelets.metrics(NODE)
    assert refused.value.status == 413


async def test_page_is_off_by_default() -> None:
    async with scene() as here:
        status, body = await here.ask("/metrics/cadvisor")
    assert (status, b"kubelet.cadvisor is off" in body) == (404, True)
