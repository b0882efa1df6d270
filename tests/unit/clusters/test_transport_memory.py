"""What large requests and responses take in memory, on their way and afterwards."""

import asyncio
import contextlib
import gc
import tracemalloc
import weakref
from collections.abc import Callable, Iterator

import pytest
from transport_kinds import receive

from syncer.clusters.http1 import LARGEST_WRITE, STRETCHING, Exchange, Http1Connection
from syncer.clusters.http1_stream import LineStream
from syncer.clusters.transport import ConnectionFailed, DeadlineExceeded, HttpResponse, LineSplitter

pytestmark = pytest.mark.real_time

#: Bytes of a large body, and of the pieces in which it arrives.
SIZE, PIECE = 4 << 20, 64 << 10


class Wire(asyncio.Transport):
    """A transport that notes how large the writes are, and what is written first."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []
        self.first = b""

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Be handed over to another protocol."""

    def abort(self) -> None:
        """Be closed; the test says when it is lost."""

    def write(self, data: "bytes | bytearray | memoryview") -> None:
        self.first = self.first or bytes(data)
        self.sizes.append(len(data))


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def taken() -> tuple[int, int]:
    """Return the bytes that are in use, and the most that were since the last time."""
    now = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    return now


async def exchanged(connection: Exchange, body: bytes = b"", *, size: int = SIZE) -> HttpResponse:
    """Send a request and receive a response of this size."""

    def answer() -> None:
        receive(connection, b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        piece = b"x" * PIECE
        for start in range(0, size, PIECE):
            receive(connection, piece[: size - start])

    loop = asyncio.get_running_loop()
    loop.call_soon(answer)
    return await connection.exchange(b"POST / HTTP/1.1\r\n\r\n", body, deadline=loop.time() + 30)


@pytest.mark.usefixtures("traced")
async def test_response_is_in_memory_once_while_it_arrives_and_idle_connections_keep_nothing() -> None:
    connection = Exchange(asyncio.get_running_loop())
    connection.connection_made(Wire())
    before, _ = taken()
    response = await exchanged(connection)
    in_use, most = taken()
    assert len(response.body) == SIZE
    assert SIZE <= in_use - before < 1.1 * SIZE
    assert most - before < 1.3 * SIZE
    del response
    await asyncio.sleep(0)  # the event loop forgets it, too
    assert taken()[0] - before < 0.1 * SIZE


async def test_large_request_is_written_in_parts_and_a_small_one_at_once() -> None:
    connection, wire = Exchange(asyncio.get_running_loop()), Wire()
    connection.connection_made(wire)
    await exchanged(connection, b"small")
    assert wire.first.endswith(b"\r\n\r\nsmall")
    assert len(wire.sizes) == 1
    wire.sizes.clear()
    await exchanged(connection, b"x" * SIZE)
    assert (sum(wire.sizes[1:]), max(wire.sizes)) == (SIZE, LARGEST_WRITE)


async def test_connection_is_stretched_once_a_response_was_large() -> None:
    connection = Exchange(asyncio.get_running_loop())
    connection.connection_made(Wire())
    await exchanged(connection, size=STRETCHING)
    assert not connection.stretched
    for size in (STRETCHING + 1, 1):
        await exchanged(connection, size=size)
        assert connection.stretched


@pytest.mark.parametrize("pieces", [(), (b"a",), (b"a", b"b"), (b"a", b"b", b"c")], ids=len)
@pytest.mark.parametrize("has_length", [True, False])
async def test_body_is_the_same_in_however_many_pieces_it_arrives(pieces: tuple[bytes, ...], has_length: bool) -> None:
    loop = asyncio.get_running_loop()
    connection = Exchange(loop)
    connection.connection_made(Wire())
    whole = b"".join(pieces)

    def answer() -> None:
        length = b"Content-Length: %d\r\n" % len(whole) if has_length else b""
        for part in (b"HTTP/1.1 200 OK\r\n%b\r\n" % length, *pieces):
            receive(connection, part)
        if not has_length:
            connection.connection_lost(None)

    rounds = 2 if has_length else 1
    for _ in range(rounds):
        loop.call_soon(answer)
        response = await connection.exchange(b"GET / HTTP/1.1\r\n\r\n", deadline=loop.time() + 30)
        assert response.body == whole


@pytest.mark.parametrize("handed_over", [False, True])
async def test_transport_is_freed_when_its_connection_is_lost_without_a_garbage_collection(handed_over: bool) -> None:
    loop = asyncio.get_running_loop()
    connection, wire = Exchange(loop), Wire()
    freed = weakref.ref(wire)
    connection.connection_made(wire)
    last: Http1Connection = connection
    if handed_over:
        last = LineStream(loop)
        connection.hand_over(last)
    last.connection_lost(None)
    del wire
    assert freed() is None
    for one in (connection, last):
        one.abort()
        one.close()
        one.fail(ConnectionFailed("closed by us"))


def answers_too_much(connection: Exchange) -> None:
    receive(connection, b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b"x" * 100)


@pytest.mark.parametrize(
    "fails",
    [
        lambda connection: connection.connection_lost(None),
        lambda connection: connection.fail(DeadlineExceeded("no reply in time")),
        answers_too_much,
    ],
)
def test_buffers_waiting_for_a_response_are_freed_without_one(fails: Callable[[Exchange], None]) -> None:
    """A frame that waits for the response to a large write holds its objects, too."""

    class Referent:
        pass

    async def main() -> None:
        loop = asyncio.get_running_loop()
        connection = Exchange(loop)
        connection.connection_made(Wire())
        freed: list[weakref.ref[Referent]] = []

        async def ask() -> None:
            in_use = Referent()
            freed.append(weakref.ref(in_use))
            await connection.exchange(b"GET / HTTP/1.1\r\n\r\n", deadline=loop.time() + 30, most=10)

        loop.call_soon(fails, connection)
        with contextlib.suppress(ConnectionFailed):
            await ask()
        connection.connection_lost(None)
        await asyncio.sleep(0)
        assert freed[0]() is None

    gc.disable()
    try:
        asyncio.run(main())
    finally:
        gc.enable()


@pytest.mark.usefixtures("traced")
def test_long_line_is_in_memory_once_while_it_arrives() -> None:
    lines, piece = LineSplitter(), b"x" * PIECE
    before, _ = taken()
    for _ in range(SIZE // PIECE):
        lines.feed(piece)
    lines.feed(b"\n")
    in_use, most = taken()
    [line] = lines.take()
    assert len(line) == SIZE
    assert in_use - before < 1.1 * SIZE
    assert most - before < 1.3 * SIZE
