"""Whatever happens in whatever order, the store ends as the API server is and whoever listens knows of it."""

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule

from syncer.api import Key, Obj, Resource, Side
from syncer.clusters import codec
from syncer.engine.cache.assumed import Writing
from syncer.engine.cache.store import Store

KEYS = [Key("shop", "a"), Key("shop", "b")]


@dataclass
class Write:
    """A write of ours that the API server may have made, and whose reply may have come."""

    key: Key
    context: AbstractContextManager[Writing]
    writing: Writing
    reply: Obj | None = None
    deleted_uid: str = ""


@dataclass
class Listing:
    """A list that was taken and whose pages are still to be read."""

    context: AbstractContextManager[object]
    page: object
    version: str
    items: list[Obj] = field(default_factory=list)


class StoreBesideServer(RuleBasedStateMachine):
    """An API server with one watch, tenants who change things, and a daemon whose replies come when they like."""

    writes: Bundle[Write] = Bundle("writes")

    @initialize()
    def begin(self) -> None:
        self.version = self.uids = 0
        self.objects: dict[Key, Obj] = {}
        self.events: list[tuple[str, Obj]] = []
        self.listing: Listing | None = None
        self.under_way: set[Key] = set()
        self.open: list[Write] = []
        #: The version that somebody else gave a key last, and the one at which the listener was last told.
        self.foreign: dict[Key, int] = {}
        self.told: dict[Key, int] = {}
        self.store = Store(Side.HOST, Resource("v1", "ConfigMap", "configmaps"), clock=lambda: 0.0)
        self.store.add_index("version", lambda obj: [obj["metadata"]["resourceVersion"]])
        self.store.add_listener(self.tell)

    def tell(self, key: Key, last: Obj) -> None:
        entry = self.store.entry(key)
        self.told[key] = int(entry.version) if entry else self.version

    # -- the API server --------------------------------------------------------------------------------------------

    def change(self, key: Key, *, gone: bool = False) -> Obj:
        self.version += 1
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
        self.events.append(("DELETED" if gone else "MODIFIED" if before else "ADDED", obj))
        return obj

    @rule(key=st.sampled_from(KEYS), gone=st.booleans())
    def somebody_changes(self, key: Key, gone: bool) -> None:
        if gone and key not in self.objects:
            return
        self.change(key, gone=gone)
        self.foreign[key] = self.version

    # -- our writes ------------------------------------------------------------------------------------------------

    @rule(target=writes, key=st.sampled_from(KEYS))
    def begin_write(self, key: Key) -> Write:
        context = self.store.writing(key)
        write = Write(key, context, context.__enter__())
        self.open.append(write)
        return write

    @rule(write=writes, gone=st.booleans())
    def server_makes_it(self, write: Write, gone: bool) -> None:
        """One request at a time writes a key, as the queue has it."""
        if write.reply or write.deleted_uid or write.key in self.under_way:
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
            self.store.wrote(write.key, write.writing, json.loads(json.dumps(write.reply)))
        elif write.deleted_uid:
            self.store.deleted(write.key, write.writing, write.deleted_uid)
        if write.reply or write.deleted_uid:
            self.under_way.discard(write.key)
        self.end(write)

    @rule(write=consumes(writes))
    def reply_is_lost(self, write: Write) -> None:
        """Then the watch alone tells of the change."""
        if write.reply or write.deleted_uid:
            self.under_way.discard(write.key)
        self.end(write)

    def end(self, write: Write) -> None:
        self.open.remove(write)
        write.context.__exit__(None, None, None)

    @rule(key=st.sampled_from(KEYS))
    def read_live(self, key: Key) -> None:
        with self.store.writing(key) as writing:
            obj = self.objects.get(key)
            if obj:
                self.store.seen_live(json.loads(json.dumps(obj)), writing)
            else:
                self.store.gone_live(key, writing)

    # -- the watch -------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.events and not self.listing)
    @rule(count=st.integers(1, 4))
    def events_come(self, count: int) -> None:
        now, self.events = self.events[:count], self.events[count:]
        for kind, obj in now:
            self.store.event(kind, codec.Raw(json.dumps(obj).encode()))

    @precondition(lambda self: not self.listing)
    @rule()
    def list_is_taken(self) -> None:
        context = self.store.replacing()
        self.events.clear()
        page = context.__enter__()
        self.listing = Listing(context, page, str(self.version), list(self.objects.values()))

    @precondition(lambda self: self.listing)
    @rule()
    def page_comes(self) -> None:
        assert self.listing
        items, self.listing.items = self.listing.items[:1], self.listing.items[1:]
        self.listing.page([codec.Raw(json.dumps(obj).encode()) for obj in items], self.listing.version)  # type: ignore[operator]
        if not items:
            self.listing.context.__exit__(None, None, None)
            self.listing = None

    # -- what must hold --------------------------------------------------------------------------------------------

    @invariant()
    def indexes_are_the_stores(self) -> None:
        for key in KEYS:
            entry = self.store.entry(key)
            assert {key} <= set(self.store.indexed("version", entry.version)) if entry else True
        values = self.store._indexes["version"].by_value
        assert sum(map(len, values.values())) == len(self.store)

    def teardown(self) -> None:
        while self.listing:
            self.page_comes()
        while self.events:
            self.events_come(1)
        while self.open:
            self.reply_is_lost(self.open[0])
        there = {key: obj["metadata"]["resourceVersion"] for key, obj in self.objects.items()}
        kept = {key: entry.version for key in list(self.store.keys()) if (entry := self.store.entry(key))}
        assert kept == there
        for key, version in self.foreign.items() & {(key, self.foreign.get(key)) for key in there}:
            assert self.told.get(key, 0) >= version, f"nobody was told of version {version} of {key}"


TestStore = StoreBesideServer.TestCase
TestStore.settings = settings(max_examples=300, stateful_step_count=30, deadline=None)
