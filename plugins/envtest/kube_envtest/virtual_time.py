"""Virtual time: an event loop with a clock that jumps to the next timer instead of waiting for it."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

#: Real seconds that a loop without any timer waits for the outside world before it fails, as
#: nothing can happen.
STUCK_AFTER = 30.0


class _JumpingSelector(selectors.DefaultSelector):
    """A selector that returns at once, and moves the clock by its timeout instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            ready = super().select(STUCK_AFTER)
            if not ready:
                raise RuntimeError("virtual time: every task waits and no timer is set, so nothing can ever happen")
            return ready
        ready = super().select(0)
        if not ready and timeout > 0:
            self.now += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An asyncio loop for tests: sleeping takes no time, and ``loop.time()`` starts at 0 and is exact."""

    def __init__(self) -> None:
        self._virtual = _JumpingSelector()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Return the seconds of virtual time since the loop was created."""
        return self._virtual.now


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run ``main`` to its end in virtual time, like ``asyncio.run``."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
