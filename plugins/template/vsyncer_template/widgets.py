"""Widgets run on the host; the tenant sees how they fare."""

from pydantic import Field

from syncer.api import Config, Context, Mirror, Obj, Refused, Resource, dig

WIDGETS = Resource("example.org/v1", "Widget", "widgets")


class WidgetConfig(Config):
    """Which Widgets tenants may have."""

    max_size: int = Field(default=10, ge=1)
    """The largest `spec.size` that a tenant may ask for."""


class WidgetSyncer(Mirror[WidgetConfig]):
    """The virtual side owns the spec, the host side the status; the host may tell by the spec whose Widget it is."""

    name = "widgets"
    resource = WIDGETS
    down = ("spec",)
    up = ("status",)

    def translate(self, ctx: Context[WidgetConfig], virtual: Obj) -> Obj:
        """Return the host copy: name, labels, marks and the spec are there already; the owner is our twist."""
        size = dig(virtual, "spec.size", 0)
        if not isinstance(size, int):
            raise Refused("it is not a whole number", path="spec.size")
        if size > ctx.config.max_size:
            raise Refused(f"{size} is more than the {ctx.config.max_size} that a tenant may have", path="spec.size")
        host = super().translate(ctx, virtual)
        return host | {"spec": {**(host.get("spec") or {}), "owner": ctx.cluster}}
