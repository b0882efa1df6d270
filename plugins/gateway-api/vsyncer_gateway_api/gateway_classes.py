"""GatewayClasses of the host, read-only in the virtual cluster."""

from syncer.api import (
    Config,
    Context,
    Decision,
    Key,
    Obj,
    Pair,
    Selector,
    Settings,
    Sync,
    Syncer,
    SyncFromHost,
    apply,
    copy_fields,
    delete,
    dig,
    key_of,
    selectors,
)
from vsyncer_gateway_api import generations
from vsyncer_gateway_api.kinds import GATEWAY_CLASSES


class GatewayClassConfig(Config):
    """The GatewayClasses of the host that appear."""

    selector: Selector = Selector()
    """The labels of the host's GatewayClasses that appear. Empty: all of them."""


class GatewayClassSyncer(
    Syncer[GatewayClassConfig], SyncFromHost[GatewayClassConfig], Sync[GatewayClassConfig]
):
    """The host owns them; their parameters, which name an object of the host, stay there."""

    name = "gatewayclasses"
    section = "fromHost.gatewayClasses"
    resource = GATEWAY_CLASSES
    up = ("spec.controllerName", "spec.description", "status")
    exact = up
    reverts_virtual_changes = True

    def host_selector(self, settings: Settings) -> str:
        """Return the label selector of the classes that appear."""
        section = settings.section(self.name, GatewayClassConfig)
        if section is None:
            return ""
        return selectors.written(section.selector.plain)

    def host_key(self, settings: Settings, key: Key) -> Key:
        """Return the same name."""
        return key

    def virtual_key(self, ctx: Context[GatewayClassConfig], host: Obj) -> Key | None:
        """Return the same name; None for a class that the selector leaves out."""
        if ctx.config.selector.selects(host):
            return key_of(host)
        return None

    def sync_from_host(self, ctx: Context[GatewayClassConfig], host: Obj) -> Decision:
        """Show it to the tenant."""
        return apply(virtual=self._shown(ctx, host), reason="the host has this class")

    def sync(self, ctx: Context[GatewayClassConfig], pair: Pair) -> Decision:
        """Update it; one whose controller has changed is replaced, as it can't be changed."""
        field = "spec.controllerName"
        if dig(pair.host, field) != dig(pair.virtual, field):
            why = f"{field} can't be changed, so the class is replaced"
            return delete(virtual=pair.virtual, reason=why)
        return apply(virtual=self._shown(ctx, pair.host, pair.virtual))

    def _shown(
        self, ctx: Context[GatewayClassConfig], host: Obj, virtual: Obj | None = None
    ) -> Obj:
        shown = ctx.virtual_copy(host, key_of(host))
        copy_fields(host, shown, self.up)
        if "status" in shown:
            generation = generations.of_shown(virtual, shown.get("spec"))
            shown["status"] = generations.of_virtual(shown["status"], host, generation)
        return shown
