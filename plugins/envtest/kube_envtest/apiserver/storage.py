"""The storage: objects by resource with a common sequence of resourceVersions, and a bounded
history for watches and pages.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

Obj = dict[str, Any]

encode: Callable[[Any], bytes] = msgspec.json.Encoder().encode
decode: Callable[[bytes], Any] = msgspec.json.Decoder().decode

#: Changes of a resource that are kept for resumed watches and for later pages of a list.
HISTORY = 5_000


class Entry:
    """A stored object. ``obj`` must not be changed: decode ``raw`` instead."""

    __slots__ = ("_raw", "key", "obj", "revision")

    def __init__(self, key: str, obj: Obj, revision: int) -> None:
        self.key = key
        self.obj = obj
        self.revision = revision
        self._raw: bytes | None = None

    @property
    def raw(self) -> bytes:
        """The object as JSON, encoded once."""
        if self._raw is None:
            self._raw = encode(self.obj)
        return self._raw

    def copy(self) -> Obj:
        """Return a private copy of the object."""
        copied: Obj = decode(self.raw)
        return copied


class Event:
    """A change: ADDED, MODIFIED or DELETED, the object after it (a deleted one as it last was) and
    before it.
    """

    __slots__ = ("entry", "previous", "revision", "type")

    def __init__(self, kind: str, entry: Entry, previous: Entry | None) -> None:
        self.type = kind
        self.entry = entry
        self.previous = previous
        self.revision = entry.revision


class Snapshot(NamedTuple):
    """The stored objects at a revision, by table and key."""

    revision: int
    tables: Mapping[str, Mapping[str, Entry]]


class Watcher(Protocol):
    """A follower of a table."""

    def offer(self, event: Event) -> None:
        """Receive a change."""
        ...

    def end(self) -> None:
        """End: the table is no longer served as before."""
        ...


class Table:
    """The objects of a resource in etcd's order, and their latest changes."""

    def __init__(self, name: str, history: int) -> None:
        self.name = name
        self.entries: dict[str, Entry] = {}
        self.keys: list[str] = []
        self.history: deque[Event] = deque()
        self.forgotten = 0
        self.watchers: dict[int, Watcher] = {}
        self._limit = history

    def record(self, event: Event) -> None:
        """Apply and record a change, and notify the watchers."""
        key = event.entry.key
        if event.type == "DELETED":
            del self.entries[key]
            del self.keys[bisect_left(self.keys, key)]
        else:
            if event.type == "ADDED":
                insort(self.keys, key)
            self.entries[key] = event.entry
        self.history.append(event)
        if len(self.history) > self._limit:
            self.forgotten = self.history.popleft().revision
        for watcher in list(self.watchers.values()):
            watcher.offer(event)

    def restore(self, entries: Mapping[str, Entry], revision: int) -> None:
        """Restore entries at a revision, without the history."""
        self.entries = dict(entries)
        self.keys = sorted(entries)
        self.history.clear()
        self.forgotten = revision

    def end_watches(self) -> None:
        """End every watch regularly, as when the resource is changed or no longer served."""
        for watcher in list(self.watchers.values()):
            watcher.end()

    def since(self, revision: int) -> list[Event]:
        """Return the changes after ``revision``, oldest first."""
        found: list[Event] = []
        for event in reversed(self.history):
            if event.revision <= revision:
                break
            found.append(event)
        return found[::-1]

    def at(self, revision: int) -> tuple[list[str], dict[str, Entry]]:
        """Return keys in order and entries at ``revision``: the current state, with later changes undone."""
        later = self.since(revision)
        if not later:
            return self.keys, self.entries
        entries = dict(self.entries)
        for event in reversed(later):
            if event.previous is None:
                entries.pop(event.entry.key, None)
            else:
                entries[event.entry.key] = event.previous
        return sorted(entries), entries


class Storage:
    """The counterpart of etcd: every write takes the next revision and leaves an event."""

    def __init__(self, *, history: int = HISTORY) -> None:
        self.revision = 1
        self.compacted = 0
        self.tables: dict[str, Table] = {}
        self.listeners: list[Callable[[str, Event], None]] = []
        self._history = history

    def table(self, name: str) -> Table:
        """Return the table of this name; it is created on first use."""
        found = self.tables.get(name)
        if found is None:
            found = self.tables[name] = Table(name, self._history)
        return found

    def get(self, table: str, key: str) -> Entry | None:
        """Return the object at a key, if there is one."""
        return self.table(table).entries.get(key)

    def scan(self, table: str, namespace: str = "") -> Iterator[Entry]:
        """Yield the objects of a table, or those of a namespace, in order."""
        found = self.table(table)
        return (found.entries[key] for key in keys_in(found.keys, namespace))

    def create(self, table: str, key: str, obj: Obj) -> Entry:
        """Store a new object; its metadata gets the resourceVersion."""
        return self._write("ADDED", table, key, obj, None)

    def update(self, table: str, key: str, obj: Obj) -> Entry:
        """Replace an existing object."""
        return self._write("MODIFIED", table, key, obj, self.table(table).entries[key])

    def delete(self, table: str, key: str, last: Obj | None = None) -> Entry:
        """Remove an object; watchers see it as it was, or as ``last``, with the revision of its removal."""
        previous = self.table(table).entries[key]
        obj = last or {**previous.obj, "metadata": dict(previous.obj["metadata"])}
        return self._write("DELETED", table, key, obj, previous)

    def _write(self, kind: str, table: str, key: str, obj: Obj, previous: Entry | None) -> Entry:
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        entry = Entry(key, obj, self.revision)
        event = Event(kind, entry, previous)
        self.table(table).record(event)
        for listener in self.listeners:
            listener(table, event)
        return entry

    def snapshot(self) -> Snapshot:
        """Return the stored state."""
        return Snapshot(self.revision, {name: dict(table.entries) for name, table in self.tables.items()})

    def restore(self, snapshot: Snapshot) -> None:
        """Restore a snapshot: later revisions are reused. No watch is notified."""
        self.revision = self.compacted = snapshot.revision
        for name, table in self.tables.items():
            table.restore(snapshot.tables.get(name, {}), snapshot.revision)

    def oldest(self, table: str) -> int:
        """Return the oldest revision from which a watch can start, and at which a list can be read."""
        return max(self.compacted, self.table(table).forgotten)

    def compact(self) -> None:
        """Forget the history: watches and pages from before now are expired."""
        self.compacted = self.revision
        for table in self.tables.values():
            table.history.clear()
            table.forgotten = self.revision


def key_of(namespace: str, name: str) -> str:
    """Return the key of an object; the namespace of a cluster-scoped object is ``""``."""
    return f"{namespace}/{name}"


def keys_in(keys: list[str], namespace: str) -> Iterable[str]:
    """Return the ordered keys in a namespace; all for ``""``."""
    if not namespace:
        return list(keys)
    return keys[bisect_left(keys, f"{namespace}/") : bisect_left(keys, f"{namespace}0")]
