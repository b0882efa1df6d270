"""The pause policy: paused objects are not written on either side until the mark is removed.

In the virtual cluster, the mark is on an object, on a Namespace, or on the ConfigMap of the virtual
cluster. There it pauses the whole virtual cluster (``true``) or the syncers that it names. A tenant
can set all of these, so they never stop a deletion: a copy whose original is gone or ends would run
on unseen, and what the operator's selector leaves out has none. Nor do they stop a revocation
(:mod:`.revocation`), which comes before. ``pause.byTenants`` turns them off. On the host, the mark
is on a copy, where only the host's operator can set it, and there it stops everything. Marks
are read from the cache, so a pause survives every restart.
"""

from collections.abc import Callable, Iterable

from syncer.api import reasons
from syncer.api.context import Settings
from syncer.api.decision import Decision, wait
from syncer.api.objects import (
    Key,
    Obj,
    ObjectRef,
    Side,
    SyncRequest,
    annotations_of,
    is_deleting,
    key_of,
    uid_of,
)
from syncer.api.reasons import StateReason
from syncer.api.sources import Source
from syncer.engine.reconcile.plan import Observed
from syncer.engine.stores.identity import NOTE_KEY
from syncer.engine.stores.informers import Informers, WatchedSelection
from syncer.resources.kinds import CONFIG_MAPS, NAMESPACES

#: The owner of the stores that pauses are read from.
OWNER = "pause"
#: The value that a person writes.
YES = "true"
#: Maximum number of syncer names that are read from the mark on the ConfigMap.
MOST_NAMES = 100
_INDEX = "paused"
_NOTE = ObjectRef(Side.VIRTUAL, CONFIG_MAPS, NOTE_KEY)

#: Receives the virtual namespace whose pause begins or ends; None is the whole virtual cluster.
Changed = Callable[[str | None], None]
#: Receives the name of a syncer whose pause begins or ends; a syncer of this name need not exist.
SyncerChanged = Callable[[str], None]


class Pause:
    """The pauses of a virtual cluster."""

    def __init__(self, settings: Settings, informers: Informers) -> None:
        self._marks = settings.marks
        self._by_tenants = settings.pause.by_tenants
        #: The stores that pauses are read from. Without the right to watch them, only marks on the
        #: objects themselves count.
        self.namespaces = informers.want(Source(Side.VIRTUAL, NAMESPACES), owner=OWNER)
        self.notes = informers.want(
            Source(Side.VIRTUAL, CONFIG_MAPS), WatchedSelection((NOTE_KEY.namespace,)), owner=OWNER
        )
        #: True while the whole virtual cluster is paused.
        self.is_on = False
        #: The names of the syncers that are paused.
        self.syncers: frozenset[str] = frozenset()
        self._paused_namespaces: set[str] = set()
        #: The requests whose copies only a pause on the host keeps.
        self.kept: dict[SyncRequest, str] = {}

    def reason(self, syncer: str) -> StateReason | None:
        """Return why all objects of a syncer are paused; None if they aren't."""
        if not self.is_on and syncer not in self.syncers:
            return None
        side, resource, key = _NOTE
        if self.is_on:
            return reasons.PAUSED(self._marks.paused, side, resource.kind, key)
        return reasons.SYNCER_PAUSED(syncer, self._marks.paused, side, resource.kind, key)

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
            self.is_on = YES in paused
            self.syncers = paused - {YES}
            for name in names:
                if name == YES:
                    changed(None)
                else:
                    syncer_changed(name)

        def named(namespace: Obj) -> Iterable[str]:
            return [key_of(namespace).name] if self._mark_of(namespace) == YES else ()

        def noted(note: Obj) -> Iterable[str]:
            # Most ConfigMaps, of which each change is shown here, have another name.
            is_named = note["metadata"]["name"] == NOTE_KEY.name
            if not is_named or not self._by_tenants or key_of(note) != NOTE_KEY:
                return ()
            names = self._mark_of(note)
            return filter(None, map(str.strip, names.split(",", MOST_NAMES)[:MOST_NAMES]))

        self.namespaces.add_index(_INDEX, named, owner=OWNER, notify=notify)
        self.notes.add_index(_INDEX, noted, owner=OWNER, notify=notify_noted)

    def holds(self, host: Obj) -> bool:
        """Return True if the host's operator has paused a copy: nothing of it is written."""
        return self._mark_of(host) == YES

    def drop(self, syncer: str) -> None:
        """Forget a syncer that has stopped."""
        self.kept = {request: why for request, why in self.kept.items() if request.syncer != syncer}

    def answer(self, observed: Observed) -> Decision | None:
        """Return the decision about a paused request; None if nothing is paused."""
        virtual = observed.virtual
        host = observed.host
        if self.kept:
            self.kept.pop(observed.request, None)
        if virtual is None and host is None and not observed.controller.direction.fakes:
            return None
        if host is not None and self.holds(host):
            decision = self._wait(
                ObjectRef(Side.HOST, observed.controller.syncer.host_resource, key_of(host))
            )
            if self._has_ended(observed):
                self.kept[observed.request] = decision.reason
            return decision
        waits = self._paused_in_virtual(observed)
        if waits is None or self._has_ended(observed) or not _is_selected(observed):
            return None
        return waits

    # -- inside ------------------------------------------------------------------------------------

    def _paused_in_virtual(self, observed: Observed) -> Decision | None:
        """Return the wait for the end of a pause that is set in the virtual cluster."""
        if not self._by_tenants:
            return None
        syncer = observed.controller.syncer
        request = observed.request
        if self.is_on or self.syncers:
            why = self.reason(syncer.name)
            if why is not None:
                return wait(why, on=(_NOTE,))
        if observed.virtual is not None and self._mark_of(observed.virtual) == YES:
            return self._wait(ObjectRef(Side.VIRTUAL, syncer.resource, request.key))
        if request.key.namespace in self._paused_namespaces:
            return self._wait(ObjectRef(Side.VIRTUAL, NAMESPACES, Key("", request.key.namespace)))
        return None

    def _has_ended(self, observed: Observed) -> bool:
        """Return True if the original ends with its copy, or the copy is of an earlier object."""
        virtual = observed.virtual
        host = observed.host
        direction = observed.controller.direction
        if not direction.goes_down:
            return direction.comes_up and (host is None or is_deleting(host))
        if virtual is None or direction.ends_copy(virtual):
            return True
        if host is None or observed.controller.syncer.adopts:
            return False
        return annotations_of(host).get(self._marks.uid, uid_of(virtual)) != uid_of(virtual)

    def _wait(self, by: ObjectRef) -> Decision:
        """Return a wait until the mark is removed."""
        why = reasons.PAUSED(self._marks.paused, by.side, by.resource.kind, by.key)
        return wait(why, on=(by,))

    def _mark_of(self, obj: Obj) -> str:
        """Return the mark, ``""`` if there is none."""
        annotations = obj["metadata"].get("annotations")
        if not annotations:
            return ""
        mark: str = annotations.get(self._marks.paused, "")
        return mark


def _is_selected(observed: Observed) -> bool:
    """Return True unless the selector of its kind leaves an original out."""
    virtual = observed.virtual
    if virtual is None or not observed.controller.direction.goes_down:
        return True
    return observed.ctx.config.selector.selects(virtual)
