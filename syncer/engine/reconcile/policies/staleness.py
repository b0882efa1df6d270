"""A list may be old for some seconds: a write that can't be made good again is confirmed, or waits for the watch."""

from collections.abc import Iterable
from dataclasses import replace
from math import inf

from syncer.api.decision import Decision, Precondition, Verb, Write, wait
from syncer.api.objects import ObjectRef, Side, is_deleting, key_of, uid_of
from syncer.engine.cache.informer import Informer
from syncer.engine.reconcile.plan import Observed

#: Seconds after a list in which it may still turn out to be old. Lists ask for the latest state, and an API server
#: whose cache is behind, or was put back, answers with an older one all the same.
DOUBT_SECONDS = 4.0
#: The least seconds before the next reconcile: what is left may be too little for a clock to show it.
LEAST_WAIT = 0.05


def is_fresh(store: Informer) -> bool:
    """Return True if a store was listed, or lost its watch, so short a time ago that it may be old."""
    return store.age < DOUBT_SECONDS


def run_once(seen: Observed, decision: Decision) -> Decision:
    """Make a Pod only as a copy of what the API server has at that moment: an ended one would run a second time."""
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


def unconfirmed_deletions_wait(seen: Observed, decision: Decision) -> Decision:
    """Let a deletion that nothing confirms wait while it may follow from an old list."""
    if not any(_is_unconfirmed(seen, write) for write in decision.writes):
        return decision
    left = _doubt(seen)
    if left <= 0:
        return decision
    return wait(f"{decision.reason}, as it was listed a moment ago; that may be old", after=max(left, LEAST_WAIT))


def _doubt(seen: Observed) -> float:
    """Return the seconds for which a store that the decision may be made from counts as old."""
    return DOUBT_SECONDS - min((store.age for store in _read(seen)), default=inf)


def _is_unconfirmed(seen: Observed, write: Write) -> bool:
    """Return True if a deletion follows neither from the other object's end nor from a precondition."""
    if write.verb is not Verb.DELETE or is_deleting(write.obj):
        return False
    if seen.controller.direction.fakes and seen.host is None:
        return True  # what needs a fake is no object of its own, which could be asked for
    if write.precondition is not None:
        return False
    other = seen.on(write.side.other)
    return other is not None and not is_deleting(other)


def _read(seen: Observed) -> Iterable[Informer]:
    """Return the stores that a decision may be made from."""
    controller = seen.controller
    users = controller.view.references.stores(controller.syncer.resource) if controller.syncer.when_used else ()
    return (*controller.stores, *controller.extras, *users)
