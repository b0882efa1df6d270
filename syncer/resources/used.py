"""The shared half of ConfigMaps and Secrets: copies that exist exactly while something synced needs them."""

from collections.abc import Iterable, Sequence

from syncer.api import (
    Config,
    Context,
    Decision,
    Index,
    Indexes,
    Key,
    Mirror,
    Obj,
    Pair,
    Settings,
    Side,
    Source,
    Watch,
    Watches,
    annotations_of,
    delete,
    key_of,
    skip,
)
from syncer.resources.kinds import PODS
from syncer.resources.pods.references import names_used

#: Below the marks' prefix: the tenant's annotation that asks for a copy though nothing uses the object.
FORCE = "force-sync"

_POD_SOURCE = Source(Side.VIRTUAL, PODS)


class UsedConfig(Config):
    """Which objects are copied to the host."""

    all: bool = False
    """Copy every object, whether or not a synced Pod or Ingress uses it."""


class UsedSyncer(Mirror[UsedConfig], Indexes, Watches):
    """Copies an object while a synced Pod names it; a subclass may add other users.

    Keep-alive by reference is vcluster's rule as well: a tenant's host namespace holds what its pods need, no more.
    """

    config = UsedConfig
    exact = ("data", "binaryData")
    reads = (_POD_SOURCE,)

    def indexes(self) -> Sequence[Index]:
        """Pods by the objects that they name, as ``namespace/name``."""
        return [Index(_POD_SOURCE, self.name, lambda pod: map(str, names_used(pod, self.resource)))]

    def watches(self) -> Sequence[Watch]:
        """Look again when a Pod begins or ceases to name an object."""
        return [Watch(_POD_SOURCE, self._used_by_pod)]

    def _used_by_pod(self, pod: Obj, settings: Settings) -> Iterable[Key]:
        return names_used(pod, self.resource)

    def used(self, ctx: Context[UsedConfig], key: Key) -> bool:
        """Whether something synced refers to the object."""
        return bool(ctx.reader.indexed(Side.VIRTUAL, PODS, self.name, str(key)))

    def only_when_used(self, virtual: Obj) -> bool:
        """Whether ``all`` passes over the object."""
        return False

    def wanted(self, ctx: Context[UsedConfig], virtual: Obj) -> bool:
        """Whether the object belongs on the host."""
        if annotations_of(virtual).get(f"{ctx.marks.prefix}/{FORCE}") == "true":
            return True
        if ctx.config.all and not self.only_when_used(virtual):
            return True
        return self.used(ctx, key_of(virtual))

    def sync_down(self, ctx: Context[UsedConfig], virtual: Obj) -> Decision:
        """Copy it if something needs it."""
        if not self.wanted(ctx, virtual):
            return skip(self._unused(ctx))
        return super().sync_down(ctx, virtual)

    def sync(self, ctx: Context[UsedConfig], pair: Pair) -> Decision:
        """Keep the copy as the virtual object is, and remove it when nothing needs it any more."""
        if not self.wanted(ctx, pair.virtual):
            return delete(host=pair.host, reason=self._unused(ctx))
        if pair.host.get("immutable") and _contents_differ(pair):
            return delete(host=pair.host, reason="the host copy is immutable and has other contents: it is made anew")
        return super().sync(ctx, pair)

    def _unused(self, ctx: Context[UsedConfig]) -> str:
        return (
            f"no synced object refers to this {self.resource.kind}; to copy it all the same, "
            f'set sync.{self.section}.all or annotate it with {ctx.marks.prefix}/{FORCE}: "true"'
        )


def _contents_differ(pair: Pair) -> bool:
    return any((pair.virtual.get(part) or {}) != (pair.host.get(part) or {}) for part in ("data", "binaryData"))
