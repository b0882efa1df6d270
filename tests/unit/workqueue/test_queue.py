"""Each request once, never in two workers, with delays, and fair between tenants."""

import asyncio
from collections import Counter

import pytest

from syncer.api import Key, SyncRequest
from syncer.workqueue.fair import QueueClosed
from syncer.workqueue.lane import LOW_SHARE
from syncer.workqueue.queue import FIRST_RETRY, LAST_RETRY, Queue


def request(name: str, cluster: str = "vc") -> SyncRequest:
    return SyncRequest(cluster, "configmaps", Key("shop", name))


A, B, C = (request(name) for name in "abc")


def queue(**weights: float) -> Queue:
    return Queue(clock=asyncio.get_running_loop().time, weights=weights, spread=lambda: 0.5)


def now() -> float:
    return asyncio.get_running_loop().time()


async def take(which: Queue) -> SyncRequest:
    return (await which.get())[0]


async def all_ready(which: Queue) -> list[SyncRequest]:
    """Return all requests that are handed out without waiting; each is left running."""
    found = []
    while which.depth():
        try:
            async with asyncio.timeout(0):
                found.append(await take(which))
        except TimeoutError:
            break
    return found


async def test_requests_come_in_order_and_each_once() -> None:
    waiting = queue()
    for each in (A, B, A, C, B):
        waiting.add(each)
    assert await all_ready(waiting) == [A, B, C]


async def test_request_is_not_handed_out_while_it_is_worked_on() -> None:
    waiting = queue()
    waiting.add(A)
    assert await take(waiting) == A
    waiting.add(A)
    waiting.add(A)
    assert waiting.depth() == 0
    waiting.done(A)
    assert await all_ready(waiting) == [A]
    waiting.done(A)
    assert waiting.is_idle()


async def test_time_of_the_first_change_goes_with_a_request() -> None:
    waiting = queue()
    waiting.add(A)
    await asyncio.sleep(1)
    waiting.add(A)
    assert await waiting.get() == (A, 0.0)
    await asyncio.sleep(1)
    waiting.add(A)
    await asyncio.sleep(1)
    waiting.done(A)
    assert await waiting.get() == (A, 2.0)


async def test_delayed_request_comes_in_its_time_and_the_earliest_time_counts() -> None:
    waiting = queue()
    waiting.add(A, after=30)
    waiting.add(A, after=10)
    waiting.add(A, after=20)
    waiting.add(B, after=15)
    assert (await take(waiting), now()) == (A, 10)
    waiting.done(A)
    assert (await take(waiting), now()) == (B, 15)
    waiting.done(B)
    await asyncio.sleep(60)
    assert waiting.depth() == 0
    assert waiting.delayed() == {}


async def test_change_does_not_wait_for_the_timer_and_ends_it() -> None:
    waiting = queue()
    waiting.add(A, after=300)
    waiting.add(A)
    assert (await take(waiting), now()) == (A, 0)
    waiting.done(A)
    await asyncio.sleep(400)
    assert waiting.is_idle()


async def test_timer_that_ends_while_the_request_is_worked_on_is_not_forgotten() -> None:
    waiting = queue()
    waiting.add(A)
    await take(waiting)
    waiting.add(A, after=5)
    await asyncio.sleep(10)
    assert waiting.depth() == 0
    waiting.done(A)
    assert await all_ready(waiting) == [A]


async def test_end_of_a_request_that_is_handed_out_again_ends_its_timer() -> None:
    waiting = queue()
    waiting.add(A)
    await take(waiting)
    waiting.add(A)
    waiting.add(A, after=5)
    waiting.done(A)
    assert waiting.delayed() == {}
    assert await all_ready(waiting) == [A]
    waiting.done(A)
    await asyncio.sleep(10)
    assert waiting.is_idle()


async def test_timers_that_changes_have_overtaken_take_no_room() -> None:
    waiting = queue()
    waiting.add(B, after=50)
    for _ in range(1000):
        waiting.add(A)
        await take(waiting)
        waiting.add(A, after=3000)
        waiting.done(A)
    assert len(waiting._timers) < 250
    assert (await take(waiting), now()) == (B, 50)
    assert (await take(waiting), now()) == (A, 3000)


async def test_retries_come_later_each_time_up_to_a_bound() -> None:
    waiting = queue()
    delays = [waiting.retry(A) for _ in range(14)]
    assert delays[:4] == [FIRST_RETRY * factor for factor in (1, 2, 4, 8)]
    assert delays[-1] == LAST_RETRY * 0.8
    assert waiting.failures(A) == 14
    assert waiting.retry(A, at_most=5) == 4
    waiting.forget(A)
    assert waiting.retry(A) == FIRST_RETRY


