"""Public CustomResourceDefinitions of the host, in the virtual cluster."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from syncer.api import (
    Context,
    Decision,
    Excludes,
    Key,
    Obj,
    ObjectRef,
    Pair,
    Resource,
    Right,
    Settings,
    Side,
    Sync,
    Syncer,
    SyncFromHost,
    annotations_of,
    apply,
    is_deleting,
    key_of,
    labels_of,
    reasons,
    skip,
    wait,
)
from syncer.resources.definitions.config import PublicDefinitionConfig
from syncer.resources.definitions.removal import removed
from syncer.resources.definitions.versions import Crossing, crossing, defined, refuse_unsafe
from syncer.resources.kinds import CUSTOM_RESOURCE_DEFINITIONS

#: The only value that makes a CRD public.
PUBLIC = "true"


class PublicDefinitionSyncer(
    Syncer[PublicDefinitionConfig],
    SyncFromHost[PublicDefinitionConfig],
    Sync[PublicDefinitionConfig],
    Excludes[PublicDefinitionConfig],
):
    """Creates public CRDs of the host in the virtual cluster.

    A tenant's own CRD of the same name is left alone.
    """

    name = "public-crds"
    section = "fromHost.customResourceDefinitions"
    resource = CUSTOM_RESOURCE_DEFINITIONS
    reverts_virtual_changes = True
    up = ("spec",)
    exact = ("spec",)

    def host_selector(self, settings: Settings) -> str:
        """Return the selector of public CRDs.

        A CRD that is no longer public disappears from the watch.
        """
        config = settings.section(self.name, PublicDefinitionConfig)
        assert config
        return f"{config.label}={PUBLIC}"

    def host_key(self, settings: Settings, key: Key) -> Key:
        """Return the same key: a CRD's name is that of its resource, the same on both sides."""
        return key

    def virtual_key(self, ctx: Context, host: Obj) -> Key | None:
        """Return the same key.

        It is returned even for a CRD that is no longer public, so that the copy is reconciled.
        """
        return key_of(host)

    def rights_with(self, settings: Settings) -> Iterable[Right]:
        """Return the right to list the custom resources of a CRD.

        A CRD that has some may not be deleted, with ``delete-if-unused``.
        """
        config = settings.section(self.name, PublicDefinitionConfig)
        assert config
        if config.on_removal != "delete-if-unused":
            return ()
        return [Right(Side.VIRTUAL, resource, ("list",)) for resource in _resources(config.allow)]

    def excluded(self, ctx: Context[PublicDefinitionConfig], side: Side, obj: Obj) -> str | None:
        """Leave copies of a tenant's CRDs on the host alone: they appear in no virtual cluster."""
        if side is Side.HOST and ctx.marks.name in annotations_of(obj):
            return reasons.COPY_OF_CRD()
        return None

    def sync_from_host(self, ctx: Context[PublicDefinitionConfig], host: Obj) -> Decision:
        """Create the CRD in the virtual cluster."""
        if reason := _unwanted(ctx, host):
            return skip(reason)
        if is_deleting(host):
            return skip(reasons.HOST_ENDS("CRD"))
        wanted = crossing(host, conversion=ctx.config.conversion)
        return _apply(ctx, host, wanted, "the host CRD is public")

    def sync(self, ctx: Context[PublicDefinitionConfig], pair: Pair) -> Decision:
        """Update it while it is public and allowed, and until the host's own CRD is really gone."""
        if reason := _unwanted(ctx, pair.host):
            return self._removed(ctx, pair.virtual, reason)
        if is_deleting(pair.virtual):
            gone = ObjectRef(Side.VIRTUAL, ctx.resource, key_of(pair.virtual))
            return wait(reasons.REMADE("virtual CRD"), on=(gone,))
        wanted = crossing(pair.host, conversion=ctx.config.conversion)
        refuse_unsafe(wanted, pair.virtual, Side.VIRTUAL)
        return _apply(ctx, pair.host, wanted)

    def host_gone(self, ctx: Context[PublicDefinitionConfig], virtual: Obj) -> Decision:
        """Decide by ``onRemoval``.

        A retained copy keeps its mark, so that it can be taken over again.
        """
        return self._removed(ctx, virtual, "the host CRD is gone or no longer public")

    def _removed(self, ctx: Context[PublicDefinitionConfig], virtual: Obj, why: str) -> Decision:
        return removed(virtual, Side.VIRTUAL, ctx.config.on_removal, why=why, section=self.section)


def _unwanted(ctx: Context[PublicDefinitionConfig], host: Obj) -> str:
    """Return why a host CRD isn't for this virtual cluster; ``""`` if it is."""
    config = ctx.config
    name = key_of(host).name
    if labels_of(host).get(config.label) != PUBLIC:
        return reasons.CRD_NOT_PUBLIC(config.label, PUBLIC)
    section = f"sync.{PublicDefinitionSyncer.section}"
    if any(fnmatchcase(name, pattern) for pattern in config.deny):
        return reasons.DENIED_BY_OPTION(name, f"{section}.deny")
    if not any(fnmatchcase(name, pattern) for pattern in config.allow):
        return reasons.NOT_LISTED(name, f"{section}.allow")
    return ""


def _apply(ctx: Context, host: Obj, wanted: Crossing, reason: str = "") -> Decision:
    virtual = {**ctx.virtual_copy(host, key_of(host)), "spec": wanted.spec}
    reasons = [each for each in (reason, *wanted.notes) if each]
    return apply(virtual=virtual, reason="; ".join(reasons))


def _resources(allowed: Sequence[str]) -> Iterable[Resource]:
    """Return the custom resources of the allowed CRDs, for a right.

    These are all resources if one of the names is a pattern.
    """
    if any(set(name) & set("*?[") for name in allowed):
        return [Resource("*/*", "*", "*", namespaced=False)]
    return [defined(name) for name in allowed]
