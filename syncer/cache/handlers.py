"""The subscribers to changes of a resource: map functions, handlers, and waiters for a key."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from syncer.api.objects import Key, Obj
from syncer.cache.budget import Charge, NoRoom, cost_of, uncharged
from syncer.observe.logs import get_logger

#: Takes the key of a changed object, and the object as it is now or, if it is gone, as it last was.
Handler = Callable[[Key, Obj], None]

log = get_logger(__name__)


@dataclass(slots=True)
class MapFunction:
    """Maps an object to keys of another resource, or to other values.

    Calls ``notify`` with the keys that a change concerns. With ``when="keys"`` these are the keys
    that the object begins or ceases to name, with ``"used"`` those of them that no other object
    names, and with ``"change"`` all keys that it names or named.
    """

    owner: str
    keys: Callable[[Obj], Iterable[Any]]
    when: Literal["keys", "used", "change"]
    notify: Callable[[Iterable[Any]], None]
    #: Counts the memory of the keys that an object names.
    charge: Charge = uncharged
    #: Called with the key of an object for which one of the functions raised, and with the error.
    #: Without it, the first error is logged.
    on_error: Callable[[Key, Exception], None] | None = None
    named: dict[Key, frozenset[Any]] = field(default_factory=dict)
    #: With ``"used"``, the number of objects that name a key.
    users: Counter[Any] = field(default_factory=Counter)
    #: The keys of objects for which one of the functions raised.
    failed: set[Key] = field(default_factory=set)
    #: True once one of the functions has raised, which is logged once.
    raised: bool = False

    def update(self, key: Key, obj: Obj | None) -> None:
        """Update the state of an object; None if it is gone.

        An object for which the function raises still names the earlier keys.

        Raises:
            NoRoom: There is no room for its keys; it still names the earlier ones.
        """
        if self.failed:
            self.failed.discard(key)
        try:
            before = self.named.get(key, frozenset())
            now: frozenset[Any] = frozenset()
            if obj is not None:
                now = frozenset(self.keys(obj) or ())
            if now == before and self.when != "change":
                return
            difference = cost_of(now) - cost_of(before)
            if difference:
                self.charge(key, difference)
            if now:
                self.named[key] = now
            elif before:
                del self.named[key]
            concerned = before | now if self.when == "change" else before ^ now
            if concerned and self.when == "used":
                concerned = self._without_used(before, now)
            if concerned:
                self.notify(concerned)
        except NoRoom:
            self.failed.add(key)
            raise
        except Exception as error:
            if obj is not None:
                self.failed.add(key)
            if self.on_error is not None:
                self.on_error(key, error)
            elif not self.raised:
                log.exception("a watch raised", owner=self.owner)
            self.raised = True

    def _without_used(self, before: frozenset[Any], now: frozenset[Any]) -> frozenset[Any]:
        """Count the users of the keys that an object begins or ceases to name.

        Return those of the keys that no other object names.
        """
        self.users.update(now - before)
        self.users.subtract(before - now)
        alone: set[Any] = set()
        for key in before ^ now:
            others = self.users[key] - (key in now)
            if not others:
                alone.add(key)
            if not self.users[key]:
                del self.users[key]
        return frozenset(alone)

    def end(self) -> None:
        """Stop counting the memory of the keys."""
        for key, named in self.named.items():
            cost = cost_of(named)
            if cost:
                self.charge(key, -cost)
        self.charge = uncharged


class Handlers:
    """The map functions and event handlers of a resource, each with its owner."""

    def __init__(self) -> None:
        #: Every change of an object updates each of them.
        self.map_functions: list[MapFunction] = []
        self._handlers: list[tuple[str, Handler]] = []
        #: The owners whose handlers have raised, which is logged once for each.
        self._raised: set[str] = set()

    def __bool__(self) -> bool:
        """Return True if there is any."""
        return bool(self.map_functions or self._handlers)

    def add(self, handler: Handler, *, owner: str) -> None:
        """Add a handler for every change that isn't our own."""
        self._handlers.append((owner, handler))

    def forget(self, owner: str) -> None:
        """Remove the map functions and handlers of an owner."""
        for function in self.map_functions:
            if function.owner == owner:
                function.end()
        self.map_functions = [each for each in self.map_functions if each.owner != owner]
        self._handlers = [each for each in self._handlers if each[0] != owner]

    def end(self) -> None:
        """Stop counting the memory of the keys of all map functions."""
        for function in self.map_functions:
            function.end()

    def mapped_keys(self, owner: str) -> Iterator[Any]:
        """Yield the keys that an owner's map functions return for all objects, with repetitions."""
        for function in self.map_functions:
            if function.owner == owner:
                for keys in function.named.values():
                    yield from keys

    def notify(self, key: Key, last: Obj, *, quiet: bool = False) -> None:
        """Call the handlers; with ``quiet`` only those of the engine itself, with the owner ``""``.

        If a handler raises, the others are still called.
        """
        for owner, handler in self._handlers:
            if quiet and owner:
                continue
            try:
                handler(key, last)
            except Exception:  # noqa: BLE001 — it is logged
                self._log(owner)

    def notify_others(self, key: Key, last: Obj, *, writer: str) -> None:
        """Call the handlers of all owners but the one that has written the object."""
        for owner, handler in self._handlers:
            if owner in ("", writer):
                continue
            try:
                handler(key, last)
            except Exception:  # noqa: BLE001 — it is logged
                self._log(owner)

    def _log(self, owner: str) -> None:
        """Log the exception that is being handled, once for each owner of handlers."""
        if owner not in self._raised:
            log.exception("the handler of a change raised", owner=owner)
        self._raised.add(owner)


class Waiters:
    """The waiters for the next change of an object, by key. Each is notified once."""

    def __init__(self) -> None:
        self._waiting: dict[Key, dict[Hashable, Callable[[], None]]] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._waiting

    def add(self, key: Key, who: Hashable, notify: Callable[[], None]) -> None:
        """Call ``notify`` at the next creation, change or deletion of the object with a key.

        ``who`` may wait for a key only once.
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
