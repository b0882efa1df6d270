"""Call functions of users: async ones here, others in a thread, for so long and no longer."""

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from syncer.multicluster import watchdog
from syncer.multicluster.errors import CallbackTimeout

#: Calls of a function that go on in threads though nobody waits for them any more, at most; then it
#: isn't called again until one has returned.
MOST_LEFT = 16
_left: Counter[str] = Counter()
_left_lock = threading.Lock()


async def call(
    function: Callable[..., Any],
    *arguments: object,
    what: str,
    timeout: float | None,  # noqa: ASYNC109
) -> Any:
    """Call a function, and return its result; one that isn't async is called in a thread.

    After ``timeout`` seconds it is cancelled; a thread goes on until the function returns, but
    nobody waits for it. What the function raises is passed on. ``what`` names it in the error, and
    in the log if it blocks the event loop.

    Raises:
        CallbackTimeout: It hasn't returned in time, or isn't called because too many calls of it
            haven't returned.
    """
    try:
        async with asyncio.timeout(timeout) as deadline:
            if is_async(function):
                result = function(*arguments)
            else:
                result = await _in_thread(function, *arguments, what=what)
            if inspect.isawaitable(result):
                return await watchdog.WATCHDOG.steps_of(result, what)
            return result
    except TimeoutError as error:
        if not deadline.expired():
            raise
        raise CallbackTimeout(f"{what} hasn't returned after {timeout:g} s") from error


async def _in_thread(function: Callable[..., Any], *arguments: object, what: str) -> Any:
    """Call a function in a thread of its own, so that those that never return take none from
    others, and don't keep the process from its end.

    Raises:
        CallbackTimeout: :data:`MOST_LEFT` calls of it have been given up, and haven't returned.
    """
    name = name_of(function)
    if _left[name] >= MOST_LEFT:
        why = f"{MOST_LEFT} calls of {name} were given up and haven't returned yet"
        raise CallbackTimeout(f"{what} isn't begun: {why}")
    loop = asyncio.get_running_loop()
    outcome = loop.create_future()
    context = contextvars.copy_context()
    has_returned = is_left = False

    def settle(result: object, error: BaseException | None) -> None:
        if outcome.done():
            return  # nobody waits any more
        if error is None:
            outcome.set_result(result)
        elif isinstance(error, StopIteration):
            outcome.set_exception(RuntimeError(f"{what} raised StopIteration"))
        else:
            outcome.set_exception(error)

    def work() -> None:
        nonlocal has_returned
        result = None
        raised = None
        try:
            result = context.run(function, *arguments)
        except BaseException as error:  # noqa: BLE001 — it is passed on
            raised = error
        with _left_lock:
            has_returned = True
            _left[name] -= is_left
        with contextlib.suppress(RuntimeError):  # the event loop has ended meanwhile
            loop.call_soon_threadsafe(settle, result, raised)

    threading.Thread(target=work, daemon=True, name=what).start()
    try:
        return await outcome
    except asyncio.CancelledError:
        with _left_lock:
            is_left = not has_returned
            _left[name] += is_left
        raise


def name_of(function: object) -> str:
    """Return the name of a function, or of the class of an object that is called."""
    return str(getattr(function, "__qualname__", type(function).__name__))


def is_async(function: object) -> bool:
    """Return True for a function or an object that does nothing but return an awaitable."""
    if inspect.iscoroutinefunction(function):
        return True
    method = getattr(function, "__call__", None)  # noqa: B004 — the method of an object's class
    return inspect.iscoroutinefunction(method)
