"""The classes that a Pod names: on the host it has those that appear in the virtual cluster."""

from collections.abc import Iterable

from syncer.api import Context, Decision, Obj, Settings, Source
from syncer.resources import classes, priorities
from syncer.resources.classes import PriorityClassSyncer, RuntimeClassSyncer
from syncer.resources.pods.config import PodConfig


def sources(settings: Settings) -> Iterable[Source]:
    """Return the classes that Pods may name."""
    return (
        *classes.sources(settings, PriorityClassSyncer, RuntimeClassSyncer),
        *priorities.sources(settings),
    )


def priority(ctx: Context[PodConfig], virtual: Obj) -> Obj:
    """Return the field with the Pod's PriorityClass.

    It names the copy of the tenant's own class, the host's class if it appears, or else the one
    that the operator gives such Pods. The host's admission computes the priority. An API server
    gives ``system-`` classes to any Pod, so they stay behind.
    """
    name = _priority_class(ctx, virtual["spec"].get("priorityClassName") or "")
    if not name:
        return {}
    return {"priorityClassName": name}


def _priority_class(ctx: Context[PodConfig], name: str) -> str:
    """Return the class of the host for a Pod that names this one; ``""`` for none."""
    if name:
        own = priorities.class_key(ctx, name)
        if own is not None:
            return own.name
        if classes.appears(ctx, PriorityClassSyncer, name):
            return name
    return ctx.config.priority_class_name


def is_replaced(ctx: Context[PodConfig], virtual: Obj, copy: Obj) -> bool:
    """Return True if a copy has the operator's PriorityClass in place of the one that is named."""
    given = ctx.config.priority_class_name
    named = virtual["spec"].get("priorityClassName")
    if not given or not named:
        return False
    return bool(named != given and copy["spec"].get("priorityClassName") == given)


def missing(ctx: Context[PodConfig], virtual: Obj) -> Decision | None:
    """Return a wait if the Pod names a class that isn't on the host, or doesn't appear.

    None if there is nothing to wait for.
    """
    spec = virtual["spec"]
    # The operator's RuntimeClass replaces the Pod's own, which then makes no difference.
    if not ctx.config.runtime_class_name:
        waiting = classes.missing(ctx, RuntimeClassSyncer, spec.get("runtimeClassName"))
        if waiting:
            return waiting
    return priorities.missing(ctx, spec.get("priorityClassName") or "")
