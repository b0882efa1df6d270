"""The limit of requests a second, on a clock that the test moves."""

import asyncio

import pytest
from cluster_servers import Call, plain_transport, serve

from syncer.clusters.rate_limit import RateLimited, TokenBucket
from syncer.clusters.transport import DeadlineExceeded, HttpRequest


def test_a_burst_and_then_the_steady_rate() -> None:
    bucket = TokenBucket(qps=10, burst=3, now=100.0)
    assert [round(bucket.take(100.0), 6) for _ in range(6)] == [0, 0, 0, 0.1, 0.2, 0.3]
    assert round(bucket.take(100.3), 6) == 0.1
    assert [round(bucket.take(200.0), 6) for _ in range(4)] == [0, 0, 0, 0.1]


def test_without_a_burst_one_request_goes_at_once() -> None:
    bucket = TokenBucket(qps=2, burst=0, now=0.0)
    assert [bucket.take(0.0), bucket.take(0.0)] == [0, 0.5]


def test_a_turn_beyond_the_deadline_is_refused_at_once_and_not_counted() -> None:
    async def main() -> None:
        async with serve(Call.reply) as peer:
            transport = RateLimited(plain_transport(peer.endpoint()), qps=1, burst=2)
            for _ in range(2):
                assert (await transport.send(HttpRequest("GET", "/"))).status == 200
            for _ in range(100):
                with pytest.raises(DeadlineExceeded, match=r"leaves no turn within 0\.01 s"):
                    await transport.send(HttpRequest("GET", "/", timeout=0.01))
            assert len(peer.calls) == 2
            assert (await transport.send(HttpRequest("GET", "/", timeout=5))).status == 200
            async with transport.stream(HttpRequest("GET", "/watch")) as stream:
                assert stream.status == 200
            await transport.close()

    asyncio.run(main())


def test_a_request_waits_for_its_turn() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with serve(Call.reply) as peer:
            transport = RateLimited(plain_transport(peer.endpoint()), qps=50, burst=1)
            start = loop.time()
            await asyncio.gather(*(transport.send(HttpRequest("GET", "/")) for _ in range(4)))
            assert loop.time() - start >= 3 / 50
            await transport.close()

    asyncio.run(main())
