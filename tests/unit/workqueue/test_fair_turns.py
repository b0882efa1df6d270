"""Requests that compute for long: workers take few of them in a turn of the event loop, all together."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from fair_scene import WORKERS, request

from hack.side_tasks import helped_by
from syncer.api import SyncRequest
from syncer.workqueue.fair import TURN_SECONDS
from syncer.workqueue.queue import Queue

#: Seconds of a request that takes longer than a turn may.
LONG = 4 * TURN_SECONDS


class Scene:
    """Workers whose requests take time of the clock, and let no other task run meanwhile."""

    def __init__(self) -> None:
        self.now = 0.0
        self.turn = 0
        self.queue = Queue(clock=lambda: self.now, workers=WORKERS, spread=lambda: 0.5)
        self.seconds: dict[str, float] = {}
        #: The requests in the order in which they were worked on, each with the turn of the loop.
        self.worked: list[tuple[SyncRequest, int]] = []

    def join(self, cluster: str, *, seconds: float) -> None:
        """Add a cluster whose requests compute for so long."""
        self.seconds[cluster] = seconds
        self.queue.join(cluster, weight=1.0)

    def flood(self, cluster: str, count: int) -> None:
        """Request so many objects of a cluster."""
        for number in range(count):
            self.queue.add(request(f"n{number}", cluster))

    async def work(self) -> None:
        """Take requests one after the other."""
        while True:
            taken, _ = await self.queue.get()
            self.worked.append((taken, self.turn))
            self.now += self.seconds[taken.cluster]
            self.queue.done(taken, seconds=self.seconds[taken.cluster])
            await asyncio.sleep(0)

    async def count(self) -> None:
        """Count the turns of the event loop."""
        while True:
            self.turn += 1
            await asyncio.sleep(0)

    async def until(self, is_reached: Callable[[], bool]) -> None:
        """Let turns pass until something holds; fail after many of them."""
        for _ in range(10_000):
            if is_reached():
                return
            await asyncio.sleep(0)
        raise AssertionError("10,000 turns of the event loop have passed")


def play(scenario: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
    async def played() -> None:
        scene = Scene()
        async with helped_by(scene.count(), *(scene.work() for _ in range(WORKERS))):
            await scenario(scene)

    asyncio.run(played())


def test_long_requests_are_handed_out_one_at_a_time() -> None:
    async def scenario(scene: Scene) -> None:
        scene.join("vc", seconds=LONG)
        scene.flood("vc", 4 * WORKERS)
        await scene.until(lambda: len(scene.worked) == 4 * WORKERS)
        # A turn as it is counted may have the end of one and the begin of the next.
        assert max(Counter(turn for _, turn in scene.worked).values()) <= 2

    play(scenario)


def test_request_of_another_cluster_waits_for_few_long_ones() -> None:
    async def scenario(scene: Scene) -> None:
        scene.join("busy", seconds=LONG)
        scene.join("calm", seconds=0.0)
        scene.flood("busy", 10 * WORKERS)
        await scene.until(lambda: len(scene.worked) >= WORKERS)
        before = len(scene.worked)
        scene.flood("calm", 1)
        await scene.until(lambda: any(taken.cluster == "calm" for taken, _ in scene.worked))
        clusters = [taken.cluster for taken, _ in scene.worked]
        assert clusters.index("calm") - before <= 2

    play(scenario)


def test_short_requests_share_a_turn() -> None:
    async def scenario(scene: Scene) -> None:
        scene.join("vc", seconds=TURN_SECONDS / 100)
        scene.flood("vc", WORKERS)
        await scene.until(lambda: len(scene.worked) == WORKERS)
        assert len({turn for _, turn in scene.worked}) <= 2

    play(scenario)


def test_cancelled_worker_that_waits_for_the_next_turn_leaves_its_request() -> None:
    async def scenario() -> None:
        scene = Scene()

        async def take_long() -> SyncRequest:
            taken, _ = await scene.queue.get()
            scene.now = LONG
            return taken

        first = asyncio.create_task(take_long())
        second = asyncio.create_task(scene.queue.get())
        third = asyncio.create_task(scene.queue.get())
        await asyncio.sleep(0)
        scene.queue.add(request("a", "one"))
        scene.queue.add(request("b", "other"))
        await asyncio.sleep(0)
        assert first.done()
        assert not second.done(), "it waits for the next turn"
        second.cancel()
        for _ in range(10):
            await asyncio.sleep(0)
        assert third.done(), "the turn passes to it"
        taken, _ = await third
        assert (await first, taken) == (request("a", "one"), request("b", "other"))
        assert second.cancelled()

    asyncio.run(scenario())


def test_each_waiting_worker_is_woken_for_a_request_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    look = Queue._take

    def counted(queue: Queue) -> tuple[SyncRequest, float] | None:
        nonlocal looks
        looks += 1
        return look(queue)

    async def scenario() -> None:
        nonlocal looks
        scene = Scene()
        waiting = [asyncio.create_task(scene.queue.get()) for _ in range(WORKERS)]
        await asyncio.sleep(0)
        looks = 0
        scene.flood("vc", WORKERS // 2)
        done, pending = await asyncio.wait(waiting, timeout=0.01)
        assert (len(done), looks) == (WORKERS // 2, WORKERS // 2)
        for task in pending:
            task.cancel()

    monkeypatch.setattr(Queue, "_take", counted)
    asyncio.run(scenario())


@pytest.mark.parametrize("turns", [0, 1])
def test_woken_worker_that_is_cancelled_wakes_another(turns: int) -> None:
    """Before it looks for a request, or while it waits for the next turn."""

    async def scenario() -> None:
        scene = Scene()

        async def take_long() -> SyncRequest:
            taken, _ = await scene.queue.get()
            scene.now += LONG
            return taken

        tasks = [asyncio.create_task(take_long()) for _ in range(4)]
        await asyncio.sleep(0)
        scene.flood("vc", 3)
        for _ in range(turns):
            await asyncio.sleep(0)
        tasks[1].cancel()
        async with asyncio.timeout(10):
            found = await asyncio.gather(*tasks, return_exceptions=True)
        assert {each for each in found if isinstance(each, SyncRequest)} == {
            request(name, "vc") for name in ("n0", "n1", "n2")
        }

    asyncio.run(scenario())
