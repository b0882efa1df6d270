"""The cache of a resource in a cluster: fed by a reflector, and by the responses to our own writes.

A response is the newest state there is, so it is stored at once, and the following decision is made
from it. Later states from the watch are compared with it by resourceVersion
(:mod:`syncer.cache.assumed`): our own state brings nothing new. An older state isn't stored,
but a dropped event of someone else still notifies handlers: our response already includes that
change, but our decision was made without it. A state that is shown before the response is stored,
and handlers are notified when the response shows that it isn't ours.

A list overrides all earlier states, except for writes that are certainly later. If the list may
be an older state, or versions have no order, the table of our own writes is cleared, and pending
responses are ignored; the following watch shows everything again.

An object is stored whole only if it can be decoded, belongs to the collection, and has metadata of
the right types. Otherwise it is quarantined: it exists without its contents
(:data:`.codec.UNREADABLE`), so that it blocks no other object and its copy is no orphan, until a
later state of it is well-formed. Indexes keep its earlier values. An object that there is no room
for is quarantined, too. An item without a valid name is only counted.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Any, Literal

from syncer.api.objects import Key, Obj, Resource, is_deleting, key_of
from syncer.api.paths import dig
from syncer.byte_budget import ByteBudget
from syncer.cache.assumed import AssumedObjects, UnseenWrite, Verdict, WriteInProgress
from syncer.cache.budget import OVERHEAD, NoRoom
from syncer.cache.decoded import DECODED
from syncer.cache.handlers import Handler, Handlers, MapFunction, Waiters
from syncer.cache.indexer import Indexer, ValueIndex
from syncer.cache.items import Items
from syncer.cache.newcomers import Newcomers
from syncer.cache.parts import MOST_PARTS
from syncer.cache.store import Store
from syncer.cache.versions import WentBack, is_decimal, is_later
from syncer.clusters import codec
from syncer.observe.logs import get_logger

#: Number of observed deletions that are remembered.
WITNESSED = 10_000
#: Most bytes of labels, and of annotations, that an object without room keeps; if it has more, it
#: keeps none of them.
MOST_WITHOUT_ROOM = 1 << 10

log = get_logger(__name__)

#: Takes the items of a page, and the version of its list.
TakePage = Callable[[Iterable[codec.Undecoded], str], None]


def _never_ordered() -> bool:
    """Return False: the versions of the API server can't be compared."""
    return False


