"""The limit of requests per second, with a clock controlled by the test."""

import asyncio

import pytest
from cluster_servers import Call, plain_transport, serve

from syncer.clusters.rate_limit import RateLimited
from syncer.clusters.transport import DeadlineExceeded, HttpRequest

pytestmark = pytest.mark.real_time


async def test_turn_beyond_the_deadline_is_refused_at_once_and_not_counted() -> None:
    async with serve(Call.reply) as peer:
        now = 0.0
        transport = RateLimited(plain_transport(peer.endpoint()), qps=1, burst=2, clock=lambda: now)
        for _ in range(2):
            assert (await transport.send(HttpRequest("GET", "/"))).status == 200
        for _ in range(100):
            with pytest.raises(DeadlineExceeded, match=r"leaves no turn within 0\.01 s"):
                await transport.send(HttpRequest("GET", "/", timeout=0.01))
        assert len(peer.calls) == 2
        now = 0.9
        with pytest.raises(DeadlineExceeded, match=r"leaves no turn within 0\.01 s"):
            await transport.send(HttpRequest("GET", "/", timeout=0.01))
        now = 1.0
        assert (await transport.send(HttpRequest("GET", "/", timeout=60))).status == 200
        async with transport.stream(HttpRequest("GET", "/watch")) as stream:
            assert stream.status == 200
        await transport.close()


async def test_request_waits_for_its_turn() -> None:
    loop = asyncio.get_running_loop()
    async with serve(Call.reply) as peer:
        transport = RateLimited(plain_transport(peer.endpoint()), qps=50, burst=1, clock=lambda: 0.0)
        start = loop.time()
        await asyncio.gather(*(transport.send(HttpRequest("GET", "/")) for _ in range(4)))
        assert loop.time() - start > 2.9 / 50
        await transport.close()


async def test_urgent_request_takes_no_turn() -> None:
    async with serve(Call.reply) as peer:
        transport = RateLimited(plain_transport(peer.endpoint()), qps=1, burst=1, clock=lambda: 0.0)
        assert (await transport.send(HttpRequest("GET", "/"))).status == 200
        for _ in range(3):
            assert (await transport.send(HttpRequest("GET", "/", timeout=0.9, urgent=True))).status == 200
        await transport.close()
