"""A request reaches the tenant's own Pod on the host and nothing else, whoever asks and whatever the path."""

import asyncio
import math
import os
import resource
import socket
import ssl
from collections.abc import Callable

import pytest
import trustme
from kubelet_scene import (
    EXEC,
    HOST_KEY,
    LOGS,
    NODE,
    PATIENCE,
    POD,
    PODS_OF_HOST,
    RECORD,
    Answer,
    Silent,
    open_files,
    request,
    scene,
    wait_until,
)

from syncer.api.errors import Unreachable
from syncer.api.objects import Obj
from syncer.byte_budget import ByteBudget
from syncer.kubelet.listener import CONNECTION_OVERHEAD, Bounds, connections

UPGRADE = ("Connection: Upgrade", "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v4.channel.k8s.io")


async def test_logs_come_from_the_copy_with_the_daemons_credentials_and_no_header_of_the_host() -> None:
    async with scene() as here:
        reader, writer = await here.connect()
        writer.write(request(f"{LOGS}?tailLines=3", "Cookie: a=b", "X-Remote-User: admin", "Impersonate-User: admin"))
        reply = await reader.read()
        writer.close()
    assert reply.endswith(b"\r\n\r\nhello from the log\n")
    assert b"of-the-host" not in reply
    [head] = here.reached
    assert head.startswith(f"GET {PODS_OF_HOST}/{HOST_KEY.name}/log?container=main&tailLines=3 HTTP/1.0\r\n")
    assert "Authorization: Bearer of-the-daemon\r\n" in head
    assert "admin" not in head
    assert "a=b" not in head


