"""Identity and trust over every transport: TLS, rotating credentials, 401, proxies."""

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from cluster_servers import Call, serve, server_context
from transport_kinds import Kind

from syncer.clusters.credentials import Access, LoginCredentials
from syncer.clusters.login import Login, Material
from syncer.clusters.transport import ConnectionFailed, Endpoint, HttpRequest

LONG_AGO = datetime.now(UTC) - timedelta(days=9)
YESTERDAY = datetime.now(UTC) - timedelta(days=1)


class Tokens:
    """Credentials that go through a list of tokens, one further at each refusal."""

    def __init__(self, *tokens: str) -> None:
        self._accesses = [Access((("Authorization", f"Bearer {token}"),)) for token in tokens]

    async def access(self, deadline: float | None = None) -> Access:
        return self._accesses[0]

    async def refused(self, access: Access, deadline: float | None = None) -> bool:
        if access is self._accesses[0] and len(self._accesses) > 1:
            self._accesses.pop(0)
        return self._accesses[0] is not access

    async def explain(self, error: ssl.SSLError) -> str:
        return str(error)


async def answer_by_token(call: Call) -> None:
    await call.reply(200 if call.header("Authorization") == "Bearer good" else 401)


def login_to(endpoint: Endpoint, ca: trustme.CA | None = None) -> Login:
    return Login(endpoint, ca=Material(data=ca.cert_pem.bytes()) if ca else Material())


def test_reply_is_whole_though_the_server_closes_its_connection_without_a_word(kind: Kind) -> None:
    """As many bytes as the event loop reads at once must fit into our buffer."""
    ca, body = trustme.CA(), b"x" * 600_000
    context = server_context(ca.issue_cert("127.0.0.1"))

    def reply(listening: socket.socket) -> None:
        for _ in range(10):
            accepted, _ = listening.accept()
            with context.wrap_socket(accepted, server_side=True) as connection:
                connection.recv(10_000)
                connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body)

    async def main(port: int) -> None:
        endpoint = Endpoint("127.0.0.1", port)
        async with kind.open(endpoint, LoginCredentials(login_to(endpoint, ca))) as transport:
            for _ in range(10):
                asking = asyncio.ensure_future(transport.send(HttpRequest("GET", "/")))
                while not asking.done():
                    await asyncio.sleep(0)
                    time.sleep(0.002)  # noqa: ASYNC251 — so that many bytes wait to be read
                assert (await asking).body == body

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = threading.Thread(target=reply, args=[listening], daemon=True)
        server.start()
        kind.run(main(listening.getsockname()[1]))
        server.join()


@pytest.mark.parametrize(
    ("tokens", "status", "sent"), [(("old", "good"), 200, 2), (("old",), 401, 1), (("old", "older", "good"), 401, 2)]
)
async def test_request_is_retried_with_renewed_credentials_after_401(
    kind: Kind, tokens: tuple[str, ...], status: int, sent: int
) -> None:
    async with serve(answer_by_token) as peer, kind.open(peer.endpoint(), Tokens(*tokens)) as transport:
        assert (await transport.send(HttpRequest("GET", "/"))).status == status
        assert len(peer.calls) == sent


async def test_stream_is_retried_once_after_401(kind: Kind) -> None:
    async with (
        serve(answer_by_token) as peer,
        kind.open(peer.endpoint(), Tokens("old", "good")) as transport,
        transport.stream(HttpRequest("GET", "/")) as stream,
    ):
        assert stream.status == 200
        assert len(peer.calls) == 2


