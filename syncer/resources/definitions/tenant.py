"""Selected CustomResourceDefinitions of the tenant, on the host."""

from collections.abc import Iterable

from syncer.api import (
    NOTES_OF_TOOLS,
    Context,
    Decision,
    Key,
    MetadataRules,
    Obj,
    Pair,
    Refused,
    Right,
    Settings,
    Side,
    Sync,
    SyncDown,
    Syncer,
    SyncUp,
    apply,
    is_deleting,
    key_of,
    reasons,
    skip,
    wait,
)
from syncer.resources.definitions.config import TenantDefinitionConfig
from syncer.resources.definitions.removal import removed
from syncer.resources.definitions.versions import (
    Crossing,
    crossing,
    defined,
    refuse_unsafe,
    without_built_in_names,
)
from syncer.resources.kinds import CUSTOM_RESOURCE_DEFINITIONS


class TenantDefinitionSyncer(
    Syncer[TenantDefinitionConfig],
    SyncDown[TenantDefinitionConfig],
    Sync[TenantDefinitionConfig],
    SyncUp[TenantDefinitionConfig],
):
    """Copies the tenant's CRDs that are listed.

    A CRD of the host itself or of another tenant is left alone. Deleting a host CRD deletes all
    copies of its custom resources, so that is never done without a policy.
    """

    name = "tenant-crds"
    section = "toHost.customResourceDefinitions"
    resource = CUSTOM_RESOURCE_DEFINITIONS
    #: No selector needs the labels of a CRD, so notes of tools stay behind as labels, too.
    metadata = MetadataRules(labels=NOTES_OF_TOOLS)
    down = ("spec",)
    translates = ("spec",)
    exact = ("spec",)
    own_deletion = True
    adopts = True

    def host_key(self, settings: Settings, key: Key) -> Key:
        """Return the same key: a CRD's name is that of its resource, the same on both sides."""
        return key

    def rights_with(self, settings: Settings) -> Iterable[Right]:
        """Return the rights to list the custom resources of the listed CRDs.

        With ``delete-if-unused`` a CRD must not be deleted while it has some.
        """
        config = settings.section(self.name, TenantDefinitionConfig)
        assert config
        if config.on_removal != "delete-if-unused":
            return ()
        return [Right(Side.HOST, defined(name), ("list",)) for name in config.names]

    def sync_down(self, ctx: Context[TenantDefinitionConfig], virtual: Obj) -> Decision:
        """Create the CRD on the host."""
        if reason := _unwanted(ctx, virtual):
            return skip(reason)
        if is_deleting(virtual):
            return skip(reasons.ORIGINAL_ENDS("CRD"))
        _must_have_scope(ctx, virtual)
        wanted = without_built_in_names(crossing(virtual, conversion=ctx.config.conversion))
        return _apply(ctx, virtual, wanted, "the virtual CRD is named in the configuration")

    def sync(self, ctx: Context[TenantDefinitionConfig], pair: Pair) -> Decision:
        """Update it from the tenant's while it is listed."""
        if reason := _unwanted(ctx, pair.virtual):
            return self._removed(ctx, pair.host, reason)
        if is_deleting(pair.virtual):
            return wait(reasons.VIRTUAL_ENDS("CRD"))
        if is_deleting(pair.host):
            return wait(reasons.REMADE("host CRD"))
        _must_have_scope(ctx, pair.virtual)
        wanted = without_built_in_names(crossing(pair.virtual, conversion=ctx.config.conversion))
        refuse_unsafe(wanted, pair.host, Side.HOST)
        return _apply(ctx, pair.virtual, wanted)

    def deselected(self, ctx: Context[TenantDefinitionConfig], pair: Pair, reason: str) -> Decision:
        """Decide by ``onRemoval`` about a CRD that is no longer wanted."""
        return self._removed(ctx, pair.host, reason)

    def sync_up(self, ctx: Context[TenantDefinitionConfig], host: Obj) -> Decision:
        """Decide by ``onRemoval``."""
        return self._removed(ctx, host, "the virtual CRD is gone")

    def _removed(self, ctx: Context[TenantDefinitionConfig], host: Obj, why: str) -> Decision:
        return removed(host, Side.HOST, ctx.config.on_removal, why=why, section=self.section)


def _unwanted(ctx: Context[TenantDefinitionConfig], virtual: Obj) -> str:
    """Return the reason why a CRD isn't copied; ``""`` if it is."""
    name = key_of(virtual).name
    if name in ctx.config.names:
        return ""
    return reasons.NOT_LISTED(name, f"sync.{TenantDefinitionSyncer.section}.names")


def _must_have_scope(ctx: Context[TenantDefinitionConfig], virtual: Obj) -> None:
    """Refuse a CRD of another scope than the configured one."""
    found = virtual["spec"]["scope"]
    wanted = ctx.config.scope
    if wanted and found != wanted:
        option = f"sync.{TenantDefinitionSyncer.section}.scope"
        why = f"is {found}, and only {wanted} kinds go to the host ({option})"
        raise Refused(why, path="spec.scope")


def _apply(ctx: Context, virtual: Obj, wanted: Crossing, reason: str = "") -> Decision:
    host = {**ctx.host_copy(virtual), "spec": wanted.spec}
    reasons = [each for each in (reason, *wanted.notes) if each]
    return apply(host=host, reason="; ".join(reasons))
