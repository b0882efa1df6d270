"""Copies of a tenant's PriorityClasses on the host, with values up to the operator's limit."""

from collections.abc import Iterable

from pydantic import Field

from syncer.api import (
    Config,
    Context,
    Decision,
    Excludes,
    Grants,
    Key,
    Mirror,
    Obj,
    ObjectRef,
    Pair,
    Refused,
    Settings,
    Side,
    Source,
    delete,
    key_of,
    reasons,
    wait,
)
from syncer.resources.classes import is_reserved
from syncer.resources.kinds import PRIORITY_CLASSES

#: Immutable fields.
_FIXED = ("value", "preemptionPolicy")


class TenantPriorityConfig(Config):
    """The options of a tenant's own PriorityClasses."""

    enabled: bool = False
    """Whether the tenant's PriorityClasses go to the host, and Pods name them there.

    Off by default: Pods with a higher priority are placed first, and evicted last.
    """

    max_value: int = Field(default=0, ge=-(2**31), le=1_000_000_000)
    """The highest value of a copy; a class above it gets this one. 0 is the priority of Pods
    without a class, unless the host has a default one.
    """

    most: int = Field(default=20, ge=0)
    """The most copies; further classes are parked. They have no namespace, so no quota counts
    them.
    """


class TenantPrioritySyncer(
    Mirror[TenantPriorityConfig], Excludes[TenantPriorityConfig], Grants[TenantPriorityConfig]
):
    """Copies PriorityClasses under names of this virtual cluster.

    Pods of a copy evict no others to get a place (``preemptionPolicy: Never``), and it is never the
    default of the host. See
    https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/. Pods may name
    a class until it is gone, so its copy stays until then, whatever finalizers hold it.
    """

    deletion = "whenGone"
    name = "tenant-priorityclasses"
    counts_copies = True
    section = "toHost.priorityClasses"
    resource = PRIORITY_CLASSES
    has_templates = False
    down = ("value", "preemptionPolicy", "globalDefault", "description")
    translates = ("value", "preemptionPolicy", "globalDefault")
    exact = down
    grants = ("value", "preemptionPolicy", "globalDefault")
    fixed_grants = _FIXED

    def excluded(self, ctx: Context[TenantPriorityConfig], side: Side, obj: Obj) -> str | None:
        """Leave those alone that every API server makes for itself."""
        if is_reserved(key_of(obj).name):
            return reasons.BUILT_IN()
        return None

    def still_granted(self, ctx: Context[TenantPriorityConfig], host: Obj) -> Obj:
        """Return the copy with a value up to today's limit, and without what none may have."""
        left = {**host, "preemptionPolicy": "Never"}
        if (host.get("value") or 0) > ctx.config.max_value:
            left["value"] = ctx.config.max_value
        if left.get("globalDefault"):
            del left["globalDefault"]
        return left

    def translate(self, ctx: Context[TenantPriorityConfig], virtual: Obj) -> Obj:
        """Return the copy."""
        host = super().translate(ctx, virtual)
        host.pop("globalDefault", None)
        return {
            **host,
            "value": min(virtual.get("value") or 0, ctx.config.max_value),
            "preemptionPolicy": "Never",
        }

    def sync_down(self, ctx: Context[TenantPriorityConfig], virtual: Obj) -> Decision:
        """Create the copy.

        Raises:
            Refused: There are too many.
        """
        if _copies(ctx) >= ctx.config.most:
            most = ctx.config.most
            why = f"this virtual cluster has {most} PriorityClasses where Pods run already"
            raise Refused(f"{why}: delete others", reason="TooManyClasses")
        return _warned(ctx, virtual, super().sync_down(ctx, virtual))

    def sync(self, ctx: Context[TenantPriorityConfig], pair: Pair) -> Decision:
        """Update the copy, or replace it if its value changes, such as by a lower limit."""
        wanted = self.translate(ctx, pair.virtual)
        for field in _FIXED:
            if wanted[field] != pair.host.get(field):
                why = f"{field} can't be changed, so the class is replaced"
                return delete(host=pair.host, reason=why)
        return _warned(ctx, pair.virtual, super().sync(ctx, pair))


def _copies(ctx: Context[TenantPriorityConfig]) -> int:
    """Return the number of copies; classes of the host's own may be in the same cache."""
    number = 0
    for key in ctx.reader.keys(Side.HOST, PRIORITY_CLASSES):
        host = ctx.host(PRIORITY_CLASSES, key)
        if host is not None and _is_copy(ctx, host):
            number += 1
    return number


def _is_copy(ctx: Context, host: Obj) -> bool:
    return ctx.marks.is_ours(host, cluster=ctx.identity, resource=PRIORITY_CLASSES)


def _warned(ctx: Context[TenantPriorityConfig], virtual: Obj, decision: Decision) -> Decision:
    """Return the decision with a warning that the value is lower on the host."""
    most = ctx.config.max_value
    if (virtual.get("value") or 0) <= most:
        return decision
    why = f"where Pods run its value is {most}, the highest that is allowed"
    return decision.warn("PriorityLowered", why)


def class_key(ctx: Context, name: str) -> Key | None:
    """Return the host key of the copy of a tenant's class; None if the tenant has no such class."""
    config = ctx.settings.section(TenantPrioritySyncer.name, TenantPriorityConfig)
    if config is None or is_reserved(name):
        return None
    virtual = ctx.virtual(PRIORITY_CLASSES, Key("", name))
    if virtual is None or not config.selector.selects(virtual):
        return None
    if ctx.marks.is_from_here(virtual, cluster=ctx.identity):
        return None
    return ctx.names.to_host(PRIORITY_CLASSES, Key("", name))


def missing(ctx: Context, name: str) -> Decision | None:
    """Return a wait if an object names a class that isn't there, or has no copy yet.

    None if there is nothing to wait for. A class that was made just before the object may arrive
    after it.
    """
    if not name or is_reserved(name) or not ctx.enabled(TenantPrioritySyncer.name):
        return None
    key = Key("", name)
    if ctx.virtual(PRIORITY_CLASSES, key) is None:
        reference = ObjectRef(Side.VIRTUAL, PRIORITY_CLASSES, key)
        return wait(reasons.NO_PRIORITY_CLASS(name), on=(reference,))

    at = class_key(ctx, name)
    if at is None:
        return None
    host = ctx.host(PRIORITY_CLASSES, at)
    if host is not None and _is_copy(ctx, host):
        return None
    reference = ObjectRef(Side.HOST, PRIORITY_CLASSES, at)
    return wait(reasons.PRIORITY_CLASS_ABSENT(name), on=(reference,))


def sources(settings: Settings) -> Iterable[Source]:
    """Return the classes that may be named, and their copies."""
    if TenantPrioritySyncer.name in settings.sections:
        yield Source(Side.VIRTUAL, PRIORITY_CLASSES)
        yield Source(Side.HOST, PRIORITY_CLASSES, marked=True)
