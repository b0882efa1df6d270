"""A connection of a client, from its acceptance to its answer or relay."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from syncer.kubelet.errors import RefusedRequest
from syncer.kubelet.http import END, LONGEST_HEAD, MOST_HELD, MessageHead, reply, request_head

#: Seconds from the end of the handshake to the end of the request's head.
HEAD_SECONDS = 10.0
#: Seconds in which a client must have received a large answer.
TAKE_SECONDS = 15.0


class ClientConnection(asyncio.Protocol):
    """A connection with a single request, which ``answer`` answers.

    A relay may take the connection over; otherwise ``closed`` is called when it is lost.
    """

    def __init__(
        self,
        answer: Callable[["ClientConnection", MessageHead], Awaitable[None]],
        closed: Callable[["ClientConnection"], None],
    ) -> None:
        self.transport = cast("asyncio.Transport", None)
        #: The task that accepts the connection, until its handshake is done.
        self.accepting: asyncio.Task[None] | None = None
        self._answer = answer
        self._closed = closed
        #: True once the connection is lost.
        self.gone = False
        self._data = bytearray()
        #: The length of the head; -1 until it is complete.
        self._end = -1
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def certificate(self) -> Mapping[str, Any] | None:
        """The client's certificate, which the handshake has verified; None without one."""
        return self.transport.get_extra_info("peercert") or None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the request, for some seconds."""
        self.transport = cast("asyncio.Transport", transport)
        self._timer = asyncio.get_running_loop().call_later(HEAD_SECONDS, self.drop)

    def data_received(self, data: bytes) -> None:
        """Collect the head of the request, and the bytes that follow before it is answered."""
        searched = max(len(self._data) - len(END) + 1, 0)
        self._data += data
        if self._end >= 0:
            if len(self._data) - self._end > MOST_HELD:
                self.drop()
            return

        end = self._data.find(END, searched)
        if end >= 0:
            self._end = end + len(END)
            self._stop_timer()
            head = bytes(self._data[: self._end])
            self._task = asyncio.create_task(self._serve(head))
        elif len(self._data) > LONGEST_HEAD:
            self.reply(431, "the head of the request is too long")

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop answering: the client has disconnected."""
        self.gone = True
        self._stop_timer()
        if self._task is not None:
            self._task.cancel()
        self._closed(self)

    def rest(self) -> bytes:
        """Return what the client has sent after the head of its request."""
        return bytes(self._data[self._end :])

    def reply(self, status: int, text: str) -> None:
        """Answer with a text, and close the connection."""
        self.send(reply(status, f"{text}\n".encode()))

    def send(self, response: bytes) -> None:
        """Answer with a whole response, and close the connection."""
        if not self.transport.is_closing():
            self.transport.write(response)
            self.transport.close()

    async def deliver(self, response: bytes) -> None:
        """Answer with a large response, and wait until the connection is closed.

        It is dropped after :data:`TAKE_SECONDS`.
        """
        self.send(response)
        await asyncio.sleep(TAKE_SECONDS)
        self.drop()

    def drop(self) -> None:
        """Close the connection without an answer, also during its handshake."""
        if self.accepting is not None and not self.accepting.done():
            self.accepting.cancel()
        if self.transport is not None:
            self.transport.abort()

    async def _serve(self, head: bytes) -> None:
        try:
            await self._answer(self, request_head(head))
        except RefusedRequest as refused:
            self.reply(refused.status, refused.text)
        except BaseException:
            self.drop()
            raise

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
