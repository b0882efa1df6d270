"""An HTTP/1.1 connection on asyncio.

httptools parses the responses, and a lazy timer enforces the deadlines.
"""

import asyncio
import io
import ssl
from collections.abc import Callable
from typing import cast

import httptools

from syncer.byte_budget import ByteBudget
from syncer.clusters.large_replies import LARGE_REPLY, LargeReplies, LargeReply
from syncer.clusters.read_buffer import read_buffer
from syncer.clusters.sockets import read
from syncer.clusters.transport import (
    LARGEST_REPLY,
    ConnectionFailed,
    DeadlineExceeded,
    Headers,
    HttpResponse,
    ReplyTooLarge,
)

#: A deadline that never comes.
NEVER = float("inf")
#: Largest head, and largest trailer, of a response that is read, in bytes; API servers send some
#: hundred.
LARGEST_HEAD = 256 << 10
#: Largest part of a body that is written at once, in bytes.
LARGEST_WRITE = 64 << 10
#: Bytes of a response after which the buffers of TLS take much more memory than those of a new
#: connection: 0.6 MB.
STRETCHING = 128 << 10


class Deadline:
    """A timer that is set for each request and cleared after it, and seldom touches the event loop.

    Clearing leaves the loop's timer in place; it finds nothing to do, or moves to the deadline set
    meanwhile.
    """

    __slots__ = ("_armed", "_at", "_expired", "_handle", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, expired: Callable[[], None]) -> None:
        self._loop = loop
        self._expired = expired
        self._at = NEVER
        self._armed = NEVER
        self._handle: asyncio.TimerHandle | None = None

    def set(self, at: float) -> None:
        """Call ``expired`` at this time of the loop's clock unless cleared before."""
        self._at = at
        if at < self._armed:
            self.close()
            self._arm(at)

    def clear(self) -> None:
        """Clear the deadline."""
        self._at = NEVER

    def close(self) -> None:
        """Cancel the loop's timer."""
        if self._handle is not None:
            self._handle.cancel()
        self._handle = None
        self._armed = NEVER

    def _arm(self, at: float) -> None:
        self._armed = at
        self._handle = self._loop.call_at(at, self._fire)

    def _fire(self) -> None:
        self._handle = None
        self._armed = NEVER
        if self._at == NEVER:
            return
        if self._loop.time() < self._at:
            self._arm(self._at)
        else:
            self._at = NEVER
            self._expired()


class _Gone(asyncio.Transport):
    def is_closing(self) -> bool:
        return True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def close(self) -> None:
        pass

    abort = resume_reading = pause_reading = close


#: Takes the place of the transport of a protocol whose connection is lost. Protocols are in
#: reference cycles, and up to 0.6 MB of buffers of TLS would stay in memory until a garbage
#: collection, which is rare.
GONE = _Gone()


