"""The ``selector`` of a syncer's section: virtual objects that it doesn't match have no copies."""

from dataclasses import replace

from syncer.api import reasons
from syncer.api.decision import Decision, Precondition, Verb, skip, wait
from syncer.api.objects import ObjectRef, Pair, Side, is_deleting, uid_of
from syncer.directions import came_up
from syncer.engine.reconcile.plan import Observed


def deselect(observed: Observed) -> Decision | None:
    """Return the decision about an object that the selector doesn't match; None for any other.

    An object that is being deleted, which ends its copy, is never deselected, nor is one that the
    syncer has faked.
    """
    ctx = observed.ctx
    virtual = observed.virtual
    host = observed.host
    syncer = observed.controller.syncer
    direction = observed.controller.direction
    if virtual is None or ctx.config.selector.selects(virtual) or direction.ends_copy(virtual):
        return None

    reason = reasons.NOT_SELECTED(syncer.section)
    if host is None or not direction.is_real(ctx, host):
        return None if came_up(ctx, virtual) else skip(reason)
    if is_deleting(host):
        return wait(reasons.DESELECTED(syncer.section))

    decision = direction.deselected(ctx, Pair(virtual, host), reason)
    return _only_if_unchanged(observed, decision)


def _only_if_unchanged(observed: Observed, decision: Decision) -> Decision:
    """Return a decision that only deletes if the live virtual object is unchanged, as stale labels
    must end no copy.
    """
    virtual = observed.virtual
    assert virtual is not None
    ref = ObjectRef(Side.VIRTUAL, observed.controller.syncer.resource, observed.request.key)
    unchanged = Precondition(
        ref, uid_of(virtual), version=virtual["metadata"].get("resourceVersion", "")
    )
    writes = []
    for write in decision.writes:
        is_deletion = write.verb is Verb.DELETE
        writes.append(replace(write, precondition=unchanged) if is_deletion else write)
    return replace(decision, writes=tuple(writes))
