"""Step 2: what was last seen of one resource on one cluster, as exact-size bytes, with indexes.

The store is fed by the watch and by the replies to our own writes. A reply is the newest state there is, so it is put
at once and a decision that follows sees it. The events of a watch come in order, so whatever arrives before the echo
of our own write is older than that write and is dropped, and the echo itself brings nothing new. What is dropped and
isn't ours is told all the same: somebody else's change is part of the state that our write was answered with, though
not of the state that it was decided from. What comes before the reply to our own write is put, but told only when the
reply says that it is somebody else's. resourceVersions are compared for equality, and for order only between a
list and the replies that arrive while it is read (https://kubernetes.io/docs/reference/using-api/api-concepts/).
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Any, Literal, TypeVar

from syncer.api.objects import Key, Obj, Resource, Side, key_of
from syncer.clusters import codec
from syncer.engine.cache.assumed import Writing
from syncer.engine.cache.entry import Entry, is_later, is_older
from syncer.engine.cache.indexer import Index, Watcher
from syncer.engine.cache.listing import Listing

Follower = TypeVar("Follower", Watcher, Index)

#: Deletions that are remembered to have been seen.
WITNESSED = 10_000
#: Seconds after which an echo that has not come is no longer waited for: an event got lost, and the next one counts.
ECHO_SECONDS = 10.0


class Store:
    """What was last seen of one resource. Reads give private copies."""

    def __init__(self, side: Side, resource: Resource, *, clock: Callable[[], float]) -> None:
        self.side, self.resource = side, resource
        self.synced = False
        self._clock = clock
        self._entries: dict[Key, Entry] = {}
        self._indexes: dict[str, Index] = {}
        self._watchers: list[Watcher] = []
        self._listeners: list[tuple[str, Callable[[Key, Obj], None]]] = []
        self._waiting: dict[Key, dict[Hashable, Callable[[], None]]] = {}
        self._writing: dict[Key, list[Writing]] = {}
        self._echoes: dict[Key, tuple[float, set[str]]] = {}
        self._doomed: dict[Key, str] = {}
        #: The uids of what was seen to go, by a watch or by our own doing; if it is there again, that was seen, too.
        self._witnessed: dict[Key, str] = {}
        self._listing: Listing | None = None
        #: Whether a list has begun that has not come to its end since; one beside a watch doesn't count.
        self._unfinished = False
        #: The version of a list that was read beside a watch, until the watch has caught up with it.
        self._overtaken = ""
        #: The version of the latest list, complete or not; replies that are older bring nothing.
        self._listed = ""
        self._listed_at = -inf

    # -- who is told ---------------------------------------------------------------------------------------------------

    def add_index(
        self,
        name: str,
        values: Callable[[Obj], Iterable[Hashable]],
        *,
        owner: str = "",
        notify: Callable[[Iterable[Any]], None] | None = None,
    ) -> None:
        """Keep the store findable by the values of this function; ``notify`` hears of the values gained and lost."""
        self._indexes[name] = self._caught_up(Index(owner, values, notify))

    def add_watcher(
        self,
        keys: Callable[[Obj], Iterable[Key]],
        when: Literal["keys", "change"],
        notify: Callable[[Iterable[Key]], None],
        *,
        owner: str = "",
    ) -> None:
        """Tell ``notify`` which keys an object concerns, whenever it changes."""
        self._watchers.append(self._caught_up(Watcher(owner, keys, when, notify)))

    def add_listener(self, listener: Callable[[Key, Obj], None], *, owner: str = "") -> None:
        """Tell ``listener`` of every change that isn't our own, with the object as it is now or last was."""
        self._listeners.append((owner, listener))

    def forget(self, owner: str) -> None:
        """Take back all that was added in this owner's name."""
        self._indexes = {name: index for name, index in self._indexes.items() if index.owner != owner}
        self._watchers = [watcher for watcher in self._watchers if watcher.owner != owner]
        self._listeners = [(whose, listener) for whose, listener in self._listeners if whose != owner]

    def _caught_up(self, newcomer: Follower) -> Follower:
        for key, entry in self._entries.items():
            newcomer.see(key, codec.seen(entry.raw))
        return newcomer

    def wake(self, key: Key, who: Hashable, waiter: Callable[[], None]) -> None:
        """Call ``waiter`` once, when the object of this key appears, changes or goes; one a ``who``."""
        self._waiting.setdefault(key, {})[who] = waiter

    def unwake(self, key: Key, who: Hashable) -> None:
        """Take back what ``who`` asked for by :meth:`wake`."""
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.pop(who, None)
            if not waiting:
                del self._waiting[key]

    # -- reads -----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def get(self, key: Key) -> Obj | None:
        """The object as a private copy."""
        entry = self._entries.get(key)
        return codec.seen(entry.raw) if entry else None

    def entry(self, key: Key) -> Entry | None:
        """The entry as it is kept."""
        return self._entries.get(key)

    def keys(self) -> Collection[Key]:
        """All keys."""
        return self._entries.keys()

    def indexed(self, index: str, value: Hashable) -> Collection[Key]:
        """The keys for which an index function gave this value."""
        return self._indexes[index].by_value.get(value, ())

    def values(self, index: str) -> Collection[Any]:
        """All values that an index function gave."""
        return self._indexes[index].by_value.keys()

    def named(self, owner: str) -> Iterator[Key]:
        """The keys that the objects name to the watchers of this owner; some more than once."""
        for watcher in self._watchers:
            if watcher.owner == owner:
                for keys in watcher.named.values():
                    yield from keys

    @property
    def age(self) -> float:
        """Seconds for which the store has been kept by a watch, since the list that the watch began with."""
        listing = self._listing is not None and self._listing.watched is None
        return 0.0 if listing else self._clock() - self._listed_at

    def left_behind(self) -> None:
        """The watch has ended and can't go on: what is kept may be old, as may what is listed next."""
        self._listed_at = self._clock()

    @property
    def is_in_part(self) -> bool:
        """Whether what is here is partly of a list that is not complete: nobody can say how much that has changed."""
        return self._unfinished or self._listing is not None

    def saw_go(self, key: Key, uid: str | None = None) -> bool:
        """Whether the latest object of this key was seen to go; what is only missing may never have been listed.

        With a ``uid``: whether that is the one that went. A watch that is behind may show the end of an earlier one.
        """
        return key not in self._entries and key in self._witnessed and uid in (None, self._witnessed[key])

    def saw_replaced(self, key: Key) -> bool:
        """Whether a watch has shown that an earlier object of this key went and another one came."""
        return key in self._witnessed and key in self._entries

    # -- fed by the watch ------------------------------------------------------------------------------------------

    def event(self, kind: str, raw: codec.Raw) -> str:
        """Take an ADDED, MODIFIED or DELETED event; gives the version that it shows."""
        head = codec.head(raw)
        key = head.key
        self._show(key, head.resource_version, *([head.uid] if kind == "DELETED" else ()))
        if self._listing is not None:
            self._listing.shown[key] = head.resource_version
        if not self._is_listed(head.resource_version) and not self._is_known(key, head, kind):
            if kind == "DELETED":
                self._witness(key, head.uid)
                self._remove(key, seen=True, event=head.uid)
            elif not self._has(key, head.resource_version):
                self._put(key, codec.seen(raw), event=head.resource_version)
        return head.resource_version

    @contextmanager
    def replacing(
        self, *, watched: Callable[[], str] | None = None, wrong: Callable[[Key], None] = lambda key: None
    ) -> Iterator[Callable[[Iterable[codec.Raw], str], None]]:
        """Replace all by a list: feed the pages, each with the list's version; what was in none of them is gone after.

        Where the block ends by an error, what the pages brought stays and nothing is taken away.

        ``watched`` gives the version that a watch has brought which goes on beside the list. What that watch has
        passed and the store had otherwise, the store had wrong: ``wrong`` is told, and no listener of a syncer.
        """
        listed: set[Key] = set()
        listing = self._listing = Listing(watched, wrong)
        self._unfinished = self._unfinished or watched is None
        own = listing.own

        def page(items: Iterable[codec.Raw], of_list: str) -> None:
            self._listed = of_list
            for raw in items:
                head = codec.head(raw)
                key = head.key
                listed.add(key)
                self._show(key, head.resource_version)
                if self._doomed.get(key) == head.uid:
                    self._remove(key, seen=True)  # what is still kept is an earlier object of this name
                    continue
                if key in own and is_later(own[key], head.resource_version):
                    self._tell_anew(key)  # it may be of others, and our write was not decided from it
                    continue
                if not self._has(key, head.resource_version):
                    self._take(listing, key, head.resource_version, raw)

        try:
            yield page
        finally:
            self._listing = None
        self._doomed = {key: uid for key, uid in self._doomed.items() if key in own}
        for key in self._entries.keys() - listed - {key for key, made in own.items() if is_later(made, self._listed)}:
            self._miss(listing, key)
        self._end_echoes(self._listed)
        self._overtaken = self._listed if watched else ""
        if not watched:
            self._listed_at, self._unfinished = self._clock(), False
        self.synced = True

    # -- fed by our own writes -------------------------------------------------------------------------------------

    def writing(self, key: Key) -> Writing:
        """Surround a write of ours, and call :meth:`wrote` or :meth:`deleted` within."""
        return Writing(self._writing, key, self._tell_listeners)

    def wrote(self, key: Key, writing: Writing, reply: Obj) -> bool:
        """Take the reply to a create or a change; False where it changed nothing (the version is the old one)."""
        version = reply["metadata"]["resourceVersion"]
        writing.own(version)
        before = self._entries.get(key)
        if before and before.version == version:
            return version in writing.seen
        if version in writing.seen or not is_later(version, self._listed):
            return True
        self._expect_echo(key, version)
        self._put(key, reply, own=True)
        return True

    def deleted(self, key: Key, writing: Writing, uid: str) -> None:
        """Take it that the object with this uid is gone at once."""
        if uid in writing.seen:
            return
        if self._listing is not None:
            self._listing.own.setdefault(key, "")
        self._doomed[key] = uid
        self._echoes.pop(key, None)
        self._witness(key, uid)
        entry = self._entries.get(key)
        if entry and entry.uid == uid:
            self._remove(key, seen=True)

    def seen_live(self, obj: Obj, writing: Writing | None = None) -> None:
        """Take an object that was read from the API server, because the store turned out to be behind.

        ``writing`` is the write that showed it. Where the watch has shown the object meanwhile, it is no longer behind,
        and what was read may be older.
        """
        key, version = key_of(obj), obj["metadata"]["resourceVersion"]
        if (writing is not None and writing.seen) or self._has(key, version) or not is_later(version, self._listed):
            return
        self._expect_echo(key, version)
        self._put(key, obj)

    def gone_live(self, key: Key, writing: Writing | None = None) -> None:
        """Take it that the API server says there is no such object; ``writing`` as in :meth:`seen_live`."""
        if key in self._entries and not (writing is not None and writing.seen):
            self._remove(key)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _take(self, listing: Listing, key: Key, version: str, raw: codec.Raw) -> None:
        """Take what a list has otherwise than the store, unless the store may know better."""
        if listing.says_nothing_of(key, version, self._entries.get(key)):
            return
        is_wrong = listing.watched is not None and not is_later(version, listing.passed)
        if is_wrong:
            listing.wrong(key)
        self._put(key, codec.seen(raw), quiet=is_wrong)

    def _miss(self, listing: Listing, key: Key) -> None:
        """Take it that a list has no object of this key, unless the store may know better."""
        if listing.says_nothing_of(key, self._listed, self._entries.get(key)):
            return
        is_wrong = listing.watched is not None and not is_later(self._listed, listing.watched())
        if is_wrong:
            listing.wrong(key)
        self._remove(key, quiet=is_wrong)

    def _is_listed(self, version: str) -> bool:
        """Whether an event is older than a list that was read beside the watch; events come in order."""
        if self._overtaken and version != self._overtaken and not is_older(version, self._overtaken):
            self._overtaken = ""
        return bool(self._overtaken)

    def _show(self, key: Key, *marks: str) -> None:
        """Let the writes under way know what the watch or a list has shown of their object."""
        for writing in self._writing.get(key, ()):
            writing.seen.update(marks)

    def _witness(self, key: Key, uid: str) -> None:
        self._witnessed[key] = uid
        if len(self._witnessed) > WITNESSED:
            del self._witnessed[next(iter(self._witnessed))]

    def _expect_echo(self, key: Key, version: str) -> None:
        """Take this version for the latest until the watch shows it; what it shows before that is older."""
        if self._listing is not None:
            self._listing.own[key] = version
        _, versions = self._echoes.get(key, (0.0, set()))
        self._echoes[key] = (self._clock(), versions | {version})
        self._doomed.pop(key, None)

    def _end_echoes(self, listed: str) -> None:
        """Wait no longer for what a list of this version had; nobody will say what else lay between, so look again."""
        echoes, self._echoes = self._echoes, {}
        for key, (since, versions) in echoes.items():
            later = {version for version in versions if is_later(version, listed)}
            if later:
                self._echoes[key] = (since, later)
            if later != versions:
                self._tell_anew(key)

    def _has(self, key: Key, version: str) -> bool:
        entry = self._entries.get(key)
        return entry is not None and entry.version == version

    def _is_known(self, key: Key, head: codec.Head, kind: str) -> bool:
        """Whether an event tells nothing new: the echo of a write of ours, or older than one."""
        if uid := self._doomed.get(key):
            if uid == head.uid:
                if kind == "DELETED":
                    del self._doomed[key]
                return True
            del self._doomed[key]
        if key not in self._echoes:
            return False
        since, versions = self._echoes[key]
        if self._clock() - since > ECHO_SECONDS:
            del self._echoes[key]
            return False
        if head.resource_version in versions:
            versions.discard(head.resource_version)
            if versions:
                return kind != "DELETED"
            del self._echoes[key]
            return kind != "DELETED" and self._has(key, head.resource_version)
        if all(is_older(version, head.resource_version) for version in versions):
            del self._echoes[key]  # they got lost: what is shown is later
            return False
        if kind != "DELETED":
            self._tell_anew(key)
        return True

    def _put(self, key: Key, obj: Obj, *, own: bool = False, quiet: bool = False, event: str = "") -> None:
        metadata = obj["metadata"]
        metadata.pop("managedFields", None)
        if "kind" not in obj:
            obj = {"apiVersion": self.resource.api_version, "kind": self.resource.kind, **obj}
        if not event:
            self._witnessed.pop(key, None)
        self._entries[key] = Entry(metadata["resourceVersion"], metadata.get("uid", ""), codec.encode(obj))
        self._tell(key, obj, obj, own=own, quiet=quiet, event=event)

    def _remove(self, key: Key, *, seen: bool = False, quiet: bool = False, event: str = "") -> None:
        if not seen:
            self._witnessed.pop(key, None)
        entry = self._entries.pop(key, None)
        if entry:
            self._tell(key, None, codec.seen(entry.raw), quiet=quiet, event=event)

    def _tell(
        self, key: Key, now: Obj | None, last: Obj, *, own: bool = False, quiet: bool = False, event: str = ""
    ) -> None:
        """Tell who follows the object at once; who listens, of an ``event`` only once it is known not to be ours."""
        for index in self._indexes.values():
            index.see(key, now)
        for watcher in self._watchers:
            watcher.see(key, now)
        for waiter in self._waiting.pop(key, {}).values():
            waiter()
        if event and key in self._writing:
            for writing in self._writing[key]:
                writing.hold(event, last)
        elif not own:
            self._tell_listeners(key, last, quiet=quiet)

    def _tell_anew(self, key: Key) -> None:
        obj = self.get(key)
        if obj is not None:
            self._tell_listeners(key, obj)

    def _tell_listeners(self, key: Key, last: Obj, *, quiet: bool = False) -> None:
        for owner, listener in self._listeners:
            if not (quiet and owner):
                listener(key, last)
