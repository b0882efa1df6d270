"""A virtual cluster paired with the host.

Its controllers, their stores, and which changes notify which controller.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from syncer.api.context import Settings
from syncer.api.errors import Unreachable
from syncer.api.host_texts import HostNames
from syncer.api.objects import Key, Obj, Resource, Side, SyncRequest
from syncer.api.optional_roles import Watches
from syncer.api.sources import Watch
from syncer.cache.reflector import Reflector
from syncer.clusters.client import SideClient
from syncer.engine.apply.applier import Applier
from syncer.engine.reconcile.controller import BoundSyncer, original, safely
from syncer.engine.reconcile.pipeline import Policies
from syncer.engine.reconcile.plan import Plan
from syncer.engine.reconcile.reconciler import Reconciler
from syncer.engine.stores.fan_out import STEP, FanOut
from syncer.engine.stores.informers import Informers, SideInformer, StoreKey
from syncer.engine.stores.references import References
from syncer.workqueue.queue import Queue


@dataclass(frozen=True, slots=True)
class Condition:
    """A limitation of a syncer, or of another part of a virtual cluster."""

    #: A sentence for the operator.
    message: str
    #: A sentence for any reader.
    public: str


@dataclass(slots=True)
class ClusterPair:
    """A virtual cluster and the host, with the controllers between them.

    Built by :func:`.builder.build_pair`.
    """

    settings: Settings
    virtual: SideClient
    host: SideClient
    queue: Queue
    informers: Informers
    references: References
    reconciler: Reconciler
    policies: Policies
    applier: Applier
    fan_out: FanOut
    controllers: dict[str, BoundSyncer]
    #: Called when a CustomResourceDefinition changes, so that other kinds may be served now.
    definitions_changed: Callable[[], None]
    #: Called when a pause of the whole virtual cluster, or of a syncer, begins or ends, so that own
    #: controllers stop or run again.
    paused_or_not: Callable[[], None]
    reflectors: dict[StoreKey, Reflector] = field(default_factory=dict)
    #: The limitations of a syncer or another part, by its name; they don't depend on objects.
    conditions: dict[str, Condition] = field(default_factory=dict)
    #: The virtual namespaces whose pause has begun or ended, by the name of a syncer that still has
    #: to be notified.
    _paused: dict[str, set[str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The virtual cluster's name."""
        return self.settings.cluster

    def host_names(
        self, resource: Resource, known: Mapping[str, str], *, namespace: str = ""
    ) -> HostNames:
        """Return the host names in texts about an object.

        Args:
            resource: The host resource of the object.
            known: Virtual names by host name.
            namespace: The virtual namespace that stands for the host namespace; ``""`` if there is
                none.
        """

        def original_of(host_key: Key) -> Key | None:
            return original(self.controllers.values(), host_key)

        def known_names() -> Mapping[str, str]:
            return known

        return HostNames(
            self.settings,
            resource=resource,
            namespace=namespace,
            known=known_names,
            original=original_of,
        )

    def plan(self, request: SyncRequest) -> Plan:
        """Return the plan of a request.

        Raises:
            Refused: The request can't be carried out. Any other exception of the syncer is passed
                on, too.
        """
        return self.reconciler.plan(self.controllers[request.syncer], request)

    def is_gone(self, request: SyncRequest) -> bool:
        """Return True if neither object of a request exists."""
        return self.reconciler.is_gone(self.controllers[request.syncer], request)

    def uid_of(self, request: SyncRequest) -> str:
        """Return the uid of the virtual object of a request; ``""`` if there is none."""
        store = self.controllers[request.syncer].virtual
        entry = None if store is None else store.entry(request.key)
        return "" if entry is None else entry.uid

    def given_up(self, store: SideInformer) -> bool:
        """Return True if a store isn't filled, and won't be before its error is corrected."""
        if store.synced:
            return False
        reflector = self.reflectors.get(store.store_key)
        error = reflector.error if reflector else None
        return error is not None and not isinstance(error, Unreachable)

    def may_run(self, syncer: str) -> bool:
        """Return True if a syncer's own controller may run.

        It isn't paused, or pauses can't be read.
        """
        pause = self.policies.pause
        if not pause.notes.synced and not self.given_up(pause.notes):
            return False
        return pause.reason(syncer) is None

    def degrade(self, part: str, condition: Condition) -> bool:
        """Show a limitation of a syncer or another part. Return False if it is shown already."""
        is_news = self.conditions.get(part) != condition
        self.conditions[part] = condition
        return is_news

    def recover(self, part: str) -> bool:
        """Show no limitation of a part any longer. Return True if one was shown."""
        return self.conditions.pop(part, None) is not None

    # -- notifications -----------------------------------------------------------------------------

    def ask_all(self, controller: BoundSyncer) -> None:
        """Queue every key of a syncer: virtual objects, objects to fake, and orphans.

        Many keys are queued in steps.
        """

        def steps() -> Iterator[None]:
            if self._is_here(controller):
                expected: set[Key] = set()
                yield from self._asked_by_virtual(controller, expected)
                for some in self._orphans(controller, expected):
                    yield from self._asked_by_host(controller, some)
                    yield

        most = sum(len(store) for store in controller.stores)
        self.fan_out.notify(("all", controller.name), most, steps)

    def _asked_by_virtual(self, controller: BoundSyncer, expected: set[Key]) -> Iterator[None]:
        """Queue the key of a virtual object, or of one to fake, with each step.

        The host keys of their copies are added to ``expected``.
        """
        direction = controller.direction
        if direction.by_virtual:
            for key in list(self.informers.keys(Side.VIRTUAL, controller.syncer.resource)):
                self._queue(controller, key)
                if direction.by_host:
                    expected.add(controller.host_key(key))
                yield
        if direction.fakes:  # objects to fake are in no store yet
            yield from self._queued(controller, sorted(self.watched_keys(controller)))

    def _orphans(self, controller: BoundSyncer, expected: set[Key]) -> Iterator[list[Key]]:
        """Yield the keys of the host's objects that aren't expected, of some objects at a time."""
        if not controller.direction.by_host:
            return
        for store in controller.hosts:
            keys = list(store.keys())
            for first in range(0, len(keys), STEP):
                yield [key for key in keys[first : first + STEP] if key not in expected]

    def _asked_by_host(self, controller: BoundSyncer, keys: Iterable[Key]) -> Iterator[None]:
        """Queue the request of a host object with each step."""
        syncer = controller.syncer
        is_marked = controller.direction.marked
        changed = safely(self.name, syncer, partial(self.changed, controller, Side.HOST))
        for key in keys:
            store = controller.host_at(key)
            if store is not None and self._is_here(controller):
                obj = store.outline(key) if is_marked else store.get(key)
                if obj is not None:
                    changed(key, obj)
            yield

    def watched_keys(self, controller: BoundSyncer) -> set[Key]:
        """Return the keys that the objects name which a syncer watches."""
        keys: set[Key] = set()
        for store in self.informers:
            keys.update(store.handlers.mapped_keys(controller.name))
        return keys

    def _queued(self, controller: BoundSyncer, keys: Iterable[Key]) -> Iterator[None]:
        """Queue one of these keys with each step."""
        for key in keys:
            self._queue(controller, key)
            yield

    def _queue(self, controller: BoundSyncer, key: Key) -> None:
        if self._is_here(controller):
            self.queue.add(controller.request(key))

    def _is_here(self, controller: BoundSyncer) -> bool:
        """Return True unless the syncer has been removed meanwhile."""
        return self.controllers.get(controller.name) is controller

    def watches_of(self, syncer: Watches) -> list[Watch]:
        """Return the watches of a syncer, without those for other syncers that are disabled."""
        return [watch for watch in syncer.watches() if self.is_on(watch.optional_with)]

    def is_on(self, needs: str) -> bool:
        """Return True if the syncer of this name is enabled; ``""`` stands for no syncer."""
        return not needs or needs in self.settings.sections

    def extras(self, controller: BoundSyncer) -> list[SideInformer]:
        """Return the stores of other syncers' objects that a syncer reads, if available."""
        syncer = controller.syncer
        users = self.references.stores(syncer.resource) if syncer.when_used else ()
        copies = self.reconciler.view.copies() if syncer.reads_copies else ()
        others = (
            *controller.extras,
            *copies,
            *users,
            self.policies.pause.namespaces,
            self.policies.pause.notes,
        )
        return [store for store in dict.fromkeys(others) if store not in controller.stores]

    def lacks(self, controller: BoundSyncer) -> Iterator[SideInformer]:
        """Yield the stores that a syncer must wait for, its own first.

        They are unfilled, or not indexed yet.
        """
        for store in (*controller.stores, *self.extras(controller)):
            if self._is_lacked(controller, store):
                yield store

    def is_complete(self, controller: BoundSyncer, *, since: SideInformer | None) -> bool:
        """Return True if a syncer need not wait for a store.

        ``since`` is the only store that has changed since the last look, None if others may have:
        a syncer still waits then for the one that it waited for.
        """
        awaited = controller.awaited
        if since is not None and awaited is not None and self._is_lacked(controller, awaited):
            return False
        controller.awaited = next(self.lacks(controller), None)
        return controller.awaited is None

    def _is_lacked(self, controller: BoundSyncer, store: SideInformer) -> bool:
        """Return True if a syncer must wait for a store that it reads."""
        if store.synced and not store.newcomers:
            return False
        return store in controller.stores or not self.given_up(store)

    def begin(self, controller: BoundSyncer) -> None:
        """Queue everything of a syncer, now that its stores are filled or given up."""
        controller.ready = True
        controller.missed = {extra for extra in self.extras(controller) if not extra.synced}
        self.ask_all(controller)

    def changed(self, controller: BoundSyncer, side: Side, key: Key, obj: Obj) -> None:
        """Queue the request that a changed object belongs to.

        Nothing is queued before the controller is ready. A virtual object for which the syncer
        raises has a request, too, which reports the error.
        """
        if not controller.ready:
            return
        try:
            request = controller.request_for(side, key, obj)
        except Exception:
            if side is Side.HOST:
                raise
            request = controller.request(key)
        if request is not None:
            self.queue.add(request)

    def watched(self, controller: BoundSyncer, keys: Iterable[Key]) -> None:
        """Queue keys that a watched object names."""
        if controller.ready:
            for key in keys:
                self._queue(controller, key)

    def values_changed(self, controller: BoundSyncer, index: str, values: Iterable[str]) -> None:
        """Queue a syncer's virtual objects and copies that have one of these values in an index."""
        if not controller.ready:
            return
        stores = _indexed(controller, index)
        for value in values:
            most = sum(len(store.indexer.keys(index, value)) for store in stores)
            change = (controller.name, index, value)
            self.fan_out.notify(change, most, partial(self._asked_with, controller, index, value))

    def _asked_with(self, controller: BoundSyncer, index: str, value: str) -> Iterator[None]:
        """Queue, with each step, the request of an object that has a value in an index."""
        for store in _indexed(controller, index):
            keys = list(store.indexer.keys(index, value))
            if store.side is Side.VIRTUAL:
                yield from self._queued(controller, keys)
            else:
                yield from self._asked_by_host(controller, keys)

    def pause_changed(self, namespace: str | None) -> None:
        """Handle the begin or end of a pause of a virtual namespace.

        None stands for the whole virtual cluster. Requests that wait for the end are notified
        separately, and all others here.
        """
        self.policies.breaker.recount()
        for controller in self.controllers.values():
            if not controller.ready:
                continue
            if namespace is None:
                self.ask_all(controller)
            elif controller.direction.by_virtual:
                self._paused.setdefault(controller.name, set()).add(namespace or "")
                most = len(self.informers.keys(Side.VIRTUAL, controller.syncer.resource))
                change = ("paused", controller.name)
                self.fan_out.notify(change, most, partial(self._asked_of_paused, controller))
        if namespace is None:
            self.paused_or_not()

    def _asked_of_paused(self, controller: BoundSyncer) -> Iterator[None]:
        """Queue a key with each step of the namespaces whose pause has begun or ended."""
        namespaces = self._paused.pop(controller.name, set())
        if not self._is_here(controller):
            return iter(())
        keys = self.informers.keys(Side.VIRTUAL, controller.syncer.resource)
        of_namespaces = [key for key in keys if key.namespace in namespaces]
        return self._queued(controller, of_namespaces)

    def syncer_pause_changed(self, syncer: str) -> None:
        """Queue every key of a syncer whose pause begins or ends, if there is such a syncer."""
        self.policies.breaker.recount()
        controller = self.controllers.get(syncer)
        if controller and controller.ready:
            self.ask_all(controller)
        self.paused_or_not()


def _indexed(controller: BoundSyncer, index: str) -> list[SideInformer]:
    """Return the stores of a syncer's own objects that have an index."""
    return [store for store in controller.own_stores() if store.indexer.has(index)]
