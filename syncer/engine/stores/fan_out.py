"""Notify many objects of one change in steps, so that no change stops the event loop."""

import asyncio
import time
from collections.abc import Callable, Hashable, Iterator

from syncer.observe.logs import get_logger

#: Maximum number of objects that are notified at once.
FEW = 100
#: Objects that are notified in a step, which takes a millisecond.
STEP = 200
#: Seconds between steps. So the notifications of one virtual cluster take about a tenth of the
#: time, however often it changes something.
PAUSE_SECONDS = 0.005
#: Seconds after which a step ends in any case, as objects that are read may be large.
LONG_SECONDS = 0.002

log = get_logger(__name__)


class FanOut:
    """Changes that concern many objects, which are notified in steps.

    A change that is repeated before its objects are notified counts once. While :meth:`run` isn't
    running, all objects are notified at once.
    """

    def __init__(self) -> None:
        self._pending: dict[Hashable, Callable[[], Iterator[object]]] = {}
        self._some = asyncio.Event()
        self._running = False

    def __bool__(self) -> bool:
        """Return True if a notification is pending."""
        return self._some.is_set()

    def notify(self, change: Hashable, most: int, objects: Callable[[], Iterator[object]]) -> None:
        """Notify all objects that a change concerns.

        Args:
            change: The identity of the change; an equal change that waits is the same.
            most: Maximum number of objects that are concerned.
            objects: Returns an iterator that notifies an object with each step.
        """
        if self._running and most > FEW:
            self._pending.setdefault(change, objects)
            self._some.set()
        elif change not in self._pending:
            for _ in objects():
                pass

    async def run(self) -> None:
        """Notify the objects of pending changes, until cancelled.

        Changes that are pending then are forgotten.
        """
        self._running = True
        notified = 0
        try:
            while True:
                await self._some.wait()
                began = time.perf_counter()
                while self._pending:
                    for _ in self._safely(next(iter(self._pending))):
                        notified += 1
                        if notified % STEP == 0 or time.perf_counter() - began > LONG_SECONDS:
                            await asyncio.sleep(PAUSE_SECONDS)
                            began = time.perf_counter()
                self._some.clear()
        finally:
            self._running = False
            self._pending.clear()
            self._some.clear()

    def _safely(self, change: Hashable) -> Iterator[object]:
        """Notify the objects of a pending change, one with each step.

        An error ends that change alone.
        """
        objects = self._pending.pop(change)
        yield None
        try:
            yield from objects()
        except Exception:
            log.exception("could not notify every object affected by a change", change=str(change))
