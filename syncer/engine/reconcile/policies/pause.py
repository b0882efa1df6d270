"""The pause policy: paused objects are not written on either side until the mark is removed.

The mark is on a virtual object or its copy, on a virtual Namespace, or on the ConfigMap of the
virtual cluster. There it pauses the whole virtual cluster (``true``) or the syncers that it names.
It is read from the cache, so a pause survives every restart. After an object was deleted while it
was paused, only its copy can tell: a pause by the object or its namespace is recorded on the copy,
and that is the only write during a pause.
"""

from collections.abc import Callable, Iterable

from cachetools import LRUCache

from syncer.api.context import Settings
from syncer.api.decision import Decision, Outcome, Verb, Write, wait
from syncer.api.objects import Key, Obj, ObjectRef, Request, Side, annotations_of, is_deleting, key_of, uid_of
from syncer.api.roles import Syncer
from syncer.api.sources import Source
from syncer.engine.cache.informer import Informer
from syncer.engine.cache.informers import Informers, Selection
from syncer.engine.leaderelection.identity import PLACE
from syncer.engine.reconcile.plan import Observed
from syncer.resources.kinds import CONFIG_MAPS, NAMESPACES

#: The owner of the stores that pauses are read from.
OWNER = "pause"
#: The value that a person writes.
YES = "true"
#: The values that we write on a copy: its virtual object, or the namespace of that, is paused.
BY_OBJECT, BY_NAMESPACE = "virtual", "namespace"
#: Maximum number of syncer names that are read from the mark on the ConfigMap.
MOST_NAMES = 100
#: Number of objects deleted during a pause that are remembered until their copies are marked.
REMEMBERED = 10_000

_INDEX = "paused"
_NOTE = ObjectRef(Side.VIRTUAL, CONFIG_MAPS, PLACE)

#: Receives the virtual namespace whose pause begins or ends; None is the whole virtual cluster.
Changed = Callable[[str | None], None]
#: Receives the name of a syncer whose pause begins or ends; a syncer of this name need not exist.
SyncerChanged = Callable[[str], None]


