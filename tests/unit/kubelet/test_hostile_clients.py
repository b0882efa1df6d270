"""Clients and tenants who mean harm: what they send never reaches the host, and takes no room for long."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from kubelet_scene import (
    EXEC,
    HOST_KEY,
    LOGS,
    NODE,
    PATIENCE,
    POD,
    PODS_OF_HOST,
    Silent,
    host_pod,
    open_files,
    request,
    scene,
    wait_until,
)

from syncer.byte_budget import ByteBudget
from syncer.kubelet.listener import Bounds

UPGRADE = ("Connection: Upgrade", "Upgrade: SPDY/3.1")
SMUGGLED = b"GET /api/v1/secrets HTTP/1.1\r\nHost: host\r\n\r\n"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def agree(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Agree to another protocol, and say all back."""
    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()


# -- what reaches the host -------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["", "?follow=true"])
async def test_bytes_after_a_request_for_a_log_do_not_reach_the_host(query: str) -> None:
    """The connection to the host is the daemon's: a second request on it would be the daemon's, too."""
    got = b""
    asked = asyncio.Event()

    async def listens(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal got
        asked.set()
        await asyncio.sleep(0.05)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nline\n")
        await writer.drain()
        got = await reader.read()

    async with scene(listens) as here:
        reader, writer = await here.connect()
        writer.write(request(LOGS + query) + SMUGGLED)
        await asked.wait()
        writer.write(SMUGGLED)
        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
        writer.transport.abort()
        await wait_until(lambda: not here.server.bounds.trusted)
        asked.clear()
        reader, writer = await here.connect()
        writer.write(request(LOGS + query))
        await reader.readuntil(b"line\n")
        writer.write(SMUGGLED)
        await reader.read()
        await wait_until(lambda: not here.server.bounds.trusted)
    assert got == b""


@pytest.mark.parametrize("protocol", ["h2c", "HTTP/2.0", "TLS/1.2", "spdy/3.1, h2c", "x y"])
async def test_upgrade_to_another_protocol_than_a_streams_is_refused(protocol: str) -> None:
    async with scene(agree) as here:
        status, _ = await here.ask(EXEC, "Connection: Upgrade", f"Upgrade: {protocol}", method="POST")
        assert (status, here.reached) == (400, [])


async def test_connection_header_is_the_servers_own() -> None:
    """A header that it names would be taken out by a proxy on the way: the daemon's own authorization, say."""
    async with scene(agree) as here:
        _, writer = await here.connect()
        odd = ("Connection: Upgrade, Authorization", "Connection: close", "Upgrade: websocket", "Upgrade: SPDY/3.1")
        writer.write(request(EXEC, *odd, method="POST"))
        await wait_until(lambda: here.reached)
        lines = here.reached[0].lower().split("\r\n")
        assert [line for line in lines if line.startswith(("connection:", "upgrade:"))] == [
            "connection: upgrade",
            "upgrade: websocket",
        ]
        writer.transport.abort()


async def test_websocket_protocol_with_a_token_does_not_reach_the_host() -> None:
    async with scene(agree) as here:
        bearer = "base64url.bearer.authorization.k8s.io.dG9rZW4"
        offer = ("Connection: Upgrade", "Upgrade: websocket", f"Sec-WebSocket-Protocol: v5.channel.k8s.io, {bearer}")
        status, _ = await here.ask(EXEC, *offer)
        assert (status, here.reached) == (400, [])


@pytest.mark.parametrize("value", ["a\tb", "é", "a" * 5000])
async def test_header_of_a_stream_that_is_no_name_of_a_protocol_is_refused(value: str) -> None:
    async with scene(agree) as here:
        status, _ = await here.ask(EXEC, *UPGRADE, f"X-Stream-Protocol-Version: {value}", method="POST")
        assert (status, here.reached) == (400, [])


@pytest.mark.parametrize(
    ("method", "path", "needed"),
    [
        ("GET", EXEC, "create"),
        ("POST", EXEC, "create"),
        ("GET", f"/attach/{POD.namespace}/{POD.name}/main", "create"),
        ("GET", f"/portForward/{POD.namespace}/{POD.name}", "create"),
        ("GET", LOGS, "get"),
    ],
)
async def test_stream_into_a_pod_needs_the_right_to_create(method: str, path: str, needed: str) -> None:
    """With the method of a WebSocket, GET, who may read the figures of nodes could run commands."""
    async with scene(agree) as here:
        here.virtual.refused = {"get", "create"} - {needed}
        _, writer = await here.connect()
        writer.write(request(path, *UPGRADE, method=method))
        await wait_until(lambda: here.reached)
        writer.transport.abort()
        async with scene(agree) as other:
            other.virtual.refused = {needed}
            assert (await other.ask(path, *UPGRADE, method=method))[0] == 403
            assert not other.reached


async def test_container_that_the_host_put_into_the_pod_is_not_reached() -> None:
    """A sidecar of the host's own may hold its credentials."""
    async with scene(agree) as here:
        pod = host_pod()
        pod["spec"]["containers"].append({"name": "proxy-of-host"})
        pod["spec"]["ephemeralContainers"] = [{"name": "debugger-of-host"}]
        here.host.objects[f"{PODS_OF_HOST}/{HOST_KEY.name}"] = pod
        for container in ("proxy-of-host", "debugger-of-host"):
            for path in ("containerLogs", "exec", "attach"):
                status, _ = await here.ask(f"/{path}/{POD.namespace}/{POD.name}/{container}", *UPGRADE)
                assert status == 404
        assert not here.reached


@pytest.mark.parametrize("path", [LOGS, EXEC])
async def test_pod_that_takes_the_name_after_it_was_confirmed_is_not_read(path: str) -> None:
    """The host's API server knows a pod by its name alone: it may be another one by then."""
    got = b""

    async def replaced(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal got
        other = host_pod()
        other["metadata"].update({"uid": "h-2", "labels": {}, "annotations": {}})
        here.host.objects[f"{PODS_OF_HOST}/{HOST_KEY.name}"] = other
        if "exec" in path:
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
        else:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        writer.write(b"a secret of another")
        await writer.drain()
        got = await reader.read()

    async with scene(replaced) as here:
        reader, writer = await here.connect()
        writer.write(request(path, *(UPGRADE if path == EXEC else ())) + b"commands")
        reply = await reader.read()
        writer.transport.abort()
        await wait_until(lambda: not here.server.bounds.trusted)
    assert reply.startswith(b"HTTP/1.1 404 ")
    assert b"secret" not in reply
    assert got == b""


# -- certificates ----------------------------------------------------------------------------------


async def test_serving_certificate_of_the_same_ca_is_none_of_a_client(tmp_path: Path) -> None:
    """A server that may use a name isn't the user of that name (x509: extended key usage, client authentication)."""
    async with scene() as here:
        pem = signed(here.ca, x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]))
        tls = here.tls(certificate=False)
        file = tmp_path / "client.pem"
        file.write_bytes(pem)
        tls.load_cert_chain(file)
        with pytest.raises((ssl.SSLError, ConnectionError, IndexError)):
            await here.ask("/healthz", tls=tls)
        file.write_bytes(signed(here.ca, x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])))
        tls = here.tls(certificate=False)
        tls.load_cert_chain(file)
        assert (await here.ask("/healthz", tls=tls))[0] == 200


