"""How workers are shared by clusters: by weight, with a reserve for those that become busy."""

import asyncio
import itertools

import pytest
from fair_scene import WORKERS, Scene, request

from kube_envtest import virtual_time
from syncer.api import SyncRequest
from syncer.byte_budget import ByteBudget

#: Clusters with different weights, more of them than workers.
MANY = {f"c{number}": 1.0 + number % 3 for number in range(60)}
REGULAR = [f"regular-{number}" for number in range(40)]
GREEDY = [f"greedy-{number}" for number in range(10)]


@pytest.mark.parametrize(
    ("weights", "seconds"),
    [
        pytest.param({"a": 1.0, "b": 1.0, "c": 1.0}, {}, id="equal"),
        pytest.param({"a": 1.0, "b": 2.0, "c": 5.0}, {}, id="weighted"),
        pytest.param({"a": 0.01, "b": 0.3}, {}, id="uneven"),
        pytest.param({"a": 1.0, "b": 1.0, "c": 2.0}, {"a": 2.0, "b": 0.03, "c": 0.3}, id="slow-and-quick"),
        pytest.param(MANY, {}, id="more-clusters-than-workers"),
        pytest.param(
            MANY,
            dict.fromkeys(MANY, 0.05) | dict.fromkeys(list(MANY)[::5], 1.0),
            id="more-clusters-than-workers-some-slow",
        ),
    ],
)
async def test_busy_clusters_share_the_time_of_workers_by_weight(
    weights: dict[str, float], seconds: dict[str, float]
) -> None:
    scene = Scene(endless=True)
    for cluster, weight in weights.items():
        scene.join(cluster, weight=weight, seconds=seconds.get(cluster, 0.01))
        scene.flood(cluster, 2 * WORKERS)
    shares = await scene.shares(200.0 if seconds else 20.0)
    whole = sum(weights.values())
    for cluster, weight in weights.items():
        assert shares[cluster] == pytest.approx(weight / whole, rel=0.02), cluster


async def test_cluster_that_is_alone_uses_all_workers() -> None:
    scene = Scene()
    scene.join("vc", seconds=2.0)
    scene.flood("vc", 200)
    async with scene.working():
        await asyncio.sleep(1)
        assert scene.busy["vc"] == WORKERS


async def test_cluster_without_a_bound_of_workers_has_none() -> None:
    scene = Scene()
    scene.queue = type(scene.queue)(clock=scene.loop.time)
    scene.join("vc", "other", seconds=2.0)
    scene.flood("vc", 200)
    async with scene.working():
        await asyncio.sleep(1)
        assert scene.busy["vc"] == WORKERS


