"""Streams over every transport: lines, cuts, idleness and slow readers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from cluster_servers import Answer, Call, serve
from transport_kinds import Kind, receive

from syncer.clusters import http1_stream
from syncer.clusters.http1_stream import LineStream
from syncer.clusters.large_replies import LARGE_REPLY
from syncer.clusters.transport import (
    ConnectionFailed,
    DeadlineExceeded,
    HttpRequest,
    LineSplitter,
    ReplyTooLarge,
    Stream,
)


async def end(call: Call) -> None:
    await call.chunk(b"")


async def cut(call: Call) -> None:
    call.writer.close()


async def hang(call: Call) -> None:
    await asyncio.Event().wait()


def chunks(*pieces: bytes, then: Answer = end) -> Answer:
    """Return an answer of some chunks, and of what comes after them."""

    async def answer(call: Call) -> None:
        await call.start_chunked()
        for piece in pieces:
            await call.chunk(piece)
            await asyncio.sleep(0)
        await then(call)

    return answer


@asynccontextmanager
async def streaming(kind: Kind, answer: Answer, *, idle_timeout: float | None = None) -> AsyncIterator[Stream]:
    """Yield a stream from a server that answers so."""
    request = HttpRequest("GET", "/w", idle_timeout=idle_timeout)
    async with serve(answer) as peer, kind.open(peer.endpoint()) as transport, transport.stream(request) as stream:
        yield stream


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
async def test_lines_come_out_whole_however_the_bytes_arrive(kind: Kind, size: int) -> None:
    text = b'{"a":1}\n\n{"b":22}\r\n{"c":333}\nlast'
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    async with streaming(kind, chunks(*pieces)) as stream:
        assert stream.status == 200
        lines = [line async for batch in stream for line in batch]
        assert [line.strip() for line in lines] == [b'{"a":1}', b'{"b":22}', b'{"c":333}', b"last"]


async def test_line_is_handed_over_before_the_next_one_is_sent(kind: Kind) -> None:
    go_on = asyncio.Event()

    async def rest(call: Call) -> None:
        await go_on.wait()
        await call.chunk(b"two\n")
        await call.chunk(b"")

    async with streaming(kind, chunks(b"one\nhalf of ", then=rest)) as stream:
        batches = aiter(stream)
        assert await anext(batches) == [b"one"]
        go_on.set()
        assert await anext(batches) == [b"half of two"]
        with pytest.raises(StopAsyncIteration):
            await anext(batches)


@pytest.mark.parametrize(
    ("then", "error"),
    [pytest.param(cut, ConnectionFailed, id="cut"), pytest.param(hang, DeadlineExceeded, id="silent")],
)
async def test_stream_that_ends_too_early_gives_its_whole_lines_and_then_fails(
    kind: Kind, then: Answer, error: type[Exception]
) -> None:
    async with streaming(kind, chunks(b"one\ntw", then=then), idle_timeout=0.05) as stream:
        batches = aiter(stream)
        assert await anext(batches) == [b"one"]
        with pytest.raises(error):
            await anext(batches)


async def test_server_that_does_not_begin_meets_the_connect_timeout(kind: Kind) -> None:
    async def answer(call: Call) -> None:
        await asyncio.Event().wait()

    async with serve(answer) as peer, kind.open(peer.endpoint()) as transport:
        with pytest.raises(DeadlineExceeded):
            async with transport.stream(HttpRequest("GET", "/w", timeout=0.05)):
                pass


@pytest.mark.parametrize("pieces", [[b'{"kind":\n"Status"}'], [b'{"kind":\n', b'"Status"', b"}"]])
async def test_refusal_is_read_as_a_whole(kind: Kind, pieces: list[bytes]) -> None:
    async def answer(call: Call) -> None:
        await call.start_chunked(410)
        for piece in pieces:
            await call.chunk(piece)
        await call.chunk(b"")

    async with streaming(kind, answer) as stream:
        assert (stream.status, await stream.body()) == (410, b'{"kind":\n"Status"}')
        assert stream.headers["content-type"] == "application/json"


async def test_streams_take_no_connection_from_requests(kind: Kind) -> None:
    async def answer(call: Call) -> None:
        if call.path != "/w":
            return await call.reply()
        await call.start_chunked()
        await asyncio.Event().wait()
        return None

    async with (
        serve(answer) as peer,
        kind.open(peer.endpoint(), connections=1) as transport,
        transport.stream(HttpRequest("GET", "/w")),
        transport.stream(HttpRequest("GET", "/w")),
    ):
        assert (await transport.send(HttpRequest("GET", "/"))).status == 200


async def test_stream_takes_an_idle_connection(kind: Kind) -> None:
    async def answer(call: Call) -> None:
        if call.path == "/":
            await call.reply()
        else:
            await call.start_chunked()
            await call.chunk(b"line\n")
            await asyncio.Event().wait()

    async with serve(answer) as peer, kind.open(peer.endpoint()) as transport:
        await transport.send(HttpRequest("GET", "/"))
        async with transport.stream(HttpRequest("GET", "/w")) as stream:
            assert await anext(aiter(stream)) == [b"line"]
            await transport.send(HttpRequest("GET", "/"))
        await transport.send(HttpRequest("GET", "/"))
        assert [call.connection for call in peer.calls] == [1, 1, 2, 2]


async def test_idle_connection_that_dies_under_a_stream_is_replaced_once(kind: Kind) -> None:
    async def answer(call: Call) -> None:
        if call.path == "/":
            await call.reply()
        elif call.connection == 1:
            call.cut()
        else:
            await call.start_chunked()
            await call.chunk(b"line\n")
            await call.chunk(b"")

    async with serve(answer) as peer, kind.open(peer.endpoint()) as transport:
        await transport.send(HttpRequest("GET", "/"))
        async with transport.stream(HttpRequest("GET", "/w")) as stream:
            assert await anext(aiter(stream)) == [b"line"]
        assert [call.connection for call in peer.calls] == [1, 1, 2]


async def test_request_is_not_repeated_if_a_connection_dies_within_the_answer(kind: Kind) -> None:
    async def answer(call: Call) -> None:
        if call.path == "/":
            await call.reply()
        else:
            await call.send(b"HTTP/1.1 200 OK\r\nTransfer-")
            call.writer.close()

    async with serve(answer) as peer, kind.open(peer.endpoint()) as transport:
        await transport.send(HttpRequest("GET", "/"))
        with pytest.raises(ConnectionFailed):
            async with transport.stream(HttpRequest("GET", "/w")):
                raise AssertionError("it began")
        assert [call.connection for call in peer.calls] == [1, 1]


async def test_closing_ends_streams(kind: Kind) -> None:
    async def answer(call: Call) -> None:
        await call.start_chunked()
        await asyncio.Event().wait()

    async with (
        serve(answer) as peer,
        kind.open(peer.endpoint()) as transport,
        transport.stream(HttpRequest("GET", "/w")) as stream,
    ):
        reading = asyncio.ensure_future(anext(aiter(stream)))
        await asyncio.sleep(0)
        await transport.close()
        with pytest.raises((ConnectionFailed, StopAsyncIteration)):
            await reading


async def test_slow_reader_makes_the_server_wait(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1_stream, "LARGE_REPLY", 100_000)
    monkeypatch.setattr(LineSplitter, "MOST_LINES", 1000)
    monkeypatch.setattr(LineSplitter, "MOST_BYTES", 10_000_000)
    line = b"x" * 9_999 + b"\n"
    async with streaming(kind, chunks(*[line] * 1000)) as stream:
        sizes = []
        async for batch in stream:
            sizes.append(len(batch))
            for _ in range(300):
                await asyncio.sleep(0)
        assert sum(sizes) == 1000
        assert max(sizes) < 70, "a pause at 10 lines, plus what one read brings"


@pytest.mark.real_time
async def test_many_short_lines_make_the_server_wait_by_the_memory_that_they_take() -> None:
    class Wire(asyncio.Transport):
        paused = False

        def is_closing(self) -> bool:
            return False

        def pause_reading(self) -> None:
            self.paused = True

    stream, wire = LineStream(asyncio.get_running_loop()), Wire()
    stream.connection_made(wire)
    receive(stream, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(LARGE_REPLY // 64 // 100):
        receive(stream, b"c8\r\n" + b"x\n" * 100 + b"\r\n")
    assert wire.paused


def test_line_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LineSplitter, "LONGEST", 10)
    lines = LineSplitter()
    lines.feed(b"0123456789")
    with pytest.raises(ReplyTooLarge):
        lines.feed(b"x")


def test_lines_that_arrived_together_are_taken_in_bounded_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LineSplitter, "MOST_LINES", 3)
    monkeypatch.setattr(LineSplitter, "MOST_BYTES", 10)
    lines = LineSplitter()
    lines.feed(b"1\n2\n3\n4\n55555\n66666\n7777777777777\n8\n")
    batches = []
    while lines.ready:
        batches.append(lines.take())
    expected = [[b"1", b"2", b"3"], [b"4", b"55555"], [b"66666"], [b"7777777777777"], [b"8"]]
    assert (batches, lines.size) == (expected, 0)


async def test_other_tasks_run_between_two_batches_that_arrived_together(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LineSplitter, "MOST_LINES", 1)
    steps = 0

    async def count() -> None:
        nonlocal steps
        while True:
            steps += 1
            await asyncio.sleep(0)

    async with streaming(kind, chunks(b"1\n2\n3\n4\n")) as stream:
        await asyncio.sleep(0.1)  # all lines are there
        task = asyncio.create_task(count())
        seen = [(batch, steps) async for batch in stream]
        task.cancel()
        assert [batch for batch, _ in seen] == [[b"1"], [b"2"], [b"3"], [b"4"]]
        assert [steps for _, steps in seen] == sorted({steps for _, steps in seen}), "more steps at each batch"


def test_line_in_many_pieces_and_many_lines_in_a_piece() -> None:
    lines = LineSplitter()
    for piece in (b"a", b"b", b"c\nd\ne", b"", b"f\n", b"\n\n", b"g"):
        lines.feed(piece)
    assert (lines.take(), lines.size) == ([b"abc", b"d", b"ef"], 0)
    lines.finish()
    assert lines.take() == [b"g"]
