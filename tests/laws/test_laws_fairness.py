"""Workers are shared by weight, whatever the requests of each cluster take, and none waits for ever."""

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hack.side_tasks import helped_by
from kube_envtest import virtual_time
from syncer.api import Key, SyncRequest
from syncer.workqueue.queue import Queue

pytestmark = pytest.mark.slow

Cluster = tuple[float, float, float]  # its weight; the least and the most seconds of its requests
CLUSTERS = st.lists(
    st.tuples(st.sampled_from([0.5, 1.0, 1.0, 2.0, 3.0, 7.0]), st.floats(0.02, 0.5), st.floats(0.5, 2.0)),
    min_size=2,
    max_size=12,
)


async def work(queue: Queue, seconds: dict[str, float], times: dict[str, Cluster], chance: random.Random) -> None:
    """Work on requests that come again at once; note the seconds that each cluster's have taken."""
    while True:
        request, _ = await queue.get()
        _, least, most = times[request.cluster]
        taken = chance.uniform(least, most)
        await asyncio.sleep(taken)
        seconds[request.cluster] += taken
        queue.add(request)
        queue.done(request, seconds=taken)


@settings(max_examples=25)
@given(CLUSTERS, st.integers(2, 32), st.integers(0, 2**32))
def test_busy_clusters_share_workers_by_weight(given: list[Cluster], workers: int, seed: int) -> None:
    times, chance = {f"c{number}": each for number, each in enumerate(given)}, random.Random(seed)

    async def scenario() -> None:
        queue = Queue(clock=asyncio.get_running_loop().time, workers=workers)
        seconds = dict.fromkeys(times, 0.0)
        for cluster, (weight, _, _) in times.items():
            queue.join(cluster, weight=weight)
            for number in range(workers + 1):
                queue.add(SyncRequest(cluster, "configmaps", Key("shop", str(number))))
        whole = sum(weight for weight, _, _ in given)
        least = min(weight for weight, _, _ in given) / whole
        async with helped_by(*(work(queue, seconds, times, chance) for _ in range(workers))):
            await asyncio.sleep(200 * 2.0 / (least * workers))
        for cluster, (weight, _, _) in times.items():
            assert seconds[cluster] / sum(seconds.values()) == pytest.approx(weight / whole, rel=0.02)

    virtual_time.run(scenario())


STEPS = st.lists(
    st.tuples(st.sampled_from(["flood", "pause", "resume", "leave", "pass"]), st.integers(0, 3), st.integers(1, 40)),
    max_size=30,
)


@settings(max_examples=150)
@given(STEPS, st.integers(1, 9), st.lists(st.sampled_from([0.01, 0.2, 3.0]), min_size=4, max_size=4))
def test_no_request_waits_for_ever(steps: list[tuple[str, int, int]], workers: int, seconds: list[float]) -> None:
    async def scenario() -> None:
        queue = Queue(clock=asyncio.get_running_loop().time, workers=workers)

        async def worker() -> None:
            while True:
                request, _ = await queue.get()
                assert len(queue.running()) <= workers
                took = seconds[int(request.cluster)]
                await asyncio.sleep(took)
                queue.done(request, seconds=took)

        async with helped_by(*(worker() for _ in range(workers))):
            for act, number, count in steps:
                cluster = str(number)
                match act:
                    case "flood":
                        for each in range(count):
                            queue.add(SyncRequest(cluster, "configmaps", Key("shop", str(each))), low=each % 3 == 0)
                    case "pause":
                        queue.pause(cluster)
                    case "resume":
                        queue.resume(cluster)
                    case "leave":
                        queue.leave(cluster)
                    case "pass":
                        await asyncio.sleep(count / 10)
            for number in range(4):
                queue.resume(str(number))
            await asyncio.sleep(10_000)
            assert queue.is_idle()
            assert not queue._limited

    virtual_time.run(scenario())
