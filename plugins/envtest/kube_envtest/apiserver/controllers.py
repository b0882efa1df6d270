"""Controllers that react to a write: namespaces are emptied, dependents collected, definitions served."""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from kube_envtest.apiserver.storage import Event, Storage

#: Maximum number of reactions to a write; more mean that two controllers fight.
MOST_STEPS = 1_000_000


class Controller(Protocol):
    """Reacts to changes; it may write, which causes further changes."""

    def react(self, table: str, event: Event) -> None:
        """React to a stored change."""


class Controllers:
    """Passes every change to every controller, in order, until nothing changes any more.

    It runs right after each request, so the consequences of a write are visible to the next
    request.
    """

    def __init__(self, storage: Storage) -> None:
        self._pending: deque[tuple[str, Event]] = deque()
        self._controllers: list[Controller] = []
        self._running = False
        storage.listeners.append(self._note)

    def add(self, controller: Controller) -> None:
        """Add a controller."""
        self._controllers.append(controller)

    def _note(self, table: str, event: Event) -> None:
        self._pending.append((table, event))

    def run(self) -> None:
        """React to all pending changes."""
        if self._running:
            return
        self._running = True
        try:
            for _ in range(MOST_STEPS):
                if not self._pending:
                    return
                table, event = self._pending.popleft()
                for controller in self._controllers:
                    controller.react(table, event)
        finally:
            self._running = False


#: Returns seconds since 1970, for the controllers.
Now = Callable[[], float]
