"""Preconditions for deletions that follow from a missing object.

The live API server must confirm them, as the cache may be stale: an object that is missing there,
and whose deletion no watch reported, may exist. A final status can't be taken back, so it is always
confirmed.
"""

from dataclasses import replace

from syncer.api.decision import Decision, Precondition, Verb, Write
from syncer.api.objects import ObjectRef, Side, annotations_of, is_deleting, uid_of
from syncer.engine.reconcile.plan import Observed
from syncer.engine.reconcile.policies.staleness import was_just_listed
from syncer.engine.stores.informers import SideInformer


def add_preconditions(observed: Observed, decision: Decision) -> Decision:
    """Return the decision with a precondition on each deletion that no watch event confirms."""
    writes = tuple([_with_precondition(observed, write) for write in decision.writes])
    return decision if writes == decision.writes else replace(decision, writes=writes)


def _with_precondition(observed: Observed, write: Write) -> Write:
    if write.verb is not Verb.DELETE or write.precondition is not None:
        return write
    if not observed.controller.direction.goes_down:
        return _with_origin(observed, write)

    other = write.side.other
    cause = observed.on(other)
    copied_from = annotations_of(write.obj).get(observed.ctx.marks.uid)
    if cause is None:
        if write.final_status is None and _saw_go(observed, other, write, copied_from):
            return write
        return replace(write, precondition=Precondition(_ref(observed, other)))

    if write.side is Side.HOST and copied_from not in (None, uid_of(cause)):
        return replace(write, precondition=Precondition(_ref(observed, other), uid_of(cause)))
    return write


def _with_origin(observed: Observed, write: Write) -> Write:
    """Add a precondition to a write of a syncer from the host: its host object is gone.

    An object that merely left the selection is added to the cache, and decided about as it is. A
    key that the configuration doesn't list any more needs no look.
    """
    host = observed.controller.host_at(observed.host_key)
    if (
        not observed.controller.direction.comes_up
        or write.side is Side.HOST
        or observed.host is not None
        or host is None
    ):
        return write
    if observed.host_key in host or (host.saw_go(observed.host_key) and not was_just_listed(host)):
        return write
    return replace(write, precondition=Precondition(_ref(observed, Side.HOST)))


def _ref(observed: Observed, side: Side) -> ObjectRef:
    syncer = observed.controller.syncer
    if side is Side.VIRTUAL:
        return ObjectRef(side, syncer.resource, observed.request.key)
    return ObjectRef(side, syncer.host_resource, observed.host_key)


def _saw_go(observed: Observed, side: Side, write: Write, copied_from: str | None) -> bool:
    """Return True if a watch reported the deletion of the object that the write follows from."""
    key = observed.host_key
    if side is Side.VIRTUAL:
        key = observed.request.key
    store: SideInformer | None = observed.controller.store(side, key)
    if store is None:
        return True
    if side is Side.VIRTUAL:
        return store.saw_go(key, copied_from)
    # The deleted object may be an earlier copy; that matters unless the tenant deleted the virtual
    # object.
    return is_deleting(write.obj) and store.saw_go(key)