class Http1Connection(asyncio.BufferedProtocol):
    """The common base of an exchange and a watch.

    It has the parser, the head of the response, and the end of the connection.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        access_tls: ssl.SSLContext | None = None,
        replies: LargeReplies | None = None,
    ) -> None:
        self.tls = access_tls
        self.answered = False
        self.open = False
        self._loop = loop
        self._buffer = read_buffer(loop)
        #: The headers of the response, of which there are some ten, but hardly any is ever read. So
        #: the parser hands them to the dictionary itself, which takes half as long as a method of
        #: ours.
        self._headers: dict[bytes, bytes] = {}
        self.on_header = self._headers.setdefault
        #: Bytes that have come since the last end of a head and the last part of a body: those of a
        #: head or a trailer, which the parser keeps.
        self._head_size = 0
        self._parser = httptools.HttpResponseParser(self)
        self._deadline = Deadline(loop, self._expired)
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._failure: ConnectionFailed | None = None
        self._replies = replies or LargeReplies(ByteBudget())
        #: The reply that arrives, once it is large.
        self._large: LargeReply | None = None

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Handle the open connection."""
        self._transport = cast("asyncio.Transport", transport)
        self.open = True

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer into which asyncio reads a part of a response."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Parse a part of a response, which is parsed before another connection is read."""
        self.answered = True
        self._head_size += nbytes
        try:
            self._parser.feed_data(self._buffer[:nbytes])
            if self._head_size > LARGEST_HEAD:
                raise ConnectionFailed(
                    f"the head or trailer of the reply is larger than {LARGEST_HEAD >> 10} KiB",
                )
        except httptools.HttpParserError as error:
            self.fail(ConnectionFailed(f"the reply is not HTTP/1.1: {error}"))
        except ConnectionFailed as error:
            self.fail(error)

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify the waiters for a response."""
        self.open = False
        self._deadline.close()
        self._transport = GONE
        self._end_large()
        reason = exc or "closed by the server"
        self._lost(self._failure or ConnectionFailed(f"connection lost: {reason}"))

    # Called by the parser.

    def on_message_begin(self) -> None:
        """Begin a new response."""
        self._headers.clear()

    # Implemented by subclasses.

    def _expired(self) -> None:
        why = "no reply in time"
        if self._large is not None and self._large.waits:
            why = (
                "a large reply could not be read in time,"
                " as others take the memory for large replies"
            )
        self.fail(DeadlineExceeded(why))

    def _lost(self, failure: ConnectionFailed) -> None:
        raise AssertionError

    # Called by users.

    def fail(self, failure: ConnectionFailed) -> None:
        """Close the connection; requests in progress raise this failure."""
        self._failure = failure
        self.open = False
        self._transport.abort()
        self._lost(failure)

    def hand_over(self, heir: "Http1Connection") -> None:
        """Let another object read from this connection, which has no request in progress."""
        self.open = False
        self._deadline.close()
        heir._transport = self._transport
        heir.open = True
        self._transport.set_protocol(heir)
        self._transport = GONE

    def close(self) -> None:
        """Close the connection; a request in progress fails."""
        self.open = False
        self._deadline.close()
        self._transport.close()

    def abort(self) -> None:
        """Close the connection without waiting for the other side."""
        self.open = False
        self._deadline.close()
        self._transport.abort()

    # What a large reply takes.

    def _room(self, size: int) -> int:
        """Return how many bytes a reply may have that has come to so many.

        If these are no more, it isn't read on until there is room for them.
        """
        if self._large is None:
            self._large = LargeReply(self._replies, self._read_on)
        self._large.grow(size)
        if self._large.waits:
            read(self._transport, on=False)
        return self._large.most

    def _read_on(self) -> None:
        read(self._transport, on=True)

    def _end_large(self) -> None:
        """Give back what a large reply takes."""
        large = self._large
        if large is None:
            return
        self._large = None
        has_waited = large.waits
        large.end()
        if has_waited:
            self._read_on()

    def _until_closed(self) -> bool:
        """Return True if the body of this response ends with the connection."""
        headers = Headers(self._headers)
        if "content-length" in headers:
            return False
        return headers.get("transfer-encoding", "").lower() != "chunked"


class Exchange(Http1Connection):
    """A keep-alive connection with a single request at a time."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        access_tls: ssl.SSLContext | None = None,
        replies: LargeReplies | None = None,
    ) -> None:
        super().__init__(loop, access_tls, replies)
        self.used_before = False
        self._used = False
        #: A response has stretched the buffers of the connection.
        self.stretched = False
        self.idle_since = 0.0
        self._waiter: asyncio.Future[HttpResponse] | None = None
        #: The body so far: a piece, mostly all of it, or several in a BytesIO, which hands them out
        #: without a copy. The idle connection keeps none.
        self._body: bytes | io.BytesIO = b""
        self._most = LARGEST_REPLY
        #: The bytes that the body may have before there must be room for more.
        self._room_for = LARGE_REPLY
        self._head_only = False
        self._complete_head = False

    async def exchange(
        self,
        head: bytes,
        body: bytes = b"",
        *,
        deadline: float,
        head_only: bool = False,
        most: int = LARGEST_REPLY,
    ) -> HttpResponse:
        """Send a request and wait for its response until ``deadline`` on the loop's clock.

        Raises:
            ReplyTooLarge: The body is larger than ``most`` bytes.
        """
        self.answered = False
        self._complete_head = False
        self.used_before = self._used
        self._used = True
        self._head_only = head_only
        self._most = most
        self._room_for = min(most, LARGE_REPLY)
        waiter: asyncio.Future[HttpResponse] = self._loop.create_future()
        self._waiter = waiter
        self._deadline.set(deadline)
        if len(body) <= LARGEST_WRITE:
            self._transport.write(head + body)
        else:
            self._write_in_parts(head, body)
        try:
            return await waiter
        finally:
            self._waiter = None
            self._deadline.clear()
            if self._large is not None:
                self._end_large()
            # Else its exception and this frame would refer to each other, and both stay for long.
            del waiter

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify the waiter for a response, and forget the reason."""
        super().connection_lost(exc)
        self._failure = None

    def on_headers_complete(self) -> None:
        """Handle the complete head of a response."""
        self._complete_head = True
        self._head_size = 0
        if self._head_only:
            done = self._parser
            self._parser = httptools.HttpResponseParser(self)
            self._answer(done, b"")

    def on_body(self, piece: bytes) -> None:
        """Add a piece of the body."""
        self._head_size = 0
        if not self._body:
            self._body = piece
            size = len(piece)
        else:
            size = self._append(piece)
        if size > self._room_for and self.open:
            self._outgrow(size)

    def on_message_complete(self) -> None:
        """Deliver the complete response."""
        self._head_size = 0
        if self._parser.get_status_code() < 200:
            self._complete_head = False
            return
        body = self._take_body()
        if len(body) > STRETCHING:
            self.stretched = True
        self._answer(self._parser, body)

    def _append(self, piece: bytes) -> int:
        """Add a further piece of the body. Return the bytes of all pieces."""
        if isinstance(self._body, bytes):
            first = self._body
            self._body = io.BytesIO()
            self._body.write(first)
        self._body.write(piece)
        return self._body.tell()

    def _take_body(self) -> bytes:
        """Return the body, and keep it no longer."""
        body = self._body
        self._body = b""
        if isinstance(body, bytes):
            return body
        return body.getvalue()

    def _outgrow(self, size: int) -> None:
        """Handle a body that has come to more bytes than there was room for."""
        if size > self._most:
            self._body = b""
            self.fail(ReplyTooLarge(self._most))
        else:
            self._room_for = min(self._room(size), self._most)

    def _write_in_parts(self, head: bytes, body: bytes) -> None:
        """Write a large request.

        The buffers of TLS stay as large as the largest write of their connection.
        """
        self._transport.write(head)
        rest = memoryview(body)
        while rest:
            self._transport.write(rest[:LARGEST_WRITE])
            rest = rest[LARGEST_WRITE:]

    def _answer(self, parser: httptools.HttpResponseParser, body: bytes) -> None:
        if not parser.should_keep_alive():
            self.close()
        if self._waiter is None:
            self.close()
        elif not self._waiter.done():
            self._waiter.set_result(
                HttpResponse(parser.get_status_code(), Headers(self._headers), body),
            )

    def _lost(self, failure: ConnectionFailed) -> None:
        waiter = self._waiter
        if waiter is None or waiter.done():
            return
        if self._failure is None and self._complete_head and self._until_closed():
            status = self._parser.get_status_code()
            waiter.set_result(HttpResponse(status, Headers(self._headers), self._take_body()))
        else:
            waiter.set_exception(failure)
