"""What was listed a moment ago may be old: what can't be made good again is confirmed, or waits for a watch to tell."""

from collections.abc import Iterable
from dataclasses import replace
from math import inf

from syncer.api.decision import Decision, Precondition, Verb, Write, wait
from syncer.api.objects import ObjectRef, Side, is_deleting, key_of, uid_of
from syncer.api.roles import FakeSyncUp
from syncer.engine.apply.applier import BySide
from syncer.engine.cache.references import References
from syncer.engine.cache.store import Store
from syncer.engine.reconcile.controller import Controller
from syncer.resources.kinds import PODS

#: Seconds after a list in which it may still turn out to be old. Lists ask for the latest state, and an API server
#: whose cache is behind, or was put back, answers with an older one all the same.
DOUBT_SECONDS = 4.0
#: The least seconds before the next look: what is left may be too little for a clock to show it.
LOOK = 0.05


def is_fresh(store: Store) -> bool:
    """Whether a store was listed, or lost its watch, so short a time ago that what it has may be old."""
    return store.age < DOUBT_SECONDS


def doubted(controller: Controller, decision: Decision, *, objects: BySide, references: References) -> Decision:
    """The decision, or what is left of it while it may follow from an old list.

    A deletion that nothing confirms waits. A Pod is made only as a copy of what the API server has at that moment: one
    that has ended meanwhile would run a second time.
    """
    runs = _runs(controller, objects)
    if not runs and not (
        decision.deletes and any(_is_unconfirmed(controller, each, objects) for each in decision.writes)
    ):
        return decision
    left = DOUBT_SECONDS - min((store.age for store in _read(controller, references)), default=inf)
    if left <= 0:
        return decision
    if runs:
        return replace(decision, writes=tuple(_confirmed(controller, write, objects) for write in decision.writes))
    return wait(f"{decision.reason}, as it was listed a moment ago; that may be old", after=max(left, LOOK))


def _runs(controller: Controller, objects: BySide) -> bool:
    """Whether a Pod has no copy on the host yet."""
    if objects.get(Side.HOST) is not None or objects.get(Side.VIRTUAL) is None:
        return False
    return controller.syncer.host_resource == PODS


def _confirmed(controller: Controller, write: Write, objects: BySide) -> Write:
    virtual = objects.get(Side.VIRTUAL)
    if virtual is None or write.verb is not Verb.APPLY or write.side is not Side.HOST:
        return write
    seen = ObjectRef(Side.VIRTUAL, controller.syncer.resource, key_of(virtual))
    return replace(
        write, precondition=Precondition(seen, uid_of(virtual), version=virtual["metadata"]["resourceVersion"])
    )


def _is_unconfirmed(controller: Controller, write: Write, objects: BySide) -> bool:
    """Whether a deletion follows neither from the other object's end nor from what the API server is asked again."""
    if write.verb is not Verb.DELETE or write.precondition is not None or is_deleting(write.obj):
        return False
    if isinstance(controller.syncer, FakeSyncUp):
        return True
    other = objects.get(write.side.other)
    return other is not None and not is_deleting(other)


def _read(controller: Controller, references: References) -> Iterable[Store]:
    """The stores that a decision may be made from."""
    return (
        *controller.stores,
        *controller.extras,
        *(references.stores(controller.syncer.resource) if controller.syncer.when_used else ()),
    )