async def test_new_token_in_the_file_is_used_and_repeated_headers_are_sent(kind: Kind, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    async with serve(answer_by_token) as peer:
        login = replace(login_to(peer.endpoint()), token_file=token)
        async with kind.open(peer.endpoint(), LoginCredentials(login)) as transport:
            assert (await transport.send(HttpRequest("GET", "/"))).status == 401
            token.write_text("good\n")
            assert (await transport.send(HttpRequest("GET", "/"))).status == 200


async def test_handshake_names_the_tls_server_name(kind: Kind) -> None:
    ca = trustme.CA()
    async with serve(Call.reply, server_context(ca.issue_cert("api.internal"))) as peer:
        endpoint = peer.endpoint(tls=True, server_name="api.internal")
        async with kind.open(endpoint, LoginCredentials(login_to(endpoint, ca))) as transport:
            assert (await transport.send(HttpRequest("GET", "/"))).status == 200
        assert peer.server_names == ["api.internal"]


async def test_insecure_trusts_anybody(kind: Kind) -> None:
    async with serve(Call.reply, server_context(trustme.CA().issue_cert("other.name"))) as peer:
        endpoint = peer.endpoint(tls=True)
        login = replace(login_to(endpoint), insecure=True)
        async with kind.open(endpoint, LoginCredentials(login)) as transport:
            assert (await transport.send(HttpRequest("GET", "/"))).status == 200


@asynccontextmanager
async def failing(kind: Kind, certificate: trustme.LeafCert, ca: Material) -> AsyncIterator[str]:
    """Yield the message with which a request to a server with this certificate fails; {address}
    stands for the address.
    """
    async with serve(Call.reply, server_context(certificate)) as peer:
        endpoint = peer.endpoint(tls=True)
        async with kind.open(endpoint, LoginCredentials(Login(endpoint, ca=ca))) as transport:
            with pytest.raises(ConnectionFailed) as caught:
                await transport.send(HttpRequest("GET", "/"))
            assert not peer.calls
            yield str(caught.value).replace(endpoint.authority, "{address}")


async def test_unknown_authority_names_the_file(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "ca.crt"
    trustme.CA().cert_pem.write_to_path(str(path))
    async with failing(kind, trustme.CA().issue_cert("127.0.0.1"), Material(path=path)) as message:
        assert message == (
            f"the certificate of {{address}} is not signed by the certificate authority in {path}. "
            "Set certificate-authority to the right one."
        )


async def test_another_name_in_the_certificate_leads_to_tls_server_name(kind: Kind) -> None:
    ca = trustme.CA()
    async with failing(kind, ca.issue_cert("api.internal"), Material(data=ca.cert_pem.bytes())) as message:
        assert message == (
            "the certificate of {address} is not for 127.0.0.1. Set tls-server-name to a name that it is for."
        )


async def test_expired_server_certificate_is_reported_with_its_end(kind: Kind) -> None:
    ca = trustme.CA()
    certificate = ca.issue_cert("127.0.0.1", not_before=LONG_AGO, not_after=YESTERDAY)
    async with failing(kind, certificate, Material(data=ca.cert_pem.bytes())) as message:
        assert message == f"the certificate of {{address}} expired at {YESTERDAY:%Y-%m-%d %H:%M:%S}Z"


async def test_expired_authority_is_named_by_its_file(kind: Kind, tmp_path: Path) -> None:
    certificate = trustme.CA().issue_cert("127.0.0.1", not_before=LONG_AGO, not_after=YESTERDAY)
    path = tmp_path / "ca.crt"
    certificate.cert_chain_pems[0].write_to_path(str(path))
    expired = f"expired at {YESTERDAY:%Y-%m-%d %H:%M:%S}Z"
    async with failing(kind, certificate, Material(path=path)) as message:
        assert message == (
            f"the certificate authority in {path} {expired} and the certificate of {{address}} {expired}"
        )


async def test_server_without_tls_is_an_error(kind: Kind) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\nClient sent TLS to an HTTP server.\n")
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    endpoint = Endpoint("127.0.0.1", server.sockets[0].getsockname()[1])
    async with kind.open(endpoint, LoginCredentials(login_to(endpoint))) as transport:
        with pytest.raises(ConnectionFailed, match=f"no TLS connection to {endpoint.authority}: "):
            await transport.send(HttpRequest("GET", "/"))
    server.close()
    await server.wait_closed()


async def test_renewed_certificates_are_for_new_connections_while_streams_go_on(kind: Kind, tmp_path: Path) -> None:
    ca = trustme.CA()
    path = tmp_path / "ca.crt"
    ca.cert_pem.write_to_path(str(path))
    go_on = asyncio.Event()
    now = 1000.0

    async def answer(call: Call) -> None:
        if call.path != "/watch":
            return await call.reply(200, str(call.connection).encode())
        await call.start_chunked()
        await go_on.wait()
        await call.chunk(b"still here\n")
        await call.chunk(b"")
        return None

    async with serve(answer, server_context(ca.issue_cert("127.0.0.1"))) as peer:
        endpoint = peer.endpoint(tls=True)
        credentials = LoginCredentials(Login(endpoint, ca=Material(path=path)), clock=lambda: now)
        async with (
            kind.open(endpoint, credentials) as transport,
            transport.stream(HttpRequest("GET", "/watch")) as stream,
        ):
            first = (await transport.send(HttpRequest("GET", "/"))).body
            assert (await transport.send(HttpRequest("GET", "/"))).body == first
            path.write_bytes(ca.cert_pem.bytes() + trustme.CA().cert_pem.bytes())
            assert (await transport.send(HttpRequest("GET", "/"))).body == first, "not looked at yet"
            now += 11
            second = (await transport.send(HttpRequest("GET", "/"))).body
            assert second != first
            assert (await transport.send(HttpRequest("GET", "/"))).body == second
            go_on.set()
            assert [batch async for batch in stream] == [[b"still here"]]


async def test_client_certificate_is_shown(kind: Kind) -> None:
    ca = trustme.CA()
    client = ca.issue_cert("client.example")

    async def answer(call: Call) -> None:
        await call.reply(200, str(bool(call.writer.get_extra_info("ssl_object").getpeercert())).encode())

    async with serve(answer, server_context(ca.issue_cert("127.0.0.1"), ca)) as peer:
        endpoint = peer.endpoint(tls=True)
        login = replace(
            login_to(endpoint, ca),
            certificate=Material(data=client.cert_chain_pems[0].bytes()),
            key=Material(data=client.private_key_pem.bytes()),
        )
        async with kind.open(endpoint, LoginCredentials(login)) as transport:
            assert (await transport.send(HttpRequest("GET", "/"))).body == b"True"
