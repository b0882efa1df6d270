"""The subscribers to changes of a resource: map functions, event handlers, and waiters for a key."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from syncer.api.objects import Key, Obj

#: Takes the key of a changed object, and the object as it is now or, if it is gone, as it last was.
Handler = Callable[[Key, Obj], None]


@dataclass(slots=True)
class MapFunction:
    """Maps an object to keys of another resource, and calls ``notify`` with the keys that a change
    concerns.

    With ``when="keys"`` these are the keys that the object begins or ceases to name, with
    ``"change"`` all that it names or named.
    """

    owner: str
    keys: Callable[[Obj], Iterable[Key]]
    when: Literal["keys", "change"]
    notify: Callable[[Iterable[Key]], None]
    named: dict[Key, frozenset[Key]] = field(default_factory=dict)

    def update(self, key: Key, obj: Obj | None) -> None:
        """Update the state of an object; None if it is gone."""
        before = self.named.get(key, frozenset())
        now = frozenset(self.keys(obj)) if obj is not None else frozenset()
        if now:
            self.named[key] = now
        elif before:
            del self.named[key]
        concerned = before ^ now if self.when == "keys" else before | now
        if concerned:
            self.notify(concerned)


class Handlers:
    """The map functions and event handlers of a resource, each with its owner."""

    def __init__(self) -> None:
        #: Whoever changes an object updates each of them.
        self.map_functions: list[MapFunction] = []
        self._handlers: list[tuple[str, Handler]] = []

    def add(self, handler: Handler, *, owner: str) -> None:
        """Add a handler for every change that isn't our own."""
        self._handlers.append((owner, handler))

    def forget(self, owner: str) -> None:
        """Remove the map functions and handlers of an owner."""
        self.map_functions = [each for each in self.map_functions if each.owner != owner]
        self._handlers = [(whose, handler) for whose, handler in self._handlers if whose != owner]

    def mapped_keys(self, owner: str) -> Iterator[Key]:
        """Yield the keys that an owner's map functions return for all objects; some more than once."""
        for function in self.map_functions:
            if function.owner == owner:
                for keys in function.named.values():
                    yield from keys

    def notify(self, key: Key, last: Obj, *, quiet: bool = False) -> None:
        """Call the handlers; with ``quiet`` only those of the engine itself, whose owner is ``""``."""
        for owner, handler in self._handlers:
            if not (quiet and owner):
                handler(key, last)


class Waiters:
    """The waiters for the next change of an object, by key. Each is notified once."""

    def __init__(self) -> None:
        self._waiting: dict[Key, dict[Hashable, Callable[[], None]]] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._waiting

    def add(self, key: Key, who: Hashable, notify: Callable[[], None]) -> None:
        """Call ``notify`` when the object of a key appears, changes or goes; ``who`` may wait only
        once for it.
        """
        self._waiting.setdefault(key, {})[who] = notify

    def remove(self, key: Key, who: Hashable) -> None:
        """Remove a waiter."""
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.pop(who, None)
            if not waiting:
                del self._waiting[key]

    def notify(self, key: Key) -> None:
        """Notify the waiters for a key."""
        for notify in self._waiting.pop(key, {}).values():
            notify()
