"""Tests of this folder may be coroutines; they run on the daemon's event loop, uvloop."""

import asyncio
import gc
import inspect
from typing import Any

import pytest
import uvloop
from kubelet_scene import PATIENCE, wait_until
from uvloop.loop import TCPTransport  # type: ignore[attr-defined]

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
        await wait_until(_has_no_connection)
        await asyncio.sleep(0.05)  # for those that are closing to be gone

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())
    return True


def _has_no_connection() -> bool:
    """Return True if every connection is closed: with TLS that takes the other side's answer."""
    connections = [each for each in gc.get_objects() if isinstance(each, TCPTransport)]
    return all(each.is_closing() for each in connections)
