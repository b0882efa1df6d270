"""Work on a virtual cluster beside the workers: a duty that fails is in the log."""

import asyncio

import pytest
from harness import CLUSTER, Daemon, Two, play
from small_syncers import Maps

from syncer.daemon.served_cluster import ServedCluster

FAILURE = "a duty failed"


async def fail() -> None:
    """Fail like a duty with a bug."""
    await asyncio.sleep(0)
    raise RuntimeError("no such luck")


async def fail_at_the_end() -> None:
    """Fail like a duty whose cleanup has a bug."""
    try:
        await asyncio.Event().wait()
    finally:
        raise RuntimeError("no such luck")


async def at_rest(daemon: Daemon) -> ServedCluster:
    """Return the virtual cluster without its own duties, once its work has begun."""
    await daemon.settled()
    served = daemon.process.served[CLUSTER]
    await served.end()
    return served


async def wait_for_ever() -> None:
    await asyncio.Event().wait()


async def test_failure_of_a_duty_is_logged_when_it_fails(two: Two, capsys: pytest.CaptureFixture[str]) -> None:
    async with two.daemon([Maps]) as daemon:
        served = await at_rest(daemon)
        served.add_duty(fail)
        served.begin()
        await asyncio.sleep(1.0)
        log = capsys.readouterr().err
        assert FAILURE in log
        assert CLUSTER in log
        assert "RuntimeError: no such luck" in log


async def test_failure_of_a_duty_that_is_ended_is_logged(two: Two, capsys: pytest.CaptureFixture[str]) -> None:
    async with two.daemon([Maps]) as daemon:
        served = await at_rest(daemon)
        served.add_duty(fail_at_the_end)
        served.begin()
        await asyncio.sleep(1.0)
        assert FAILURE not in capsys.readouterr().err
        await served.end()
        assert "RuntimeError: no such luck" in capsys.readouterr().err


def test_duty_that_is_ended_has_not_failed(two: Two, capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario() -> None:
        async with two.daemon([Maps]) as daemon:
            served = await at_rest(daemon)
            served.add_duty(wait_for_ever)
            served.begin()
            await asyncio.sleep(1.0)
            await served.end()

    play(scenario)
    assert FAILURE not in capsys.readouterr().err