async def test_retry_waits_at_least_as_long_as_the_server_requests() -> None:
    waiting = queue()
    assert waiting.retry(A, at_least=7) == 7
    assert (await take(waiting), now()) == (A, 7)


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
async def test_delays_of_retries_stay_below_the_bound_and_vary(chance: float) -> None:
    waiting = Queue(clock=now, spread=lambda: chance)
    delays = [waiting.retry(A, at_most=8) for _ in range(20)]
    assert max(delays) == delays[-1] == 8 / 1.25 * (0.75 + chance / 2)
    assert delays[0] == FIRST_RETRY * (0.75 + chance / 2)


async def test_low_requests_come_after_the_others_of_their_cluster() -> None:
    waiting = queue()
    waiting.add(C, low=True)
    waiting.add(A)
    waiting.add(B)
    assert await all_ready(waiting) == [A, B, C]


async def test_low_request_that_is_added_normally_moves_up() -> None:
    waiting = queue()
    waiting.add(A, low=True)
    waiting.add(B, low=True)
    waiting.add(B)
    waiting.add(C)
    assert await all_ready(waiting) == [B, C, A]


async def test_low_request_waits_only_for_its_own_cluster_and_not_for_ever() -> None:
    waiting = queue()
    flood(waiting, "loud")
    waiting.add(request("low", "loud"), low=True)
    waiting.add(request("low", "calm"), low=True)
    first = [await take(waiting) for _ in range(2)]
    assert request("low", "calm") in first
    others = [await take(waiting) for _ in range(LOW_SHARE)]
    assert request("low", "loud") in others


async def test_low_requests_get_between_the_others_one_at_a_time() -> None:
    waiting = queue()
    flood(waiting, "loud", 100)
    for name in "ab":
        waiting.add(request(f"low-{name}", "loud"), low=True)
    names = [(await take(waiting)).key.name for _ in range(2 * LOW_SHARE)]
    assert [index for index, name in enumerate(names, 1) if "low" in name] == [LOW_SHARE, 2 * LOW_SHARE]


async def test_delayed_low_request_stays_low_unless_it_is_added_otherwise() -> None:
    waiting = queue()
    waiting.add(A, after=5, low=True)
    waiting.add(B, after=5, low=True)
    waiting.add(B, after=9)
    await asyncio.sleep(4)
    waiting.pause("vc")
    await asyncio.sleep(2)
    waiting.add(C)
    waiting.resume("vc")
    assert await all_ready(waiting) == [B, C, A]


async def test_requests_of_a_stopped_syncer_are_forgotten() -> None:
    waiting, other = queue(), SyncRequest("vc", "pods", Key("shop", "a"))
    for each in (A, other):
        waiting.retry(each)
    waiting.drop("vc", "configmaps")
    assert list(waiting.delayed()) == [other]
    assert (waiting.failures(A), waiting.failures(other)) == (0, 1)


async def test_retry_at_once_still_counts() -> None:
    waiting = queue()
    waiting.add(A)
    await take(waiting)
    assert waiting.retry(A, at_once=True) == 0
    waiting.done(A)
    assert await all_ready(waiting) == [A]
    assert waiting.failures(A) == 1


# -- waiting for requests --------------------------------------------------------------------------


async def test_waiter_gets_a_request_as_soon_as_there_is_one() -> None:
    waiting = queue()
    getters = [asyncio.create_task(take(waiting)) for _ in range(3)]
    await asyncio.sleep(1)
    for each in (A, B, C):
        waiting.add(each)
    assert {await getter for getter in getters} == {A, B, C}
    assert now() == 1


async def test_cancelled_waiter_that_was_already_woken_takes_no_request_with_it() -> None:
    waiting = queue()
    first, second = (asyncio.create_task(take(waiting)) for _ in range(2))
    await asyncio.sleep(0)
    waiting.add(A)
    first.cancel()
    async with asyncio.timeout(1):
        assert await second == A


async def test_waiters_are_notified_after_close() -> None:
    waiting = queue()
    getters = [asyncio.create_task(take(waiting)) for _ in range(2)]
    await asyncio.sleep(0)
    waiting.add(A, after=5)
    waiting.close()
    for getter in getters:
        with pytest.raises(QueueClosed):
            await getter
    waiting.add(B)
    with pytest.raises(QueueClosed):
        await waiting.get()
    await asyncio.sleep(10)


# -- between virtual clusters ----------------------------------------------------------------------


