"""Requests over every transport: framing, reuse, deadlines, and connections that die."""

import asyncio

import pytest
from cluster_servers import Call, free_port, serve
from transport_kinds import Kind

from syncer.clusters.http1 import LARGEST_HEAD
from syncer.clusters.transport import ConnectionFailed, DeadlineExceeded, HttpRequest, ReplyTooLarge


async def test_request_arrives_as_it_was_given(kind: Kind) -> None:
    async def answer(call: Call) -> None:
        await call.reply(201, b'{"a": 1}', "X-Thing: yes\r\n")

    async with serve(answer) as peer, kind.open(peer.endpoint(prefix="/k8s/c-1")) as transport:
        reply = await transport.send(
            HttpRequest("PATCH", "/api/v1/pods?x=a%2Fb", body=b"data", content_type="application/merge-patch+json")
        )
        [call] = peer.calls
        assert (call.method, call.path, call.body) == ("PATCH", "/k8s/c-1/api/v1/pods?x=a%2Fb", b"data")
        assert call.header("Content-Type") == "application/merge-patch+json"
        assert call.header("Accept") == "application/json"
        assert call.header("Host") == f"127.0.0.1:{peer.port}"
        assert call.header("User-Agent") == "vsyncer"
        assert call.header("Accept-Encoding") is None
        assert (reply.status, reply.headers["x-thing"], reply.body) == (201, "yes", b'{"a": 1}')


async def test_request_is_not_sent_if_its_right_ended_before_a_connection_was_free(kind: Kind) -> None:
    may, arrived, free = True, asyncio.Event(), asyncio.Event()

    async def answer(call: Call) -> None:
        arrived.set()
        await free.wait()
        await call.reply()

    async with serve(answer) as peer, kind.open(peer.endpoint(), connections=1) as transport:
        first = asyncio.create_task(transport.send(HttpRequest("GET", "/first")))
        late = asyncio.create_task(transport.send(HttpRequest("PUT", "/late", may_send=lambda: may)))
        await arrived.wait()
        may = False
        free.set()
        await first
        with pytest.raises(DeadlineExceeded):
            await late
        await transport.send(HttpRequest("GET", "/next", may_send=lambda: True))
        assert [call.path for call in peer.calls] == ["/first", "/next"]


async def test_chunked_reply_in_single_bytes_is_put_together(kind: Kind) -> None:
    async def answer(call: Call) -> None:
        whole = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n"
        for index in range(len(whole)):
            await call.send(whole[index : index + 1])
            await asyncio.sleep(0)

    async with serve(answer) as peer, kind.open(peer.endpoint()) as transport:
        assert (await transport.send(HttpRequest("GET", "/"))).body == b"abcdefg"
        assert (await transport.send(HttpRequest("GET", "/"))).body == b"abcdefg"
        assert peer.connections == 1


async def test_reply_is_read_up_to_a_size_and_no_further(kind: Kind) -> None:
    async def answer(call: Call) -> None:
        await call.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in (b"64\r\n" + b"x" * 100 + b"\r\n") * (10 if call.path == "/a" else 11), b"0\r\n\r\n":
            await call.send(piece)

    async with serve(answer) as peer, kind.open(peer.endpoint()) as transport:
        assert len((await transport.send(HttpRequest("GET", "/a", most=1000))).body) == 1000
        with pytest.raises(ReplyTooLarge):
            await transport.send(HttpRequest("GET", "/b", most=1000))
        assert len((await transport.send(HttpRequest("GET", "/a", most=1000))).body) == 1000
        assert peer.connections == 2, "the rest of the reply isn't read"


