"""Tests of this folder may be coroutines; they run on the daemon's event loop, uvloop."""

import asyncio
import gc
import inspect
from collections.abc import Coroutine, Generator
from typing import Any

import pytest
import uvloop
from kubelet_scene import PATIENCE, wait_until
from uvloop.loop import TCPTransport  # type: ignore[attr-defined]

#: Seconds that a test may take.
MOST_SECONDS = 2 * PATIENCE


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Run a coroutine, before the hook of all tests would in virtual time."""
    test = pyfuncitem.obj
    if inspect.iscoroutinefunction(test):
        pyfuncitem.obj = lambda **fixtures: _run(test(**fixtures))
    return (yield)


def _run(test: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(MOST_SECONDS):
            await test
        await wait_until(_has_no_connection)
        await asyncio.sleep(0.05)  # for those that are closing to be gone

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(bounded())


def _has_no_connection() -> bool:
    """Return True if every connection is closed: with TLS that takes the other side's answer."""
    connections = [each for each in gc.get_objects() if isinstance(each, TCPTransport)]
    return all(each.is_closing() for each in connections)
