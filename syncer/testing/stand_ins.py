"""What stands in a World for the parts of the engine that wait: the queue, the metrics, and the loop."""

from collections.abc import Coroutine
from typing import Any, TypeVar

from syncer.api import Request, Side
from syncer.engine.reconcile.policies.contention import HeldFields
from syncer.engine.workqueue.queue import Queue

T = TypeVar("T")


class Notebook(Queue):
    """A queue that only writes down what is put into it."""

    def __init__(self, notes: list[Request]) -> None:
        super().__init__(clock=lambda: 0.0)
        self._notes = notes

    def add(self, request: Request, *, after: float = 0.0, low: bool = False) -> None:
        """Write the request down."""
        self._notes.append(request)


class Deaf:
    """Hears of writes and keeps nothing; a world has its own list."""

    def wrote(self, side: Side, verb: str) -> None:
        """One API call that changed something."""

    def futile(self, side: Side) -> None:
        """Refuse a call that changed nothing: it is a defect of whoever decided it."""
        raise AssertionError(f"a write to the {side.value} side changed nothing")

    def held(self, held: HeldFields) -> None:
        """Fields of one object are left alone; in a world none are."""


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise RuntimeError("something waited in a World, where no time passes")
