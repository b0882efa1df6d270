"""Bytes pass between plain connections, too, where one side may end before the other."""

import asyncio
import gc
import weakref
from typing import cast

import pytest
from kubelet_scene import PATIENCE

from syncer.kubelet.http import body_of, response_head
from syncer.kubelet.relay import BYTES_AT_ONCE, Pace, Relay, Upstream


async def pair() -> tuple[asyncio.StreamReader, asyncio.StreamWriter, asyncio.Transport]:
    """Return the streams of a client, and the server's side of its connection."""
    accepted: asyncio.Future[asyncio.Transport] = asyncio.get_running_loop().create_future()

    class Accepted(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            transport.pause_reading()  # type: ignore[attr-defined]
            accepted.set_result(transport)  # type: ignore[arg-type]

    server = await asyncio.get_running_loop().create_server(Accepted, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    transport = await accepted
    server.close()
    return reader, writer, transport


async def test_end_of_one_direction_leaves_the_other_open() -> None:
    ended = asyncio.Event()
    reader, writer, one = await pair()
    other_reader, other_writer, other = await pair()
    Relay(ended.set, Pace(), upgraded=True).join(one, other)
    writer.write(b"question")
    writer.write_eof()
    assert await other_reader.read() == b"question"
    other_writer.write(b"answer")
    other_writer.write_eof()
    assert await reader.read() == b"answer"
    async with asyncio.timeout(PATIENCE):
        await ended.wait()
    for each in (writer, other_writer):
        each.close()


async def test_relay_to_a_side_with_an_unreported_end_ends_with_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop may have called the connection's former protocol already."""
    monkeypatch.setattr("syncer.kubelet.relay.LINGER_SECONDS", 0.1)
    ended = asyncio.Event()
    _, writer, one = await pair()
    _, other_writer, other = await pair()
    Relay(ended.set, Pace(), upgraded=True).join(one, other)
    other.set_protocol(asyncio.Protocol())
    other_writer.close()
    await asyncio.sleep(0.05)
    writer.close()
    async with asyncio.timeout(PATIENCE):
        await ended.wait()


async def test_last_bytes_arrive_before_the_end() -> None:
    ended = asyncio.Event()
    reader, writer, one = await pair()
    _, other_writer, other = await pair()
    Relay(ended.set, Pace(), upgraded=False).join(one, other)
    data = bytes(range(256)) * 8192
    other_writer.write(data)
    other_writer.close()
    assert await reader.readexactly(len(data)) == data
    writer.close()
    async with asyncio.timeout(PATIENCE):
        await ended.wait()


async def test_upstream_keeps_the_bytes_after_the_head() -> None:
    _, writer, transport = await pair()
    upstream = Upstream(1000)
    upstream.connection_made(transport)
    transport.set_protocol(upstream)
    transport.resume_reading()
    writer.write(b"HTTP/1.1 200 OK\r\nA: b\r\n")
    await asyncio.sleep(0.05)
    writer.write(b"\r\nrest")
    head = response_head(await upstream.head())
    assert (head.status, head.get("a"), upstream.rest()) == (200, "b", b"rest")
    upstream.abort()
    writer.close()


async def test_relay_that_has_ended_is_forgotten() -> None:
    ended = asyncio.Event()
    _, writer, one = await pair()
    _, other_writer, other = await pair()
    Relay(ended.set, Pace(), upgraded=True).join(one, other)
    del one, other
    for each in (writer, other_writer):
        each.close()
    await ended.wait()
    await asyncio.sleep(0.05)
    gc.collect()
    assert not [each for each in gc.get_objects() if isinstance(each, Relay)]


class Wire(asyncio.Transport):
    """A transport that refers to nothing but its protocol."""

    def __init__(self) -> None:
        super().__init__()
        self.protocol = cast("asyncio.Protocol", None)
        self.closing = False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = cast("asyncio.Protocol", protocol)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_closing(self) -> bool:
        return self.closing

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        self.closing = True

    abort = close

    def lose(self) -> None:
        """End as a connection of asyncio does."""
        self.closing = True
        self.protocol.connection_lost(None)
        self.set_protocol(asyncio.Protocol())


@pytest.mark.parametrize("upgraded", [True, False])
@pytest.mark.parametrize("is_notified", [True, False])
async def test_transports_of_a_relay_that_has_ended_are_freed_without_a_garbage_collection(
    upgraded: bool, is_notified: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes a megabyte with its buffers of TLS, and collections are rare."""
    monkeypatch.setattr("syncer.kubelet.relay.LINGER_SECONDS", 0.0)
    ended = asyncio.Event()
    one, other = Wire(), Wire()
    freed = weakref.ref(one), weakref.ref(other)
    Relay(ended.set, Pace(), upgraded=upgraded).join(one, other)
    other.lose()
    assert one.closing
    if is_notified:
        one.lose()
    one.set_protocol(asyncio.Protocol())
    async with asyncio.timeout(PATIENCE):
        await ended.wait()
    del one, other
    await asyncio.sleep(0)
    assert [each() for each in freed] == [None, None]


async def test_transport_of_a_lost_upstream_is_freed_in_spite_of_references() -> None:
    wire, upstream = Wire(), Upstream(1000)
    freed = weakref.ref(wire)
    upstream.connection_made(wire)
    upstream.connection_lost(None)
    upstream.abort()
    del wire
    assert freed() is None
    with pytest.raises(ConnectionError):
        await upstream.head()


async def test_relays_together_keep_to_their_pace_and_lose_nothing() -> None:
    """Without it, as many bytes as clients like pass in each step of the event loop, and syncers wait."""
    pace, sides, data = Pace(rate=4 << 20), [], bytes(range(256)) * (6 << 12)
    for _ in range(2):
        reader, writer, one = await pair()
        _, other_writer, other = await pair()
        Relay(lambda: None, pace, upgraded=True).join(one, other)
        other_writer.write(data)
        other_writer.close()
        sides.append((reader, writer))
    began = asyncio.get_running_loop().time()
    for found in await asyncio.gather(*(reader.read() for reader, _ in sides)):
        assert found == data
    took = asyncio.get_running_loop().time() - began
    assert took > (2 * len(data) - BYTES_AT_ONCE - (1 << 20)) / (4 << 20), "12 MB, of which 4 at once"
    for _, writer in sides:
        writer.close()


def test_body_of_a_refusal_may_come_in_chunks() -> None:
    head = b"HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert body_of(head + b"3\r\nabc\r\n") == (b"abc", False)
    assert body_of(head + b"3\r\nabc\r\n0\r\n\r\n") == (b"abc", True)
