"""Tell many objects of one change in steps, so that no change stops the event loop."""

import asyncio
import time
from collections.abc import Callable, Hashable, Iterator

from syncer.observe.logs import get_logger

#: Most objects that are told at once.
FEW = 100
#: Objects that are told in a step, which takes a millisecond, and seconds between steps: so all that one virtual
#: cluster makes others be told takes a tenth or so of the time, however often it changes something.
STEP, PAUSE_SECONDS = 200, 0.005
#: Seconds after which a step ends in any case, as objects that are read may be large.
LONG_SECONDS = 0.002

log = get_logger(__name__)


class FanOut:
    """Changes that concern many objects, each told to these in steps.

    A change that comes again before it has been told counts once. While :meth:`run` isn't running, every change is
    told at once.
    """

    def __init__(self) -> None:
        self._pending: dict[Hashable, Callable[[], Iterator[object]]] = {}
        self._some = asyncio.Event()
        self._running = False

    def __bool__(self) -> bool:
        """Return True if something is still to be told."""
        return self._some.is_set()

    def tell(self, change: Hashable, most: int, objects: Callable[[], Iterator[object]]) -> None:
        """Tell all objects that a change concerns.

        Args:
            change: What has changed; an equal change that waits is the same.
            most: At most so many are concerned.
            objects: Returns an iterator that tells an object with each step.
        """
        if self._running and most > FEW:
            self._pending.setdefault(change, objects)
            self._some.set()
        elif change not in self._pending:
            for _ in objects():
                pass

    async def run(self) -> None:
        """Tell what is pending, until cancelled. What is pending then is forgotten."""
        self._running, told = True, 0
        try:
            while True:
                await self._some.wait()
                began = time.perf_counter()
                while self._pending:
                    for _ in self._safely(next(iter(self._pending))):
                        told += 1
                        if told % STEP == 0 or time.perf_counter() - began > LONG_SECONDS:
                            await asyncio.sleep(PAUSE_SECONDS)
                            began = time.perf_counter()
                self._some.clear()
        finally:
            self._running = False
            self._pending.clear()
            self._some.clear()

    def _safely(self, change: Hashable) -> Iterator[object]:
        """Tell of a pending change; an error ends that one alone."""
        objects = self._pending.pop(change)
        yield None
        try:
            yield from objects()
        except Exception:
            log.exception("not all that a change concerns could be told", change=str(change))
