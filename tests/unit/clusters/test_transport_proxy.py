"""Requests and watches through a real proxy: tunnels, whole URLs, passwords, https, and proxies that misbehave."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import trustme
from cluster_servers import Call, free_port, serve, server_context
from proxy_server import ALLOWED, ProxyServer, proxy_server
from transport_kinds import Kind

from syncer.clusters.credentials import LoginCredentials
from syncer.clusters.login import Login, Material
from syncer.clusters.proxy import Proxy
from syncer.clusters.transport import ConnectionFailed, DeadlineExceeded, Endpoint, HttpRequest

pytestmark = pytest.mark.slow

ROOT = HttpRequest("GET", "/")


async def whole_answer(call: Call) -> None:
    if "watch" in call.path:
        await call.start_chunked()
        await call.chunk(b"one\ntwo\n")
        await call.chunk(b"")
    else:
        await call.reply(200, call.body or b"{}")


def credentials(endpoint: Endpoint, *cas: trustme.CA) -> LoginCredentials:
    return LoginCredentials(Login(endpoint, ca=Material(data=b"".join(ca.cert_pem.bytes() for ca in cas))))


@pytest.mark.parametrize("proxy_tls", [False, True])
async def test_tunnel_carries_requests_and_watches(kind: Kind, proxy_tls: bool) -> None:
    ca, proxy_ca = trustme.CA(), trustme.CA()
    context = server_context(proxy_ca.issue_cert("127.0.0.1")) if proxy_tls else None
    async with (
        serve(whole_answer, server_context(ca.issue_cert("api.internal"))) as peer,
        proxy_server(ProxyServer(with_password=True), context) as proxy,
    ):
        direct = peer.endpoint(tls=True, prefix="/k8s", server_name="api.internal")
        endpoint = replace(direct, proxy=proxy.proxy(ALLOWED))
        async with kind.open(endpoint, credentials(endpoint, ca, proxy_ca)) as transport:
            body = b"x" * 300_000
            for _ in range(3):
                assert (await transport.send(HttpRequest("PUT", "/", body))).body == body
            assert len(proxy.asked) == 1, "a tunnel is kept like any other connection"
            async with transport.stream(HttpRequest("GET", "/watch")) as stream:
                assert [line async for batch in stream for line in batch] == [b"one", b"two"]
        assert set(proxy.asked) == {f"CONNECT {endpoint.authority} HTTP/1.1"}
        assert {call.path for call in peer.calls} == {"/k8s/", "/k8s/watch"}
        assert not any(name.startswith("Proxy") for call in peer.calls for name, _ in call.headers)
        assert set(peer.server_names) == {"api.internal"}


async def test_proxy_gets_whole_urls_for_a_server_without_tls(kind: Kind) -> None:
    async with serve(whole_answer) as peer, proxy_server(ProxyServer(with_password=True)) as proxy:
        endpoint = replace(peer.endpoint(prefix="/k8s"), proxy=proxy.proxy(ALLOWED))
        async with kind.open(endpoint) as transport:
            assert (await transport.send(HttpRequest("POST", "/x?y=1", b"body"))).body == b"body"
            async with transport.stream(HttpRequest("GET", "/watch")) as stream:
                assert [line async for batch in stream for line in batch] == [b"one", b"two"]
        assert proxy.asked[0] == f"POST http://{endpoint.authority}/k8s/x?y=1 HTTP/1.1"
        paths = [call.path.removeprefix(f"http://{endpoint.authority}") for call in peer.calls]
        assert paths == ["/k8s/x?y=1", "/k8s/watch"]


async def test_tunnel_that_died_while_it_was_idle_is_opened_again(kind: Kind) -> None:
    ca = trustme.CA()
    async with (
        serve(whole_answer, server_context(ca.issue_cert("127.0.0.1"))) as peer,
        proxy_server(ProxyServer()) as proxy,
    ):
        endpoint = replace(peer.endpoint(tls=True), proxy=proxy.proxy())
        async with kind.open(endpoint, credentials(endpoint, ca)) as transport:
            await transport.send(ROOT)
            proxy.tunnels[0].transport.abort()
            assert (await transport.send(ROOT)).status == 200
        assert len(proxy.asked) == 2


ANSWERS = {
    "wants a password": (None, "wants a user and a password. Write them into its URL: http://USER:PASSWORD@HOST:PORT"),
    "refuses": (b"HTTP/1.1 403 Not this port\r\n\r\n", "refuses a tunnel to {address}: 403 Not this port"),
    "says nothing with it": (b"HTTP/1.0 502\r\n\r\n", "refuses a tunnel to {address}: 502"),
    "is no proxy": (b"SSH-2.0-OpenSSH_9\r\n\r\n", "gave an answer that is not HTTP/1.1"),
    "never ends its answer": (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 3000, "gave an answer that is not HTTP/1.1"),
    "closes at once": (b"", "closed the connection before there was a tunnel to {address}"),
    "speaks first": (
        b"HTTP/1.1 200 OK\r\n\r\nSSH-2.0-OpenSSH_9\r\n",
        "sent something before the tunnel to {address} was used",
    ),
}


@pytest.mark.parametrize("how", list(ANSWERS))
async def test_proxy_that_gives_no_tunnel_is_named(kind: Kind, how: str) -> None:
    answer, why = ANSWERS[how]
    async with proxy_server(ProxyServer(with_password=answer is None, answer=answer)) as proxy:
        endpoint = Endpoint("api.internal", 6443, proxy=proxy.proxy())
        async with kind.open(endpoint) as transport:
            for _ in range(2):
                with pytest.raises(ConnectionFailed) as caught:
                    await transport.send(ROOT)
                assert str(caught.value) == f"{proxy.proxy()} {why.format(address=endpoint.authority)}"


async def test_wrong_password_is_distinguished_from_a_missing_one(kind: Kind) -> None:
    async with proxy_server(ProxyServer(with_password=True)) as proxy:
        endpoint = Endpoint("api.internal", 6443, proxy=proxy.proxy("Basic d3Jvbmc="))
        async with kind.open(endpoint) as transport:
            with pytest.raises(ConnectionFailed, match="does not accept the user and password in its URL"):
                await transport.send(ROOT)


async def test_proxy_that_is_not_there_is_named(kind: Kind) -> None:
    proxy = Proxy("127.0.0.1", await free_port(), source="HTTPS_PROXY")
    async with kind.open(Endpoint("api.internal", 6443, proxy=proxy)) as transport:
        with pytest.raises(
            ConnectionFailed, match=rf"no connection to {proxy}: ".replace("(", r"\(").replace(")", r"\)")
        ):
            await transport.send(ROOT)


async def test_proxy_that_hangs_does_not_outlive_the_deadline(kind: Kind) -> None:
    closed = asyncio.Event()

    class Hanging(ProxyServer):
        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            closed.set()

    async with proxy_server(Hanging()) as proxy:
        endpoint = Endpoint("api.internal", 6443, proxy=proxy.proxy())
        async with kind.open(endpoint) as transport:
            with pytest.raises(DeadlineExceeded) as caught:
                await transport.send(replace(ROOT, timeout=1.0))
            assert str(caught.value) == f"no connection to {endpoint.authority} through {proxy.proxy()} in time"
        await closed.wait()


async def test_https_proxy_must_be_trusted(kind: Kind) -> None:
    ca, proxy_ca = trustme.CA(), trustme.CA()
    async with proxy_server(ProxyServer(), server_context(proxy_ca.issue_cert("127.0.0.1"))) as proxy:
        endpoint = Endpoint("api.internal", 6443, proxy=proxy.proxy())
        async with kind.open(endpoint, credentials(endpoint, ca)) as transport:
            with pytest.raises(ConnectionFailed) as caught:
                await transport.send(ROOT)
        assert str(caught.value).startswith(f"the certificate of {proxy.proxy()} is not trusted: ")
        assert not proxy.asked


async def test_server_certificate_is_checked_through_the_proxy(kind: Kind) -> None:
    ca, ended = trustme.CA(), datetime.now(UTC) - timedelta(days=1)
    certificate = ca.issue_cert("127.0.0.1", not_before=ended - timedelta(days=9), not_after=ended)
    async with serve(whole_answer, server_context(certificate)) as peer, proxy_server(ProxyServer()) as proxy:
        endpoint = replace(peer.endpoint(tls=True), proxy=proxy.proxy())
        async with kind.open(endpoint, credentials(endpoint, ca)) as transport:
            with pytest.raises(ConnectionFailed) as caught:
                await transport.send(ROOT)
        assert str(caught.value) == (f"the certificate of {endpoint.authority} expired at {ended:%Y-%m-%d %H:%M:%S}Z")
        assert len(proxy.asked) == 2