@pytest.mark.parametrize(("query", "version"), [("", "1.0"), ("?follow=false", "1.0"), ("?follow=true", "1.1")])
async def test_log_that_has_an_end_ends_with_its_connection(query: str, version: str) -> None:
    """The API server's WebSocket loses bytes that it reads together with the end of a body."""

    async def known(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nhello\n")
        await writer.drain()

    async with scene(known) as here:
        reader, writer = await here.connect()
        writer.write(request(f"{LOGS}{query}"))
        reply = await reader.read()
        writer.close()
    assert here.reached[0].splitlines()[0].endswith(f" HTTP/{version}")
    assert reply == b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\nhello\n"


async def test_client_is_authorised_as_the_user_of_its_certificate() -> None:
    async with scene() as here:
        assert (await here.ask(LOGS))[0] == 200
        review = next(body for _, path, body in here.virtual.asked if path.endswith("subjectaccessreviews"))
    assert review["spec"] == {
        "user": "apiserver",
        "groups": ["kubelets", "system:authenticated"],
        "resourceAttributes": {
            "verb": "get",
            "version": "v1",
            "resource": "nodes",
            "subresource": "proxy",
            "name": NODE,
        },
    }


@pytest.mark.parametrize(
    ("token", "status"), [("secret", 200), ("weak", 403), ("unknown", 401), ("", 401), ("secret extra", 401)]
)
async def test_client_without_a_certificate_needs_a_token_of_a_user_who_may(token: str, status: int) -> None:
    async with scene() as here:
        found = await here.ask(LOGS, f"Authorization: Bearer {token}", tls=here.tls(certificate=False))
        assert found[0] == status
        assert bool(here.reached) is (status == 200)


async def test_client_with_the_certificate_of_another_ca_is_refused() -> None:
    async with scene() as here:
        with pytest.raises((ssl.SSLError, ConnectionError, IndexError)):
            await here.ask(LOGS, tls=here.tls(ca=trustme.CA()))
        assert not here.reached


async def test_user_of_a_certificate_who_may_not_is_refused() -> None:
    async with scene() as here:
        status, body = await here.ask(LOGS, tls=here.tls("mallory"))
    assert (status, here.reached) == (403, [])
    assert b"user=mallory" in body


@pytest.mark.parametrize(
    "target",
    [
        f"/containerLogs/{POD.namespace}/../secrets/x",
        f"/containerLogs/{POD.namespace}/{POD.name}%2F..%2Fx/main",
        f"//containerLogs/{POD.namespace}/{POD.name}/main",
        f"/containerLogs/{POD.namespace}/another/main",
        f"/containerLogs/kube-system/{POD.name}/main",
        f"/containerLogs/{HOST_KEY.namespace}/{HOST_KEY.name}/main",
        f"/containerLogs/{POD.namespace}/{POD.name}/sidecar",
        f"/portForward/{POD.namespace}/{POD.name}/another-uid",
        "/api/v1/secrets",
        "/run/a/b/c",
    ],
)
async def test_nothing_but_a_container_of_the_tenant_is_reached(target: str) -> None:
    async with scene() as here:
        status, _ = await here.ask(target, *UPGRADE)
        assert status in (400, 404)
        assert not here.reached


@pytest.mark.parametrize(
    "change",
    [
        lambda pod: pod["metadata"]["labels"].clear(),
        lambda pod: pod["metadata"]["labels"].update({"vsyncer.dev/cluster": "another.vc"}),
        lambda pod: pod["metadata"]["annotations"].update({"vsyncer.dev/virtual-uid": "u-0"}),
        lambda pod: pod["metadata"]["annotations"].update({"vsyncer.dev/virtual-name": "back"}),
        lambda pod: pod["metadata"]["annotations"].update({"vsyncer.dev/virtual-kind": "Job.batch"}),
        lambda pod: pod["metadata"]["annotations"].update({"vsyncer.dev/host-name": "another"}),
    ],
)
async def test_host_pod_that_is_no_copy_of_the_pod_is_not_reached(change: Callable[[Obj], None]) -> None:
    async with scene() as here:
        change(here.host.objects[f"{PODS_OF_HOST}/{HOST_KEY.name}"])
        assert (await here.ask(LOGS))[0] == 404
        assert not here.reached


async def test_pod_is_looked_up_in_no_namespace_of_the_hosts() -> None:
    async with scene(holds_copies=False) as here:
        assert (await here.ask(LOGS))[0] == 404
        assert (here.host.asked, here.reached) == ([], [])


async def test_pod_is_not_reached_while_the_owner_of_its_host_namespace_is_unknown() -> None:
    async with scene(holds_copies=Unreachable("no route")) as here:
        status, body = await here.ask(LOGS)
    assert (status, body) == (503, b"the host cluster does not answer: Unreachable\n")
    assert (here.host.asked, here.reached) == ([], [])


@pytest.mark.parametrize("side", ["virtual", "host"])
async def test_pod_of_another_node_is_not_reached(side: str) -> None:
    async with scene() as here:
        server = here.virtual if side == "virtual" else here.host
        [found] = [each for path, each in server.objects.items() if path.endswith((f"/pods/{POD.name}", HOST_KEY.name))]
        found["spec"]["nodeName"] = "node2"
        assert (await here.ask(LOGS))[0] == 404
        assert here.reached == []


@pytest.mark.parametrize(
    ("record", "status"),
    [
        ('{"containers":["main"],"ephemeralContainers":["debug"]}', 200),
        ('{"containers":["main"]}', 404),
        ('{"containers":["main","debug"]}', 404),
        ('{"ephemeralContainers":"debug"}', 404),
        ('{"spec":["debug"]}', 404),
        ('["debug"]', 404),
        ("debug", 404),
        ("", 404),
        (None, 404),
    ],
)
async def test_ephemeral_container_is_reached_only_if_it_was_sent(record: str | None, status: int) -> None:
    """The tenant may give one the name of a container that the host's operator has added to the pod."""
    async with scene() as here:
        pod = here.virtual.objects[f"/api/v1/namespaces/{POD.namespace}/pods/{POD.name}"]
        pod["spec"]["ephemeralContainers"] = [{"name": "debug"}]
        marks = here.host.objects[f"{PODS_OF_HOST}/{HOST_KEY.name}"]["metadata"]["annotations"]
        del marks[RECORD]
        marks |= {} if record is None else {RECORD: record}
        assert (await here.ask(f"/containerLogs/{POD.namespace}/{POD.name}/debug"))[0] == status
        assert bool(here.reached) is (status == 200)


async def test_container_is_not_reached_before_the_host_has_it() -> None:
    async with scene() as here:
        pod = here.host.objects[f"{PODS_OF_HOST}/{HOST_KEY.name}"]
        pod["metadata"]["annotations"][RECORD] = '{"ephemeralContainers":["later"]}'
        assert (await here.ask(f"/containerLogs/{POD.namespace}/{POD.name}/later"))[0] == 404


def refuses(status: str, body: str) -> Answer:
    async def answer(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nX-Host: secret\r\n\r\n{body}".encode())
        await writer.drain()
        await reader.read()

    return answer


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        ("400 Bad", '{"kind":"Status","message":"container in pod \\"NAME\\" waits"}', (400, b"container in pod")),
        ("404 Not Found", "pod NAME not found", (404, b"pod front not found")),
        ("403 Forbidden", "User system:serviceaccount:x:y cannot", (403, b"the syncer has no right to pods/exec")),
        ("401 Unauthorized", "no", (403, b"the syncer has no right to pods/exec")),
        ("500 Error", "dial tcp 10.0.0.7:10250: refused", (502, b"the host's node does not answer")),
        ("500 Error", "container c not found in pod NAME_vc-ns", (404, b"this container does not run in the Pod")),
        ("500 Error", 'container not found ("c")', (404, b"this container does not run in the Pod")),
        ("302 Found", "elsewhere", (502, b"the host's node does not answer")),
        ("200 OK", "no upgrade", (502, b"the host's node does not answer")),
    ],
)
async def test_refusal_of_the_host_is_reported_in_words_for_the_tenant(
    status: str, body: str, text: tuple[int, bytes]
) -> None:
    async with scene(refuses(status, body.replace("NAME", HOST_KEY.name))) as here:
        found = await here.ask(EXEC, *UPGRADE, method="POST")
    assert found[0] == text[0]
    assert found[1].startswith(text[1])
    assert HOST_KEY.name.encode() not in found[1]
    assert b"10.0.0.7" not in found[1]


