"""Assumed objects: our own writes, from the request until the watch shows them.

The response to a write is newer than anything the watch has shown. It is assumed, as the
kube-scheduler assumes the Pods that it has bound: stored at once, so that the next decision is made
from it, and its version is remembered until the watch has caught up. Compared with these versions,
an event is *old*, *ours* or *new*. While a write is in progress, it is unknown which states are our
own doing, so notifications are deferred.
"""

from collections.abc import Callable, Collection, Iterator
from enum import StrEnum
from typing import NamedTuple, Self

from syncer.api.objects import Key, Obj, uid_of
from syncer.cache.handlers import Handler
from syncer.cache.versions import is_later
from syncer.clusters import codec

#: Seconds during which, without ordered versions, any state that differs from our own write counts
#: as older.
ECHO_SECONDS = 10.0
#: Maximum number of our own writes of an object that are remembered while the watch shows none of
#: them.
MOST_VERSIONS = 16
#: Maximum number of writes without a state in their responses that are remembered until the watch
#: shows them.
MOST_UNSEEN = 1_000
#: Maximum number of states that wait for the end of a write, each of which may be large.
MOST_DEFERRED = 8


class Verdict(StrEnum):
    """The meaning of an event for an object that we have written."""

    OLD = "old"  # someone else's change before our write
    OURS = "ours"  # our own write
    NEW = "new"  # a later state; the watch has caught up


class Assumed(NamedTuple):
    """Knowledge of an object ahead of the watch.

    It is the versions that we made, or the uid that we deleted.
    """

    versions: tuple[str, ...]
    gone: str
    since: float


class UnseenWrite(NamedTuple):
    """A write of ours whose response doesn't show the object, such as the binding of a Pod."""

    #: The uid of the object.
    uid: str
    #: The owner of the handlers that have made it.
    writer: str
    #: Returns True for a state after the write, and False for each before it.
    shows: Callable[[Obj], bool]

    def has_made(self, obj: Obj) -> bool:
        """Return True if the write has made this state, the first after the write."""
        return uid_of(obj) == self.uid and self.shows(obj)


class WriteInProgress:
    """A write in progress, as a ``with`` block.

    Only the response shows which of the states that the watch brings in the meantime is our own.
    So handlers are notified when the block ends, except of our own state; they are notified of
    every deletion, also of our own. If there are many states, handlers are notified of the oldest
    at once, which may be our own: once too often is better than never.
    """

    __slots__ = ("_key", "_notify", "_under_way", "before", "deferred", "shown", "void")

    def __init__(
        self,
        under_way: "dict[Key, list[WriteInProgress]]",
        key: Key,
        before: str,
        notify: Handler,
    ) -> None:
        #: The version of the object when the write began; ``""`` if there was none.
        self.before = before
        #: The versions that the watch has shown in the meantime.
        self.shown: set[str] = set()
        #: The states of which handlers will be notified: by version, or by the uid of a deleted
        #: object.
        self.deferred: dict[str, Obj] = {}
        #: True if a list has begun in the meantime that can't be ordered, so that the response may
        #: be older or newer.
        self.void = False
        self._under_way = under_way
        self._key = key
        self._notify = notify

    def __enter__(self) -> Self:
        self._under_way.setdefault(self._key, []).append(self)
        return self

    def __exit__(self, *_: object) -> None:
        others = self._under_way[self._key]
        others.remove(self)
        if not others:
            del self._under_way[self._key]
        for last in self.deferred.values():
            self._notify(self._key, last)

    def take(self, unseen: UnseenWrite) -> Obj | None:
        """Return the state that this very write has made, if the watch has shown it already.

        Handlers aren't notified of it when the block ends.
        """
        for state, last in self.deferred.items():
            if unseen.has_made(last):
                del self.deferred[state]
                return last
        return None

    def defer(self, state: str, last: Obj) -> None:
        """Notify handlers of a state later, unless there are many."""
        self.deferred[state] = last
        if len(self.deferred) > MOST_DEFERRED:
            self._notify(self._key, self.deferred.pop(next(iter(self.deferred))))