class Informer(Store):
    """The store of a resource, its indexes, and its subscribers.

    ``clock`` returns seconds. ``ordered`` returns True if the API server guarantees that versions
    can be compared. ``budget`` counts the memory of the objects. The responses of a ``trusted`` API
    server to writes aren't checked.
    """

    #: Indexes and map functions don't get objects with more fields and items: these would only be
    #: refused afterwards.
    most_parts: float = MOST_PARTS

    def __init__(
        self,
        resource: Resource,
        *,
        clock: Callable[[], float],
        ordered: Callable[[], bool] = _never_ordered,
        budget: ByteBudget | None = None,
        trusted: bool = False,
    ) -> None:
        super().__init__(resource, budget or ByteBudget())
        self.items = Items(resource)
        #: True once a list was read to its end.
        self.synced = False
        #: The version of the latest list, event or bookmark, at which the watch resumes.
        self.version = ""
        #: True if versions can be compared, as of the latest list.
        self.is_ordered = False
        #: True if the latest list was older than an earlier state; never without ordered versions.
        self.went_back = False
        self.indexer = Indexer()
        self.handlers = Handlers()
        self.waiters = Waiters()
        self._clock = clock
        self._ordered = ordered
        self._trusted = trusted
        self._assumed = AssumedObjects(clock)
        #: The uids of objects with an observed deletion, by a watch or by our own write; kept if
        #: the key exists again.
        self._witnessed: dict[Key, str] = {}
        #: The version of the latest list, complete or not: objects that it lacks didn't exist then.
        self._listed = ""
        self._listed_at = -inf
        #: True while a list replaces the cache.
        self._replacing = False
        #: True during such a list, and after it was interrupted.
        self._in_part = False
        #: Objects that were deleted while a list is read beside the watch; None if no such list is
        #: being read.
        self._gone: set[Key] | None = None
        #: True while the watch is behind a list that was read beside it.
        self._overtaken = False
        #: The quarantined objects, each with its time by the clock.
        self.quarantined: dict[Key, float] = {}
        #: The quarantined objects that there is no room for, each with the bytes that it takes.
        self.left_out: dict[Key, int] = {}
        self.newcomers = Newcomers(self._entries, self.quarantined, self.most_parts)
        #: Number of items and events without a name of the collection, since the latest list.
        self.nameless = 0

    def __str__(self) -> str:
        return str(self.resource)

    # -- subscribers -------------------------------------------------------------------------------

    def add_index(
        self,
        name: str,
        values: Callable[[Obj], Iterable[Hashable]],
        *,
        owner: str = "",
        notify: Callable[[Iterable[Any]], None] | None = None,
        when: Literal["values", "used", "change"] = "values",
        keeps: bool = True,
        by_spec: bool = False,
    ) -> None:
        """Index objects by the values of a function.

        ``notify``, ``when``, ``keeps`` and ``by_spec`` are arguments of :class:`ValueIndex`.
        """
        index = ValueIndex(owner, values, notify, when, self.charge, keeps, by_spec)
        self.newcomers.add(index)
        self.indexer.add(name, index)

    def add_map_function(
        self,
        keys: Callable[[Obj], Iterable[Any]],
        when: Literal["keys", "used", "change"],
        notify: Callable[[Iterable[Any]], None],
        *,
        owner: str = "",
        on_error: Callable[[Key, Exception], None] | None = None,
    ) -> None:
        """Map each object to keys, and call ``notify`` with those that a change concerns.

        ``on_error`` is called if a function raises; see :class:`MapFunction`.
        """
        function = MapFunction(owner, keys, when, notify, self.charge, on_error)
        self.newcomers.add(function)
        self.handlers.map_functions.append(function)

    def add_handler(self, handler: Handler, *, owner: str = "") -> None:
        """Add a handler for every change that isn't our own."""
        self.handlers.add(handler, owner=owner)

    def forget(self, owner: str) -> None:
        """Remove all indexes, map functions and handlers of an owner."""
        self.indexer.forget(owner)
        self.handlers.forget(owner)
        self.newcomers.forget(owner)

    def empty(self) -> None:
        """Forget all objects of a store that is no longer used."""
        super().empty()
        self.indexer.end()
        self.handlers.end()

    # -- state -------------------------------------------------------------------------------------

    @property
    def age(self) -> float:
        """Return the seconds since the list that the current watch began with."""
        if self._replacing:
            return 0.0
        return self._clock() - self._listed_at

    @property
    def is_in_part(self) -> bool:
        """True if some objects are from an incomplete list; others may have changed since."""
        return self._in_part or self._gone is not None

    def saw_go(self, key: Key, uid: str | None = None) -> bool:
        """Return True if the deletion of a key's latest object was observed.

        Otherwise, a missing object may only not have been listed yet.

        With a ``uid``, this must be the uid of the deleted object: a watch that is behind may show
        the deletion of an earlier one.
        """
        if key in self._entries or key not in self._witnessed:
            return False
        return uid is None or uid == self._witnessed[key]

    def saw_replaced(self, key: Key) -> bool:
        """Return True if a watch has shown the deletion of an earlier object, and its successor."""
        return key in self._witnessed and key in self._entries

    def knows(self, key: Key, uid: str) -> bool:
        """Return True if the object with this uid is stored, or the watch is behind our write."""
        entry = self._entries.get(key)
        if entry is not None and entry.uid == uid:
            return True
        return key in self._assumed.table

    def is_certain(self, owner: str) -> bool:
        """Return True if an owner's indexes have the values of every object that exists."""
        return self.synced and not self.nameless and self.indexer.is_certain(owner)

    # -- items -------------------------------------------------------------------------------------

    def ignore(self, why: str) -> None:
        """Count an item or an event without a name of the collection."""
        if not self.nameless:
            log.warning("an item without a name is ignored", of=str(self), reason=why)
        self.nameless += 1

    def has_stored(self, raw: codec.Undecoded) -> bool:
        """Return True if an item is as it is stored already, so that it needn't be decoded."""
        try:
            head = self.items.head(raw)
        except codec.DecodeError:
            return False
        entry = self._entries.get(head.key)
        return entry is not None and entry.version == head.resource_version

    def _head(self, raw: codec.Undecoded, found: codec.Head | None = None) -> codec.Head | None:
        """Return the identity of an item; None if it has no valid one, which is counted.

        ``found`` is the identity if it was read already.
        """
        try:
            return self.items.head(raw, found)
        except codec.DecodeError as error:
            self.ignore(str(error))
            return None

    def _each(
        self,
        items: Iterable[codec.Undecoded],
        take: Callable[[codec.Head, codec.Undecoded], None],
    ) -> None:
        """Call ``take`` for each item of a list with an identity.

        An error affects only the item that it is about.
        """
        for raw in items:
            try:
                head = self._head(raw)
                if head is not None:
                    take(head, raw)
            except Exception as error:  # noqa: BLE001 — an object must end nothing but itself
                self._went_wrong(raw, error)

    def _went_wrong(self, raw: codec.Undecoded, error: Exception) -> None:
        """Quarantine an object after an unexpected error, which must not affect other objects."""
        log.exception("an object can't be processed", of=str(self))
        try:
            head = self._head(raw)
            if head is not None:
                self._put(head.key, self.items.without_contents(head.key, raw, error))
        except Exception as again:  # noqa: BLE001 — as above
            self.ignore(f"{type(again).__name__}: {again}")

    # -- input from the watch ----------------------------------------------------------------------

    def event(self, kind: str, raw: codec.Undecoded, head: codec.Head | None = None) -> None:
        """Process an ADDED, MODIFIED or DELETED event. No content makes it raise an error.

        ``head`` is the identity of the object if it was read already.
        """
        try:
            found = self._head(raw, head)
            if found is None:
                return
            key = found.key
            version = found.resource_version
            if self._overtaken and self._is_overtaken(version):
                return
            if version:
                self.version = version
            entry = self._entries.get(key)
            deleted = kind == "DELETED"
            assumed = self._assumed
            if key in assumed.under_way:
                for writing in assumed.under_way[key]:
                    writing.shown.add(version)
            if entry is not None and entry.version == version and not deleted:
                assumed.table.pop(key, None)
                self._passed(key, raw)
                return
            if key in assumed.table:
                kept = ""
                if entry is not None:
                    kept = entry.uid
                verdict = assumed.judge(found, deleted=deleted, uid=kept, ordered=self.is_ordered)
                if verdict is not Verdict.NEW:
                    if not deleted:
                        writer = self._passed(key, raw)
                        if verdict is Verdict.OLD:
                            self._notify_again(key, writer)
                    return
            if self._gone is not None and entry is not None and is_later(entry.version, version):
                return  # a page of the list that is read beside the watch has shown a later state
            if deleted:
                self._witness(key, found.uid)
                self._remove(key, by_watch=True)
            else:
                obj, text = self.items.decoded(key, raw)
                writer = ""
                if assumed.unseen:
                    writer = assumed.seen(key, obj)
                self._put(key, obj, text=text, by_watch=True, writer=writer)
        except Exception as error:  # noqa: BLE001 — an object must end nothing but itself
            self._went_wrong(raw, error)

    def _passed(self, key: Key, raw: codec.Undecoded) -> str:
        """Forget a write that was unseen if the watch or a list has shown this state after it.

        Return who has made the write; ``""`` if there is none. The next state is another's doing.
        """
        if key not in self._assumed.unseen:
            return ""
        obj, _ = self.items.decoded(key, raw)
        return self._assumed.seen(key, obj)

    def bookmark(self, version: str) -> None:
        """Process a bookmark: the watch has shown everything up to this version."""
        if version and not (self._overtaken and self._is_overtaken(version)):
            self.version = version

    def left_behind(self) -> None:
        """Record that the watch can't resume: the cache may be stale, as may the next list."""
        self._listed_at = self._clock()

    def _is_overtaken(self, version: str) -> bool:
        """Return True if the watch is behind the states that a list beside it has shown."""
        self._overtaken = not is_later(version, self.version)
        return self._overtaken

    # -- input from lists --------------------------------------------------------------------------

    @contextmanager
    def replacing(self) -> Iterator[TakePage]:
        """Replace everything by a list, without a watch beside it.

        The block calls the function with each page; afterwards, other objects are removed. If the
        block raises, the objects of the pages stay and nothing is removed.
        """
        listed: set[Key] = set()
        known = [self.version, *self._assumed.latest()]
        self._assumed.forget_deletions()
        self._assumed.unseen.clear()
        self._replacing = True
        self._in_part = True
        begun = False

        def page(items: Iterable[codec.Undecoded], of_list: str) -> None:
            nonlocal begun
            if not begun:
                begun = True
                self._take_up(of_list, known)
            self._each(items, take)

        def take(head: codec.Head, raw: codec.Undecoded) -> None:
            key = head.key
            version = head.resource_version
            listed.add(key)
            entry = self._entries.get(key)
            if self._assumed.is_gone(key, head.uid):
                self._remove(key)  # the cached object is an earlier one of this name
            elif self._assumed.is_written(key):
                if entry is not None and entry.version == version:
                    del self._assumed.table[key]  # no watch will show it
                # The list may include a change of others that we decided without.
                self._notify_again(key)
            elif self.went_back or entry is None or entry.version != version:
                obj, text = self.items.decoded(key, raw)
                self._put(key, obj, text=text)

        try:
            yield page
        finally:
            self._replacing = False
        for key in self._entries.keys() - listed - self._assumed.written():
            self._remove(key, missed=True)
        self._listed_at = self._clock()
        self._in_part = False
        self._overtaken = False
        self.synced = True

    def _take_up(self, version: str, known: Iterable[str]) -> None:
        """Begin with the first page of a list.

        ``known`` are the versions that were known when it was requested.
        """
        self.is_ordered = self._ordered() and is_decimal(version)
        self.went_back = self.is_ordered and any(is_later(each, version) for each in known)
        is_surely_later = self.is_ordered and not self.went_back
        included = self._assumed.catch_up(version) if is_surely_later else self._assumed.clear()
        self.version = version
        self._listed = version
        self.nameless = 0
        for key in included:  # no event will show changes that others made before us
            self._notify_again(key)

    @contextmanager
    def comparing(self, wrong: Callable[[Key], None]) -> Iterator[TakePage]:
        """Compare with a list that is read beside the running watch; only with ordered versions.

        If the watch has passed the version of an object that differs in the cache, the cache is
        wrong: ``wrong`` is called with the key, and the handlers of syncers aren't notified. If the
        block raises, nothing is removed.

        Raises:
            WentBack: The list is older than the watch; raised by the first page.
        """
        listed: set[Key] = set()
        passed = self.version
        of_list = ""
        gone: set[Key] = set()
        self._gone = gone

        def page(items: Iterable[codec.Undecoded], version_of_list: str) -> None:
            nonlocal of_list
            if is_later(passed, version_of_list):
                raise WentBack
            if not of_list:
                self.nameless = 0
            of_list = version_of_list
            self._each(items, take)

        def take(head: codec.Head, raw: codec.Undecoded) -> None:
            key = head.key
            version = head.resource_version
            listed.add(key)
            self._passed(key, raw)
            entry = self._entries.get(key)
            if entry is None:
                is_known = key in gone or self._assumed.is_gone(key, head.uid)
            else:
                is_known = entry.version == version or is_later(entry.version, of_list)
            if not is_known:
                is_wrong = not is_later(version, passed)
                if is_wrong:
                    wrong(key)
                obj, text = self.items.decoded(key, raw)
                self._put(key, obj, text=text, quiet=is_wrong)

        try:
            yield page
        finally:
            self._gone = None
        is_wrong = not is_later(of_list, self.version)
        for key in self._entries.keys() - listed:
            if not is_later(self._entries[key].version, of_list):
                if is_wrong:
                    wrong(key)
                self._remove(key, missed=True, quiet=is_wrong)
        # The events with the earlier states will be left out.
        for key in self._assumed.catch_up(of_list):
            self._notify_again(key)
        if is_later(of_list, self.version):
            self.version = of_list
            self._overtaken = True

    # -- input from our own writes -----------------------------------------------------------------

    def writing(self, key: Key) -> WriteInProgress:
        """Surround a write of ours; :meth:`wrote` or :meth:`deleted` is called in the block."""
        before = ""
        entry = self._entries.get(key)
        if entry is not None:
            before = entry.version
        return WriteInProgress(self._assumed.under_way, key, before, self.handlers.notify)

    def is_writing(self, key: Key) -> bool:
        """Return True while a write of ours to an object waits for its response."""
        return key in self._assumed.under_way

    def wrote(self, key: Key, writing: WriteInProgress, reply: Obj) -> bool:
        """Process the response to a create or change.

        Return False if it changed nothing: the version is the old one, and the object is there.

        Raises:
            DecodeError: An API server that isn't trusted answered with a malformed or another
                object.
        """
        if not self._trusted:
            codec.check(reply, key)
        version = reply["metadata"]["resourceVersion"]
        was_shown = version in writing.shown
        writing.shown.discard(version)
        writing.deferred.pop(version, None)
        if version == writing.before:
            # What ends an object that only waited for it doesn't raise its version.
            return _has_ended(reply)
        if was_shown or self._take(key, reply, writing, own=True):
            return True
        if is_later(version, self.version):
            self._assumed.wrote_before(key, version)
        return True

    def wrote_unseen(self, key: Key, writing: WriteInProgress, unseen: UnseenWrite) -> None:
        """Record a write of ours whose response doesn't show the object.

        The handlers of its writer aren't notified of the state that it has made: the decision to
        write was made with it.
        """
        shown = writing.take(unseen)
        if shown is not None:
            self.handlers.notify_others(key, shown, writer=unseen.writer)
            return
        entry = self._entries.get(key)
        if entry is not None and entry.version != writing.before:
            # A list beside the watch may have shown the state, or a later one.
            obj = self.get(key)
            if obj is not None and unseen.has_made(obj):
                return
        if not writing.void:
            self._assumed.wrote_unseen(key, unseen)

    def deleted(self, key: Key, writing: WriteInProgress, uid: str) -> None:
        """Record that our write has deleted the object with this uid at once."""
        if writing.void or self.saw_go(key, uid):
            return
        self._assumed.deleted(key, uid)
        self._witness(key, uid)
        entry = self._entries.get(key)
        if entry and entry.uid == uid:
            self._remove(key)

    def seen_live(self, obj: Obj, writing: WriteInProgress | None = None) -> None:
        """Process an object that was read from the API server, because the cache was behind.

        ``writing`` is the write that showed that. If the watch has shown the object in the
        meantime, the cache is no longer behind, and the object may be an older one.

        Raises:
            DecodeError: The object is malformed.
        """
        codec.check(obj, key_of(obj))
        if writing is None or not writing.shown:
            self._take(key_of(obj), obj, writing, own=False)

    def gone_live(self, key: Key, writing: WriteInProgress | None = None) -> None:
        """Record that the API server has no such object; ``writing`` as in :meth:`seen_live`."""
        if key in self._entries and (writing is None or not (writing.shown or writing.void)):
            self._remove(key, missed=True)

    def let_in(self, key: Key, obj: Obj) -> None:
        """Store an object whole that there was no room for, unless it has changed since.

        ``obj`` is the object as it was just read.

        Raises:
            DecodeError: The object is malformed.
        """
        codec.check(obj, key)
        entry = self._entries.get(key)
        if key not in self.left_out or entry is None:
            return
        if entry.version == obj["metadata"]["resourceVersion"]:
            self._put(key, obj)

    def _take(self, key: Key, obj: Obj, writing: WriteInProgress | None, *, own: bool) -> bool:
        """Store a response and return True, if it is newer than the cached state."""
        metadata = obj["metadata"]
        version = metadata["resourceVersion"]
        entry = self._entries.get(key)
        if writing is not None and writing.void:
            is_news = False
        elif entry is not None and self.is_ordered:
            is_news = is_later(version, entry.version)
        elif entry is not None:
            is_news = version != entry.version
        else:
            is_news = self._witnessed.get(key) != metadata.get("uid", "")
            is_news = is_news and (not self.is_ordered or is_later(version, self._listed))
        if is_news:
            is_ahead = not self.is_ordered or is_later(version, self.version)
            if is_ahead:
                self._assumed.wrote(key, version)
            # If it isn't ahead, no event will show the changes that others made before us.
            self._put(key, obj, own=own and is_ahead)
        return is_news

    # -- changes -----------------------------------------------------------------------------------

    def _witness(self, key: Key, uid: str) -> None:
        self._witnessed[key] = uid
        if len(self._witnessed) > WITNESSED:
            del self._witnessed[next(iter(self._witnessed))]

    def _put(
        self,
        key: Key,
        obj: Obj,
        *,
        text: bytes = b"",
        by_watch: bool = False,
        own: bool = False,
        quiet: bool = False,
        writer: str = "",
    ) -> None:
        """Store an object.

        Only a watch can show that another object of this name was deleted before. The handlers of
        the ``writer`` aren't notified. ``text`` is that of :meth:`keep`.
        """
        if not by_watch:
            self._witnessed.pop(key, None)
        self.left_out.pop(key, None)
        try:
            obj = self.keep(key, obj, text)
        except RecursionError as error:  # a text may be decoded, but too deep to be encoded
            obj = self.keep(key, codec.identity(obj, error))
        except NoRoom as error:
            obj = self._leave_out(key, obj, error)
            own = False
        state = ""
        if by_watch:
            state = obj["metadata"]["resourceVersion"]
        # Handlers are notified later of what the watch shows during a write, and need it unchanged.
        is_held = by_watch and key in self._assumed.under_way
        if (by_watch or own) and not is_held:
            entry = self._entries[key]
            if not entry.parts:  # it is small
                DECODED.add(entry, obj)
        try:
            self._changed(key, obj, obj, state=state, own=own, quiet=quiet, writer=writer)
        except NoRoom as error:  # for its values in the indexes
            size = error.size + len(self._entries[key].packed) + OVERHEAD
            obj = self._leave_out(key, obj, NoRoom(size))
            self._changed(key, obj, obj, state=state, quiet=quiet)

    def _leave_out(self, key: Key, obj: Obj, error: NoRoom) -> Obj:
        """Store an object without its contents until there is room for it."""
        self.left_out[key] = error.size
        return self.keep(key, codec.identity(obj, error, most=MOST_WITHOUT_ROOM))

    def _remove(
        self,
        key: Key,
        *,
        by_watch: bool = False,
        missed: bool = False,
        quiet: bool = False,
    ) -> None:
        """Remove an object; ``missed`` if its deletion was not observed."""
        if missed:
            self._witnessed.pop(key, None)
        if self._gone is not None:
            self._gone.add(key)
        self.left_out.pop(key, None)
        self._assumed.unseen.pop(key, None)
        last = self.drop(key)
        if last is None:
            return
        state = ""
        if by_watch:
            state = last["metadata"].get("uid", "")
        self._changed(key, None, last, state=state, quiet=quiet)

    def _changed(
        self,
        key: Key,
        now: Obj | None,
        last: Obj,
        *,
        state: str,
        own: bool = False,
        quiet: bool = False,
        writer: str = "",
    ) -> None:
        """Notify subscribers of a change.

        Of a ``state`` shown by a watch, handlers are notified later if a write is in progress that
        may have made it.
        """
        if now is not None and codec.UNREADABLE in now:
            self.quarantined.setdefault(key, self._clock())
        elif self.quarantined:
            self.quarantined.pop(key, None)
        if self.newcomers.hides(key):
            for index in self.indexer.indexes:
                index.doubt(key)
        else:
            for index in self.indexer.indexes:
                index.update(key, now)
            for function in self.handlers.map_functions:
                function.update(key, now)
        if key in self.waiters:
            self.waiters.notify(key)
        if own:
            return
        if writer:
            self.handlers.notify_others(key, last, writer=writer)
        elif state and key in self._assumed.under_way:
            for writing in self._assumed.under_way[key]:
                writing.defer(state, last)
        else:
            self.handlers.notify(key, last, quiet=quiet)

    def _notify_again(self, key: Key, writer: str = "") -> None:
        """Notify handlers of the present state of an object, which others may have changed.

        If the ``writer`` has, its own aren't.
        """
        obj = self.get(key)
        if obj is None:
            return
        if writer:
            self.handlers.notify_others(key, obj, writer=writer)
        else:
            self.handlers.notify(key, obj)


def _has_ended(obj: Obj) -> bool:
    """Return True if nothing holds an object that was deleted, so the API server removes it.

    A deletion without a grace period marks the object first. Each update meanwhile ends it, as one
    without its last finalizer does, and is answered with the object before.
    """
    metadata = obj["metadata"]
    if not is_deleting(obj) or metadata.get("deletionGracePeriodSeconds"):
        return False
    of_namespace = dig(obj, "spec.finalizers")
    return not (metadata.get("finalizers") or of_namespace)
