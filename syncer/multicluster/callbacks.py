"""Call functions of users: async ones here, others in a thread, for so long and no longer."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from syncer.multicluster.errors import CallbackTimeout

A = TypeVar("A")


async def call(
    function: Callable[[A], Any],
    argument: A,
    *,
    what: str,
    timeout: float | None,  # noqa: ASYNC109
) -> Any:
    """Call a function, and return its result; one that isn't async is called in a thread.

    After ``timeout`` seconds it is cancelled; a thread goes on until the function returns, but nobody waits for it.
    What the function raises is passed on. ``what`` and the argument name it in the error.

    Raises:
        CallbackTimeout: It hasn't returned in time.
    """
    try:
        async with asyncio.timeout(timeout) as deadline:
            result = function(argument) if _is_async(function) else await asyncio.to_thread(function, argument)
            return await result if inspect.isawaitable(result) else result
    except TimeoutError as error:
        if not deadline.expired():
            raise
        raise CallbackTimeout(f"{what} {argument} hasn't returned after {timeout:g} s") from error


def _is_async(function: object) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004
