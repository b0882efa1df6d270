"""ReferenceGrants go to the host where each virtual namespace has one of its own there."""

from syncer.api import Context, Decision, Key, Mirror, Obj, Pair, Settings, delete, key_of, skip
from vsyncer_gateway_api.backends import given
from vsyncer_gateway_api.kinds import (
    GROUP,
    GRPC_ROUTES,
    HTTP_ROUTES,
    REFERENCE_GRANTS,
    SERVICES,
    TLS_ROUTES,
)

_NOTHING = "it lets no routes that are synced have Services"


class ReferenceGrantSyncer(Mirror):
    """Copies what lets routes have Services; the rest is about objects that aren't synced.

    Whether a tenant's route may have a backend is decided in the virtual cluster. Where all copies
    are in one host namespace, no controller there needs a grant, and none is copied.
    """

    name = "referencegrants"
    section = "toHost.referenceGrants"
    resource = REFERENCE_GRANTS
    down = ("spec",)
    translates = ("spec",)
    has_templates = False

    def applies_to(self, settings: Settings) -> bool:
        """Return True if copies are in several host namespaces."""
        namespaces = settings.names.host_namespaces()
        return namespaces is None or len(namespaces) > 1

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        """Create the copy if it lets routes have Services."""
        if "spec" not in self.translate(ctx, virtual):
            return skip(_NOTHING)
        return super().sync_down(ctx, virtual)

    def sync(self, ctx: Context, pair: Pair) -> Decision:
        """Update the copy; delete it if it lets no routes have Services any more."""
        if "spec" not in self.translate(ctx, pair.virtual):
            return delete(host=pair.host, reason=_NOTHING)
        return super().sync(ctx, pair)

    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        """Return the copy, with host names; without a spec if it lets no routes have Services."""
        copy = ctx.host_copy(virtual)
        sources: list[Obj] = []
        targets: list[Obj] = []
        for route in (HTTP_ROUTES, GRPC_ROUTES, TLS_ROUTES):
            for source, service in given(route, virtual):
                namespace = ctx.names.to_host(route, Key(source, "any")).namespace
                sources.append({"group": GROUP, "kind": route.kind, "namespace": namespace})
                target: Obj = {"group": SERVICES.group, "kind": SERVICES.kind}
                if service:
                    key = Key(key_of(virtual).namespace, service)
                    target["name"] = ctx.names.to_host(SERVICES, key).name
                targets.append(target)
        if sources:
            copy["spec"] = {"from": _once(sources), "to": _once(targets)}
        return copy


def _once(entries: list[Obj]) -> list[Obj]:
    """Return the entries without duplicates, in order."""
    found: list[Obj] = []
    for each in entries:
        if each not in found:
            found.append(each)
    return found
