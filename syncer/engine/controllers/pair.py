"""One virtual cluster linked with the host: its syncers, the stores they read, and what wakes which of them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from syncer.api.context import Settings
from syncer.api.errors import Unreachable
from syncer.api.objects import Key, Obj, Request, Resource, Side
from syncer.api.optional_roles import Watches
from syncer.api.sources import Watch
from syncer.clusters.client import Cluster
from syncer.engine.apply.applier import Applier
from syncer.engine.cache.informer import Informer
from syncer.engine.cache.informers import Informers, Place
from syncer.engine.cache.references import References
from syncer.engine.cache.reflector import Reflector
from syncer.engine.reconcile.controller import Controller, safely
from syncer.engine.reconcile.pipeline import Policies
from syncer.engine.reconcile.plan import Plan
from syncer.engine.reconcile.reconciler import Reconciler
from syncer.engine.workqueue.queue import Queue


@dataclass(slots=True)
class ClusterPair:
    """One virtual cluster and the host, with the syncers between them. Made by :func:`.builder.build_pair`."""

    settings: Settings
    virtual: Cluster
    host: Cluster
    queue: Queue
    informers: Informers
    references: References
    reconciler: Reconciler
    policies: Policies
    applier: Applier
    controllers: dict[str, Controller]
    #: Called whenever a CustomResourceDefinition changes, so that other kinds may be served now.
    definitions_changed: Callable[[], None] = lambda: None
    #: Called whenever the whole virtual cluster is paused or no longer, so that own controllers stop or go on.
    paused_or_not: Callable[[], None] = lambda: None
    reflectors: dict[Place, Reflector] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The virtual cluster's name."""
        return self.settings.cluster

    def plan(self, request: Request) -> Plan:
        """Return what is to be done about a request. Raises Refused, and whatever the syncer raises."""
        return self.reconciler.reconcile(self.controllers[request.syncer], request)

    def is_gone(self, request: Request) -> bool:
        """Return True if nothing is left of what a request is about."""
        return self.reconciler.is_gone(self.controllers[request.syncer], request)

    def given_up(self, store: Informer) -> bool:
        """Return True if a store isn't filled, and won't be before somebody changes something."""
        reflector = self.reflectors.get((store.side, store.resource))
        error = reflector.error if reflector else None
        return not store.synced and error is not None and not isinstance(error, Unreachable)

    @property
    def may_run(self) -> bool:
        """True if what runs by itself may: it is known that the virtual cluster isn't paused, or can't be known."""
        pause = self.policies.pause
        return (pause.notes.synced or self.given_up(pause.notes)) and not pause.is_on

    # -- what wakes a syncer ---------------------------------------------------------------------------------------

    def ask_all(self, controller: Controller) -> None:
        """Put every key of a syncer into the queue: what is on the virtual side, what it fakes, and orphans."""
        syncer, direction = controller.syncer, controller.direction
        expected: set[Key] = set()
        if direction.by_virtual:
            for key in list(self.informers.keys(Side.VIRTUAL, syncer.resource)):
                self.queue.add(controller.request(key))
                if direction.by_host:
                    expected.add(controller.place(key))
        if direction.by_host:
            store = self.informers.store(Side.HOST, syncer.host_resource)
            changed = safely(self.name, syncer, partial(self.changed, controller, Side.HOST))
            for key in set(store.keys()) - expected:
                obj = store.get(key)
                if obj is not None:
                    changed(key, obj)
        if direction.fakes and isinstance(syncer, Watches):
            self._ask_watched(controller, self.watches_of(syncer))

    def _ask_watched(self, controller: Controller, watches: Iterable[Watch]) -> None:
        """Ask for the keys that watched objects name: what is to be faked is in no store yet."""
        for watch in watches:
            store = self.informers.store(watch.source.side, watch.source.resource)
            keys = safely(self.name, controller.syncer, lambda obj, watch=watch: watch.keys(obj, self.settings))
            for key in list(store.keys()):
                self.watched(controller, keys(store.get(key)))

    def watches_of(self, syncer: Watches) -> list[Watch]:
        """Return the watches of a syncer, without those that need another one that is off."""
        return [watch for watch in syncer.watches() if self.is_on(watch.optional_with)]

    def is_on(self, needs: str) -> bool:
        """Return True if the syncer of this name is on; ``""`` stands for none."""
        return not needs or needs in self.settings.sections

    def extras(self, controller: Controller) -> list[Informer]:
        """Return the stores of other syncers' objects that a syncer only looks at.

        It begins without those it can't have.
        """
        syncer = controller.syncer
        users = self.references.stores(syncer.resource) if syncer.when_used else ()
        others = (*controller.extras, *users, self.policies.pause.namespaces, self.policies.pause.notes)
        return [store for store in dict.fromkeys(others) if store not in controller.stores]

    def lacks(self, controller: Controller) -> list[Informer]:
        """Return the stores that are not filled yet, and for which a syncer has to wait."""
        extras = [store for store in self.extras(controller) if not self.given_up(store)]
        return [store for store in (*controller.stores, *extras) if not store.synced]

    def begin(self, controller: Controller) -> None:
        """Ask a syncer about everything, as all its stores are filled or given up."""
        controller.ready = True
        controller.missed = {extra for extra in self.extras(controller) if not extra.synced}
        self.ask_all(controller)

    def changed(self, controller: Controller, side: Side, key: Key, obj: Obj) -> None:
        """Put into the queue what a changed object is a matter of; before the controller is ready, nothing is."""
        request = controller.request_for(side, key, obj) if controller.ready else None
        if request is not None:
            self.queue.add(request)

    def watched(self, controller: Controller, keys: Iterable[Key]) -> None:
        """Objects that the syncer watches name these keys of it."""
        for key in keys if controller.ready else ():
            self.queue.add(controller.request(key))

    def may_be_used(self, resource: Resource, key: Key) -> None:
        """Something begins or ceases to refer to an object."""
        for controller in self.controllers.values():
            if controller.ready and controller.syncer.when_used and controller.syncer.resource == resource:
                self.queue.add(controller.request(key))

    def pause_changed(self, namespace: str | None) -> None:
        """A virtual namespace, or with None the whole virtual cluster, is paused from now on or no longer.

        What waits for the end of a pause has itself been told; here all others learn of its beginning.
        """
        self.policies.breaker.recount()
        for controller in self.controllers.values():
            if controller.ready and namespace is None:
                self.ask_all(controller)
            elif controller.ready and controller.direction.by_virtual:
                for key in list(self.informers.keys(Side.VIRTUAL, controller.syncer.resource)):
                    if key.namespace == namespace:
                        self.queue.add(controller.request(key))
        if namespace is None:
            self.paused_or_not()

    def ask(self, syncer: str, key: Key) -> None:
        """A syncer is to look at one of its keys."""
        controller = self.controllers.get(syncer)
        if controller and controller.ready and controller.direction.syncs:
            self.queue.add(controller.request(key))
