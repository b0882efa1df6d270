"""One virtual cluster linked with the host: its syncers, the stores they read, and what wakes which of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cachetools import LRUCache

from syncer.api.config import Config
from syncer.api.context import Context, Settings
from syncer.api.decision import Decision, skip
from syncer.api.errors import Refused, Unreachable
from syncer.api.objects import Key, Obj, Request, Resource, Side
from syncer.api.roles import FakeSyncUp, Index, Indexes, Source, SyncDown, Syncer, SyncUp, Watch, Watches
from syncer.clusters.client import Cluster
from syncer.flow.caches import Caches
from syncer.flow.carry_out import Carrier, Pairing
from syncer.flow.decide import reconcile
from syncer.flow.queue import Queue
from syncer.flow.store import Store
from syncer.flow.watch import Informer
from syncer.observe.logs import get_logger
from syncer.rbac import sources

#: How many patches that changed nothing are remembered; there should be none.
FUTILE = 1024

log = get_logger(__name__)


@dataclass(slots=True)
class Part:
    """One syncer at work in one link."""

    syncer: Syncer[Any]
    config: Config
    stores: tuple[Store, ...]
    #: Stores of other syncers' objects that it only looks at; it begins without those that can't be had.
    extras: tuple[Store, ...] = ()
    #: Set once all its stores are filled; before that nothing is decided.
    ready: bool = False
    #: The extras that it has begun without.
    missed: set[Store] = field(default_factory=set)

    def lacks(self, given_up: Callable[[Store], bool]) -> list[Store]:
        """The stores that are not filled yet, and for which it has to wait."""
        extras = [store for store in self.extras if not given_up(store)]
        return [store for store in (*self.stores, *extras) if not store.synced]


@dataclass(slots=True)
class Link:
    """The syncers of one virtual cluster. Made by :func:`link`."""

    settings: Settings
    virtual: Cluster
    host: Cluster
    queue: Queue
    caches: Caches
    carrier: Carrier
    utcnow: Callable[[], datetime]
    parts: dict[str, Part] = field(default_factory=dict)
    informers: dict[tuple[Side, Resource], Informer] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The virtual cluster's name."""
        return self.settings.cluster

    def given_up(self, store: Store) -> bool:
        """Whether a store isn't filled, and won't be before somebody changes something."""
        error = self.informers[store.side, store.resource].error
        return not store.synced and error is not None and not isinstance(error, Unreachable)

    # -- deciding --------------------------------------------------------------------------------------------------

    def context(self, part: Part) -> Context[Any]:
        """What the syncer may see, as of now."""
        syncer = part.syncer
        return Context(
            settings=self.settings,
            config=part.config,
            resource=syncer.resource,
            host_resource=syncer.host_resource,
            reader=self.caches,
            now=self.utcnow(),
            place=syncer.host_key,
        )

    def decide(self, request: Request) -> Decision:
        """The decision about a request from what was last seen. Raises ``Refused`` and whatever the syncer raises."""
        return self.look(request)[0]

    def look(self, request: Request) -> tuple[Decision, Pairing]:
        """The decision about a request, and the objects that it was made from."""
        part = self.parts[request.syncer]
        ctx, syncer = self.context(part), part.syncer
        virtual = self._seen(Side.VIRTUAL, syncer.resource, request.key)
        host = None
        if not isinstance(syncer, FakeSyncUp):
            host_key = request.host_key or syncer.host_key(self.settings, request.key)
            host = self._seen(Side.HOST, syncer.host_resource, host_key)
        if request.host_key and isinstance(syncer, SyncDown):
            if host is None:
                return skip("the copy at another place is gone"), {}
            place = syncer.host_key(self.settings, request.key)
            raise Refused(
                f"{syncer.host_resource.kind} {request.host_key} on the host is marked as the copy of {request.key},"
                f" which is now translated to {place}; set names.translator back, or delete it by hand",
                reason="NameCollision",
            )
        decision = reconcile(syncer, ctx, request.key, virtual=virtual, host=host)
        return decision, {Side.VIRTUAL: virtual, Side.HOST: host}

    def is_gone(self, request: Request) -> bool:
        """Whether nothing is left of what a request is about, so that there is nothing to say of it any more."""
        syncer = self.parts[request.syncer].syncer
        from_virtual = isinstance(syncer, SyncDown | FakeSyncUp) and request.host_key is None
        if from_virtual and request.key in self.caches.store(Side.VIRTUAL, syncer.resource):
            return False
        if isinstance(syncer, FakeSyncUp):
            return True
        host_key = request.host_key or syncer.host_key(self.settings, request.key)
        return host_key not in self.caches.store(Side.HOST, syncer.host_resource)

    def _seen(self, side: Side, resource: Resource, key: Key) -> Obj | None:
        return self.caches.get(side, resource, key) if self.caches.has(side, resource) else None

    # -- what wakes a syncer ---------------------------------------------------------------------------------------

    def ask_all(self, part: Part) -> None:
        """Put every key of a syncer into the queue: what is on the virtual side, what it fakes, and orphans."""
        syncer = part.syncer
        expected: set[Key] = set()
        if isinstance(syncer, SyncDown | FakeSyncUp):
            for key in list(self.caches.keys(Side.VIRTUAL, syncer.resource)):
                self.queue.add(Request(self.name, syncer.name, key))
                if isinstance(syncer, SyncDown):
                    expected.add(self._place(syncer, key))
        if isinstance(syncer, SyncDown | SyncUp):
            store = self.caches.store(Side.HOST, syncer.host_resource)
            for key in set(store.keys()) - expected:
                obj = store.get(key)
                if obj is not None:
                    self.host_changed(part, key, obj)
        if isinstance(syncer, FakeSyncUp) and isinstance(syncer, Watches):
            self._ask_watched(part, self._watches_of(syncer))

    def _place(self, syncer: Syncer[Any], key: Key) -> Key:
        try:
            return syncer.host_key(self.settings, key)
        except Refused:
            return key  # it has no copy, and the request says why

    def _ask_watched(self, part: Part, watches: Iterable[Watch]) -> None:
        """Ask for the keys that watched objects name: what is to be faked is in no store yet."""
        for watch in watches:
            store = self.caches.store(watch.source.side, watch.source.resource)
            keys = self._safely(part.syncer, lambda obj, watch=watch: watch.keys(obj, self.settings))
            for key in list(store.keys()):
                self.watched(part, keys(store.get(key)))

    def virtual_changed(self, part: Part, key: Key) -> None:
        """A virtual object of the syncer has changed."""
        if not part.ready:
            return  # all are asked when it is
        self.queue.add(Request(self.name, part.syncer.name, key))

    def host_changed(self, part: Part, key: Key, obj: Obj) -> None:
        """A host object of the syncer's host resource has changed."""
        syncer, marks = part.syncer, self.settings.marks
        if not part.ready:
            return
        if isinstance(syncer, SyncDown):
            if marks.is_ours(obj, cluster=self.settings.identity, resource=syncer.resource):
                virtual = marks.virtual_key(obj)
                assert virtual is not None
                usual = syncer.host_key(self.settings, virtual) == key
                self.queue.add(Request(self.name, syncer.name, virtual, None if usual else key))
        elif isinstance(syncer, SyncUp):
            virtual = syncer.virtual_key(self.context(part), obj)
            if virtual is not None:
                self.queue.add(Request(self.name, syncer.name, virtual, key))

    def watched(self, part: Part, keys: Iterable[Key]) -> None:
        """Objects that the syncer watches name these keys of it."""
        for key in keys if part.ready else ():
            self.queue.add(Request(self.name, part.syncer.name, key))

    # -- wiring ----------------------------------------------------------------------------------------------------

    def _add(self, syncer: Syncer[Any], config: Config) -> None:
        wanted = sources(syncer, self.settings.sections)
        extras = _extras(wanted)
        stores, others = (tuple(map(self.caches.want, each)) for each in (wanted - extras, extras))
        part = Part(syncer, config, stores, others)
        self.parts[syncer.name] = part
        if isinstance(syncer, Indexes):
            self._add_indexes(syncer, [index for index in syncer.indexes() if self._is_on(index.needs)])
        if isinstance(syncer, Watches):
            self._add_watches(part, self._watches_of(syncer))
        if isinstance(syncer, SyncDown | FakeSyncUp):
            store = self.caches.store(Side.VIRTUAL, syncer.resource)
            store.add_listener(lambda key, obj: self.virtual_changed(part, key))
        if isinstance(syncer, SyncDown | SyncUp):
            store = self.caches.store(Side.HOST, syncer.host_resource)
            changed = self._safely(syncer, lambda key, obj: self.host_changed(part, key, obj))
            store.add_listener(changed)

    def _is_on(self, needs: str) -> bool:
        return not needs or needs in self.settings.sections

    def _watches_of(self, syncer: Watches) -> list[Watch]:
        return [watch for watch in syncer.watches() if self._is_on(watch.needs)]

    def _add_indexes(self, syncer: Syncer[Any], indexes: Sequence[Index]) -> None:
        for index in indexes:
            self.caches.want(index.source).add_index(index.name, self._safely(syncer, index.values))

    def _add_watches(self, part: Part, watches: Sequence[Watch]) -> None:
        for watch in watches:
            self.caches.want(watch.source).add_watcher(
                self._safely(part.syncer, lambda obj, watch=watch: watch.keys(obj, self.settings)),
                watch.when,
                lambda keys: self.watched(part, keys),
            )

    def _safely(self, syncer: Syncer[Any], function: Callable[..., Any]) -> Callable[..., Any]:
        """The function of a syncer, so that what it raises does not stop the watch that feeds everybody."""
        told = False

        def safe(*arguments: Any) -> Any:
            nonlocal told
            try:
                found = function(*arguments)
                return list(found) if found is not None else ()
            except Exception:
                if not told:
                    log.exception("an index, a watch or a key function of a syncer raised", syncer=syncer.name)
                told = True
                return ()

        return safe


