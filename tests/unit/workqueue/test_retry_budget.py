"""The retries of a syncer in a virtual cluster are admitted at a bounded rate."""

import asyncio

import pytest
from fair_scene import Scene, request

from syncer.api import SyncRequest
from syncer.workqueue.queue import FIRST_RETRY, LAST_RETRY
from syncer.workqueue.retries import RETRIES_AT_ONCE, RETRIES_PER_SECOND

MANY = 900


def scene(*failing: str) -> Scene:
    made = Scene()
    made.join("vc", "other", seconds=0.001)
    made.failing |= set(failing)
    return made


async def test_retries_of_a_cluster_where_every_object_fails_are_bounded() -> None:
    site = scene("vc")
    site.flood("vc", MANY)
    async with site.working():
        await asyncio.sleep(100)
    retried = site.tried["vc"] - MANY
    assert retried == pytest.approx(RETRIES_AT_ONCE + 100 * RETRIES_PER_SECOND, rel=0.02)


async def test_few_failing_objects_are_retried_with_their_exponential_delays_alone() -> None:
    site = scene("vc")
    site.flood("vc", 5)
    async with site.working():
        await asyncio.sleep(FIRST_RETRY * (1 + 2 + 4 + 8) + 0.01)
        assert site.tried["vc"] == 5 * 5
        await asyncio.sleep(FIRST_RETRY * 14)
        assert site.tried["vc"] == 5 * 5


async def test_budget_is_of_a_cluster_and_kind_alone() -> None:
    site = scene("vc", "other")
    site.flood("vc", MANY)
    async with site.working():
        await asyncio.sleep(30)
        before = site.tried["other"]
        site.queue.add(request("x", "other"))
        await asyncio.sleep(FIRST_RETRY * 3 + 0.02)
        assert site.tried["other"] == before + 3
        of_vc = site.tried["vc"]
        site.queue.retry(request("x", "vc", "secrets"))
        await asyncio.sleep(FIRST_RETRY + 0.01)
        assert site.queue.failures(request("x", "vc", "secrets")) == 2
        assert site.tried["vc"] <= of_vc + 2


async def test_first_failure_is_retried_before_repeated_ones() -> None:
    site = scene("vc")
    site.flood("vc", MANY)
    async with site.working():
        await asyncio.sleep(MANY / RETRIES_PER_SECOND)
        new = request("new")
        site.queue.add(new)
        await asyncio.sleep(FIRST_RETRY + 2 / RETRIES_PER_SECOND)
        assert site.queue.failures(new) == 2


async def test_every_failing_object_is_retried_while_new_ones_keep_failing() -> None:
    site = scene("vc")
    site.flood("vc", 10)
    async with site.working():
        await asyncio.sleep(30)
        tried = [site.queue.failures(request(f"n{number}")) for number in range(10)]
        for number in range(30_000):
            site.queue.add(request(f"new-{number}"))
            await asyncio.sleep(2 / RETRIES_PER_SECOND)
            if all(site.queue.failures(request(f"n{each}")) > tried[each] for each in range(10)):
                return
        raise AssertionError("some are never tried again")


async def test_retries_that_succeed_are_not_delayed() -> None:
    site = scene("vc")
    site.flood("vc", MANY)
    async with site.working():
        await asyncio.sleep(30)
        site.failing.clear()
        assert len(site.latencies["vc"]) == 0
        await asyncio.sleep(LAST_RETRY)
        assert len(site.latencies["vc"]) == MANY, "at the bounded rate it would take a minute and a half"


async def test_retries_that_have_failed_make_no_room_when_their_objects_succeed_later() -> None:
    site = scene("vc")
    site.flood("vc", MANY)
    async with site.working():
        await asyncio.sleep(30)
        for number in range(MANY):
            site.queue.forget(request(f"n{number}"))
        tried = site.tried["vc"]
        await asyncio.sleep(1)
        assert site.tried["vc"] <= tried + RETRIES_PER_SECOND + 1


async def test_change_ends_the_wait_of_a_retry_for_the_budget() -> None:
    site = scene("vc")
    site.flood("vc", MANY)
    async with site.working():
        await asyncio.sleep(30)
        waiting = _waiting(site)
        site.failing.clear()
        site.queue.add(waiting)
        await asyncio.sleep(0.01)
        assert site.queue.failures(waiting) == 0
        assert waiting not in site.queue.delayed()


@pytest.mark.parametrize("method", ["leave", "drop", "close"])
async def test_nothing_is_left_of_a_cluster_that_leaves_or_a_syncer_that_stops(method: str) -> None:
    site = scene("vc")
    site.flood("vc", MANY)
    async with site.working():
        await asyncio.sleep(30)
        site.count = site.tried["vc"]
        match method:
            case "leave":
                site.queue.leave("vc")
            case "drop":
                site.queue.drop("vc", "configmaps")
            case "close":
                site.queue.close()
        assert not site.queue._retries
        if method != "close":
            await asyncio.sleep(300)
            assert site.tried["vc"] == site.count
            assert not site.queue.delayed()


async def test_changes_of_failing_objects_leave_nothing_behind_in_the_budget() -> None:
    site = scene("vc")
    site.flood("vc", 300)
    async with site.working():
        for _ in range(50):
            await asyncio.sleep(1)
            site.flood("vc", 300)
        [retries] = site.queue._retries.values()
        assert len(retries) <= 2 * 300 + RETRIES_AT_ONCE


async def test_parked_requests_are_retried_within_the_budget_too() -> None:
    site = scene()
    async with site.working():
        for number in range(MANY):
            site.queue.park(request(f"n{number}"), 300)
        await asyncio.sleep(299)
        assert site.tried["vc"] == 0
        site.failing.add("vc")
        await asyncio.sleep(11)
        assert site.tried["vc"] == pytest.approx(RETRIES_AT_ONCE + 10 * RETRIES_PER_SECOND, rel=0.05)


def _waiting(site: Scene) -> SyncRequest:
    """Return a request that waits for the budget."""
    [retries] = site.queue._retries.values()
    due = site.queue.delayed()
    return next(request for due_time, _, request in retries._waiting if due.get(request) == due_time)
