"""Objects of the host that are in the virtual cluster under the same names, read-only."""

from typing import ClassVar

from syncer.api import (
    Context,
    Decision,
    Key,
    Obj,
    Pair,
    Settings,
    Sync,
    Syncer,
    SyncFromHost,
    annotations_of,
    apply,
    copy_fields,
    delete,
    dig,
    key_of,
    selectors,
    skip,
)


class HostMirror(Syncer, SyncFromHost, Sync):
    """Shows the ``up`` fields of objects that the ``selector`` of its section matches.

    A tenant's changes are reverted, and a tenant's own objects left alone. If ``fixed`` fields of
    an object have changed, the host's was replaced, and so is the virtual one.
    """

    reverts_virtual_changes = True
    #: The fields that an API server never changes.
    fixed: ClassVar[tuple[str, ...]] = ()

    def host_selector(self, settings: Settings) -> str:
        """Return the label selector of the objects that appear."""
        config = settings.sections.get(self.name)
        if config:
            return selectors.written(config.selector.plain)
        return ""

    def host_key(self, settings: Settings, key: Key) -> Key:
        """Return the same key: other objects name it, on both sides."""
        return key

    def virtual_key(self, ctx: Context, host: Obj) -> Key | None:
        """Return the same key; None for an object that doesn't appear, as copies don't."""
        is_copy = ctx.marks.name in annotations_of(host)
        if is_copy or not ctx.config.selector.selects(host):
            return None
        return key_of(host)

    def why_hidden(self, ctx: Context, host: Obj) -> str:
        """Return why an object doesn't appear that its labels select; ``""`` if it does.

        Override it for objects that depend on others. An index has to requeue them then.
        """
        return ""

    def sync_from_host(self, ctx: Context, host: Obj) -> Decision:
        """Create the virtual object."""
        if why := self.why_hidden(ctx, host):
            return skip(why)
        kind = self.resource.kind
        return apply(virtual=self.shown(ctx, host), reason=f"the host has this {kind}")

    def sync(self, ctx: Context, pair: Pair) -> Decision:
        """Update it from the host's."""
        if why := self.why_hidden(ctx, pair.host):
            return delete(virtual=pair.virtual, reason=str(why))
        shown = self.shown(ctx, pair.host)
        if path := self.refused_change(pair.virtual, shown):
            why = f"{path} can't be changed, so the {self.resource.kind} is replaced"
            return delete(virtual=pair.virtual, reason=why)
        return apply(virtual=shown)

    def refused_change(self, virtual: Obj, shown: Obj) -> str:
        """Return the path of a field whose change an API server refuses; ``""`` if there is none.

        By default it is one of ``fixed``.
        """
        for path in self.fixed:
            if dig(shown, path) != dig(virtual, path):
                return path
        return ""

    def shown(self, ctx: Context, host: Obj) -> Obj:
        """Return the virtual object that shows a host object."""
        key = self.virtual_key(ctx, host) or key_of(host)
        shown = ctx.virtual_copy(host, key)
        copy_fields(host, shown, self.up)
        return shown
