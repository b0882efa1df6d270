"""ReferenceGrants go to the host where each virtual namespace has one of its own there."""

from collections.abc import Iterator

from syncer.api import (
    Context,
    Decision,
    Key,
    Mirror,
    Obj,
    Pair,
    Resource,
    Settings,
    delete,
    key_of,
    skip,
)
from vsyncer_gateway_api.grants import given
from vsyncer_gateway_api.kinds import GATEWAYS, GROUP, REFERENCE_GRANTS, ROUTES, SECRETS, SERVICES
from vsyncer_gateway_api.tenant_gateways import options_of

_NOTHING = "it lets nothing that is synced have Services or Secrets"


class ReferenceGrantSyncer(Mirror):
    """Copies what lets routes have Services, and the tenant's Gateways Secrets; the rest is about
    objects that aren't synced.

    Whether an object of the tenant's may name another one is decided in the virtual cluster. Where
    all copies are in one host namespace, no controller there needs a grant, and none is copied.
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
        """Create the copy if it lets anything that is synced have something."""
        if "spec" not in self.translate(ctx, virtual):
            return skip(_NOTHING)
        return super().sync_down(ctx, virtual)

    def sync(self, ctx: Context, pair: Pair) -> Decision:
        """Update the copy; delete it if it lets nothing have anything any more."""
        if "spec" not in self.translate(ctx, pair.virtual):
            return delete(host=pair.host, reason=_NOTHING)
        return super().sync(ctx, pair)

    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        """Return the copy, with host names; without a spec if it lets nothing have anything."""
        copy = ctx.host_copy(virtual)
        sources: list[Obj] = []
        targets: list[Obj] = []
        for source, target in _pairs(ctx.settings):
            for namespace, name in given(source, target, virtual):
                on_host = ctx.names.to_host(source, Key(namespace, "any")).namespace
                sources.append({"group": GROUP, "kind": source.kind, "namespace": on_host})
                named: Obj = {"group": target.group, "kind": target.kind}
                if name:
                    key = Key(key_of(virtual).namespace, name)
                    named["name"] = ctx.names.to_host(target, key).name
                targets.append(named)
        if sources:
            copy["spec"] = {"from": _once(sources), "to": _once(targets)}
        return copy


def _pairs(settings: Settings) -> Iterator[tuple[Resource, Resource]]:
    """Yield the kinds that are synced and name others, each with the kind of these."""
    for route in ROUTES:
        yield route, SERVICES
    if options_of(settings) is not None:
        yield GATEWAYS, SECRETS


def _once(entries: list[Obj]) -> list[Obj]:
    """Return the entries without duplicates, in order."""
    found: list[Obj] = []
    for each in entries:
        if each not in found:
            found.append(each)
    return found
