"""A watch: the changes of a selection from a resourceVersion on, as lines of JSON."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from kube_envtest.apiserver.errors import ApiError, too_old
from kube_envtest.apiserver.selection import Selection
from kube_envtest.apiserver.storage import Entry, Event, Storage, encode
from kube_envtest.apiserver.views import View

#: Seconds between bookmarks. Source: ``bookmarkFrequency`` of the real server's watch cache.
BOOKMARK_SECONDS = 60.0

#: Unread lines after which the watch is cut, as the real server does to a slow reader.
BUFFER = 20_000

INITIAL_END = {"k8s.io/initial-events-end": "true"}


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """The options in the query.

    ``revision`` 0 begins with the current state, ``timeout`` is in seconds.

    ``until`` hides later changes until :meth:`Watch.show` is called.
    """

    revision: int = 0
    timeout: float = 1800.0
    bookmarks: bool = False
    initial: bool = False
    initial_end: bool = False
    until: int | None = None


class WatchCut(Exception):
    """The connection is cut in the middle of the stream."""


class Watch:
    """An open watch. It follows its table from its creation until ``close``.

    ``batches`` yields lists of lines, without newlines. ``mangle`` may drop or repeat lines (fault
    injection).
    """

    def __init__(self, storage: Storage, table: str, selection: Selection, view: View, options: WatchOptions) -> None:
        self.mangle: Callable[[bytes], list[bytes]] | None = None
        self.revision = max(options.revision, 0)
        self._storage = storage
        self._table = storage.table(table)
        self._selection = selection
        self._view = view
        self._options = options
        self._until = options.until
        self._postponed: list[Event] = []
        self._buffer: list[bytes] = []
        self._wake = asyncio.Event()
        self._ended = False
        self._torn = False
        self._begin(table)

    def _begin(self, table: str) -> None:
        options = self._options
        if options.initial:
            self.revision = self._storage.revision if self._until is None else self._until
            keys, entries = self._table.at(self.revision)
            for key in keys:
                if self._selection.chooses(entries[key]):
                    self._put("ADDED", entries[key])
            if options.initial_end:
                self._buffer.append(self._view.bookmark(self.revision, INITIAL_END))
            for event in self._table.since(self.revision):
                self.offer(event)
        elif options.revision < (oldest := self._storage.oldest(table)):
            self._fail(too_old(options.revision, oldest))
            return
        else:
            for event in self._table.since(options.revision):
                self.offer(event)
        self._table.watchers[id(self)] = self

    def offer(self, event: Event) -> None:
        """Take a change: as it is, or as ADDED or DELETED if it enters or leaves the selection."""
        if event.revision <= self.revision:
            return
        if self._until is not None and event.revision > self._until:
            self._postponed.append(event)
            return
        self.revision = event.revision
        previous = event.previous
        now = event.type != "DELETED" and self._selection.chooses(event.entry)
        before = previous is not None and self._selection.chooses(previous)
        if now:
            kind = "ADDED"
            if before:
                kind = "MODIFIED"
            self._put(kind, event.entry)
        elif before and previous is not None:
            entry = event.entry
            if event.type != "DELETED":
                entry = _as_of(previous, event.revision)
            self._put("DELETED", entry)

    def show(self, until: int | None) -> None:
        """Hide changes after a revision from now on, or (None) show everything, beginning with the
        hidden changes.
        """
        self._until = until
        postponed = self._postponed
        self._postponed = []
        for event in postponed:
            self.offer(event)

    def _put(self, kind: str, entry: Entry) -> None:
        line = self._view.frame(kind, entry)
        if self.mangle is None:
            self._buffer.append(line)
        else:
            self._buffer.extend(self.mangle(line))
        if len(self._buffer) > BUFFER:
            self.end()
        self._wake.set()

    def _fail(self, error: ApiError) -> None:
        self._buffer.append(b'{"type":"ERROR","object":' + encode(error.status()) + b"}")
        self.end()

    def fail(self, error: ApiError) -> None:
        """Send an ERROR event and end."""
        self._fail(error)

    def end(self) -> None:
        """End regularly after the buffered lines."""
        self._ended = True
        self._wake.set()
        self.close()

    def tear(self) -> None:
        """End like a broken connection, losing the buffered lines."""
        self._torn = True
        self.end()

    @property
    def open(self) -> bool:
        """True if it still follows its table."""
        return id(self) in self._table.watchers

    def close(self) -> None:
        """Stop following the table."""
        self._table.watchers.pop(id(self), None)

    async def batches(self) -> AsyncIterator[list[bytes]]:
        """Yield available lines, then wait; bookmarks in between.

        Raises:
            WatchCut: The watch was cut.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + self._options.timeout
        bookmark = loop.time() + BOOKMARK_SECONDS
        while not self._torn:
            if self._buffer:
                batch = self._buffer
                self._buffer = []
                yield batch
            elif self._ended:
                return
            elif (now := loop.time()) >= end:
                self.close()
                if self._options.bookmarks and self._has_come():
                    yield [self._bookmark()]
                return
            elif now >= bookmark and self._options.bookmarks:
                bookmark = now + BOOKMARK_SECONDS
                if self._has_come():
                    yield [self._bookmark()]
            else:
                until = end
                if self._options.bookmarks:
                    until = min(end, bookmark)
                await self._wait(until - now)
        raise WatchCut

    def _has_come(self) -> bool:
        """Return True if the version exists that the watch begins at; until then it shows nothing."""
        return self._storage.revision >= self._options.revision

    def _bookmark(self) -> bytes:
        revision = self.revision
        if self._until is None:
            revision = self._storage.revision
        return self._view.bookmark(revision)

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()


def _as_of(entry: Entry, revision: int) -> Entry:
    """Return the object as it was, with the version of the change by which it left the selection."""
    metadata = {**entry.obj["metadata"], "resourceVersion": str(revision)}
    return Entry(entry.key, {**entry.obj, "metadata": metadata}, revision)