class Pause:
    """The pauses of a virtual cluster."""

    def __init__(self, settings: Settings, informers: Informers) -> None:
        self._marks, self._identity = settings.marks, settings.identity
        #: The stores that pauses are read from. Without the right to watch them, only marks on the
        #: objects themselves count.
        self.namespaces = informers.want(Source(Side.VIRTUAL, NAMESPACES), owner=OWNER)
        self.notes = informers.want(Source(Side.VIRTUAL, CONFIG_MAPS), Selection((PLACE.namespace,)), owner=OWNER)
        #: True while the whole virtual cluster is paused.
        self.is_on = False
        #: The names of the syncers that are paused.
        self.syncers: frozenset[str] = frozenset()
        self._paused_namespaces: set[str] = set()
        #: Syncer and uid of virtual objects deleted during a pause, until their copies are marked.
        self._went: LRUCache[tuple[str, str], None] = LRUCache(REMEMBERED)

    def is_paused(self, syncer: str) -> bool:
        """Return True if all objects of a syncer are paused."""
        return self.is_on or syncer in self.syncers

    def watch(self, changed: Changed, syncer_changed: SyncerChanged) -> None:
        """Call ``changed`` when the pause of a virtual namespace, or of the virtual cluster, begins
        or ends, and ``syncer_changed`` when that of a syncer does.
        """

        def notify(namespaces: Iterable[str]) -> None:
            for namespace in namespaces:
                if self.namespaces.indexer.keys(_INDEX, namespace):
                    self._paused_namespaces.add(namespace)
                else:
                    self._paused_namespaces.discard(namespace)
                changed(namespace)

        def notify_noted(names: Iterable[str]) -> None:
            paused = frozenset(self.notes.indexer.values(_INDEX))
            self.is_on, self.syncers = YES in paused, paused - {YES}
            for name in names:
                if name == YES:
                    changed(None)
                else:
                    syncer_changed(name)

        def named(namespace: Obj) -> Iterable[str]:
            return [key_of(namespace).name] if self._is_paused(namespace) else ()

        def noted(note: Obj) -> Iterable[str]:
            names = self._mark_of(note)
            if not names or key_of(note) != PLACE:
                return ()
            return filter(None, map(str.strip, names.split(",", MOST_NAMES)[:MOST_NAMES]))

        self.namespaces.add_index(_INDEX, named, owner=OWNER, notify=notify)
        self.notes.add_index(_INDEX, noted, owner=OWNER, notify=notify_noted)

    def follow(self, store: Informer, syncer: str) -> None:
        """Remember a syncer's virtual objects that are deleted during a pause: it may not have seen
        them since.
        """

        def paused(virtual: Obj) -> Iterable[tuple[Key, str]]:
            return [(key_of(virtual), uid_of(virtual))] if self._is_paused(virtual) else ()

        def changed(objects: Iterable[tuple[Key, str]]) -> None:
            for key, uid in objects:
                entry = store.entry(key)
                if entry is None or entry.uid != uid:
                    self._went[syncer, uid] = None

        store.add_index(f"{_INDEX}/{syncer}", paused, owner=syncer, notify=changed)

    def answer(self, seen: Observed) -> Decision | None:
        """Return the decision about a paused request; None if nothing is paused."""
        syncer, request, virtual, host = seen.controller.syncer, seen.request, seen.virtual, seen.host
        if virtual is None and host is None and not seen.controller.direction.fakes:
            return None
        if self.is_on:
            return self._wait(_NOTE)
        if syncer.name in self.syncers:
            why = f"paused: take {syncer.name} out of the annotation {self._marks.paused} of {_NOTE} to go on"
            return wait(why, on=(_NOTE,))
        namespace = request.key.namespace
        mark = self._mark_of(host) if host is not None else ""
        by_object = virtual is not None and self._is_paused(virtual)
        by_namespace = namespace in self._paused_namespaces
        if not (by_object or by_namespace or mark or self._went):
            return None
        copy = host if self._is_copy(seen) else None
        if by_object:
            return self._paused(syncer, copy, BY_OBJECT, ObjectRef(Side.VIRTUAL, syncer.resource, request.key))
        if by_namespace:
            value = BY_OBJECT if virtual is None and mark == BY_OBJECT else BY_NAMESPACE
            return self._paused(syncer, copy, value, ObjectRef(Side.VIRTUAL, NAMESPACES, Key("", namespace)))
        if copy is not None:
            return self._marked(syncer, request, virtual, copy)
        return self._wait(self._place(syncer, host)) if host is not None and mark == YES else None

    # -- inside ------------------------------------------------------------------------------------

    def _marked(self, syncer: Syncer, request: Request, virtual: Obj | None, copy: Obj) -> Decision | None:
        """Decide about an object that isn't paused now: our mark on its copy tells whether the
        virtual object was deleted in a pause.
        """
        here, mark = self._place(syncer, copy), self._mark_of(copy)
        gone = (syncer.name, annotations_of(copy).get(self._marks.uid, ""))
        if mark not in (YES, BY_OBJECT, BY_NAMESPACE):
            return self._paused(syncer, copy, BY_OBJECT, here) if virtual is None and gone in self._went else None
        self._went.pop(gone, None)
        if mark == YES:
            return self._wait(here)
        if virtual is not None:
            return None if is_deleting(copy) else self._noted(syncer, copy, None, "it was paused")
        if mark == BY_OBJECT:
            return self._wait(here, f"the virtual {syncer.resource.kind} {request.key} was paused when it went; ")
        namespace = ObjectRef(Side.VIRTUAL, NAMESPACES, Key("", request.key.namespace))
        if namespace.key in self.namespaces:
            return None
        return self._wait(here, f"{namespace} was paused and is not there; ", namespace)

    def _paused(self, syncer: Syncer, copy: Obj | None, value: str, by: ObjectRef) -> Decision:
        decision = self._wait(by)
        if copy is None or is_deleting(copy) or self._mark_of(copy) in (YES, value):
            return decision
        return self._noted(syncer, copy, value, decision.reason, *decision.on)

    def _wait(self, by: ObjectRef, why: str = "", *on: ObjectRef) -> Decision:
        """Return a wait until the mark is removed, or one of the objects changes."""
        return wait(f"paused: {why}remove the annotation {self._marks.paused} from {by} to go on", on=(by, *on))

    def _noted(self, syncer: Syncer, copy: Obj, value: str | None, reason: str, *on: ObjectRef) -> Decision:
        """Set or remove our mark on a copy, and decide again when that is seen."""
        own = copy["metadata"]
        metadata = {name: own[name] for name in ("name", "namespace", "uid") if name in own}
        metadata |= {"labels": {self._marks.cluster: self._identity}, "annotations": {self._marks.paused: value}}
        note = {"apiVersion": copy["apiVersion"], "kind": copy["kind"], "metadata": metadata}
        write = Write(Side.HOST, Verb.NOTE, note)
        return Decision((write,), reason, Outcome.PENDING, on=(self._place(syncer, copy), *on))

    def _place(self, syncer: Syncer, copy: Obj) -> ObjectRef:
        return ObjectRef(Side.HOST, syncer.host_resource, key_of(copy))

    def _is_copy(self, seen: Observed) -> bool:
        """Return True if the host object is the copy of the request's virtual object, at the right key."""
        if seen.host is None or seen.request.host_key is not None or not seen.controller.direction.goes_down:
            return False
        resource = seen.controller.syncer.resource
        return self._marks.is_ours(seen.host, cluster=self._identity, resource=resource)

    def _is_paused(self, obj: Obj) -> bool:
        annotations = obj["metadata"].get("annotations")
        return isinstance(annotations, dict) and annotations.get(self._marks.paused) == YES

    def _mark_of(self, obj: Obj | None) -> str:
        """Return the mark, ``""`` if there is none.

        The object may be any watched object, of any shape.
        """
        annotations = obj["metadata"].get("annotations") if obj is not None else None
        return str(annotations.get(self._marks.paused, "")) if isinstance(annotations, dict) else ""
