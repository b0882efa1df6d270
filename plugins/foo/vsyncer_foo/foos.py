"""Foos of the sample controller.

The spec goes down, the status comes up, and unwanted copies are deleted.
"""

from syncer.api import (
    Context,
    Decision,
    Obj,
    Pair,
    Resource,
    Sync,
    SyncDown,
    Syncer,
    SyncUp,
    apply,
    delete,
)

FOOS = Resource("samplecontroller.k8s.io/v1alpha1", "Foo", "foos")


class FooSyncer(Syncer, SyncDown, Sync, SyncUp):
    """Each role written out; a ``Mirror`` with the same ``down`` and ``up`` does all of it."""

    name = "foos"
    resource = FOOS
    down = ("spec",)
    up = ("status",)

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        """Create the copy: the tenant has a Foo and the host has none."""
        return apply(host=self._wanted(ctx, virtual), reason="the Foo has no copy on the host yet")

    def sync(self, ctx: Context, pair: Pair) -> Decision:
        """Return the wanted spec for the host, and the wanted status for the virtual cluster."""
        return apply(host=self._wanted(ctx, pair.virtual), virtual=self._reported(pair))

    def sync_up(self, ctx: Context, host: Obj) -> Decision:
        """Delete the copy: the tenant's Foo is gone."""
        return delete(host=host, reason="the virtual Foo is gone")

    def _wanted(self, ctx: Context, virtual: Obj) -> Obj:
        return ctx.host_copy(virtual) | {"spec": ctx.without_marks(virtual.get("spec") or {})}

    def _reported(self, pair: Pair) -> Obj:
        metadata = {part: pair.virtual["metadata"][part] for part in ("name", "namespace", "uid")}
        reported: Obj = {"apiVersion": FOOS.api_version, "kind": FOOS.kind, "metadata": metadata}
        if "status" in pair.host:
            reported["status"] = pair.host["status"]
        return reported
