"""The client of the kubernetes package over our transport: its abilities, and that our credentials
and limits apply.
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from cluster_servers import Call, over_tls, plain_transport, serve, server_context
from kubernetes.aio import client as kubernetes
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.dynamic import DynamicClient
from kubernetes.aio.watch import Watch
from proxy_server import ProxyServer, proxy_server

from kube_envtest import Rule
from syncer.api import Side
from syncer.clusters.client import SideClient
from syncer.clusters.connection import ConnectionSettings, connect
from syncer.clusters.dry_run import DryRun
from syncer.clusters.rate_limit import RateLimited
from syncer.clusters.transport import ConnectionFailed, HttpRequest, HttpResponse
from syncer.testing.objects import configmap

pytestmark = [pytest.mark.real_time, pytest.mark.slow]

VERSION = json.dumps(
    dict.fromkeys(("buildDate", "compiler", "gitCommit", "gitTreeState", "goVersion", "major", "minor", "platform"), "")
    | {"gitVersion": "v1"}
).encode()


async def test_typed_objects_go_both_ways(tmp_path: Path) -> None:
    async with over_tls(tmp_path) as (server, cluster):
        maps = kubernetes.CoreV1Api(cluster.kubernetes_client())
        body = kubernetes.V1ConfigMap(metadata=kubernetes.V1ObjectMeta(name="a-b"), data={"x": "ä"})
        made = (await maps.create_namespaced_config_map("default", body)).to_dict()
        assert made["metadata"]["uid"] == (server.get("configmaps", "default/a-b") or {})["metadata"]["uid"]
        changed = await maps.patch_namespaced_config_map("a-b", "default", {"data": {"y": "1"}})
        assert changed.data == {"x": "ä", "y": "1"}
        listed = await maps.list_namespaced_config_map("default", label_selector="!nothing, really!=true", limit=1)
        assert [one["metadata"]["name"] for one in listed.to_dict()["items"]] == ["a-b"]
        await maps.delete_namespaced_config_map("a-b", "default")
        with pytest.raises(ApiException) as caught:
            await maps.read_namespaced_config_map("a-b", "default")
        assert (caught.value.status, caught.value.reason) == (404, "Not Found")
        assert (caught.value.headers or {})["Content-Type"] == "application/json"


async def test_watch_brings_events_until_it_is_stopped(tmp_path: Path) -> None:
    async with over_tls(tmp_path) as (server, cluster):
        api = kubernetes.CoreV1Api(cluster.kubernetes_client())
        version = (await api.list_namespaced_config_map("default")).to_dict()["metadata"]["resource_version"]
        arrived = []
        async with Watch() as watch:  # type: ignore[no-untyped-call]
            events = watch.stream(api.list_namespaced_config_map, "default", resource_version=version)
            server.put(configmap("one", namespace="default"))
            server.put(configmap("two", namespace="default"))
            async for event in events:
                arrived.append((event["type"], event["object"].metadata.name))
                if len(arrived) == 2:
                    break
        assert arrived == [("ADDED", "one"), ("ADDED", "two")]
        await asyncio.sleep(0)
        assert not cluster.transport._streams  # type: ignore[attr-defined]


async def test_refused_watch_raises_its_status(tmp_path: Path) -> None:
    async with over_tls(tmp_path) as (server, cluster):
        api = kubernetes.CoreV1Api(cluster.kubernetes_client())
        server.faults.add(Rule(verb="watch", resource="configmaps", status=403))
        watch = Watch()  # type: ignore[no-untyped-call]
        with pytest.raises(ApiException) as caught:
            async for _ in watch.stream(api.list_namespaced_config_map, "default"):  # type: ignore[no-untyped-call]
                pass
        assert caught.value.status == 403


async def test_dynamic_client_finds_kinds_by_itself(tmp_path: Path) -> None:
    async with (
        over_tls(tmp_path) as (_, cluster),
        DynamicClient(cluster.kubernetes_client()) as dynamic,  # type: ignore[no-untyped-call]
    ):
        kind = await dynamic.resources.get(api_version="v1", kind="ConfigMap")
        await kind.create(configmap("a", {"x": "1"}, namespace="default"))
        assert (await kind.get(name="a", namespace="default")).data.x == "1"


async def test_closing_it_leaves_the_daemons_connections_open(tmp_path: Path) -> None:
    async with over_tls(tmp_path) as (_, cluster):
        async with cluster.kubernetes_client() as client:
            await kubernetes.VersionApi(client).get_code()
        assert (await cluster.fetch("/version"))["gitVersion"]


def kubeconfig(path: Path, server: str, ca: trustme.CA, cluster: dict[str, str], user: dict[str, Any]) -> str:
    (path / "ca.crt").write_bytes(ca.cert_pem.bytes())
    content = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": server, "certificate-authority": "ca.crt", **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    (path / "kubeconfig").write_text(yaml.safe_dump(content))
    return str(path / "kubeconfig")


async def test_request_uses_the_connection_of_the_daemon(tmp_path: Path) -> None:
    """Proxy, prefix, server name, client certificate, impersonation and a token that is renewed after a 401."""
    ca, token = trustme.CA(), tmp_path / "token"
    token.write_text("old")
    leaf = ca.issue_cert("client.example")
    leaf.cert_chain_pems[0].write_to_path(str(tmp_path / "u.crt"))
    leaf.private_key_pem.write_to_path(str(tmp_path / "u.key"))
    shown: list[bool] = []

    async def answer(call: Call) -> None:
        shown.append(bool(call.writer.get_extra_info("ssl_object").getpeercert()))
        accepted = call.header("Authorization") == "Bearer new"
        token.write_text("new")
        await call.reply(200 if accepted else 401, VERSION)

    context = server_context(ca.issue_cert("api.internal"), ca)
    async with serve(answer, context) as peer, proxy_server(ProxyServer()) as proxy:
        where = {"tls-server-name": "api.internal", "proxy-url": f"http://127.0.0.1:{proxy.port}"}
        groups = {"as": "ann", "as-groups": ["one", "two"]}
        who = {"tokenFile": "token", "client-certificate": "u.crt", "client-key": "u.key", **groups}
        path = kubeconfig(tmp_path, f"https://127.0.0.1:{peer.port}/k8s/", ca, where, who)
        cluster = connect(ConnectionSettings(kubeconfig=path), side=Side.HOST, environ={})
        known = await kubernetes.VersionApi(cluster.kubernetes_client()).get_code()
        await cluster.close()
        assert known.git_version == "v1"
        assert [call.path for call in peer.calls] == ["/k8s/version/"] * 2
        sent = [value for name, value in peer.calls[1].headers if name.startswith("Impersonate")]
        assert sent == ["ann", "one", "two"]
        assert set(shown) == {True}
        assert set(peer.server_names) == {"api.internal"}
        assert set(proxy.asked) == {f"CONNECT 127.0.0.1:{peer.port} HTTP/1.1"}


async def test_log_that_is_followed_comes_line_by_line() -> None:
    async def answer(call: Call) -> None:
        assert call.path == "/api/v1/namespaces/shop/pods/web/log?follow=true"
        await call.start_chunked()
        for piece in (b"on", b"e\ntwo\n", b"three", b""):
            await call.chunk(piece)

    async with serve(answer) as peer:
        cluster = SideClient("", Side.HOST, plain_transport(peer.endpoint()))
        core = kubernetes.CoreV1Api(cluster.kubernetes_client())
        log = await core.read_namespaced_pod_log_without_preload_content("web", "shop", follow=True)
        assert [await log.content.readline() for _ in range(4)] == [b"one\n", b"two\n", b"three\n", b""]
        log.release()
        await cluster.close()


async def test_dry_run_holds_for_it(tmp_path: Path) -> None:
    async with over_tls(tmp_path) as (server, cluster):
        run = DryRun(cluster.transport)
        api = kubernetes.CoreV1Api(cluster.over(run).kubernetes_client())
        await api.create_namespaced_config_map(
            "default", kubernetes.V1ConfigMap(metadata=kubernetes.V1ObjectMeta(name="a"))
        )
        await api.delete_collection_namespaced_config_map("default")
        assert [str(write) for write in run.writes] == [
            "create configmaps default/a",
            "deletecollection configmaps default/",
        ]
        assert server.get("configmaps", "default/a") is None
        assert server.get("configmaps", "default/kube-root-ca.crt") is not None


class Recording:
    """A transport that keeps what it is given, and answers or fails."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.requests: list[HttpRequest] = []
        self._failure = failure

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(request)
        if self._failure:
            raise self._failure
        return HttpResponse(200, {"content-type": "application/json"}, VERSION)

    def stream(self, request: HttpRequest) -> Any:
        raise AssertionError

    async def close(self) -> None:
        raise AssertionError


