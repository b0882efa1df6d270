"""Widgets run on the host; tenants see their status."""

from pydantic import Field

from syncer.api import Config, Context, Mirror, Obj, Refused, Resource, dig

WIDGETS = Resource("example.org/v1", "Widget", "widgets")


class WidgetConfig(Config):
    """The options of Widgets."""

    max_size: int = Field(default=10, ge=1)
    """Largest `spec.size` that a tenant may request."""


class WidgetSyncer(Mirror[WidgetConfig]):
    """The virtual side owns the spec, the host the status.

    The spec on the host names the tenant.
    """

    name = "widgets"
    resource = WIDGETS
    down = ("spec",)
    up = ("status",)

    def translate(self, ctx: Context[WidgetConfig], virtual: Obj) -> Obj:
        """Return the host copy.

        The base class sets name, labels, marks and spec; this adds the owner.
        """
        size = dig(virtual, "spec.size", 0)
        if not isinstance(size, int):
            raise Refused("it is not a whole number", path="spec.size")
        if size > ctx.config.max_size:
            raise Refused(
                f"{size} is more than the {ctx.config.max_size} that a tenant may have",
                path="spec.size",
            )
        host = super().translate(ctx, virtual)
        return host | {"spec": {**(host.get("spec") or {}), "owner": ctx.cluster}}
