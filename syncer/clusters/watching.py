"""An open watch: yields batches of events as they arrive, and converts failures to our errors."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Self

from syncer.api.errors import Expired
from syncer.clusters import errors
from syncer.clusters.codec import NULL, UNREADABLE, DecodeError, WatchEvent, watch_event
from syncer.clusters.errors import ClusterOrigin, FailedRequest
from syncer.clusters.transport import (
    ConnectionFailed,
    HttpRequest,
    HttpResponse,
    ReplyTooLarge,
    Stream,
    Transport,
)


class WatchStream:
    """An open watch.

    ``async with`` opens it, ``async for`` yields lists of events until the server ends it.

    Raises:
        ClusterError: The watch is refused.
        Unreachable: The connection was lost.
        Expired: An event is too large to be read. A list goes around it.
    """

    def __init__(
        self,
        transport: Transport,
        request: HttpRequest,
        *,
        where: FailedRequest,
        origin: ClusterOrigin,
        observe: Callable[[int], None],
    ) -> None:
        self._context: AbstractAsyncContextManager[Stream] = transport.stream(request)
        self._where = where
        self._origin = origin
        self._observe = observe
        self._batches: AsyncIterator[list[bytes]] | None = None

    async def __aenter__(self) -> Self:
        try:
            stream = await self._context.__aenter__()
        except ConnectionFailed as failure:
            self._observe(0)
            raise errors.from_failure(failure, self._where, self._origin) from failure
        self._observe(stream.status)
        if stream.status != 200:
            await self._refuse(stream)
        self._batches = aiter(stream)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._context.__aexit__(kind, error, traceback)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[WatchEvent]:
        if self._batches is None:
            raise RuntimeError("a watch is opened by 'async with'")
        try:
            lines = await anext(self._batches)
        except ReplyTooLarge as failure:
            raise Expired(f"{self._where}: {failure}", **self._where.fields()) from failure
        except ConnectionFailed as failure:
            raise errors.from_failure(failure, self._where, self._origin) from failure
        events: list[WatchEvent] = []
        for line in lines:
            try:
                events.append(watch_event(line))
            except DecodeError:
                events.append(_NO_EVENT)
        return events

    async def _refuse(self, stream: Stream) -> None:
        try:
            reply = HttpResponse(stream.status, stream.headers, await stream.body())
        except ConnectionFailed as failure:
            raise errors.from_failure(failure, self._where, self._origin) from failure
        finally:
            await self._context.__aexit__(None, None, None)
        raise errors.from_response(reply, self._where, self._origin)


#: Stands for a line that is no event.
_NO_EVENT = WatchEvent(UNREADABLE, NULL)
