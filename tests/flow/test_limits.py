"""Limits of a kind: concurrent requests, writes per second, the patroller's interval; other kinds
are unaffected.
"""

import asyncio
from typing import Any

import pytest
from harness import Tenant, Two, built_in, play, serving, until
from small_syncers import Maps, copies

from kube_envtest import Rule
from syncer.testing.objects import configmap, service

MANY = 12


def tenant(two: Two, **options: Any) -> Tenant:
    return Tenant(two.virtual, options={"maps": options})


def copied(two: Two, plural: str = "configmaps") -> int:
    return len(copies(two, plural) - {"kube-root-ca.crt"})


def both(two: Two) -> None:
    for number in range(MANY):
        two.virtual.put(configmap(f"m{number}"))
        two.virtual.put(service(f"s{number}"))


@pytest.mark.parametrize(("limit", "seconds"), [(0, 1), (4, 3), (1, 12)])
def test_concurrency_of_one_kind(two: Two, limit: int, seconds: float) -> None:
    async def scenario() -> None:
        tenants = [tenant(two, concurrency=limit)]
        async with serving(two.host, tenants, [Maps, *built_in("services")], workers=99) as daemon:
            await daemon.settled()
            two.host.faults.add(Rule(verb="create", latency=1))
            begun = asyncio.get_running_loop().time()
            both(two)
            assert await until(lambda: copied(two, "services") == MANY) < 2
            await until(lambda: copied(two) == MANY)
            assert asyncio.get_running_loop().time() - begun == pytest.approx(seconds, abs=0.5)

    play(scenario)


@pytest.mark.parametrize(("rate", "seconds"), [(0, 0), (4, 2), (1, 11)])
def test_writes_a_second_of_one_kind(two: Two, rate: float, seconds: float) -> None:
    async def scenario() -> None:
        async with serving(two.host, [tenant(two, writesPerSecond=rate)], [Maps, *built_in("services")]) as daemon:
            await daemon.settled(patience=30)
            both(two)
            assert await until(lambda: copied(two, "services") == MANY) < 1
            assert await until(lambda: copied(two) == MANY) == pytest.approx(seconds, abs=1)

    play(scenario)


def test_patrol_interval_of_one_kind(two: Two) -> None:
    async def scenario() -> None:
        async with serving(two.host, [tenant(two, patrolInterval="20s")], [Maps, *built_in("services")]) as daemon:
            await daemon.settled()
            [patroller] = daemon.engine.patrollers()
            assert await until(lambda: patroller.reports.keys() == {"maps"}) == pytest.approx(20, abs=3)
            first = patroller.reports["maps"]
            assert await until(lambda: patroller.reports["maps"] is not first) == pytest.approx(20, abs=3)
            await until(lambda: "services" in patroller.reports, within=700)
            assert "maps" in patroller.reports

    play(scenario)
