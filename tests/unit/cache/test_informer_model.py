"""Whatever happens in whatever order, an informer ends as the API server is, and its handlers were
notified.
"""

import json
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule

from syncer.api import Key, Obj, Resource
from syncer.cache.assumed import WriteInProgress
from syncer.cache.informer import Informer, TakePage
from syncer.cache.versions import WentBack
from syncer.clusters import codec

pytestmark = pytest.mark.slow


KEYS = [Key("shop", "a"), Key("shop", "b")]
#: Versions grow by so much, and those of each history are apart from all others: no version means two states.
STEP = 16

Objects = dict[Key, Obj]


@dataclass(eq=False)
class Write:
    """A write of ours that the API server may have made, and whose reply may have come."""

    key: Key
    context: AbstractContextManager[WriteInProgress]
    writing: WriteInProgress
    reply: Obj | None = None
    deleted_uid: str = ""
    history: int = 0


@dataclass
class Listing:
    """A list that was taken and whose pages are still to be read."""

    context: AbstractContextManager[TakePage]
    page: TakePage
    version: int
    items: list[Obj] = field(default_factory=list)
    begun: bool = False


class InformerBesideServer(RuleBasedStateMachine):
    """An API server with one watch, tenants who change things, and a daemon whose replies come when they like.

    Its lists and watches may show an older state, as from a cache that is behind, and etcd may be restored.
    """

    writes: Bundle[Write] = Bundle("writes")

    @initialize(ordered=st.booleans())
    def begin(self, ordered: bool) -> None:
        self.ordered = ordered
        self.version, self.uids, self.history = STEP, 0, 0
        self.objects: Objects = {}
        #: All states that there were in this history, by version, with the event that led to each.
        self.states: dict[int, Objects] = {self.version: {}}
        self.events: dict[int, tuple[str, Obj]] = {}
        #: The version that the watch has shown; None: it can't go on.
        self.watched: int | None = None
        self.listing: Listing | None = None
        self.comparison: Listing | None = None
        self.stale = False
        self.under_way: set[Key] = set()
        self.open: list[Write] = []
        #: The version that somebody else gave a key last, and the one at which the handler was last told.
        self.foreign: dict[Key, int] = {}
        self.reported: dict[Key, int] = {}
        self.wrong: list[Key] = []
        resource = Resource("v1", "ConfigMap", "configmaps")
        self.informer = Informer(resource, trusted=True, clock=lambda: 0.0, ordered=lambda: ordered)
        self.informer.add_index("version", lambda obj: [obj["metadata"]["resourceVersion"]])
        self.informer.add_handler(self.tell)
        self.list_is_taken(0)
        while self.listing:
            self.page_comes()

    def tell(self, key: Key, last: Obj) -> None:
        entry = self.informer.entry(key)
        self.reported[key] = int(entry.version) if entry else self.version

    # -- the API server ----------------------------------------------------------------------------

    def change(self, key: Key, *, gone: bool = False) -> Obj:
        self.version += STEP
        before = self.objects.get(key)
        if before is None:
            self.uids += 1
        uid = before["metadata"]["uid"] if before else f"u{self.uids}"
        metadata = {"name": key.name, "namespace": key.namespace, "uid": uid, "resourceVersion": str(self.version)}
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        if gone:
            del self.objects[key]
        else:
            self.objects[key] = obj
        self.events[self.version] = ("DELETED" if gone else "MODIFIED" if before else "ADDED", obj)
        self.states[self.version] = dict(self.objects)
        return obj

    @rule(key=st.sampled_from(KEYS), gone=st.booleans())
    def somebody_changes(self, key: Key, gone: bool) -> None:
        if gone and key not in self.objects:
            return
        self.change(key, gone=gone)
        self.foreign[key] = self.version

    @precondition(lambda self: self.ordered and not self.listing and not self.comparison)
    @rule(data=st.data())
    def etcd_is_restored(self, data: st.DataObject) -> None:
        """End all connections: an event of an earlier write comes before anything is
        listed again, or is void.
        """
        version = data.draw(st.sampled_from(sorted(self.states)))
        self.history += 1
        self.objects = dict(self.states[version])
        self.states, self.events = {version: dict(self.objects)}, {}
        self.version = version - version % STEP + self.history % STEP + STEP
        self.states = {self.version: dict(self.objects)}
        self.watched = None
        self.reported.clear()
        self.foreign = {}
        for key, obj in self.objects.items():
            entry, version = self.informer.entry(key), int(obj["metadata"]["resourceVersion"])
            if entry is None or int(entry.version) != version:
                self.foreign[key] = version

    # -- our writes --------------------------------------------------------------------------------

    @rule(target=writes, key=st.sampled_from(KEYS), made=st.sampled_from(["later", "change", "deletion"]))
    def begin_write(self, key: Key, made: str) -> Write:
        context = self.informer.writing(key)
        write = Write(key, context, context.__enter__(), history=self.history)
        self.open.append(write)
        if made != "later":
            self.server_makes_it(write, gone=made == "deletion")
        return write

    @rule(write=writes, gone=st.booleans())
    def server_makes_it(self, write: Write, gone: bool) -> None:
        """One request at a time writes a key, as the queue has it."""
        if write.reply or write.deleted_uid or write.key in self.under_way or write.history != self.history:
            return
        if gone and write.key not in self.objects:
            return
        if gone or write.key not in self.objects:
            self.foreign.pop(write.key, None)  # whatever was done to what was there, there is nothing of it now
        obj = self.change(write.key, gone=gone)
        if gone:
            write.deleted_uid = obj["metadata"]["uid"]
        else:
            write.reply = obj
        self.under_way.add(write.key)

    @rule(write=consumes(writes))
    def reply_comes(self, write: Write) -> None:
        if write.reply:
            self.informer.wrote(write.key, write.writing, json.loads(json.dumps(write.reply)))
        elif write.deleted_uid:
            self.informer.deleted(write.key, write.writing, write.deleted_uid)
        self.end(write)

    @rule(write=consumes(writes))
    def reply_is_lost(self, write: Write) -> None:
        """Then the watch alone tells of the change."""
        self.end(write)

    def end(self, write: Write) -> None:
        if write.reply or write.deleted_uid:
            self.under_way.discard(write.key)
        self.open.remove(write)
        write.context.__exit__(None, None, None)

    @rule(key=st.sampled_from(KEYS))
    def read_live(self, key: Key) -> None:
        with self.informer.writing(key) as writing:
            obj = self.objects.get(key)
            if obj:
                self.informer.seen_live(json.loads(json.dumps(obj)), writing)
            else:
                self.informer.gone_live(key, writing)

    # -- the watch ---------------------------------------------------------------------------------

    @precondition(lambda self: self.watched is not None and not self.listing)
    @rule(count=st.sampled_from([1, 2, 5]))
    def events_come(self, count: int) -> None:
        assert self.watched is not None
        for version in sorted(version for version in self.events if version > self.watched)[:count]:
            kind, obj = self.events[version]
            self.informer.event(kind, raw(obj))
            self.watched = version

    @precondition(lambda self: self.watched is not None and not self.listing)
    @rule()
    def bookmark_comes(self) -> None:
        self.events_come(len(self.events))
        self.informer.bookmark(str(self.version))
        self.watched = self.version

    # -- lists -------------------------------------------------------------------------------------

    @precondition(lambda self: not self.listing and not self.comparison)
    @rule(back=st.sampled_from([0, 0, 1, 3]))
    def list_is_taken(self, back: int) -> None:
        """In place of the watch; with ``back`` so many changes behind."""
        context = self.informer.replacing()
        informer = self.informer
        known = [informer.version, *informer._assumed.latest()]
        self.listing = self.taken(context, context.__enter__(), back)
        self.watched = None
        if all(int(version or 0) <= self.listing.version for version in known):
            self.forget_replies_of_another_history()

    def taken(self, context: AbstractContextManager[TakePage], page: TakePage, back: int) -> Listing:
        version = sorted(self.states)[-1 - back :][0]
        return Listing(context, page, version, list(self.states[version].values()))

    @precondition(lambda self: self.listing)
    @rule()
    def page_comes(self) -> None:
        listing = self.listing
        assert listing
        if not self.read_page(listing):
            self.listing, self.watched = None, listing.version

    def read_page(self, listing: Listing) -> bool:
        """Read a page, or the end; gives whether there was a page."""
        items, listing.items = listing.items[:1], listing.items[1:]
        if items or not listing.begun:
            listing.page([raw(obj) for obj in items], str(listing.version))
            listing.begun = True
            return True
        listing.context.__exit__(None, None, None)
        return False

    def forget_replies_of_another_history(self) -> None:
        """Their connections ended; they come before a list is asked for, or that list shows that versions went back."""
        for write in self.open:
            if write.history != self.history:
                write.reply, write.deleted_uid = None, ""

    @precondition(lambda self: self.listing)
    @rule()
    def list_breaks_off(self) -> None:
        assert self.listing
        context, self.listing = self.listing.context, None
        with suppress(OSError):
            assert not context.__exit__(OSError, OSError("cut"), None)

    @precondition(lambda self: self.ordered and self.watched is not None and not self.listing and not self.comparison)
    @rule(back=st.sampled_from([0, 0, 1, 3]))
    def comparison_is_taken(self, back: int) -> None:
        """Beside the watch."""
        self.stale = back > 0
        context = self.informer.comparing(self.wrong.append)
        self.comparison = self.taken(context, context.__enter__(), back)

    @precondition(lambda self: self.comparison)
    @rule()
    def page_to_compare_comes(self) -> None:
        comparison = self.comparison
        assert comparison
        try:
            if not self.read_page(comparison):
                self.comparison = None
        except WentBack:
            assert self.stale
            self.comparison = None
            comparison.context.__exit__(WentBack, WentBack(), None)
            self.list_is_taken(0)

    # -- what must hold ----------------------------------------------------------------------------

    @invariant()
    def indexes_are_the_stores(self) -> None:
        for key in KEYS:
            entry = self.informer.entry(key)
            assert {key} <= set(self.informer.indexer.keys("version", entry.version)) if entry else True
        index = self.informer.indexer.indexes[0]
        assert sum(map(len, index.by_value.values())) == len(self.informer)

    @invariant()
    def a_sound_store_is_never_found_wrong(self) -> None:
        assert not self.wrong or self.stale

    def teardown(self) -> None:
        while self.comparison:
            self.page_to_compare_comes()
        if self.watched is None and not self.listing:
            self.list_is_taken(0)
        while self.listing:
            self.page_comes()
        while self.open:
            self.reply_is_lost(self.open[0])
        self.bookmark_comes()
        there = {key: obj["metadata"]["resourceVersion"] for key, obj in self.objects.items()}
        kept = {key: entry.version for key in list(self.informer.keys()) if (entry := self.informer.entry(key))}
        assert kept == there
        for key, version in self.foreign.items() & {(key, self.foreign.get(key)) for key in there}:
            assert self.reported.get(key, 0) >= version, f"nobody was told of version {version} of {key}"
        assert not [known for known in self.informer._assumed.table.values() if known.versions]


def raw(obj: Obj) -> codec.Raw:
    return codec.Raw(json.dumps(obj).encode())


TestInformer = InformerBesideServer.TestCase
TestInformer.settings = settings(max_examples=300, stateful_step_count=40)