async def served(waiting: Queue, seconds: dict[str, float], rounds: int) -> Counter[str]:
    """Let one worker take so many requests, each of which takes as long as its cluster's do."""
    counts: Counter[str] = Counter()
    for _ in range(rounds):
        each = await take(waiting)
        counts[each.cluster] += 1
        waiting.done(each, seconds=seconds[each.cluster])
    return counts


def flood(waiting: Queue, cluster: str, count: int = 1000) -> None:
    for number in range(count):
        waiting.add(request(f"n{number}", cluster))


async def test_tenant_that_floods_the_queue_gets_no_more_than_its_share() -> None:
    waiting = queue()
    flood(waiting, "loud")
    flood(waiting, "calm", 20)
    counts = await served(waiting, {"loud": 0.01, "calm": 0.01}, 40)
    assert counts["calm"] == pytest.approx(20, abs=1)


async def test_slow_requests_count_by_the_time_that_they_take() -> None:
    waiting = queue()
    flood(waiting, "slow")
    flood(waiting, "fast")
    counts = await served(waiting, {"slow": 0.09, "fast": 0.01}, 200)
    assert counts["fast"] / counts["slow"] == pytest.approx(9, rel=0.1)


async def test_weight_gives_a_larger_share() -> None:
    waiting = queue(gold=3.0)
    flood(waiting, "gold")
    flood(waiting, "iron")
    counts = await served(waiting, {"gold": 0.01, "iron": 0.01}, 200)
    assert counts["gold"] / counts["iron"] == pytest.approx(3, rel=0.1)


async def test_lane_that_was_idle_has_no_credit_and_no_debt() -> None:
    waiting = queue()
    flood(waiting, "idle", 1)
    await served(waiting, {"idle": 0.05}, 1)
    flood(waiting, "busy")
    await served(waiting, {"busy": 0.05}, 500)
    flood(waiting, "idle")
    counts = await served(waiting, {"busy": 0.05, "idle": 0.05}, 100)
    assert counts["idle"] == pytest.approx(50, abs=2)


async def test_paused_cluster_keeps_its_requests_and_the_others_go_on() -> None:
    waiting = queue()
    waiting.pause("away")
    waiting.add(request("x", "away"))
    waiting.add(request("y", "away"), after=1)
    waiting.add(A)
    assert await all_ready(waiting) == [A]
    getter = asyncio.create_task(take(waiting))
    await asyncio.sleep(5)
    assert not getter.done()
    waiting.resume("away")
    assert {await getter, *await all_ready(waiting)} == {request("x", "away"), request("y", "away")}
    assert now() == 5


async def test_cluster_that_is_paused_while_it_has_requests_ready_hands_out_none() -> None:
    waiting = queue()
    waiting.add(A)
    waiting.pause("vc")
    assert await all_ready(waiting) == []
    waiting.resume("vc")
    waiting.resume("vc")
    assert await all_ready(waiting) == [A]


async def test_requests_after_a_pause_wake_all_waiters() -> None:
    waiting = queue()
    waiting.pause("vc")
    getters = [asyncio.create_task(take(waiting)) for _ in range(3)]
    for each in (A, B, C):
        waiting.add(each)
    await asyncio.sleep(1)
    waiting.resume("vc")
    async with asyncio.timeout(1):
        assert {await getter for getter in getters} == {A, B, C}


async def test_cluster_that_leaves_takes_its_requests_delays_failures_and_limits_along() -> None:
    waiting = queue()
    gone = [request(str(number), "gone") for number in range(6)]
    waiting.limit("gone", "configmaps", concurrency=2)
    for each in gone:
        waiting.add(each)
    assert [await take(waiting), await take(waiting)] == gone[:2]
    waiting.add(gone[0])
    waiting.retry(gone[1])
    waiting.add(A)
    waiting.leave("gone")
    assert await all_ready(waiting) == [A]
    assert (waiting.depth(), dict(waiting.delayed()), waiting.failures(gone[1])) == (0, {}, 0)
    for each in gone[:2]:
        waiting.done(each, seconds=100.0)
    await asyncio.sleep(100)
    assert await all_ready(waiting) == []
    for each in gone:
        waiting.add(each)
    assert await all_ready(waiting) == gone, "it comes back without limits, and without a debt"
    assert set(waiting.depths()) == {"vc", "gone"}
    waiting.leave("gone")
    assert set(waiting.depths()) == {"vc"}
    waiting.leave("unknown")


async def test_cluster_that_leaves_while_paused_is_not_paused_when_it_returns() -> None:
    waiting = queue()
    waiting.pause("vc")
    waiting.add(A)
    waiting.leave("vc")
    waiting.add(B)
    assert await all_ready(waiting) == [B]
