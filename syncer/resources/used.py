"""The shared half of ConfigMaps and Secrets: copies that exist only while they are needed."""

from typing import ClassVar

from syncer.api import (
    Config,
    Context,
    Decision,
    KeyRules,
    MetadataRules,
    Mirror,
    Obj,
    Pair,
    annotations_of,
    delete,
    key_of,
    reasons,
    skip,
    wait,
)
from syncer.resources.mappings import MappingConfig

#: Below the marks' prefix: the tenant's annotation that forces a copy of an unused object.
FORCE = "force-sync"


class UsedConfig(Config):
    """Options for objects that are copied on demand."""

    all: bool = False
    """Copy every object, whether or not a synced object uses it."""

    force_sync: bool = True
    """Whether tenants may have an unused object copied, by the annotation `vsyncer.dev/force-sync`.

    Turn it off if the host namespace has no quota on the number of these objects.
    """


class UsedSyncer(Mirror[UsedConfig]):
    """Copies an object while a synced Pod, Ingress or custom resource refers to it.

    vcluster has the same rule: a tenant's host namespace holds only the objects that its Pods need.
    Pods read such an object until it is gone, also while it is being deleted.
    """

    deletion = "whenGone"
    when_used = True
    has_templates = False
    #: The name of the syncer that shows such objects of the host. They lie in other namespaces
    #: than the copies, so Pods that use them need copies, too.
    shown_by: ClassVar[str]
    #: Helm finds its releases by such a label alone, among the Secrets and ConfigMaps of a
    #: namespace: ``owner=helm``, and ``OWNER=TILLER`` before version 3.
    metadata = MetadataRules(labels=KeyRules(deny=("owner", "OWNER")))

    def takes_on(self, ctx: Context[UsedConfig], virtual: Obj) -> bool:
        """Return True for a listed object of the host that lies elsewhere than its copy would."""
        config = ctx.settings.section(self.shown_by, MappingConfig)
        if config is None:
            return False
        key = key_of(virtual)
        listed = config.mappings.host_key(key)
        return listed is not None and listed != ctx.names.to_host(self.resource, key)

    def only_when_used(self, virtual: Obj) -> bool:
        """Return True if ``all`` doesn't apply to the object."""
        return False

    def wanted(self, ctx: Context[UsedConfig], virtual: Obj) -> bool | None:
        """Return True if the object belongs on the host, None if that is not known yet."""
        forced = annotations_of(virtual).get(f"{ctx.settings.marks.prefix}/{FORCE}") == "true"
        if forced and ctx.config.force_sync:
            return True
        if ctx.config.all and not self.only_when_used(virtual):
            return True
        return ctx.used(virtual)

    def sync_down(self, ctx: Context[UsedConfig], virtual: Obj) -> Decision:
        """Create the copy if it is needed."""
        wanted = self.wanted(ctx, virtual)
        if wanted is None:
            return wait(reasons.USERS_UNKNOWN())
        if not wanted:
            return skip(self._unused(ctx, virtual))
        return super().sync_down(ctx, virtual)

    def sync(self, ctx: Context[UsedConfig], pair: Pair) -> Decision:
        """Update the copy, and delete it when it is no longer needed."""
        if self.wanted(ctx, pair.virtual) is False:
            return delete(host=pair.host, reason=self._unused(ctx, pair.virtual))
        if pair.host.get("immutable") and _contents_differ(pair):
            why = "the host copy is immutable and has other contents, so it is replaced"
            return delete(host=pair.host, reason=why)
        return super().sync(ctx, pair)

    def _unused(self, ctx: Context[UsedConfig], virtual: Obj) -> str:
        ways_out = []
        if not self.only_when_used(virtual):
            ways_out.append(f"set sync.{self.section}.all")
        if ctx.config.force_sync:
            ways_out.append(f'annotate it with {ctx.marks.prefix}/{FORCE}: "true"')
        if not ways_out:
            ways_out.append("name it in a Pod")
        return reasons.UNUSED(self.resource.kind, " or ".join(ways_out))


def _contents_differ(pair: Pair) -> bool:
    for part in ("data", "binaryData"):
        virtual = pair.virtual.get(part) or {}
        host = pair.host.get(part) or {}
        if virtual != host:
            return True
    return False
