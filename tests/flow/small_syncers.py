"""Minimal syncers for tests."""

from harness import HOME, NAMESPACE, Two

from syncer.api import (
    Config,
    Context,
    Decision,
    Key,
    Mirror,
    Obj,
    Pair,
    Resource,
    Sync,
    Syncer,
    SyncFromHost,
    apply,
    labels_of,
)
from syncer.resources.kinds import CONFIG_MAPS

WIDGETS = Resource("example.org/v1", "Widget", "widgets")


class Widgets(Mirror[Config]):
    """A kind that may not be there."""

    name = "widgets"
    resource = WIDGETS
    down = ("spec",)
    up = ("status",)


class Maps(Mirror[Config]):
    """All ConfigMaps."""

    name = "maps"
    resource = CONFIG_MAPS
    down = ("data",)


class Imports(Syncer[Config], SyncFromHost, Sync):
    """Shows the host's ConfigMaps that are labelled so in the virtual cluster."""

    name = "imports"
    section = "fromHost.imports"
    resource = CONFIG_MAPS
    up = ("data",)

    def virtual_key(self, ctx: Context, host: Obj) -> Key | None:
        return Key(NAMESPACE, host["metadata"]["name"]) if "show" in labels_of(host) else None

    def sync_from_host(self, ctx: Context, host: Obj) -> Decision:
        key = self.virtual_key(ctx, host)
        assert key
        return apply(virtual={**ctx.virtual_copy(host, key), "data": host["data"]})

    def sync(self, ctx: Context, pair: Pair) -> Decision:
        return self.sync_from_host(ctx, pair.host)


def copies(two: Two, plural: str = "configmaps") -> set[str]:
    """Return the names of the shop's objects that have copies."""
    tail = f"-x-{NAMESPACE}-x-vc"
    return {
        copy["metadata"]["name"].removesuffix(tail)
        for copy in two.host.objects(plural, HOME)
        if copy["metadata"]["name"].endswith(tail)
    }