async def test_limit_of_requests_holds_for_it() -> None:
    inner = Recording()
    limited = RateLimited(inner, qps=0.001, burst=1)
    version = kubernetes.VersionApi(SideClient("", Side.HOST, limited).kubernetes_client())
    await version.get_code()
    with pytest.raises(TimeoutError, match="leaves no turn within 3 s"):
        await version.get_code(_request_timeout=3)
    assert len(inner.requests) == 1


async def test_deadlines_are_the_callers() -> None:
    inner = Recording()
    version = kubernetes.VersionApi(SideClient("", Side.HOST, inner).kubernetes_client())
    for given in (7, 0.5, (3, 4)):
        await version.get_code(_request_timeout=given)
    assert [request.timeout for request in inner.requests] == [7, 0.5, 7]


async def test_missing_response_is_an_os_error() -> None:
    cluster = SideClient("", Side.HOST, Recording(ConnectionFailed("no connection to 10.0.0.1:6443: refused")))
    with pytest.raises(OSError, match=r"no connection to 10\.0\.0\.1:6443: refused"):
        await kubernetes.VersionApi(cluster.kubernetes_client()).get_code()


async def test_request_that_our_connection_cannot_send_is_refused() -> None:
    client = SideClient("", Side.HOST, Recording()).kubernetes_client()
    client.default_headers["Impersonate-User"] = "root"
    with pytest.raises(ValueError, match="the header Impersonate-User can't be sent"):
        await kubernetes.VersionApi(client).get_code()


def test_package_is_imported_only_on_first_use() -> None:
    code = (
        "import sys\n"
        "import syncer.daemon.runner, syncer.clusters.connection, syncer.api\n"
        "heavy = ('kubernetes', 'aiohttp', 'urllib3')\n"
        "print([name for name in heavy if name in sys.modules])\n"
        "import syncer.clusters.official\n"
        "print([name for name in heavy if name in sys.modules][:2])"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600
    ).stdout
    assert output.splitlines() == ["[]", "['kubernetes', 'aiohttp']"]
