"""Staleness: a list may be outdated for some seconds; an irreversible write is confirmed, or waits
for the watch.
"""

from collections.abc import Iterable
from dataclasses import replace
from math import inf

from syncer.api.decision import Decision, Precondition, Verb, Write, wait
from syncer.api.objects import ObjectRef, Side, is_deleting, key_of, uid_of
from syncer.engine.reconcile.plan import Observed
from syncer.engine.stores.informers import SideInformer

#: Seconds during which a list may turn out to be stale. Lists ask for the latest state, but an API
#: server whose cache is behind, or was restored, answers with an older one all the same.
DOUBT_SECONDS = 4.0
#: Minimum seconds before the next reconcile: the rest may be too short for the clock.
LEAST_WAIT = 0.05


def was_just_listed(store: SideInformer) -> bool:
    """Return True if a store may be stale: it was listed, or lost its watch, only recently."""
    return store.age < DOUBT_SECONDS


def guard_pod_start(seen: Observed, decision: Decision) -> Decision:
    """Create a Pod only if the live virtual Pod is unchanged: a finished one would run a second time."""
    virtual = seen.virtual
    if seen.host is not None or virtual is None or not decision.writes or _doubt(seen) <= 0:
        return decision
    version = virtual["metadata"]["resourceVersion"]
    ref = ObjectRef(Side.VIRTUAL, seen.controller.syncer.resource, key_of(virtual))
    latest = Precondition(ref, uid_of(virtual), version=version)
    writes = (
        replace(write, precondition=latest) if write.verb is Verb.APPLY and write.side is Side.HOST else write
        for write in decision.writes
    )
    return replace(decision, writes=tuple(writes))


def delay_unconfirmed_deletions(seen: Observed, decision: Decision) -> Decision:
    """Let an unconfirmed deletion wait while it may follow from a stale list."""
    if not any(_is_unconfirmed(seen, write) for write in decision.writes):
        return decision
    left = _doubt(seen)
    if left <= 0:
        return decision
    return wait(f"{decision.reason}, as it was listed a moment ago; that may be old", after=max(left, LEAST_WAIT))


def _doubt(seen: Observed) -> float:
    """Return the seconds for which a store of this decision may still be stale."""
    return DOUBT_SECONDS - min((store.age for store in _read(seen)), default=inf)


def _is_unconfirmed(seen: Observed, write: Write) -> bool:
    """Return True if a deletion follows neither from the other object's deletion nor from a precondition."""
    if write.verb is not Verb.DELETE or is_deleting(write.obj):
        return False
    if seen.controller.direction.fakes and seen.host is None:
        return True  # no single object decides whether a fake is needed, so none can be confirmed
    if write.precondition is not None:
        return False
    other = seen.on(write.side.other)
    is_cause = other is not None and is_deleting(other) and not seen.controller.direction.outlasts_mark
    return other is not None and not is_cause


def _read(seen: Observed) -> Iterable[SideInformer]:
    """Return the stores that a decision may be made from."""
    controller, view = seen.controller, seen.controller.view
    users = view.references.stores(controller.syncer.resource) if controller.syncer.when_used else ()
    copies = view.copies() if controller.syncer.reads_copies else ()
    return (*controller.stores, *controller.extras, *copies, *users)
