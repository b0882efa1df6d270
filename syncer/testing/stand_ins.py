"""Stand-ins of a World for the parts of the engine that wait: queue, metrics, and event loop."""

from collections.abc import Coroutine
from typing import Any, TypeVar

from syncer.api import SyncerError, SyncRequest, Warned
from syncer.engine.reconcile.plan import PlannedWrite, PostponedFields, ServerAnswer
from syncer.workqueue.queue import Queue

T = TypeVar("T")


class Notebook(Queue):
    """A queue that only records its requests."""

    def __init__(self, notes: list[SyncRequest]) -> None:
        super().__init__(clock=lambda: 0.0)
        self._notes = notes

    def add(self, request: SyncRequest, *, after: float = 0.0, low: bool = False) -> None:
        """Record the request."""
        self._notes.append(request)


class Deaf:
    """A recorder that keeps nothing; a world has its own list."""

    def answered(self, planned: PlannedWrite, answer: ServerAnswer) -> None:
        """Refuse a call that changed nothing: it is a defect of its decision."""
        call = answer.call
        assert answer.changed, f"the {call.kind} of {planned.ref} changed nothing: {call.body}"

    def replaced(self) -> None:
        """Ignore that another write was made: a world decides until nothing is left to write."""

    def postponed(self, postponed: PostponedFields) -> None:
        """Ignore frozen fields; a world has none."""

    def warned(self, warning: Warned) -> None:
        """Ignore the event of a write."""

    def refused(self, postponed: PostponedFields, error: SyncerError) -> None:
        """Raise the refusal of a merge: a world refuses only mistakes.

        Raises:
            SyncerError: The refusal.
        """
        raise error


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise RuntimeError("something waited in a World, where no time passes")
