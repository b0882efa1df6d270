"""An HTTP/1.1 connection for a response that is read line by line: a watch."""

import asyncio
import ssl
from collections.abc import Mapping

from syncer.clusters.http1 import NEVER, Http1Connection
from syncer.clusters.large_replies import LARGE_REPLY, LargeReplies
from syncer.clusters.sockets import read
from syncer.clusters.transport import (
    ConnectionFailed,
    Headers,
    LineSplitter,
    ReplyTooLarge,
)


class LineStream(Http1Connection):
    """A connection for a watch: yields batches of lines as they arrive."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        access_tls: ssl.SSLContext | None = None,
        replies: LargeReplies | None = None,
    ) -> None:
        super().__init__(loop, access_tls, replies)
        self.status = 0
        self.idle_timeout: float | None = None
        self._received = LineSplitter(self._room)
        self._pieces: list[bytes] = []
        self._ended = False
        self._paused = False
        self._more = False
        self._body_size = 0
        self._waiter: asyncio.Future[None] | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the response; names are lower-case."""
        return Headers(self._headers)

    async def start(self, data: bytes, *, deadline: float) -> None:
        """Send the request, and wait for the head of the response.

        ``deadline`` is on the loop's clock.
        """
        self._transport.write(data)
        while not self.status:
            await self._wait(deadline)

    def __aiter__(self) -> "LineStream":
        return self

    async def __anext__(self) -> list[bytes]:
        if self._more:
            await asyncio.sleep(0)  # other tasks run between two batches that arrived together
        while not self._received.ready:
            if self._ended:
                raise StopAsyncIteration
            await self._wait(self._idle_deadline())
        lines = self._received.take()
        self._more = bool(self._received.ready)
        if self._paused and self._received.size <= LARGE_REPLY:
            self._paused = False
            self._read_on()
        if self._large is not None and not self._received.has_large():
            self._end_large()
        return lines

    async def body(self) -> bytes:
        """Read the whole body, for a status other than 200."""
        while not self._ended:
            await self._wait(self._idle_deadline())
        return b"".join(self._pieces)

    def _idle_deadline(self) -> float:
        if self.idle_timeout is None:
            return NEVER
        return self._loop.time() + self.idle_timeout

    async def _wait(self, deadline: float) -> None:
        if self._failure is not None:
            raise self._failure
        self._waiter = self._loop.create_future()
        if deadline != NEVER:
            self._deadline.set(deadline)
        try:
            await self._waiter
        finally:
            self._waiter = None
            self._deadline.clear()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def buffer_updated(self, nbytes: int) -> None:
        """Parse a part of a response."""
        super().buffer_updated(nbytes)
        if self.status == 200 and self._failure is None:
            try:
                self._split()
            except ConnectionFailed as error:
                self.fail(error)
        self._wake()

    def _split(self) -> None:
        for piece in self._pieces:
            self._received.feed(piece)
        self._pieces.clear()
        if self._ended:
            self._received.finish()
        elif self._received.size > LARGE_REPLY and not self._paused:
            self._paused = True
            read(self._transport, on=False)

    def _read_on(self) -> None:
        waits = self._large is not None and self._large.waits
        if not self._paused and not waits:
            super()._read_on()

    def on_headers_complete(self) -> None:
        """Handle the complete head of a response."""
        status = self._parser.get_status_code()
        self.status = status if status >= 200 else 0
        self._head_size = 0

    def on_body(self, piece: bytes) -> None:
        """Add a piece of the body."""
        self._pieces.append(piece)
        self._head_size = 0
        if self.status != 200:
            self._body_size += len(piece)
            if self._body_size > LARGE_REPLY:
                self.fail(ReplyTooLarge(LARGE_REPLY))

    def on_message_complete(self) -> None:
        """Handle the end of the response."""
        self._head_size = 0
        self._ended = bool(self.status)

    def _lost(self, failure: ConnectionFailed) -> None:
        if self.status and self._failure is None and self._until_closed():
            self._ended = True
            self._received.finish()
        elif not self._ended:
            self._failure = failure
        self._wake()