def _extras(wanted: Iterable[Source]) -> frozenset[Source]:
    """What a syncer reads of another one's objects, and can do the rest of its work without."""
    firm = {(source.side, source.resource) for source in wanted if not source.needs}
    return frozenset(source for source in wanted if source.needs and (source.side, source.resource) not in firm)


def link(
    settings: Settings,
    enabled: Iterable[tuple[Syncer[Any], Config]],
    *,
    virtual: Cluster,
    host: Cluster,
    queue: Queue,
    clock: Callable[[], float],
    utcnow: Callable[[], datetime],
    has_status: Callable[[Side, Resource], bool],
    may_write: Callable[[], bool],
) -> Link:
    """Wire the syncers of one virtual cluster to the stores that they read and the queue that they are asked from."""
    caches = Caches(clock=clock)
    carrier = Carrier(
        identity=settings.identity,
        marks=settings.marks,
        names=settings.names,
        virtual=virtual,
        host=host,
        caches=caches,
        has_status=has_status,
        may_write=may_write,
        futile=LRUCache(FUTILE),
    )
    made = Link(settings, virtual, host, queue, caches, carrier, utcnow)
    for syncer, config in enabled:
        made._add(syncer, config)
    return made


def selection(link: Link, source: Source) -> tuple[str, str]:
    """The namespace and the label selector with which a source is watched."""
    namespaces = link.settings.names.host_namespaces() if source.side is Side.HOST else None
    namespace = namespaces[0] if namespaces and len(namespaces) == 1 and source.resource.namespaced else ""
    selector = link.settings.marks.selector(link.settings.identity) if source.marked else ""
    return namespace, selector
