"""Large replies take bytes of a budget while they arrive, and wait without room."""

import asyncio
from collections.abc import Callable

import pytest
import trustme
from cluster_servers import Call, serve, server_context
from transport_kinds import Kind

from syncer.byte_budget import ByteBudget
from syncer.clusters.credentials import LoginCredentials
from syncer.clusters.http_transport import HttpTransport
from syncer.clusters.large_replies import LARGE_REPLY, LargeReplies, LargeReply
from syncer.clusters.login import Login, Material
from syncer.clusters.transport import DeadlineExceeded, HttpRequest, Transport

MB = 1 << 20


class Replies(LargeReplies):
    """Large replies, and those that were read on."""

    def __init__(self, most: int) -> None:
        super().__init__(ByteBudget(most, divided=True), server="the server")
        self.read_on: list[LargeReply] = []

    def grown(self, *sizes: int) -> LargeReply:
        """Return a reply that has come to these sizes one after the other."""
        reply = LargeReply(self, lambda: self.read_on.append(reply))
        for size in sizes:
            reply.grow(size)
        return reply


def test_large_reply_takes_bytes_until_it_ends() -> None:
    replies = Replies(100 * MB)
    reply = replies.grown(MB + 1)
    assert (reply.most, replies.budget.used) == (2 * MB + 1, 2 * MB + 1)
    reply.grow(2 * MB + 1)
    reply.grow(2 * MB + 5)
    assert (reply.most, replies.budget.used, reply.waits) == (3 * MB + 5, 3 * MB + 5, False)
    reply.end()
    assert (replies.budget.used, replies.budget.parts) == (0, {})


def test_reply_without_room_waits_until_another_has_ended() -> None:
    replies = Replies(8 * MB)
    first = replies.grown(4 * MB)
    exempt = replies.grown(4 * MB)
    late = replies.grown(4 * MB)
    assert [each.waits for each in (first, exempt, late)] == [False, False, True]
    first.end()
    assert replies.read_on == []
    exempt.end()
    assert replies.read_on == [late]
    assert (late.waits, late.most) == (False, 5 * MB)


def test_one_reply_goes_on_without_room_and_then_the_next() -> None:
    """Otherwise, all would wait for each other."""
    replies = Replies(1)
    waiting = [replies.grown(MB + 1) for _ in range(3)]
    for number, reply in enumerate(waiting):
        assert [each.waits for each in waiting[number:]] == [False, True, True][: 3 - number]
        reply.grow(16 * MB)
        assert not reply.waits
        reply.end()
    assert (replies.read_on, replies.budget.used) == (waiting[1:], 0)


def test_first_reply_that_goes_on_without_room_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with_room = Replies(100 * MB)
    with_room.grown(MB + 1)
    assert caplog.messages == []
    replies = Replies(1)
    for _ in range(3):
        replies.grown(3 * MB, 6 * MB).end()
    [message] = caplog.messages
    assert message.startswith("a reply of the server has come to 4 MiB, and there is no memory for it")


def test_reply_that_stalls_leaves_room_to_others() -> None:
    replies = Replies(16 * MB)
    stalled = replies.grown(11 * MB)
    other = replies.grown(2 * MB)
    assert not stalled.waits
    assert not other.waits
    assert replies.budget.used <= 16 * MB


def test_reply_that_ends_while_it_waits_takes_nothing_and_admits_no_other() -> None:
    replies = Replies(1)
    exempt, *waiting = [replies.grown(MB + 1) for _ in range(3)]
    waiting[0].end()
    assert (replies.read_on, list(replies.waiting)) == ([], [waiting[1]])
    exempt.end()
    assert replies.read_on == [waiting[1]]


# -- over HTTP -------------------------------------------------------------------------------------


async def until(holds: Callable[[], object]) -> None:
    """Wait until this holds; budgets and replies set no events."""
    while not holds():  # noqa: ASYNC110 — see above
        await asyncio.sleep(0.01)


def large_replies(transport: Transport) -> LargeReplies:
    """Return the large replies of a transport."""
    assert isinstance(transport, HttpTransport)
    return transport._replies


