"""Objects by resource in one sequence of resourceVersions, with a bounded history that watches and pages read."""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

Obj = dict[str, Any]

encode: Callable[[Any], bytes] = msgspec.json.Encoder().encode
decode: Callable[[bytes], Any] = msgspec.json.Decoder().decode

#: Changes of one resource that are kept for watches that come back and for the later pages of a list.
HISTORY = 5_000


class Entry:
    """One object as stored. Nobody changes ``obj``: what is to change is decoded anew from ``raw``."""

    __slots__ = ("_raw", "key", "obj", "revision")

    def __init__(self, key: str, obj: Obj, revision: int) -> None:
        self.key = key
        self.obj = obj
        self.revision = revision
        self._raw: bytes | None = None

    @property
    def raw(self) -> bytes:
        """The object as JSON, made once."""
        if self._raw is None:
            self._raw = encode(self.obj)
        return self._raw

    def copy(self) -> Obj:
        """A private copy of the object."""
        copied: Obj = decode(self.raw)
        return copied


class Event:
    """A change: ADDED, MODIFIED or DELETED, the object after it (a deleted one as it last was) and before it."""

    __slots__ = ("entry", "previous", "revision", "type")

    def __init__(self, kind: str, entry: Entry, previous: Entry | None) -> None:
        self.type = kind
        self.entry = entry
        self.previous = previous
        self.revision = entry.revision


class Snapshot(NamedTuple):
    """What was stored at one revision, by table and key."""

    revision: int
    tables: Mapping[str, Mapping[str, Entry]]


class Watcher(Protocol):
    """Somebody who follows a table."""

    def offer(self, event: Event) -> None:
        """A change has happened."""
        ...

    def end(self) -> None:
        """The table isn't served any longer as it was."""
        ...


class Table:
    """The objects of one resource, ordered as etcd orders them, and their latest changes."""

    def __init__(self, name: str, history: int) -> None:
        self.name = name
        self.entries: dict[str, Entry] = {}
        self.keys: list[str] = []
        self.history: deque[Event] = deque()
        self.forgotten = 0
        self.watchers: dict[int, Watcher] = {}
        self._limit = history

    def record(self, event: Event) -> None:
        """Apply a change, remember it and tell the watchers."""
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
        """Put back entries as of a revision, without the history that led to them."""
        self.entries, self.keys = dict(entries), sorted(entries)
        self.history.clear()
        self.forgotten = revision

    def end_watches(self) -> None:
        """End every watch in good order, as happens when the resource is served anew or no more."""
        for watcher in list(self.watchers.values()):
            watcher.end()

    def since(self, revision: int) -> list[Event]:
        """The changes after ``revision``, oldest first."""
        found: list[Event] = []
        for event in reversed(self.history):
            if event.revision <= revision:
                break
            found.append(event)
        return found[::-1]

    def at(self, revision: int) -> tuple[list[str], dict[str, Entry]]:
        """Keys in order and entries as they were at ``revision``: the present, with later changes taken back."""
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
    """What etcd is to the real server: every write takes the next revision and leaves an event."""

    def __init__(self, *, history: int = HISTORY) -> None:
        self.revision = 1
        self.compacted = 0
        self.tables: dict[str, Table] = {}
        self.listeners: list[Callable[[str, Event], None]] = []
        self._history = history

    def table(self, name: str) -> Table:
        """The table of that name, made when first asked for."""
        found = self.tables.get(name)
        if found is None:
            found = self.tables[name] = Table(name, self._history)
        return found

    def get(self, table: str, key: str) -> Entry | None:
        """The object at a key, if there is one."""
        return self.table(table).entries.get(key)

    def scan(self, table: str, namespace: str = "") -> Iterator[Entry]:
        """All objects of a table, or those of one namespace, in order."""
        found = self.table(table)
        return (found.entries[key] for key in keys_in(found.keys, namespace))

    def create(self, table: str, key: str, obj: Obj) -> Entry:
        """Store a new object; its metadata gets the resourceVersion."""
        return self._write("ADDED", table, key, obj, None)

    def update(self, table: str, key: str, obj: Obj) -> Entry:
        """Replace an object that is there."""
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
        """Return what is stored now."""
        return Snapshot(self.revision, {name: dict(table.entries) for name, table in self.tables.items()})

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot: the revisions after it are given anew. Tell nobody."""
        self.revision = self.compacted = snapshot.revision
        for name, table in self.tables.items():
            table.restore(snapshot.tables.get(name, {}), snapshot.revision)

    def oldest(self, table: str) -> int:
        """The oldest revision from which a watch can still start, and at which a list can still be read."""
        return max(self.compacted, self.table(table).forgotten)

    def compact(self) -> None:
        """Forget every change so far: watches and pages from before now are expired."""
        self.compacted = self.revision
        for table in self.tables.values():
            table.history.clear()
            table.forgotten = self.revision


def key_of(namespace: str, name: str) -> str:
    """The key under which an object is stored; the namespace of a cluster-scoped object is ``""``."""
    return f"{namespace}/{name}"


def keys_in(keys: list[str], namespace: str) -> Iterable[str]:
    """Those of the ordered keys that are in a namespace; all of them where none is named."""
    if not namespace:
        return list(keys)
    return keys[bisect_left(keys, f"{namespace}/") : bisect_left(keys, f"{namespace}0")]
