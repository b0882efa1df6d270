"""A limit of requests per second around a transport, like Go's client (``QPS`` and ``Burst``)."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from syncer.clusters.transport import DeadlineExceeded, HttpRequest, HttpResponse, Stream, Transport
from syncer.token_bucket import TokenBucket


class RateLimited:
    """A transport that sends at most ``qps`` requests per second after the first ``burst``.

    Watches are not limited. ``clock`` returns seconds; the event loop's by default.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        qps: float,
        burst: int,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._transport = transport
        self._clock = clock or asyncio.get_running_loop().time
        self._bucket = TokenBucket(rate=qps, burst=burst, now=self._clock())

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Wait for a token, then send; the wait is part of the deadline.

        An urgent request takes none.
        """
        if request.urgent:
            return await self._transport.send(request)
        delay = self._bucket.take(self._clock())
        if delay >= request.timeout:
            self._bucket.give_back()
            raise DeadlineExceeded(
                f"the limit of requests a second leaves no turn within {request.timeout:g} s",
            )
        if delay:
            await asyncio.sleep(delay)
            request = replace(request, timeout=request.timeout - delay)
        return await self._transport.send(request)

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[Stream]:
        """Open a stream at once: watches are long and few."""
        return self._transport.stream(request)

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()
