"""A limit of requests a second in front of a transport, as Go's client has it (``QPS`` and ``Burst``)."""

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from syncer.clusters.transport import DeadlineExceeded, HttpRequest, HttpResponse, Stream, Transport


class TokenBucket:
    """Says how long to wait before the next request; pure, the time comes in as an argument."""

    def __init__(self, *, qps: float, burst: int, now: float) -> None:
        self._qps, self._burst = qps, max(float(burst), 1.0)
        self._tokens, self._at = self._burst, now

    def take(self, now: float) -> float:
        """Take a token, which may be one of the future, and tell how many seconds away it is."""
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._qps) - 1.0
        self._at = now
        return max(0.0, -self._tokens / self._qps)

    def give_back(self) -> None:
        """Return a token that was not used."""
        self._tokens += 1.0


class RateLimited:
    """A transport that sends at most ``qps`` requests a second after the first ``burst``. Watches are not counted."""

    def __init__(self, transport: Transport, *, qps: float, burst: int) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._bucket = TokenBucket(qps=qps, burst=burst, now=self._loop.time())

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Wait for a turn, then send; the wait is a part of the deadline."""
        delay = self._bucket.take(self._loop.time())
        if delay >= request.timeout:
            self._bucket.give_back()
            raise DeadlineExceeded(f"the limit of requests a second leaves no turn within {request.timeout:g} s")
        if delay:
            await asyncio.sleep(delay)
            request = replace(request, timeout=request.timeout - delay)
        return await self._transport.send(request)

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[Stream]:
        """Open a stream at once: watches are long and few."""
        return self._transport.stream(request)

    async def close(self) -> None:
        """End all connections."""
        await self._transport.close()
