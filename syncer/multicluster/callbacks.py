"""Call functions of users: async ones here, others in a thread, for so long and no longer."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from syncer.multicluster import watchdog
from syncer.multicluster.errors import CallbackTimeout


async def call(
    function: Callable[..., Any],
    *arguments: object,
    what: str,
    timeout: float | None,  # noqa: ASYNC109
) -> Any:
    """Call a function, and return its result; one that isn't async is called in a thread.

    After ``timeout`` seconds it is cancelled; a thread goes on until the function returns, but nobody waits for it.
    What the function raises is passed on. ``what`` names it in the error, and in the log if it blocks the event loop.

    Raises:
        CallbackTimeout: It hasn't returned in time.
    """
    try:
        async with asyncio.timeout(timeout) as deadline:
            if is_async(function):
                result = function(*arguments)
            else:
                result = await asyncio.to_thread(function, *arguments)
            if inspect.isawaitable(result):
                return await watchdog.WATCHDOG.steps_of(result, what)
            return result
    except TimeoutError as error:
        if not deadline.expired():
            raise
        raise CallbackTimeout(f"{what} hasn't returned after {timeout:g} s") from error


def name_of(function: object) -> str:
    """Return the name of a function, or of the class of an object that is called."""
    return str(getattr(function, "__qualname__", type(function).__name__))


def is_async(function: object) -> bool:
    """Return True for a function or an object whose call returns an awaitable without doing anything."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004