@pytest.mark.parametrize(("seconds", "most"), [(0.05, WORKERS * 3 // 4), (2.0, WORKERS // 4)])
async def test_busy_cluster_leaves_workers_for_idle_ones_more_if_it_is_slow(seconds: float, most: int) -> None:
    scene = Scene()
    scene.join("busy", seconds=seconds)
    scene.join("calm", *REGULAR, seconds=0.01)
    scene.flood("busy", 2000)
    async with scene.working():
        await asyncio.sleep(3.01)
        assert scene.busy["busy"] == most
        for number in range(WORKERS - most):
            scene.queue.add(request(f"n{number}", REGULAR[number]))
        await asyncio.sleep(0.011)
        assert all(len(scene.latencies[each]) == 1 for each in REGULAR[: WORKERS - most]), "no one has waited"


async def test_idle_requests_do_not_make_a_slow_cluster_count_as_fast() -> None:
    scene = Scene()
    ended = itertools.count()
    scene.join("busy", seconds=lambda: 0.0 if next(ended) < 500 else 2.0)
    scene.join(*REGULAR, seconds=0.01)
    scene.flood("busy", 2000)
    async with scene.working():
        await asyncio.sleep(1)
        assert scene.busy["busy"] == WORKERS // 4


async def test_busy_clusters_leave_the_reserve_together() -> None:
    scene = Scene()
    scene.join(*GREEDY[:3], seconds=0.05)
    scene.join(*REGULAR)
    for cluster in GREEDY[:3]:
        scene.flood(cluster, 2000)
    async with scene.working():
        await asyncio.sleep(1)
        for _ in range(100):
            await asyncio.sleep(0.013)
            assert WORKERS * 3 // 4 <= sum(scene.busy.values()) < WORKERS * 3 // 4 + 3, "a share is a whole worker"


@pytest.mark.parametrize("method", ["pause", "leave"])
async def test_cluster_that_pauses_or_leaves_waits_for_no_worker(method: str) -> None:
    scene = Scene()
    scene.join("a", "b", seconds=2.0)
    scene.flood("a", 100)
    async with scene.working():
        await asyncio.sleep(1)
        assert scene.queue._limited
        getattr(scene.queue, method)("a")
        assert not scene.queue._limited


async def test_cluster_within_its_share_takes_the_reserve_too() -> None:
    scene = Scene()
    scene.join("hung", seconds=1000.0)
    scene.join("gold", weight=3.0, seconds=1.0)
    scene.flood("hung", 200)
    async with scene.working():
        await asyncio.sleep(10)
        assert scene.busy["hung"] == WORKERS // 4
        scene.flood("gold", 200)
        await asyncio.sleep(0.5)
        assert scene.busy["gold"] == WORKERS * 3 // 4


async def test_workers_of_a_removed_or_paused_cluster_go_to_others() -> None:
    scene = Scene()
    scene.join("a", "b", "c", seconds=1.0)
    scene.flood("a", 500)
    async with scene.working():
        await asyncio.sleep(2.5)
        assert scene.busy["a"] == 11, "a third, as its requests are slow"
        scene.queue.leave("c")
        await asyncio.sleep(2)
        assert scene.busy["a"] == WORKERS // 2
        scene.queue.pause("b")
        scene.queue.pause("b")
        await asyncio.sleep(4)
        assert scene.busy["a"] == WORKERS
        scene.queue.resume("b")
        scene.queue.resume("b")
        await asyncio.sleep(2)
        assert scene.busy["a"] == WORKERS // 2


async def test_cluster_that_left_and_came_back_still_holds_the_workers_of_before() -> None:
    scene = Scene()
    scene.join("a", "b", seconds=100.0)
    scene.flood("a", 100)
    async with scene.working():
        await asyncio.sleep(1)
        assert scene.busy["a"] == WORKERS // 2
        scene.queue.leave("a")
        scene.join("a", seconds=100.0)
        for number in range(100):
            scene.queue.add(request(f"new-{number}", "a"))
        await asyncio.sleep(1)
        assert scene.busy["a"] == WORKERS // 2
        await asyncio.sleep(100)
        assert scene.busy["a"] == WORKERS // 2


async def test_paused_cluster_above_its_share_is_handed_out_after_it_is_resumed() -> None:
    scene = Scene(workers=4)
    scene.join("a", "b", "c", seconds=1.0)
    scene.flood("a", 20)
    async with scene.working():
        await asyncio.sleep(0.5)
        scene.queue.pause("a")
        await asyncio.sleep(5)
        assert scene.busy["a"] == 0
        scene.queue.resume("a")
        await asyncio.sleep(30)
        assert len(scene.latencies["a"]) == 20


# -- latency of regular clusters -------------------------------------------------------------------


def latency(*others: str, count: int = 900, seconds: float = 0.01, failing: bool = False) -> float:
    """Return the mean latency of 10 objects of each of 40 clusters, beside others that come at the same time."""
    found = []

    async def scenario() -> None:
        scene = Scene()
        scene.join(*REGULAR)
        scene.join(*others, seconds=seconds)
        scene.failing |= set(others) if failing else set()
        async with scene.working():
            for cluster in (*others, *REGULAR):
                scene.flood(cluster, count if cluster in others else 10)
            await asyncio.sleep(60)
            found.append(scene.mean(*REGULAR))
            assert all(len(scene.latencies[each]) == 10 for each in REGULAR)

    virtual_time.run(scenario())
    return found[0]


@pytest.mark.parametrize(
    ("others", "seconds", "failing"),
    [(GREEDY, 0.01, False), (GREEDY[:1], 2.0, False), (GREEDY[:1], 0.01, True), (GREEDY, 0.01, True)],
    ids=["greedy", "slow", "failing", "all-failing"],
)
def test_regular_clusters_hardly_notice_greedy_slow_and_failing_ones(
    others: list[str], seconds: float, failing: bool
) -> None:
    assert latency(*others, seconds=seconds, failing=failing) < 1.5 * latency()


async def test_regular_clusters_are_not_delayed_by_a_slow_one_that_was_there_before() -> None:
    scene = Scene()
    scene.join(*REGULAR)
    scene.join("slow", seconds=2.0)
    scene.flood("slow", 2000)
    async with scene.working():
        for turn in itertools.count(1):
            await asyncio.sleep(1)
            for cluster in REGULAR:
                scene.queue.add(request(f"n{turn % 10}", cluster))
            if turn == 30:
                break
        await asyncio.sleep(1)
    assert scene.mean(*REGULAR) < 0.03, "40 at once with 24 workers, of 0.01 s each"


# -- bytes in work ---------------------------------------------------------------------------------

#: The bytes that the requests of a cluster may have.
MOST = 3 << 20


class Heavy:
    """A cluster with large requests, each of which has half as many bytes as may be held, and a little more if
    ``uneven``.
    """

    def __init__(self, count: int, *, uneven: bool = False, small: int = 0, size: int = MOST // 2) -> None:
        self.scene, self.size = Scene(), size + uneven
        self.scene.join("vc")
        self.memory = ByteBudget(4 << 20, divided=True)
        self.scene.queue.join("vc", weight=1.0, memory=self.memory.of("work"))
        self.scene.flood("vc", count)
        for number in range(small):
            self.scene.queue.add(request(f"small{number}"))
        self.queue = self.scene.queue
        #: The number of times that a request wasn't let in.
        self.put_aside = 0

    async def work(self) -> list[str]:
        """Let workers take all that they may, and return what they hold."""
        while True:
            try:
                async with asyncio.timeout(1):
                    taken, _ = await self.queue.get()
            except TimeoutError:
                return self.busy()
            if "small" not in taken.key.name and not self.queue.may_hold(taken, self.size):
                self.put_aside += 1
                self.queue.done(taken)

    def busy(self) -> list[str]:
        return [each.key.name for each in self.queue.running()]

    def end(self, name: str) -> None:
        """End a request."""
        self.queue.done(request(name))


async def test_large_requests_wait_until_there_is_room_and_are_not_tried_before() -> None:
    heavy = Heavy(6)
    assert await heavy.work() == ["n0", "n1"]
    assert (heavy.queue.depth(), heavy.queue.depths()["vc"], heavy.queue.is_idle()) == (4, 4, False)
    tried = heavy.put_aside
    heavy.end("n0")
    assert await heavy.work() == ["n1", "n2"]
    heavy.end("n1")
    heavy.end("n2")
    assert await heavy.work() == ["n3", "n4"]
    assert heavy.put_aside == tried
    for name in ("n3", "n4"):
        heavy.end(name)
    assert await heavy.work() == ["n5"]
    heavy.end("n5")
    assert heavy.queue.is_idle()
    assert heavy.memory.used == 0


async def test_large_requests_delay_no_small_ones_and_lose_no_change() -> None:
    heavy = Heavy(4, uneven=True, small=3)
    assert await heavy.work() == ["n0", "small0", "small1", "small2"]
    heavy.queue.add(request("n2"))
    for name in ("n0", "small0", "small1", "small2"):
        heavy.end(name)
    done = []
    while busy := await heavy.work():
        done += busy
        heavy.end(busy[0])
    assert done == ["n1", "n2", "n3"]


async def test_large_request_that_changed_while_it_was_tried_keeps_no_timer() -> None:
    heavy = Heavy(1)
    queue = heavy.queue
    assert await heavy.work() == ["n0"]
    tried = request("n1")
    queue.add(tried)
    await queue.get()
    queue.add(tried)
    queue.add(tried, after=5)
    assert not queue.may_hold(tried, 2 * MOST)
    queue.done(tried)
    assert queue.delayed() == {}
    heavy.end("n0")
    taken, _ = await asyncio.wait_for(queue.get(), 1)
    assert taken == tried


async def test_request_that_is_alone_may_hold_any_number_of_bytes_and_counts_once() -> None:
    heavy = Heavy(2, size=10 * MOST)
    assert await heavy.work() == ["n0"]
    assert heavy.queue.may_hold(request("n0"), MOST // 2)
    assert heavy.queue.may_hold(request("gone"), MOST)
    heavy.queue.add(request("later"))
    heavy.size = MOST // 2
    assert await heavy.work() == ["n0", "later"]
    assert not heavy.queue.may_hold(request("later"), MOST)


async def test_request_let_in_without_bytes_lets_in_the_next() -> None:
    heavy = Heavy(4, uneven=True)
    assert await heavy.work() == ["n0"]
    heavy.end("n0")
    for name in ("n1", "n2", "n3"):
        taken, _ = await asyncio.wait_for(heavy.queue.get(), 1)
        assert taken.key.name == name
        heavy.queue.done(taken)


async def test_bytes_of_a_cluster_that_was_away_count_until_its_requests_have_ended() -> None:
    heavy = Heavy(3, uneven=True)
    assert await heavy.work() == ["n0"]
    heavy.queue.leave("vc")
    assert heavy.queue.depth() == 0
    assert heavy.memory.used == 0
    heavy.queue.join("vc", weight=1.0, memory=heavy.memory.of("work"))
    heavy.queue.add(request("later"))
    assert await heavy.work() == ["n0"]
    heavy.end("n0")
    assert await heavy.work() == ["later"]


async def test_large_request_that_is_put_aside_stays_within_the_limits_of_its_syncer() -> None:
    heavy = Heavy(0, uneven=True)
    heavy.queue.limit("vc", "configmaps", concurrency=2)
    heavy.scene.flood("vc", 4)
    assert await heavy.work() == ["n0"]
    small: SyncRequest = request("small0")
    heavy.queue.add(small)
    assert await heavy.work() == ["n0"], "one in work, and one put aside"
    heavy.end("n0")
    assert await heavy.work() == ["n1"]
    for name in ("n1", "n2", "n3"):
        heavy.end(name)
        await heavy.work()
    assert heavy.busy() == ["small0"]
