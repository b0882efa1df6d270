"""Host namespaces for virtual ones, where the name translator gives each its own."""

from syncer.api import Context, Decision, Key, Mirror, Obj, Pair, Settings, key_of, skip
from syncer.resources.kinds import NAMESPACES, PODS

#: What every cluster has from the start. Where a virtual one keeps its name on the host, it is the host's own.
BUILT_IN = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})

#: Domains of labels that a control plane acts on; with them a tenant could loosen the host's Pod Security.
_CONTROL_PLANE_DOMAINS = ("kubernetes.io", "k8s.io")


class NamespaceSyncer(Mirror):
    """Makes the host namespaces that copies are put into; the tenant's labels go with them.

    Acts only where the translator puts the copies of each virtual namespace into a host namespace that is named as
    its own copy is (``per-namespace`` does). Annotations and labels of Kubernetes stay behind: on a Namespace they
    are settings of the control plane.
    """

    name = "namespaces"
    resource = NAMESPACES

    def applies_to(self, settings: Settings) -> bool:
        """Not where the translator puts all copies into host namespaces that are there already."""
        return settings.names.host_namespaces() is None

    def translate(self, ctx: Context, virtual: Obj) -> Obj:
        """Return the copy, with those of the tenant's labels that mean nothing to the host."""
        host = ctx.host_copy(virtual)
        metadata = host["metadata"]
        metadata["labels"] = {key: value for key, value in metadata["labels"].items() if not _is_setting(key)}
        metadata["annotations"] = ctx.marks.annotations(self.resource, virtual, key_of(host))
        return host

    def sync_down(self, ctx: Context, virtual: Obj) -> Decision:
        """Make the host namespace where copies need it."""
        return _not_needed(ctx, virtual) or super().sync_down(ctx, virtual)

    def sync(self, ctx: Context, pair: Pair) -> Decision:
        """Keep its labels."""
        return _not_needed(ctx, pair.virtual) or super().sync(ctx, pair)


def _is_setting(key: str) -> bool:
    return key.partition("/")[0].endswith(_CONTROL_PLANE_DOMAINS)


def _not_needed(ctx: Context, virtual: Obj) -> Decision | None:
    name = key_of(virtual).name
    place = ctx.names.to_host(NAMESPACES, Key("", name)).name
    if ctx.names.to_host(PODS, Key(name, "any")).namespace != place:
        return skip("the name translator gives virtual namespaces no host namespaces of their own")
    if name in BUILT_IN and place == name:
        return skip("every cluster has a namespace of this name; the host's own is used")
    return None
