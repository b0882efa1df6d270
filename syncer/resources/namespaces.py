"""Host namespaces for virtual ones, if the name translator gives each its own."""

from syncer.api import (
    Context,
    Decision,
    Key,
    KeyRules,
    MetadataRules,
    Mirror,
    Obj,
    Pair,
    Settings,
    key_of,
    skip,
)
from syncer.resources.kinds import NAMESPACES, PODS

#: Namespaces that every cluster has. A virtual one that keeps its name on the host is the host's
#: own.
BUILT_IN = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})


class NamespaceSyncer(Mirror):
    """Creates the host namespaces that copies are put in, with the tenant's labels.

    Active only if the translator puts the copies of a virtual namespace into the host namespace
    that is its own copy (as ``per-namespace`` does). Annotations, and labels of Kubernetes, are not
    copied: on a Namespace they are settings of the control plane.
    """

    name = "namespaces"
    resource = NAMESPACES
    #: A control plane acts on these: a tenant could use them to loosen the host's Pod Security.
    metadata = MetadataRules(labels=KeyRules(deny=("*kubernetes.io/*", "*k8s.io/*")), annotations=KeyRules(deny=("*",)))

    def applies_to(self, settings: Settings) -> bool:
        """Return False if the translator puts all copies into host namespaces that exist already."""
        return settings.names.host_namespaces() is None

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        """Create the host namespace if copies need it."""
        return _not_needed(ctx, virtual) or super().sync_down(ctx, virtual)

    def sync(self, ctx: Context, pair: Pair) -> Decision:
        """Update its labels."""
        return _not_needed(ctx, pair.virtual) or super().sync(ctx, pair)


def _not_needed(ctx: Context, virtual: Obj) -> Decision | None:
    name = key_of(virtual).name
    place = ctx.names.to_host(NAMESPACES, Key("", name)).name
    if ctx.names.to_host(PODS, Key(name, "any")).namespace != place:
        return skip("the name translator gives virtual namespaces no host namespaces of their own")
    if name in BUILT_IN and place == name:
        return skip("every cluster has a namespace of this name; the host's own is used")
    return None
