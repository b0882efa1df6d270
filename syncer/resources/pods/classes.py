"""The classes that a Pod names: on the host it has those that appear in the virtual cluster."""

from collections.abc import Iterable

from syncer.api import Context, Decision, Obj, Settings, Source
from syncer.resources import classes, priorities
from syncer.resources.classes import PriorityClassSyncer, RuntimeClassSyncer
from syncer.resources.pods.config import PodConfig


def sources(settings: Settings) -> Iterable[Source]:
    """Return the classes that Pods may name."""
    return (*classes.sources(settings, PriorityClassSyncer, RuntimeClassSyncer), *priorities.sources(settings))


def priority(ctx: Context, virtual: Obj) -> Obj:
    """Return the field with the Pod's PriorityClass: the copy of the tenant's own, or the host's if it appears.

    The host's admission computes the priority. An API server gives ``system-`` classes to anybody, so
    they stay behind.
    """
    name = virtual["spec"].get("priorityClassName")
    if name and (own := priorities.place(ctx, name)):
        return {"priorityClassName": own.name}
    return {"priorityClassName": name} if name and classes.appears(ctx, PriorityClassSyncer, name) else {}


def missing(ctx: Context[PodConfig], virtual: Obj) -> Decision | None:
    """Return what to wait for if the Pod names a class that isn't on the host, or doesn't appear; None otherwise."""
    spec = virtual["spec"]
    own = None if ctx.config.runtime_class_name else spec.get("runtimeClassName")
    return classes.missing(ctx, RuntimeClassSyncer, own) or priorities.missing(ctx, spec.get("priorityClassName") or "")
