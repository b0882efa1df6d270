"""Who is notified of the changes of one resource: map functions, event handlers, and those who wait for one key."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from syncer.api.objects import Key, Obj

#: Takes the key of an object that has changed, and the object as it is now or, where it is gone, as it last was.
Handler = Callable[[Key, Obj], None]


@dataclass(slots=True)
class MapFunction:
    """Maps an object to keys of another resource, and notifies ``notify`` of those that a change concerns.

    With ``when`` ``"keys"`` these are the keys that the object names from now on or no longer, with ``"change"`` all
    that it names or has named.
    """

    owner: str
    keys: Callable[[Obj], Iterable[Key]]
    when: Literal["keys", "change"]
    notify: Callable[[Iterable[Key]], None]
    named: dict[Key, frozenset[Key]] = field(default_factory=dict)

    def update(self, key: Key, obj: Obj | None) -> None:
        """Take the new state of an object; None: it is gone."""
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
    """The map functions and event handlers of one resource, each with its owner."""

    def __init__(self) -> None:
        #: For whoever changes objects: each one is to be updated.
        self.map_functions: list[MapFunction] = []
        self._handlers: list[tuple[str, Handler]] = []

    def add(self, handler: Handler, *, owner: str) -> None:
        """Notify a handler of each change that isn't our own."""
        self._handlers.append((owner, handler))

    def forget(self, owner: str) -> None:
        """Remove the map functions and handlers of an owner."""
        self.map_functions = [each for each in self.map_functions if each.owner != owner]
        self._handlers = [(whose, handler) for whose, handler in self._handlers if whose != owner]

    def mapped_keys(self, owner: str) -> Iterator[Key]:
        """Yield the keys to which the map functions of an owner map the objects; some more than once."""
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
    """Who waits for the next change of an object, by key. Each is notified once."""

    def __init__(self) -> None:
        self._waiting: dict[Key, dict[Hashable, Callable[[], None]]] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._waiting

    def add(self, key: Key, who: Hashable, notify: Callable[[], None]) -> None:
        """Call ``notify`` when the object of a key appears, changes or goes; the last one counts of each ``who``."""
        self._waiting.setdefault(key, {})[who] = notify

    def remove(self, key: Key, who: Hashable) -> None:
        """Take back what ``who`` has asked for by :meth:`add`."""
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.pop(who, None)
            if not waiting:
                del self._waiting[key]

    def notify(self, key: Key) -> None:
        """Notify those who wait for a key."""
        for notify in self._waiting.pop(key, {}).values():
            notify()