class AssumedObjects:
    """The table of our own writes of a resource; ``clock`` returns seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.table: dict[Key, Assumed] = {}
        #: The writes without a response yet.
        self.under_way: dict[Key, list[WriteInProgress]] = {}
        #: The writes whose states neither a response nor the watch has shown yet.
        self.unseen: dict[Key, UnseenWrite] = {}
        self._clock = clock

    def wrote(self, key: Key, version: str) -> None:
        """Assume the state of a response, or of a GET, until the watch shows it."""
        before: tuple[str, ...] = ()
        known = self.table.get(key)
        if known is not None:
            before = known.versions[1 - MOST_VERSIONS :]
        self.table[key] = Assumed((*before, version), "", self._clock())

    def wrote_before(self, key: Key, version: str) -> None:
        """Record a write of ours, after the response to a later one was processed."""
        known = self.table.get(key)
        if known is not None and known.versions:
            versions = (version, *known.versions[1 - MOST_VERSIONS :])
            self.table[key] = known._replace(versions=versions)

    def deleted(self, key: Key, uid: str) -> None:
        """Assume that the object with this uid is gone, until the watch shows its deletion."""
        self.table[key] = Assumed((), uid, self._clock())

    def wrote_unseen(self, key: Key, unseen: UnseenWrite) -> None:
        """Remember a write until the watch shows what it has made."""
        self.unseen[key] = unseen
        if len(self.unseen) > MOST_UNSEEN:
            del self.unseen[next(iter(self.unseen))]

    def seen(self, key: Key, obj: Obj) -> str:
        """Return who has made a state by a write that was unseen until now; ``""`` if nobody."""
        unseen = self.unseen.get(key)
        if unseen is None or not unseen.has_made(obj):
            return ""
        del self.unseen[key]
        return unseen.writer

    def is_gone(self, key: Key, uid: str) -> bool:
        """Return True if we deleted the object with this uid, and no watch has shown that yet."""
        known = self.table.get(key)
        return known is not None and not known.versions and known.gone == uid

    def is_written(self, key: Key) -> bool:
        """Return True if we wrote the object of a key, and the watch hasn't shown that yet."""
        known = self.table.get(key)
        return known is not None and bool(known.versions)

    def judge(self, head: codec.Head, *, deleted: bool, uid: str, ordered: bool) -> Verdict:
        """Return the meaning of an event for an object in the table.

        ``uid`` is the uid of the cached object.
        """
        key = head.key
        version = head.resource_version
        known = self.table[key]
        if not known.versions:
            if deleted or head.uid != known.gone:
                del self.table[key]
            if head.uid == known.gone:
                return Verdict.OURS
            return Verdict.NEW
        if version in known.versions and not deleted:
            if version == known.versions[-1]:
                del self.table[key]
            return Verdict.OURS
        if ordered:
            is_old = is_later(known.versions[-1], version)
        elif deleted:
            is_old = head.uid != uid
        else:
            is_old = self._clock() - known.since <= ECHO_SECONDS
        if is_old:
            return Verdict.OLD
        del self.table[key]
        return Verdict.NEW

    # -- lists -------------------------------------------------------------------------------------

    def written(self) -> set[Key]:
        """Return the keys of the objects that we have written, and not deleted since."""
        return {key for key, known in self.table.items() if known.versions}

    def latest(self) -> Iterator[str]:
        """Yield the latest version of each object that we have written."""
        return (known.versions[-1] for known in self.table.values() if known.versions)

    def forget_deletions(self) -> None:
        """Forget our deletions: a list that is requested from now on lacks these objects."""
        self.table = {key: known for key, known in self.table.items() if known.versions}

    def catch_up(self, version: str) -> Collection[Key]:
        """Forget the writes that a list of this version includes; return their keys."""
        included: list[Key] = []
        for key, known in self.table.items():
            if known.versions and not is_later(known.versions[-1], version):
                included.append(key)
        for key in included:
            del self.table[key]
        return included

    def clear(self) -> Collection[Key]:
        """Forget everything, and ignore the responses of writes in progress.

        Return the keys that were written.
        """
        written = self.written()
        self.table.clear()
        for writings in self.under_way.values():
            for writing in writings:
                writing.void = True
        return written
