"""One virtual cluster linked with the host: its syncers, the stores they read, and what wakes which of them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from syncer.api.context import Context, Settings
from syncer.api.decision import Decision
from syncer.api.errors import Unreachable
from syncer.api.objects import Key, Obj, Request, Resource, Side
from syncer.api.optional_roles import Watches
from syncer.api.roles import FakeSyncUp, SyncDown, Syncer, SyncUp
from syncer.api.sources import Watch
from syncer.clusters.client import Cluster
from syncer.engine.apply.applier import Carrier, Pairing
from syncer.engine.cache.informers import Informers, Place
from syncer.engine.cache.references import References
from syncer.engine.cache.reflector import Reflector
from syncer.engine.cache.store import Store
from syncer.engine.reconcile.controller import Part, Read, Reads, safely
from syncer.engine.reconcile.policies.breaker import Breaker
from syncer.engine.reconcile.policies.pause import Pause
from syncer.engine.reconcile.reconciler import Desk
from syncer.engine.workqueue.queue import Queue


@dataclass(slots=True)
class Link:
    """The syncers of one virtual cluster. Made by :func:`syncer.engine.controllers.builder.link`."""

    settings: Settings
    virtual: Cluster
    host: Cluster
    queue: Queue
    informers: Informers
    references: References
    carrier: Carrier
    utcnow: Callable[[], datetime]
    pause: Pause
    #: Told whenever a CustomResourceDefinition changes, so that what is served may be something else now.
    definitions_changed: Callable[[], None] = lambda: None
    #: Told whenever the whole virtual cluster is paused or no longer, so that what runs by itself stops or goes on.
    paused_or_not: Callable[[], None] = lambda: None
    parts: dict[str, Part] = field(default_factory=dict)
    reflectors: dict[Place, Reflector] = field(default_factory=dict)
    desk: Desk = field(init=False)
    breaker: Breaker = field(init=False)

    def __post_init__(self) -> None:
        self.desk = Desk(self.settings, Reads(self.informers, self.references), lambda: self.utcnow(), self.pause)
        self.breaker = Breaker(self, self.settings.patrol.breaker if self.settings.patrol else None)

    @property
    def name(self) -> str:
        """The virtual cluster's name."""
        return self.settings.cluster

    def given_up(self, store: Store) -> bool:
        """Whether a store isn't filled, and won't be before somebody changes something."""
        reflector = self.reflectors.get((store.side, store.resource))
        error = reflector.error if reflector else None
        return not store.synced and error is not None and not isinstance(error, Unreachable)

    @property
    def may_run(self) -> bool:
        """Whether what runs by itself may: it is known that the virtual cluster isn't paused, or can't be known."""
        notes = self.pause.notes
        return (notes.synced or self.given_up(notes)) and not self.pause.is_on

    # -- deciding --------------------------------------------------------------------------------------------------

    def context(self, part: Part) -> Context[Any]:
        """What the syncer may see, as of now."""
        return self.desk.context(part)

    def decide(self, request: Request) -> Decision:
        """The decision about a request from what was last seen. Raises ``Refused`` and whatever the syncer raises."""
        return self.look(request)[0]

    def look(self, request: Request) -> tuple[Decision, Pairing]:
        """The decision about a request, and the objects that it was made from; ``Refused`` where deletions are held."""
        part = self.parts[request.syncer]
        decision, objects = self.desk.look(part, request)
        return self.breaker.admit(part, request, decision, objects), objects

    def reads(self) -> tuple[Read, ...]:
        """What the latest decision has read of other objects than its own."""
        return tuple(self.desk.reads.noted)

    def is_gone(self, request: Request) -> bool:
        """Whether nothing is left of what a request is about, so that there is nothing to say of it any more."""
        return self.desk.is_gone(self.parts[request.syncer], request)

    # -- what wakes a syncer ---------------------------------------------------------------------------------------

    def ask_all(self, part: Part) -> None:
        """Put every key of a syncer into the queue: what is on the virtual side, what it fakes, and orphans."""
        syncer = part.syncer
        expected: set[Key] = set()
        if isinstance(syncer, SyncDown | FakeSyncUp):
            for key in list(self.informers.keys(Side.VIRTUAL, syncer.resource)):
                self.queue.add(Request(self.name, syncer.name, key))
                if isinstance(syncer, SyncDown):
                    expected.add(self.place(syncer, key))
        if isinstance(syncer, SyncDown | SyncUp):
            store = self.informers.store(Side.HOST, syncer.host_resource)
            changed = safely(syncer, lambda key, obj: self.host_changed(part, key, obj))
            for key in set(store.keys()) - expected:
                obj = store.get(key)
                if obj is not None:
                    changed(key, obj)
        if isinstance(syncer, SyncUp) and syncer.reverts_virtual_changes:
            for key in list(self.informers.keys(Side.VIRTUAL, syncer.resource)):
                self.virtual_changed(part, key, self.informers.get(Side.VIRTUAL, syncer.resource, key))
        if isinstance(syncer, FakeSyncUp) and isinstance(syncer, Watches):
            self._ask_watched(part, self.watches_of(syncer))

    def place(self, syncer: Syncer[Any], key: Key) -> Key:
        """Where the copy of a key is or would be; the key itself where that can't be said, and its request says why."""
        try:
            return syncer.host_key(self.settings, key)
        except Exception:  # noqa: BLE001 — a bug of the syncer, too
            return key

    def _ask_watched(self, part: Part, watches: Iterable[Watch]) -> None:
        """Ask for the keys that watched objects name: what is to be faked is in no store yet."""
        for watch in watches:
            store = self.informers.store(watch.source.side, watch.source.resource)
            keys = safely(part.syncer, lambda obj, watch=watch: watch.keys(obj, self.settings))
            for key in list(store.keys()):
                self.watched(part, keys(store.get(key)))

    def watches_of(self, syncer: Watches) -> list[Watch]:
        """The watches of a syncer, without those that need another one that is off."""
        return [watch for watch in syncer.watches() if self.is_on(watch.optional_with)]

    def is_on(self, needs: str) -> bool:
        """Whether the syncer of this name is on; ``""`` stands for none."""
        return not needs or needs in self.settings.sections

    def extras(self, part: Part) -> list[Store]:
        """The stores of other syncers' objects that a syncer only looks at; it begins without those it can't have."""
        syncer = part.syncer
        users = self.references.stores(syncer.resource) if syncer.when_used else ()
        others = (*part.extras, *users, self.pause.namespaces, self.pause.notes)
        return [store for store in dict.fromkeys(others) if store not in part.stores]

    def lacks(self, part: Part) -> list[Store]:
        """The stores that are not filled yet, and for which a syncer has to wait."""
        extras = [store for store in self.extras(part) if not self.given_up(store)]
        return [store for store in (*part.stores, *extras) if not store.synced]

    def begin(self, part: Part) -> None:
        """Ask a syncer about everything, as all its stores are filled or given up."""
        part.ready = True
        part.missed = {extra for extra in self.extras(part) if not extra.synced}
        self.ask_all(part)

    def virtual_changed(self, part: Part, key: Key, obj: Obj | None) -> None:
        """A virtual object of the syncer has changed."""
        if not part.ready:
            return  # all are asked when it is
        if isinstance(part.syncer, SyncDown):
            concerned = self._may_have_copy(part, key, obj)
        elif isinstance(part.syncer, FakeSyncUp):
            concerned = True
        else:
            concerned = self._is_from_here(obj) or self._is_gone_from_virtual(part, key)
        if concerned:
            self.queue.add(Request(self.name, part.syncer.name, key))

    def _may_have_copy(self, part: Part, key: Key, obj: Obj | None) -> bool:
        if obj is None or part.predicate(obj) != [False]:
            return True
        return self.place(part.syncer, key) in self.informers.store(Side.HOST, part.syncer.host_resource)

    def _is_from_here(self, obj: Obj | None) -> bool:
        return obj is not None and self.settings.marks.is_from_here(obj, cluster=self.settings.identity)

    def _is_gone_from_virtual(self, part: Part, key: Key) -> bool:
        """What is gone may have been a tenant's own that stood in the way."""
        return key not in self.informers.store(Side.VIRTUAL, part.syncer.resource)

    def host_changed(self, part: Part, key: Key, obj: Obj) -> None:
        """A host object of the syncer's host resource has changed."""
        request = self.request_of_host(part, key, obj) if part.ready else None
        if request is not None:
            self.queue.add(request)

    def request_of_host(self, part: Part, key: Key, obj: Obj) -> Request | None:
        """The request that a host object of the syncer's host resource is a matter of, if any."""
        syncer, marks = part.syncer, self.settings.marks
        if isinstance(syncer, SyncDown):
            if not marks.is_ours(obj, cluster=self.settings.identity, resource=syncer.resource):
                return None
            virtual, usually = marks.virtual_key(obj), True
        elif isinstance(syncer, SyncUp):
            virtual, usually = syncer.virtual_key(self.context(part), obj), syncer.reverts_virtual_changes
        else:
            return None
        if virtual is None:
            return None
        usual = usually and syncer.host_key(self.settings, virtual) == key
        return Request(self.name, syncer.name, virtual, None if usual else key)

    def watched(self, part: Part, keys: Iterable[Key]) -> None:
        """Objects that the syncer watches name these keys of it."""
        for key in keys if part.ready else ():
            self.queue.add(Request(self.name, part.syncer.name, key))

    def may_be_used(self, resource: Resource, key: Key) -> None:
        """Something begins or ceases to refer to an object."""
        for part in self.parts.values():
            if part.ready and part.syncer.when_used and part.syncer.resource == resource:
                self.queue.add(Request(self.name, part.syncer.name, key))

    def pause_changed(self, namespace: str | None) -> None:
        """A virtual namespace, or with None the whole virtual cluster, is paused from now on or no longer.

        What waits for the end of a pause has itself been told; here all others learn of its beginning.
        """
        self.breaker.recount()
        for part in self.parts.values():
            if part.ready and namespace is None:
                self.ask_all(part)
            elif part.ready and isinstance(part.syncer, SyncDown | FakeSyncUp):
                for key in list(self.informers.keys(Side.VIRTUAL, part.syncer.resource)):
                    if key.namespace == namespace:
                        self.queue.add(Request(self.name, part.syncer.name, key))
        if namespace is None:
            self.paused_or_not()

    def ask(self, syncer: str, key: Key) -> None:
        """A syncer is to look at one of its keys."""
        part = self.parts.get(syncer)
        if part and part.ready:
            self.queue.add(Request(self.name, syncer, key))