async def test_host_that_is_down_is_reported_without_its_address() -> None:
    async with scene(refuses("200 OK", "")) as here:
        here.server._host.endpoint = here.server._host.endpoint.__class__("127.0.0.1", 1)
        status, body = await here.ask(LOGS)
    assert (status, body) == (503, b"the host cluster does not answer\n")


async def upgraded(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Agree to another protocol, and say all back."""
    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n")
    writer.write(b"X-Stream-Protocol-Version: v4.channel.k8s.io\r\nAudit-Id: of-the-host\r\n\r\nfirst")
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()


async def test_upgraded_connection_passes_bytes_both_ways_and_ends_with_the_client() -> None:
    async with scene(upgraded) as here:
        reader, writer = await here.connect()
        writer.write(request(EXEC, *UPGRADE, method="POST") + b"early")
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
        assert b"x-stream-protocol-version: v4.channel.k8s.io\r\n" in head
        assert b"of-the-host" not in head
        assert await reader.readexactly(10) == b"firstearly"
        data = os.urandom(5 << 20)
        sending = asyncio.create_task(send(writer, data))
        assert await reader.readexactly(len(data)) == data
        await sending
        assert here.reached[0].startswith(f"POST {PODS_OF_HOST}/{HOST_KEY.name}/exec?container=main&stdin=false&")
        assert "upgrade: SPDY/3.1\r\n" in here.reached[0]
        writer.close()
        await wait_until(lambda: not here.server.bounds.trusted)


async def send(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


async def test_exec_without_an_upgrade_is_refused() -> None:
    async with scene() as here:
        assert (await here.ask(EXEC, method="POST"))[0] == 400
        assert not here.reached


async def test_client_that_leaves_before_the_first_byte_of_a_log_ends_the_request_to_the_host() -> None:
    host = Silent()
    async with scene(host) as here:
        _, writer = await here.connect()
        writer.write(request(f"{LOGS}?follow=true"))
        await wait_until(lambda: here.reached)
        writer.close()
        async with asyncio.timeout(PATIENCE):
            await host.gone.wait()
        await wait_until(lambda: not here.server.bounds.trusted)


async def test_slow_client_stops_the_host_instead_of_filling_memory() -> None:
    sent = 0

    async def flood(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(1000):
            writer.write(bytes(1 << 16))
            await writer.drain()
            sent += 1 << 16

    async with scene(flood) as here:
        reader, writer = await here.connect()
        writer.write(request(LOGS))
        await reader.readuntil(b"\r\n\r\n")
        before = -1
        while sent != before:
            before = sent
            await asyncio.sleep(0.5)
        assert sent < 24 << 20, "what the sockets' own buffers take, at most"
        writer.transport.abort()


@pytest.mark.parametrize("size", [6, 20_000, 200_000])
async def test_log_that_ends_while_its_pod_is_confirmed_arrives_whole(size: int) -> None:
    """The event loop has read it, with its end behind it, and the relay hasn't begun."""
    data = os.urandom(size)

    async def ends(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n")
        await asyncio.sleep(0.02)
        writer.write(data)
        await writer.drain()
        await asyncio.sleep(0.02)
        with socket.socket(fileno=os.dup(writer.get_extra_info("socket").fileno())) as end:
            end.shutdown(socket.SHUT_WR)  # as Go's servers do, which don't wait for the other's end of TLS
        await asyncio.sleep(0.3)

    async with scene(ends) as here:
        here.host.slow = 0.1
        for _ in range(5):
            assert await here.ask(LOGS) == (200, data)


@pytest.mark.parametrize("size", [100, 300_000, 8 << 20])
async def test_log_arrives_whole_at_a_slow_client_also_after_the_host_has_ended(size: int) -> None:
    async def whole(head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + data)
        await writer.drain()

    data = os.urandom(size)
    async with scene(whole) as here:
        reader, writer = await here.connect()
        writer.write(request(LOGS))
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(0.5)
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert await reader.read() == data
        writer.close()


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/1.0\r\n\r\n", 400),
        (b"\x16\x03\x01 nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", 413),
        (b"GET /" + b"a" * (200 << 10), 431),
        (b"DELETE /pods HTTP/1.1\r\nHost: a\r\n\r\n", 405),
        (b"GET http://127.0.0.1/pods HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ],
)
async def test_malformed_request_is_refused(data: bytes, status: int) -> None:
    async with scene() as here:
        reader, writer = await here.connect()
        writer.write(data)
        assert int((await reader.read()).split()[1]) == status
        writer.transport.abort()


async def test_half_open_connections_are_bounded_and_others_are_served() -> None:
    async with scene(bounds=Bounds(ByteBudget(), young=20)) as here:
        before = open_files()
        silent = [await asyncio.open_connection("127.0.0.1", here.port) for _ in range(300)]
        await asyncio.sleep(0.2)
        assert len(here.server.bounds.young) <= 20
        assert open_files() <= before + 300 + 20 + 5
        assert (await here.ask(LOGS))[0] == 200
        for _, writer in silent:
            writer.transport.abort()


def test_bound_leaves_files_for_all_else_and_raises_the_limit_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: raised.append(limits))
    for limits, most, expected in (
        ((1024, 2048), 768, [(2048, 2048)]),
        ((100, 256), 1, [(256, 256)]),
        ((1 << 20, 1 << 20), 524_032, []),
        ((1024, resource.RLIM_INFINITY), math.inf, [(resource.RLIM_INFINITY, resource.RLIM_INFINITY)]),
    ):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limits=limits: limits)
        raised.clear()
        assert (connections(), raised) == (most, expected)


async def test_trusted_connections_are_bounded() -> None:
    """They are refused with the reason, by the memory of their namespace; other namespaces have some left."""
    budget = ByteBudget(7 * CONNECTION_OVERHEAD // 2, divided=True)
    async with scene(upgraded, bounds=Bounds(budget)) as here:
        writers = []
        for _ in range(2):
            reader, writer = await here.connect()
            writer.write(request(EXEC, *UPGRADE, method="POST"))
            await reader.readuntil(b"\r\n\r\n")
            writers.append(writer)
        status, text = await here.ask(LOGS)
        assert status == 503
        assert b"there are too many connections of the namespace web for the daemon's memory" in text
        assert (await here.ask("/healthz"))[0] == 200
        writers[0].transport.abort()
        await wait_until(lambda: here.server.bounds.trusted == {POD.namespace: 1})
        for writer in writers:
            writer.transport.abort()


async def test_healthz_answers() -> None:
    async with scene() as here:
        assert await here.ask("/healthz") == (200, b"ok\n")
