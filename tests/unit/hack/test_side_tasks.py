"""A helper that fails beside a block ends the block."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from hack.side_tasks import helped_by


class Broken(Exception):
    """An error of a test's own."""


async def breaks() -> None:
    raise Broken("no kubelet any more")


async def runs(ended: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        ended.append("helper")


def test_error_of_a_helper_ends_the_block_and_is_raised() -> None:
    async def scenario() -> None:
        async with helped_by(breaks()):
            await asyncio.Event().wait()

    with pytest.raises(Broken, match="no kubelet any more"):
        asyncio.run(asyncio.wait_for(scenario(), 600))


def test_error_of_the_block_is_raised_as_it_is() -> None:
    ended: list[str] = []

    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(helped_by(runs(ended)))
            await asyncio.sleep(0)
            raise Broken("of the block")

    with pytest.raises(Broken, match="of the block"):
        asyncio.run(scenario())
    assert ended == ["helper"]


def test_helpers_have_ended_after_the_block() -> None:
    ended: list[str] = []

    async def scenario() -> None:
        async with helped_by(runs(ended), runs(ended)):
            await asyncio.sleep(0)
        assert ended == ["helper"] * 2

    asyncio.run(scenario())


def test_cancellation_passes_through() -> None:
    ended: list[str] = []

    async def scenario() -> None:
        async with helped_by(runs(ended)):
            await asyncio.Event().wait()

    async def cancelled() -> None:
        task = asyncio.create_task(scenario())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert ended == ["helper"]
