"""A minute of a cache with many clusters, some of them dead or frozen, and many consumers, in virtual time."""

import asyncio
import itertools
import logging

import pytest
from cache_scene import CacheScene
from fleet_scene import PODS

from syncer.api import NotConnected
from syncer.multicluster import Reason, State

CLUSTERS, DEAD, CONSUMERS, SECONDS = 100, 20, 100, 60.0
#: The longest that a stamp may be old, in units of its interval.
AGE = 1.2


async def test_soak_of_a_hundred_clusters_of_which_twenty_are_dead(caplog: pytest.LogCaptureFixture) -> None:
    names = [f"c{number}" for number in range(CLUSTERS)]
    dead = set(names[::5])
    assert len(dead) == DEAD
    scene = CacheScene(*names, vary=True)
    for name in dead:
        scene[name].is_reachable = False
    answers = {True: 0, False: 0}

    async def consume(number: int) -> None:
        for turn in range(600):
            name = names[(number * 7 + turn * 13) % CLUSTERS]
            if name in dead:
                with pytest.raises(NotConnected):
                    cache.get_client(name)
            else:
                await cache.get_client(name).list(PODS)
                assert cache.get_uncached_client(name)
            answers[name in dead] += 1
            await asyncio.sleep(SECONDS / 600)

    ages: list[float] = []

    async def look() -> None:
        while True:
            await asyncio.sleep(0.5)
            time = asyncio.get_running_loop().time()
            for name in names:
                health = cache.get_health(name)
                assert health.last_probe is not None
                if name not in dead:
                    ages.append(time - health.last_probe)

    with caplog.at_level(logging.ERROR):
        async with scene.running() as cache:
            await asyncio.sleep(20)
            looking = asyncio.create_task(look())
            async with asyncio.TaskGroup() as consumers:
                for number in range(CONSUMERS):
                    consumers.create_task(consume(number))
            assert not looking.done()
            looking.cancel()
            assert answers[True] + answers[False] == CONSUMERS * 600
            assert answers[True] > 10_000
            assert max(ages) <= AGE * scene.cache.options.probe_interval
            for name in dead:
                assert cache.get_status(name).reason in (Reason.UNREACHABLE, "")
                dials = scene[name].at("/")
                gaps = [later - sooner for sooner, later in itertools.pairwise(dials)]
                assert max(gaps) <= AGE * scene.cache.options.max_retry_delay, "it is tried again and again"
    assert not caplog.records


async def test_frozen_cluster_delays_no_probe_connect_or_read_of_others() -> None:
    names = [f"c{number}" for number in range(100)]
    scene = CacheScene(*names, vary=True)
    async with scene.running() as cache:
        await asyncio.sleep(1)
        scene["c0"].server.freeze()
        await asyncio.sleep(80)
        assert cache.get_status("c0").state is not State.CONNECTED
        begun = asyncio.get_running_loop().time()
        for name in names[1:]:
            assert cache.get_health(name).failures == 0
            await cache.get_uncached_client(name).list(PODS)
        assert asyncio.get_running_loop().time() - begun < 0.01
        assert all(len(scene[name].at("/")) == 9 for name in names[1:])
        scene["c0"].server.thaw()
