"""A transport that sends the same read of several callers once, around another one."""

import asyncio
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import NamedTuple

from syncer.clusters import api_requests
from syncer.clusters.transport import HttpRequest, HttpResponse, Stream, Transport

#: Age in seconds up to which virtual clusters that begin at the same time share what they ask of
#: the host.
SHARED_SECONDS = 1.0


class _Read(NamedTuple):
    """What makes two reads the same."""

    path: str
    accept: str
    body: bytes | None


class SharedReads:
    """Sends a read once for all who make it within :data:`SHARED_SECONDS`.

    The virtual clusters of a daemon ask the host the same at their start: for its namespaces, its
    ranges of addresses, its selectors. An answer other than a success isn't kept, and no read that
    follows a write has an answer from before it.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._reads: dict[_Read, asyncio.Task[HttpResponse]] = {}

    def __bool__(self) -> bool:
        """Return True while an answer is under way, or kept."""
        return bool(self._reads)

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request, or return the answer to the same read of another caller.

        Raises:
            ConnectionFailed: There was no response.
        """
        if api_requests.is_dry_run(request):
            return await self._transport.send(request)
        if not api_requests.is_read(request):
            self._reads.clear()
            try:
                return await self._transport.send(request)
            finally:
                self._reads.clear()
        read = _Read(request.path, request.accept, request.body)
        answer = self._reads.get(read)
        if answer is None:
            loop = asyncio.get_running_loop()
            answer = loop.create_task(self._transport.send(request))
            self._reads[read] = answer
            answer.add_done_callback(partial(self._answered, read))
            loop.call_later(SHARED_SECONDS, self._forget, read, answer)
        return await asyncio.shield(answer)

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[Stream]:
        """Open a stream, which is never shared."""
        return self._transport.stream(request)

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    def _answered(self, read: _Read, answer: asyncio.Task[HttpResponse]) -> None:
        if answer.cancelled() or answer.exception() or answer.result().status >= 300:
            self._forget(read, answer)

    def _forget(self, read: _Read, answer: asyncio.Task[HttpResponse]) -> None:
        if self._reads.get(read) is answer:
            del self._reads[read]
