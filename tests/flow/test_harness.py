"""What dies beside a scenario makes its test red."""

import asyncio
from typing import Any

import pytest
from harness import Two, built_in, play

from syncer.api import SyncRequest
from syncer.testing.objects import configmap

MAPS = built_in("configmaps")


class Broken(Exception):
    """An error of a test's own."""


def test_error_of_a_worker_ends_the_scenario(two: Two) -> None:
    passed: list[str] = []

    async def scenario() -> None:
        async with two.daemon(MAPS) as daemon:
            await daemon.settled()

            async def handle(request: SyncRequest, *rest: Any) -> Any:
                raise Broken(request.key.name)

            daemon.process.workers.handle = handle  # type: ignore[method-assign, assignment]
            two.virtual.put(configmap("x"))
            await asyncio.sleep(1)
            passed.append("a second")

    with pytest.raises(Broken, match=r"^x$"):
        play(scenario)
    assert passed == []


async def test_work_that_has_ended_at_a_closed_queue_ends_no_scenario(two: Two) -> None:
    async with two.daemon(MAPS) as daemon:
        daemon.process.queue.close()
        await asyncio.sleep(1)
        assert daemon.working.done()
