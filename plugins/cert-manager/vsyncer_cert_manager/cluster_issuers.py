"""ClusterIssuers of the host that tenants may use: they see only its name and its status."""

from syncer.api import (
    Config,
    Context,
    Decision,
    Key,
    Obj,
    Pair,
    Settings,
    Sync,
    Syncer,
    SyncFromHost,
    apply,
    delete,
    host_names,
    key_of,
    skip,
)
from vsyncer_cert_manager.kinds import CLUSTER_ISSUERS


class ClusterIssuerConfig(Config):
    """The ClusterIssuers of the host that the tenant may use."""

    names: tuple[str, ...] = ()
    """Their names. None by default: a tenant who may use an issuer gets certificates from it."""


class ClusterIssuerSyncer(
    Syncer[ClusterIssuerConfig], SyncFromHost[ClusterIssuerConfig], Sync[ClusterIssuerConfig]
):
    """The host owns them. Their spec is not copied: it names accounts and Secrets of the host."""

    name = "clusterissuers"
    section = "fromHost.clusterIssuers"
    resource = CLUSTER_ISSUERS
    up = ("spec", "status")
    exact = ("spec", "status")
    reverts_virtual_changes = True

    def virtual_key(self, ctx: Context[ClusterIssuerConfig], host: Obj) -> Key | None:
        """Return the same name if the issuer is published, otherwise None."""
        return key_of(host) if key_of(host).name in ctx.config.names else None

    def host_key(self, settings: Settings, key: Key) -> Key:
        """Return the same name."""
        return key

    def sync_from_host(self, ctx: Context[ClusterIssuerConfig], host: Obj) -> Decision:
        """Show it to the tenant."""
        if self.virtual_key(ctx, host) is None:
            return skip(f"sync.{self.section}.names doesn't name it")
        key = key_of(host)
        status = host_names(ctx, key, key).in_messages(host.get("status") or {})
        shown = ctx.virtual_copy(host, key) | {"spec": {}, "status": status}
        return apply(virtual=shown, reason="the host publishes it")

    def sync(self, ctx: Context[ClusterIssuerConfig], pair: Pair) -> Decision:
        """Update it while it is published."""
        if self.virtual_key(ctx, pair.host) is None:
            return delete(
                virtual=pair.virtual, reason=f"sync.{self.section}.names doesn't name it any more"
            )
        return self.sync_from_host(ctx, pair.host)


def published(settings: Settings) -> tuple[str, ...]:
    """Return the names of the ClusterIssuers that the tenant may use."""
    section = settings.section(ClusterIssuerSyncer.name, ClusterIssuerConfig)
    return section.names if section else ()