def get(transport: Transport, **options: float) -> "asyncio.Task[bytes]":
    async def body() -> bytes:
        return (await transport.send(HttpRequest("GET", "/", **options))).body  # type: ignore[arg-type]

    return asyncio.create_task(body())


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
async def test_replies_that_stall_take_no_more_than_there_is_and_arrive_whole(kind: Kind, tls: bool) -> None:
    """Before, each took what it liked."""
    ca = trustme.CA()
    body = bytes(range(256)) * (4 * MB // 256)
    replies = 8
    go_on = asyncio.Event()

    async def answer(call: Call) -> None:
        await call.start_chunked()
        for start in range(0, len(body), 64 << 10):
            await call.chunk(body[start : start + (64 << 10)])
        await go_on.wait()
        await call.chunk(b"")

    def all_stall(transport: Transport) -> bool:
        takes_no_more = [part for part in budget.parts.values() if part.used >= len(body)]
        return len(takes_no_more) + len(large_replies(transport).waiting) == replies

    budget = ByteBudget(6 * MB, divided=True)
    async with serve(answer, server_context(ca.issue_cert("127.0.0.1")) if tls else None) as peer:
        endpoint = peer.endpoint(tls=tls)
        credentials = LoginCredentials(Login(endpoint, ca=Material(data=ca.cert_pem.bytes())))
        async with kind.open(endpoint, credentials, replies=budget) as transport:
            asked = [get(transport) for _ in range(replies)]
            await until(lambda: all_stall(transport))
            assert 4 * MB < budget.used <= (6 + 5) * MB
            go_on.set()
            assert [await each == body for each in asked] == [True] * replies
            assert (budget.used, budget.parts) == (0, {})
            assert await get(transport) == body
            assert peer.connections == replies, "those that have waited are used again"


async def test_reply_that_finds_no_room_until_its_deadline_fails_with_the_reason(kind: Kind) -> None:
    async def answer(call: Call) -> None:
        await call.start_chunked()
        await call.chunk(b"x" * 4 * MB)
        await asyncio.Event().wait()

    budget = ByteBudget(1, divided=True)
    async with serve(answer) as peer, kind.open(peer.endpoint(), replies=budget) as transport:
        stalled = get(transport)
        await until(lambda: budget.used)
        with pytest.raises(DeadlineExceeded, match="others take the memory for large replies"):
            await get(transport, timeout=2.0)
        stalled.cancel()
        await asyncio.wait([stalled])
        assert budget.used == 0


async def test_long_line_of_a_watch_waits_for_room_and_arrives_whole(kind: Kind) -> None:
    line = b"y" * 3 * MB
    go_on = asyncio.Event()

    async def answer(call: Call) -> None:
        await call.start_chunked()
        if call.path == "/":
            await call.chunk(b"x" * 2 * MB)
            await go_on.wait()
        else:
            await call.chunk(b"first\n")
            await call.chunk(line + b"\nlast\n")
        await call.chunk(b"")

    budget = ByteBudget(1, divided=True)
    async with serve(answer) as peer, kind.open(peer.endpoint(), replies=budget) as transport:
        stalled = get(transport)
        await until(lambda: budget.used)
        taken = budget.used
        async with transport.stream(HttpRequest("GET", "/watch")) as stream:
            assert await anext(aiter(stream)) == [b"first"]
            waiting = asyncio.ensure_future(anext(aiter(stream)))
            await until(lambda: large_replies(transport).waiting)
            assert not waiting.done()
            assert budget.used <= taken + LARGE_REPLY
            go_on.set()
            assert len(await stalled) == 2 * MB
            lines = await waiting
            async for batch in stream:
                lines += batch
            assert lines == [line, b"last"]
        assert budget.used == 0


async def test_lost_connection_gives_back_the_bytes_of_its_reply(kind: Kind) -> None:
    async def answer(call: Call) -> None:
        await call.start_chunked()
        await call.chunk(b"x" * 2 * MB)
        await asyncio.sleep(0.1)
        call.cut()

    budget = ByteBudget(16 * MB, divided=True)
    async with serve(answer) as peer, kind.open(peer.endpoint(), replies=budget) as transport:
        asked = get(transport)
        await until(lambda: budget.used)
        await asyncio.wait([asked])
        assert asked.exception() is not None
        assert budget.used == 0
        async with transport.stream(HttpRequest("GET", "/watch")) as stream:
            with pytest.raises(OSError, match="connection lost"):
                [_ async for _ in stream]
        await asyncio.sleep(0)
        assert budget.used == 0
