"""Staleness: a list may be outdated for some seconds; an irreversible write is confirmed, or waits
for the watch.
"""

from collections.abc import Iterable
from dataclasses import replace
from math import inf

from syncer.api import reasons
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


def guard_pod_start(observed: Observed, decision: Decision) -> Decision:
    """Create a Pod only if the live virtual Pod is unchanged.

    A finished one would run a second time.
    """
    virtual = observed.virtual
    if observed.host is not None or virtual is None or not decision.writes or _doubt(observed) <= 0:
        return decision
    version = virtual["metadata"]["resourceVersion"]
    ref = ObjectRef(Side.VIRTUAL, observed.controller.syncer.resource, key_of(virtual))
    unchanged = Precondition(ref, uid_of(virtual), version=version)
    writes = []
    for write in decision.writes:
        is_copy = write.verb is Verb.APPLY and write.side is Side.HOST
        writes.append(replace(write, precondition=unchanged) if is_copy else write)
    return replace(decision, writes=tuple(writes))


def delay_unconfirmed_deletions(observed: Observed, decision: Decision) -> Decision:
    """Let an unconfirmed deletion wait while it may follow from a stale list."""
    if not any(_is_unconfirmed(observed, write) for write in decision.writes):
        return decision
    left = _doubt(observed)
    if left <= 0:
        return decision
    return wait(
        reasons.LISTED_JUST_NOW(decision.reason),
        after=max(left, LEAST_WAIT),
    )


def _doubt(observed: Observed) -> float:
    """Return the seconds for which a store of this decision may still be stale."""
    ages = [store.age for store in _stores(observed)]
    return DOUBT_SECONDS - min(ages, default=inf)


def _is_unconfirmed(observed: Observed, write: Write) -> bool:
    """Return True if a deletion has no confirmed cause.

    The other object's deletion is one, and a precondition confirms the cause itself.
    """
    if write.verb is not Verb.DELETE or is_deleting(write.obj):
        return False
    if observed.controller.direction.fakes and observed.host is None:
        return True  # no single object decides whether a fake is needed, so none can be confirmed
    if write.precondition is not None:
        return False
    other = observed.on(write.side.other)
    is_cause = (
        other is not None and is_deleting(other) and not observed.controller.direction.outlasts_mark
    )
    return other is not None and not is_cause


def _stores(observed: Observed) -> Iterable[SideInformer]:
    """Return the stores that a decision may be made from."""
    controller = observed.controller
    view = controller.view
    users = (
        view.references.stores(controller.syncer.resource) if controller.syncer.when_used else ()
    )
    copies = view.copies() if controller.syncer.reads_copies else ()
    return (*controller.stores, *controller.extras, *copies, *users)
