"""A transport that sends a write only while it may still be made, and ends it in time."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from syncer.api.errors import NotConnected
from syncer.clusters.api_requests import is_dry_run, is_read
from syncer.clusters.transport import DeadlineExceeded, HttpRequest, HttpResponse, Stream, Transport


class Fenced:
    """Sends reads always, and writes only while this process may write.

    It may until ``until()``, in seconds of ``clock()``, when another process may take the right to
    write; a write has ended by then. The time of a write includes its wait for a rate limit and for
    a connection. The clock is read once more right before the write goes out, because after a
    freeze of the process a connection may become free before the timer fires that ends the wait.
    """

    def __init__(
        self,
        transport: Transport,
        until: Callable[[], float],
        clock: Callable[[], float],
    ) -> None:
        self._transport = transport
        self._until = until
        self._clock = clock

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request.

        Raises:
            NotConnected: It is a write, and none may be sent.
            DeadlineExceeded: There was no response in time.
        """
        if is_read(request) or is_dry_run(request):
            return await self._transport.send(request)
        left = self._until() - self._clock()
        if left <= 0:
            raise NotConnected(
                "another daemon may lead by now; nothing is written until this one leads again",
            )
        request = request.while_allowed(self._may_send)
        if left >= request.timeout:
            return await self._transport.send(request)
        try:
            async with asyncio.timeout(left):
                return await self._transport.send(request)
        except TimeoutError as error:
            raise DeadlineExceeded("no response before the end of the Lease") from error

    def _may_send(self) -> bool:
        return self._clock() < self._until()

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[Stream]:
        """Watch."""
        return self._transport.stream(request)

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()
