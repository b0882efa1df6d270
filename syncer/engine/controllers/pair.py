"""One virtual cluster linked with the host: its syncers, the stores they read, and what wakes which of them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from syncer.api.context import Context, Settings
from syncer.api.decision import Decision
from syncer.api.errors import Unreachable
from syncer.api.objects import Key, Obj, Request, Resource, Side
from syncer.api.optional_roles import Watches
from syncer.api.roles import FakeSyncUp, SyncDown, Syncer, SyncUp
from syncer.api.sources import Watch
from syncer.clusters.client import Cluster
from syncer.engine.apply.applier import Applier, BySide
from syncer.engine.cache.informers import Informers, Place
from syncer.engine.cache.references import References
from syncer.engine.cache.reflector import Reflector
from syncer.engine.cache.store import Store
from syncer.engine.reconcile.controller import Controller, Read, Reads, safely
from syncer.engine.reconcile.policies.breaker import CircuitBreaker
from syncer.engine.reconcile.policies.pause import Pause
from syncer.engine.reconcile.reconciler import Reconciler
from syncer.engine.workqueue.queue import Queue


@dataclass(slots=True)
class ClusterPair:
    """The syncers of one virtual cluster. Made by :func:`syncer.engine.controllers.builder.link`."""

    settings: Settings
    virtual: Cluster
    host: Cluster
    queue: Queue
    informers: Informers
    references: References
    applier: Applier
    utcnow: Callable[[], datetime]
    pause: Pause
    #: Told whenever a CustomResourceDefinition changes, so that what is served may be something else now.
    definitions_changed: Callable[[], None] = lambda: None
    #: Told whenever the whole virtual cluster is paused or no longer, so that what runs by itself stops or goes on.
    paused_or_not: Callable[[], None] = lambda: None
    controllers: dict[str, Controller] = field(default_factory=dict)
    reflectors: dict[Place, Reflector] = field(default_factory=dict)
    reconciler: Reconciler = field(init=False)
    breaker: CircuitBreaker = field(init=False)

    def __post_init__(self) -> None:
        self.reconciler = Reconciler(
            self.settings, Reads(self.informers, self.references), lambda: self.utcnow(), self.pause
        )
        self.breaker = CircuitBreaker(self, self.settings.patrol.breaker if self.settings.patrol else None)

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

    def context(self, controller: Controller) -> Context:
        """What the syncer may see, as of now."""
        return self.reconciler.context(controller)

    def decide(self, request: Request) -> Decision:
        """The decision about a request from what was last seen. Raises ``Refused`` and whatever the syncer raises."""
        return self.look(request)[0]

    def look(self, request: Request) -> tuple[Decision, BySide]:
        """The decision about a request, and the objects that it was made from; ``Refused`` where deletions are held."""
        controller = self.controllers[request.syncer]
        decision, objects = self.reconciler.look(controller, request)
        return self.breaker.admit(controller, request, decision, objects), objects

    def reads(self) -> tuple[Read, ...]:
        """What the latest decision has read of other objects than its own."""
        return tuple(self.reconciler.reads.noted)

    def is_gone(self, request: Request) -> bool:
        """Whether nothing is left of what a request is about, so that there is nothing to say of it any more."""
        return self.reconciler.is_gone(self.controllers[request.syncer], request)

    # -- what wakes a syncer ---------------------------------------------------------------------------------------

    def ask_all(self, controller: Controller) -> None:
        """Put every key of a syncer into the queue: what is on the virtual side, what it fakes, and orphans."""
        syncer = controller.syncer
        expected: set[Key] = set()
        if isinstance(syncer, SyncDown | FakeSyncUp):
            for key in list(self.informers.keys(Side.VIRTUAL, syncer.resource)):
                self.queue.add(Request(self.name, syncer.name, key))
                if isinstance(syncer, SyncDown):
                    expected.add(self.place(syncer, key))
        if isinstance(syncer, SyncDown | SyncUp):
            store = self.informers.store(Side.HOST, syncer.host_resource)
            changed = safely(syncer, lambda key, obj: self.host_changed(controller, key, obj))
            for key in set(store.keys()) - expected:
                obj = store.get(key)
                if obj is not None:
                    changed(key, obj)
        if isinstance(syncer, SyncUp) and syncer.reverts_virtual_changes:
            for key in list(self.informers.keys(Side.VIRTUAL, syncer.resource)):
                self.virtual_changed(controller, key, self.informers.get(Side.VIRTUAL, syncer.resource, key))
        if isinstance(syncer, FakeSyncUp) and isinstance(syncer, Watches):
            self._ask_watched(controller, self.watches_of(syncer))

    def place(self, syncer: Syncer, key: Key) -> Key:
        """Where the copy of a key is or would be; the key itself where that can't be said, and its request says why."""
        try:
            return syncer.host_key(self.settings, key)
        except Exception:  # noqa: BLE001 — a bug of the syncer, too
            return key

    def _ask_watched(self, controller: Controller, watches: Iterable[Watch]) -> None:
        """Ask for the keys that watched objects name: what is to be faked is in no store yet."""
        for watch in watches:
            store = self.informers.store(watch.source.side, watch.source.resource)
            keys = safely(controller.syncer, lambda obj, watch=watch: watch.keys(obj, self.settings))
            for key in list(store.keys()):
                self.watched(controller, keys(store.get(key)))

    def watches_of(self, syncer: Watches) -> list[Watch]:
        """The watches of a syncer, without those that need another one that is off."""
        return [watch for watch in syncer.watches() if self.is_on(watch.optional_with)]

    def is_on(self, needs: str) -> bool:
        """Whether the syncer of this name is on; ``""`` stands for none."""
        return not needs or needs in self.settings.sections

    def extras(self, controller: Controller) -> list[Store]:
        """The stores of other syncers' objects that a syncer only looks at; it begins without those it can't have."""
        syncer = controller.syncer
        users = self.references.stores(syncer.resource) if syncer.when_used else ()
        others = (*controller.extras, *users, self.pause.namespaces, self.pause.notes)
        return [store for store in dict.fromkeys(others) if store not in controller.stores]

    def lacks(self, controller: Controller) -> list[Store]:
        """The stores that are not filled yet, and for which a syncer has to wait."""
        extras = [store for store in self.extras(controller) if not self.given_up(store)]
        return [store for store in (*controller.stores, *extras) if not store.synced]

    def begin(self, controller: Controller) -> None:
        """Ask a syncer about everything, as all its stores are filled or given up."""
        controller.ready = True
        controller.missed = {extra for extra in self.extras(controller) if not extra.synced}
        self.ask_all(controller)

    def virtual_changed(self, controller: Controller, key: Key, obj: Obj | None) -> None:
        """A virtual object of the syncer has changed."""
        if not controller.ready:
            return  # all are asked when it is
        if isinstance(controller.syncer, SyncDown):
            concerned = self._may_have_copy(controller, key, obj)
        elif isinstance(controller.syncer, FakeSyncUp):
            concerned = True
        else:
            concerned = self._is_from_here(obj) or self._is_gone_from_virtual(controller, key)
        if concerned:
            self.queue.add(Request(self.name, controller.syncer.name, key))

    def _may_have_copy(self, controller: Controller, key: Key, obj: Obj | None) -> bool:
        if obj is None or controller.predicate(obj) != [False]:
            return True
        return self.place(controller.syncer, key) in self.informers.store(Side.HOST, controller.syncer.host_resource)

    def _is_from_here(self, obj: Obj | None) -> bool:
        return obj is not None and self.settings.marks.is_from_here(obj, cluster=self.settings.identity)

    def _is_gone_from_virtual(self, controller: Controller, key: Key) -> bool:
        """What is gone may have been a tenant's own that stood in the way."""
        return key not in self.informers.store(Side.VIRTUAL, controller.syncer.resource)

    def host_changed(self, controller: Controller, key: Key, obj: Obj) -> None:
        """A host object of the syncer's host resource has changed."""
        request = self.request_of_host(controller, key, obj) if controller.ready else None
        if request is not None:
            self.queue.add(request)

    def request_of_host(self, controller: Controller, key: Key, obj: Obj) -> Request | None:
        """The request that a host object of the syncer's host resource is a matter of, if any."""
        syncer, marks = controller.syncer, self.settings.marks
        if isinstance(syncer, SyncDown):
            if not marks.is_ours(obj, cluster=self.settings.identity, resource=syncer.resource):
                return None
            virtual, usually = marks.virtual_key(obj), True
        elif isinstance(syncer, SyncUp):
            virtual, usually = syncer.virtual_key(self.context(controller), obj), syncer.reverts_virtual_changes
        else:
            return None
        if virtual is None:
            return None
        usual = usually and syncer.host_key(self.settings, virtual) == key
        return Request(self.name, syncer.name, virtual, None if usual else key)

    def watched(self, controller: Controller, keys: Iterable[Key]) -> None:
        """Objects that the syncer watches name these keys of it."""
        for key in keys if controller.ready else ():
            self.queue.add(Request(self.name, controller.syncer.name, key))

    def may_be_used(self, resource: Resource, key: Key) -> None:
        """Something begins or ceases to refer to an object."""
        for controller in self.controllers.values():
            if controller.ready and controller.syncer.when_used and controller.syncer.resource == resource:
                self.queue.add(Request(self.name, controller.syncer.name, key))

    def pause_changed(self, namespace: str | None) -> None:
        """A virtual namespace, or with None the whole virtual cluster, is paused from now on or no longer.

        What waits for the end of a pause has itself been told; here all others learn of its beginning.
        """
        self.breaker.recount()
        for controller in self.controllers.values():
            if controller.ready and namespace is None:
                self.ask_all(controller)
            elif controller.ready and isinstance(controller.syncer, SyncDown | FakeSyncUp):
                for key in list(self.informers.keys(Side.VIRTUAL, controller.syncer.resource)):
                    if key.namespace == namespace:
                        self.queue.add(Request(self.name, controller.syncer.name, key))
        if namespace is None:
            self.paused_or_not()

    def ask(self, syncer: str, key: Key) -> None:
        """A syncer is to look at one of its keys."""
        controller = self.controllers.get(syncer)
        if controller and controller.ready:
            self.queue.add(Request(self.name, syncer, key))
