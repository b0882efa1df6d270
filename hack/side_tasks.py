"""Tasks beside a block of code, which raises their errors: a simulated kubelet, an operator,
a watch.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def helped_by(*helpers: Coroutine[Any, Any, Any]) -> "AsyncIterator[list[asyncio.Task[Any]]]":
    """Run coroutines beside the block, as the tasks that this yields, and end them after it.

    The error of one ends the block.

    Raises:
        Exception: That of the block or of a helper, whichever came first.
    """
    try:
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(helper) for helper in helpers]
            yield running
            for task in running:
                task.cancel()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