def signed(ca: trustme.CA, usage: Any) -> bytes:
    """Return a certificate of the user `apiserver` and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = x509.load_pem_x509_certificate(ca.cert_pem.bytes())
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "apiserver")]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(minutes=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(usage, critical=False)
        .sign(ca._private_key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8
    pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    return made.public_bytes(serialization.Encoding.PEM) + pem


# -- room ------------------------------------------------------------------------------------------


async def silent(tls: ssl.SSLContext, port: int, data: bytes) -> Streams:
    """Open a connection, send something, and read nothing from then on, not even its end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    writer.write(data)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    return reader, writer


async def test_answered_connections_that_the_client_leaves_open_are_bounded() -> None:
    async with scene(bounds=Bounds(ByteBudget(), young=20)) as here:
        tls, before = here.tls(), open_files()
        kept = [await silent(tls, here.port, request("/healthz")) for _ in range(60)]
        await asyncio.sleep(0.3)
        assert open_files() - before - 60 <= 25, "the client's own files are not counted"
        assert (await here.ask("/healthz"))[0] == 200
        for _, writer in kept:
            writer.transport.abort()


async def test_flood_of_connections_is_accepted_at_a_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each costs a handshake, whoever it is of; the event loop is that of all syncers."""
    monkeypatch.setattr("syncer.kubelet.listener.ACCEPTED_AT_ONCE", 20)
    monkeypatch.setattr("syncer.kubelet.listener.ACCEPTED_A_SECOND", 20.0)
    async with scene() as here:
        loop, before = asyncio.get_running_loop(), open_files()
        begun = loop.time()
        flood = [await asyncio.open_connection("127.0.0.1", here.port) for _ in range(200)]
        await asyncio.sleep(0.5)
        accepted = open_files() - before - len(flood)
        assert accepted <= 90 + 20 * (loop.time() - begun), "20 at once and 20 a second"
        for _, writer in flood:
            writer.transport.abort()
        await wait_until(lambda: not here.server.bounds.young)


async def test_server_that_closes_ends_requests_that_still_wait_for_the_host() -> None:
    host = Silent()
    async with scene(host) as here:
        _, writer = await here.connect()
        writer.write(request(f"{LOGS}?follow=true"))
        await wait_until(lambda: here.reached)
        here.server.close()
        async with asyncio.timeout(PATIENCE):
            await host.gone.wait()
        await wait_until(lambda: not here.server.bounds.trusted)
        writer.transport.abort()


async def test_host_that_ends_with_its_first_bytes_leaves_no_relay() -> None:
    async def breaks(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nlast words")
        await writer.drain()
        writer.transport.abort()

    async with scene(breaks) as here:
        for _ in range(20):
            status, _ = await here.ask(LOGS)
            assert status in (200, 503)
        await wait_until(lambda: not here.server.bounds.trusted)
        assert not here.server._relays


async def test_listener_outlives_errors_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene() as here:
        loop = asyncio.get_running_loop()
        errors = [OSError(71, "EPROTO"), OSError(1, "EPERM"), OSError(100, "ENETDOWN")]
        monkeypatch.setattr("syncer.kubelet.listener.PAUSE_SECONDS", 0.01)
        listener = here.server.nodes[NODE]

        class Fails:
            """A loop that can't accept for a while."""

            def __getattr__(self, name: str) -> Any:
                return getattr(loop, name)

            async def sock_accept(self, listening: Any) -> Any:
                if errors:
                    raise errors.pop()
                return await loop.sock_accept(listening)

        monkeypatch.setattr("syncer.kubelet.listener.asyncio.get_running_loop", Fails)
        listener._task.cancel()
        listener._task = asyncio.create_task(listener._accept())
        await wait_until(lambda: not errors)
        assert (await here.ask("/healthz"))[0] == 200


