"""Tasks beside a block of code."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def beside(coroutine: Coroutine[Any, Any, Any]) -> "AsyncIterator[asyncio.Task[Any]]":
    """Run a coroutine beside the block, as the task that this yields.

    After the block, cancel the task and await its end. If the coroutine raises an exception, the
    block goes on.
    """
    task = asyncio.create_task(coroutine)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})