@pytest.mark.parametrize(
    "begin",
    [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"],
    ids=["head", "trailer"],
)
@pytest.mark.parametrize("is_watch", [False, True], ids=["request", "watch"])
async def test_head_and_trailer_are_read_up_to_a_size_and_no_further(kind: Kind, begin: bytes, is_watch: bool) -> None:
    line = b"X-%04d: " + b"x" * 1015 + b"\r\n"
    sent = 0

    async def answer(call: Call) -> None:
        nonlocal sent
        await call.send(begin)
        while sent < 4 * LARGEST_HEAD >> 10 and not call.writer.is_closing():
            await call.send(line % sent)
            sent += 1
            await asyncio.sleep(0)
        await call.send(b"Content-Length: 2\r\n\r\n{}")

    async with serve(answer) as peer, kind.open(peer.endpoint()) as transport:
        with pytest.raises(ConnectionFailed, match="head or trailer of the reply is larger than 256 KiB"):
            if is_watch:
                async with transport.stream(HttpRequest("GET", "/")) as stream:
                    [_ async for _ in stream]
            else:
                await transport.send(HttpRequest("GET", "/"))


async def test_body_that_follows_a_long_head_in_many_pieces_is_read(kind: Kind) -> None:
    async def answer(call: Call) -> None:
        head = b"".join(b"X-%04d: %s\r\n" % (number, b"x" * 1000) for number in range(200))
        await call.send(b"HTTP/1.1 200 OK\r\n" + head + b"Content-Length: 1000000\r\n\r\n")
        for _ in range(100):
            await call.send(b"x" * 10_000)
            await asyncio.sleep(0)

    async with serve(answer) as peer, kind.open(peer.endpoint()) as transport:
        for _ in range(2):
            assert len((await transport.send(HttpRequest("GET", "/"))).body) == 1_000_000


@pytest.mark.parametrize(
    ("method", "wire", "status", "body"),
    [
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", 200, b""),
        (
            "GET",
            b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            200,
            b"ok",
        ),
        ("POST", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 C\r\nContent-Length: 2\r\n\r\nok", 201, b"ok"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, b""),
    ],
)
async def test_replies_with_a_framing_of_their_own_leave_the_connection_usable(
    kind: Kind, method: str, wire: bytes, status: int, body: bytes
) -> None:
    async def answer(call: Call) -> None:
        await call.send(wire)

    async with serve(answer) as peer, kind.open(peer.endpoint()) as transport:
        for _ in range(2):
            reply = await transport.send(HttpRequest(method, "/", body=b"x" if method == "POST" else None))
            assert (reply.status, reply.body) == (status, body)
        assert peer.connections == 1


@pytest.mark.parametrize(
    "wire",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\n\r\nok",
    ],
)
async def test_connection_that_the_server_ends_with_the_reply_is_not_used_again(kind: Kind, wire: bytes) -> None:
    async def answer(call: Call) -> None:
        await call.send(wire)
        call.writer.close()

    async with serve(answer) as peer, kind.open(peer.endpoint()) as transport:
        for _ in range(2):
            assert (await transport.send(HttpRequest("GET", "/"))).body == b"ok"
        assert peer.connections == 2


async def test_reply_with_connection_close_ends_the_connection(kind: Kind) -> None:
    async with serve(lambda call: call.reply(headers="Connection: close\r\n")) as peer:
        async with kind.open(peer.endpoint()) as transport:
            for _ in range(2):
                await transport.send(HttpRequest("GET", "/"))
        assert peer.connections == 2


async def test_requests_one_after_the_other_share_a_connection(kind: Kind) -> None:
    async with serve(Call.reply) as peer, kind.open(peer.endpoint()) as transport:
        for number in range(20):
            await transport.send(HttpRequest("POST", f"/{number}", body=b"{}"))
        assert peer.connections == 1
        assert [call.path for call in peer.calls] == [f"/{number}" for number in range(20)]


async def test_reused_connection_that_dies_before_a_reply_is_replaced_once(kind: Kind) -> None:
    async def answer(call: Call) -> None:
        if call.path == "/second" and call.connection == 1:
            call.cut()
        else:
            await call.reply(200, str(call.connection).encode())

    async with serve(answer) as peer, kind.open(peer.endpoint()) as transport:
        await transport.send(HttpRequest("GET", "/first"))
        reply = await transport.send(HttpRequest("POST", "/second", body=b"{}"))
        assert reply.body == b"2"
        assert [call.path for call in peer.calls] == ["/first", "/second", "/second"]


async def test_second_connection_dying_too_ends_the_tries(kind: Kind) -> None:
    async def answer(call: Call) -> None:
        await call.reply() if call.path == "/first" else call.cut()

    async with serve(answer) as peer, kind.open(peer.endpoint()) as transport:
        await transport.send(HttpRequest("GET", "/first"))
        with pytest.raises(ConnectionFailed):
            await transport.send(HttpRequest("POST", "/second", body=b"{}"))
        assert [call.path for call in peer.calls] == ["/first", "/second", "/second"]


async def test_new_connection_that_dies_is_not_tried_again(kind: Kind) -> None:
    async def answer(call: Call) -> None:
        call.cut()

    async with serve(answer) as peer, kind.open(peer.endpoint()) as transport:
        with pytest.raises(ConnectionFailed):
            await transport.send(HttpRequest("POST", "/", body=b"{}"))
        assert len(peer.calls) == 1


async def test_reply_that_breaks_off_is_an_error_and_not_tried_again(kind: Kind) -> None:
    async def answer(call: Call) -> None:
        if call.path == "/first":
            return await call.reply()
        await call.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        call.writer.close()
        return None

    async with serve(answer) as peer, kind.open(peer.endpoint()) as transport:
        await transport.send(HttpRequest("GET", "/first"))
        with pytest.raises(ConnectionFailed):
            await transport.send(HttpRequest("POST", "/second", body=b"{}"))
        assert [call.path for call in peer.calls] == ["/first", "/second"]


async def test_server_that_does_not_answer_meets_the_deadline(kind: Kind) -> None:
    async def answer(call: Call) -> None:
        if call.path == "/hang":
            await asyncio.Event().wait()
        await call.reply()

    async with serve(answer) as peer, kind.open(peer.endpoint()) as transport:
        await transport.send(HttpRequest("GET", "/"))
        with pytest.raises(DeadlineExceeded):
            await transport.send(HttpRequest("GET", "/hang", timeout=0.05))
        await transport.send(HttpRequest("GET", "/", timeout=30))
        assert peer.connections == 2
        assert len(peer.calls) == 3


async def test_shorter_deadline_after_a_longer_one_holds(kind: Kind) -> None:
    async def answer(call: Call) -> None:
        await (call.reply() if call.path == "/" else asyncio.Event().wait())

    async with serve(answer) as peer, kind.open(peer.endpoint()) as transport:
        await transport.send(HttpRequest("GET", "/", timeout=1000))
        with pytest.raises(DeadlineExceeded):
            await transport.send(HttpRequest("GET", "/hang", timeout=0.05))


async def test_port_without_a_server_is_named(kind: Kind) -> None:
    async with serve(Call.reply) as peer:
        endpoint = peer.endpoint()
    object.__setattr__(endpoint, "port", await free_port())
    async with kind.open(endpoint) as transport:
        with pytest.raises(ConnectionFailed, match=f"127.0.0.1:{endpoint.port}"):
            await transport.send(HttpRequest("GET", "/"))


async def test_response_that_is_not_http_is_an_error(kind: Kind) -> None:
    async def answer(call: Call) -> None:
        await call.send(b"220 smtp.example.org ESMTP\r\n")

    async with serve(answer) as peer, kind.open(peer.endpoint()) as transport:
        with pytest.raises(ConnectionFailed):
            await transport.send(HttpRequest("GET", "/"))


async def test_connection_of_a_cancelled_request_is_not_used_again(kind: Kind) -> None:
    asked = asyncio.Event()

    async def answer(call: Call) -> None:
        if call.path == "/hang":
            asked.set()
            await asyncio.Event().wait()
        await call.reply()

    async with serve(answer) as peer, kind.open(peer.endpoint(), connections=1) as transport:
        hanging = asyncio.create_task(transport.send(HttpRequest("GET", "/hang")))
        await asked.wait()
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        assert (await transport.send(HttpRequest("GET", "/"))).status == 200
        assert peer.connections == 2


async def test_hung_server_does_not_collect_connections(kind: Kind) -> None:
    release = asyncio.Event()
    full = asyncio.Event()

    async def answer(call: Call) -> None:
        if peer.open == 4:
            full.set()
        await release.wait()
        await call.reply(200, call.path.encode())

    async with serve(answer) as peer, kind.open(peer.endpoint(), connections=4) as transport:
        requests = [asyncio.create_task(transport.send(HttpRequest("GET", f"/{n}"))) for n in range(20)]
        await full.wait()
        release.set()
        replies = await asyncio.gather(*requests)
        assert [reply.body.decode() for reply in replies] == [f"/{n}" for n in range(20)]
        assert peer.most_open == 4


async def test_waiter_for_a_connection_has_a_deadline_and_leaves_no_hole(kind: Kind) -> None:
    release = asyncio.Event()
    asked = asyncio.Event()

    async def answer(call: Call) -> None:
        asked.set()
        await release.wait()
        await call.reply()

    async with serve(answer) as peer, kind.open(peer.endpoint(), connections=1) as transport:
        first = asyncio.create_task(transport.send(HttpRequest("GET", "/first")))
        await asked.wait()
        with pytest.raises(DeadlineExceeded):
            await transport.send(HttpRequest("GET", "/second", timeout=0.05))
        release.set()
        assert (await first).status == 200
        assert (await transport.send(HttpRequest("GET", "/third"))).status == 200
        assert [call.path for call in peer.calls] == ["/first", "/third"]


async def test_closing_fails_requests_under_way(kind: Kind) -> None:
    asked = asyncio.Event()

    async def answer(call: Call) -> None:
        asked.set()
        await asyncio.Event().wait()

    async with serve(answer) as peer, kind.open(peer.endpoint()) as transport:
        request = asyncio.create_task(transport.send(HttpRequest("GET", "/")))
        await asked.wait()
        await transport.close()
        with pytest.raises(ConnectionFailed):
            await request


async def test_large_body_goes_both_ways(kind: Kind) -> None:
    async def answer(call: Call) -> None:
        await call.reply(200, call.body)

    body = bytes(range(256)) * 12_000
    async with serve(answer) as peer, kind.open(peer.endpoint()) as transport:
        assert (await transport.send(HttpRequest("PUT", "/", body=body))).body == body


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX-Evil: 1", "no-slash", "/ü"])
async def test_path_that_would_break_the_request_line_is_refused(kind: Kind, path: str) -> None:
    async with serve(Call.reply) as peer, kind.open(peer.endpoint()) as transport:
        with pytest.raises(ValueError, match="not a path"):
            await transport.send(HttpRequest("GET", path))
        assert not peer.calls
