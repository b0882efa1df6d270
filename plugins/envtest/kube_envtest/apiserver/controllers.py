"""What happens by itself after a write: namespaces are emptied, dependents collected, definitions served."""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from kube_envtest.apiserver.storage import Event, Storage

#: Most reactions to one write; more means that two controllers fight.
MOST_STEPS = 1_000_000


class Controller(Protocol):
    """Reacts to changes; may write, which makes further changes."""

    def react(self, table: str, event: Event) -> None:
        """A change has been stored."""


class Controllers:
    """Hands every change to every controller, in order, until nothing changes any more.

    It runs right after each request has its reply, so that what follows from a write is there for the next request.
    """

    def __init__(self, storage: Storage) -> None:
        self._pending: deque[tuple[str, Event]] = deque()
        self._controllers: list[Controller] = []
        self._running = False
        storage.listeners.append(self._note)

    def add(self, controller: Controller) -> None:
        """Let a controller take part."""
        self._controllers.append(controller)

    def _note(self, table: str, event: Event) -> None:
        self._pending.append((table, event))

    def run(self) -> None:
        """React to everything that is pending."""
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


#: Seconds since 1970, as the controllers see them.
Now = Callable[[], float]
