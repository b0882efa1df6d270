"""Copies of virtual Ingresses on the host; the host's addresses flow back."""

from collections.abc import Iterable

from syncer.api import Config, Context, Key, Mirror, Obj, Refers, Resource
from syncer.resources import ingress_references
from syncer.resources.kinds import INGRESSES, SECRETS


class IngressConfig(Config):
    """Whether tenants may publish Services through the host's ingress controllers."""

    enabled: bool = False
    """Whether the kind is synced. Off at first: a tenant's annotations reach the host's ingress controllers."""


class IngressSyncer(Mirror[IngressConfig], Refers):
    """The virtual side owns the routes, the host side the addresses; the class is one of the host's."""

    name = "ingresses"
    resource = INGRESSES
    down = ("spec",)
    up = ("status",)
    translates = ("spec.defaultBackend", "spec.rules", "spec.tls")
    refers_to = (SECRETS,)

    def references(self, virtual: Obj) -> Iterable[tuple[Resource, Key]]:
        """What it names, of which the Secrets of its certificates are synced with it."""
        return ingress_references.references(virtual)

    def translate(self, ctx: Context[IngressConfig], virtual: Obj) -> Obj:
        """The copy, with the names of the copies of what it refers to."""
        host = super().translate(ctx, virtual)
        namespace = virtual["metadata"].get("namespace", "")

        def renamed(kind: Resource, name: str) -> str:
            return ctx.host_name(kind, namespace, name)

        if spec := host.get("spec"):
            host["spec"] = ingress_references.NAMES.rewritten(spec, renamed)
        return host