@pytest.mark.parametrize(
    "user",
    [
        {"username": 5},
        {"username": "a", "groups": "system:masters"},
        {"username": "a", "groups": [{}]},
        {"username": "a", "extra": [1]},
        {"username": "a", "extra": {"b": 5}},
        "root",
        [],
    ],
)
async def test_malformed_review_is_refused(user: Any) -> None:
    """The API group of reviews may be served by an API server of the tenant's own."""
    async with scene() as here:
        here.virtual.reviewed = user
        status, _ = await here.ask(LOGS, "Authorization: Bearer secret", tls=here.tls(certificate=False))
        assert (status, here.reached) == (500, [])


async def test_same_token_is_asked_about_once_by_many_clients_at_a_time() -> None:
    async with scene() as here:
        here.virtual.slow = 0.2
        tls = here.tls(certificate=False)
        asking = [here.ask("/healthz", "Authorization: Bearer secret", tls=tls) for _ in range(20)]
        assert {status for status, _ in await asyncio.gather(*asking)} == {200}
        asked = [path.rpartition("/")[2] for _, path, _ in here.virtual.asked]
        assert (asked.count("tokenreviews"), asked.count("subjectaccessreviews")) == (1, 1)


async def test_head_of_very_many_lines_is_refused_before_it_is_parsed() -> None:
    async with scene() as here:
        reader, writer = await here.connect(here.tls(certificate=False))
        writer.write(b"GET /healthz HTTP/1.1\r\n" + b"a:\r\n" * 5000 + b"\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 431 ")
        writer.transport.abort()
