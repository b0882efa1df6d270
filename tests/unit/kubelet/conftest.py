"""Tests of this folder may be coroutines; they run on the daemon's event loop, uvloop."""

import asyncio
import inspect
from typing import Any

import pytest
import uvloop
from kubelet_scene import PATIENCE

#: Seconds that a test may take.
MOST_SECONDS = 2 * PATIENCE


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}

    async def run() -> None:
        async with asyncio.timeout(MOST_SECONDS):
            await pyfuncitem.obj(**arguments)
        await asyncio.sleep(0.05)  # for closed connections to be gone

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())
    return True
