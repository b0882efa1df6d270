"""The connection pool: who gets a slot, and the fate of abandoned slots and connections."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
from cluster_servers import PATIENCE, Call, Peer, serve

from syncer.clusters import pool as pool_module
from syncer.clusters.credentials import Access
from syncer.clusters.http1 import Exchange
from syncer.clusters.pool import Pool
from syncer.clusters.transport import DeadlineExceeded

pytestmark = pytest.mark.real_time

SOON = 1e9


@asynccontextmanager
async def pool_of(size: int) -> AsyncIterator[tuple[Pool, Peer]]:
    loop = asyncio.get_running_loop()
    async with serve(Call.reply) as peer:

        async def open_connection(access: Access, deadline: float) -> Exchange:
            _, connection = await loop.create_connection(lambda: Exchange(loop, access.tls), "127.0.0.1", peer.port)
            return connection

        pool = Pool(loop, open_connection, size=size)
        try:
            yield pool, peer
        finally:
            pool.close()


async def test_last_connection_used_goes_first() -> None:
    async with pool_of(3) as (pool, _):
        one, two = await pool.acquire(Access(), deadline=SOON), await pool.acquire(Access(), deadline=SOON)
        pool.release(one)
        pool.release(two)
        assert await pool.acquire(Access(), deadline=SOON) is two
        assert await pool.acquire(Access(), deadline=SOON) is one


async def test_waiter_that_waited_longest_is_served_first() -> None:
    async with pool_of(1) as (pool, peer):
        connection = await pool.acquire(Access(), deadline=SOON)
        waiting = [asyncio.create_task(pool.acquire(Access(), deadline=SOON)) for _ in range(3)]
        await asyncio.sleep(0)
        for task in waiting:
            pool.release(connection)
            assert await task is connection
        assert [task.done() for task in waiting] == [True] * 3
        assert peer.connections == 1


async def test_slot_of_a_request_cancelled_at_the_same_moment_is_not_lost() -> None:
    async with pool_of(1) as (pool, _):
        connection = await pool.acquire(Access(), deadline=SOON)
        waiting = asyncio.create_task(pool.acquire(Access(), deadline=SOON))
        await asyncio.sleep(0)
        pool.release(connection)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        async with asyncio.timeout(PATIENCE):
            assert await pool.acquire(Access(), deadline=SOON) is connection


async def test_place_is_free_again_when_connecting_failed() -> None:
    tries = 0

    async def fail(access: Access, deadline: float) -> Exchange:
        nonlocal tries
        tries += 1
        raise ConnectionRefusedError

    pool = Pool(asyncio.get_running_loop(), fail, size=1)
    for _ in range(3):
        with pytest.raises(ConnectionRefusedError):
            await pool.acquire(Access(), deadline=SOON)
    assert tries == 3


async def test_connection_that_was_idle_for_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "IDLE_SECONDS", -1.0)
    async with pool_of(1) as (pool, _):
        first = await pool.acquire(Access(), deadline=SOON)
        pool.release(first)
        assert await pool.acquire(Access(), deadline=SOON) is not first


async def test_only_some_idle_connections_with_stretched_buffers_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool_module, "STRETCHED", 2)
    async with pool_of(8) as (pool, _):
        all_of_them = [await pool.acquire(Access(), deadline=SOON) for _ in range(8)]
        for connection in all_of_them[::2]:
            connection.stretched = True
        for connection in all_of_them:
            pool.release(connection)
        assert [one.open for one in all_of_them] == [True, True, True, True, False, True, False, True]
        again = [await pool.acquire(Access(), deadline=SOON) for _ in range(6)]
        assert again == [all_of_them[at] for at in (7, 5, 3, 2, 1, 0)]
        for connection in again:
            pool.release(connection)
        assert all(one.open for one in again)


async def released(pool: Pool, ages: Sequence[float]) -> list[Exchange]:
    """Connections that have been idle for so many seconds, the oldest first."""
    connections = [await pool.acquire(Access(), deadline=SOON) for _ in ages]
    for age, connection in zip(ages, connections, strict=True):
        pool.release(connection)
        connection.idle_since -= age
    return connections


async def use(pool: Pool) -> None:
    pool.release(await pool.acquire(Access(), deadline=SOON))


OLD = pool_module.IDLE_SECONDS + 1
SPARE = pool_module.SPARE_SECONDS + 1


async def test_connections_without_use_are_closed_after_a_minute_oldest_first() -> None:
    async with pool_of(4) as (pool, _):
        connections = await released(pool, [OLD + 1, OLD, SPARE, 0])
        await use(pool)
        assert [one.open for one in connections] == [False, False, True, True]


async def test_connections_without_use_are_closed_sooner_while_all_pools_have_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool_module, "SPARES", 5)
    async with pool_of(4) as (pool, _), pool_of(4) as (another, _):
        mine = await released(pool, [SPARE, SPARE, 0])
        theirs = await released(another, [0, 0, 0])
        await use(pool)
        assert [one.open for one in mine] == [False, True, True], "five are left"
        assert all(one.open for one in theirs)
        theirs[0].idle_since -= SPARE
        await use(another)
        assert theirs[0].open


async def test_connection_stays_open_for_some_seconds_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    async with pool_of(4) as (pool, _):
        connections = await released(pool, [SPARE, SPARE - 2, 0])
        monkeypatch.setattr(pool_module, "SPARES", 0)
        await use(pool)
        assert [one.open for one in connections] == [False, True, True]


async def test_connection_with_stretched_buffers_counts_for_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "SPARES", pool_module.STRETCHED_WEIGHT + 1)
    async with pool_of(4) as (pool, _):
        connections = [await pool.acquire(Access(), deadline=SOON) for _ in range(3)]
        connections[0].stretched = True
        for connection in connections[:2]:
            pool.release(connection)
            connection.idle_since -= SPARE
        pool.release(connections[2])
        assert [one.open for one in connections] == [False, True, True]


@pytest.mark.parametrize("leaves", [Pool.drop_idle, Pool.close])
async def test_closed_connections_leave_room_to_the_spare_ones_of_others(
    leaves: Callable[[Pool], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool_module, "SPARES", 3)
    async with pool_of(4) as (pool, _), pool_of(4) as (another, _):
        await released(another, [0, 0, 0])
        leaves(another)
        mine = await released(pool, [SPARE, SPARE, 0])
        await use(pool)
        assert [one.open for one in mine] == [True] * 3


async def test_connection_is_there_at_once_only_with_a_free_slot_and_its_own_tls() -> None:
    tls = ssl.create_default_context()
    async with pool_of(1) as (pool, _):
        assert pool.at_once(None) is None, "no connection is open"
        connection = await pool.acquire(Access(), deadline=SOON)
        pool.release(connection)
        assert pool.at_once(None) is connection
        urgent = await pool.acquire(Access(), deadline=SOON, urgent=True)
        pool.release(urgent)
        assert pool.at_once(None) is None, "the only slot is taken, though a connection is idle"
        pool.release(connection)
        assert pool.at_once(tls) is None
        async with asyncio.timeout(PATIENCE):
            assert await pool.acquire(Access(), deadline=SOON) not in (connection, urgent)


async def test_connection_that_is_used_now_and_then_stays_open() -> None:
    async with pool_of(4) as (pool, peer):
        for _ in range(3):
            connection = await pool.acquire(Access(), deadline=SOON)
            pool.release(connection)
            connection.idle_since -= pool_module.SPARE_SECONDS * 2
        assert peer.connections == 1


async def test_urgent_request_gets_a_connection_though_all_are_busy() -> None:
    async with pool_of(1) as (pool, peer):
        busy = await pool.acquire(Access(), deadline=SOON)
        waiting = asyncio.create_task(pool.acquire(Access(), deadline=SOON))
        await asyncio.sleep(0)
        urgent = await pool.acquire(Access(), deadline=SOON, urgent=True)
        assert urgent is not busy
        assert not waiting.done()
        pool.release(urgent)
        assert await waiting is urgent, "a free connection isn't left idle"
        pool.release(busy)
        pool.release(urgent)
        for _ in range(2):
            await pool.acquire(Access(), deadline=SOON)
            with pytest.raises(DeadlineExceeded):
                await pool.acquire(Access(), deadline=0.0)
            pool.release(busy)
        assert peer.connections == 2
