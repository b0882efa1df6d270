"""Custom resources that begin on the host, and appear in the virtual cluster, read-only."""

from syncer.api import (
    Context,
    Decision,
    Key,
    Obj,
    ObjectRef,
    Pair,
    Settings,
    Side,
    Source,
    Sync,
    Syncer,
    SyncFromHost,
    apply,
    is_deleting,
    key_of,
    labels_of,
    reasons,
    selectors,
    skip,
    wait,
)
from syncer.resources.custom.config import CustomConfig
from syncer.resources.custom.contents import USUAL, shown
from syncer.resources.custom.mirror import CustomKind
from syncer.resources.kinds import NAMESPACES

_NAMESPACES = Source(Side.VIRTUAL, NAMESPACES)


class CustomFromHost(Syncer[CustomConfig], SyncFromHost[CustomConfig], Sync[CustomConfig]):
    """The host owns the ``up`` paths; changes by a tenant are reverted."""

    reverts_virtual_changes = True

    def __init__(self, kind: CustomKind, options: CustomConfig) -> None:
        self._options = options
        self._to_host = {virtual: host for host, virtual in options.namespaces.items()}
        namespaces = tuple(options.namespaces) if kind.host.namespaced else ()
        selector = selectors.written(options.selector.plain)
        #: The objects that may appear; no others are watched.
        self.source = Source(Side.HOST, kind.host, selector=selector, namespaces=namespaces)
        up = USUAL if options.up is None else options.up
        exact = USUAL if options.exact is None else options.exact
        reads = (_NAMESPACES,) if kind.virtual.namespaced else ()
        # Other syncers set these in their class; this one is made from configuration.
        vars(self).update(
            name=kind.name,
            resource=kind.virtual,
            host_resource=kind.host,
            section=kind.section,
            up=up,
            exact=exact,
            reads=reads,
        )

    def virtual_key(self, ctx: Context, host: Obj) -> Key | None:
        """Return the same name, in the virtual namespace that the host namespace is mapped to.

        None if the object doesn't appear. Copies of any virtual cluster's objects never do, as one
        tenant would see another's.
        """
        key = key_of(host)
        if ctx.marks.cluster in labels_of(host) or not self._options.selector.selects(host):
            return None
        if not self.host_resource.namespaced:
            return key
        namespace = self._options.namespaces.get(key.namespace)
        if namespace:
            return Key(namespace, key.name)
        return None

    def host_key(self, settings: Settings, key: Key) -> Key:
        """Return the host key of a virtual key."""
        if key.namespace:
            return Key(self._to_host.get(key.namespace, ""), key.name)
        return key

    def virtual_namespace(self, host: str) -> str:
        """Return the virtual namespace of a host namespace; ``host`` itself if it isn't mapped."""
        return self._options.namespaces.get(host, host)

    def host_selector(self, settings: Settings) -> str:
        """Return the label selector of the objects that may appear."""
        return self.source.selector

    def host_namespaces(self, settings: Settings) -> tuple[str, ...] | None:
        """Return the mapped host namespaces."""
        return self.source.namespaces or None

    def does_show(self, ctx: Context, key: Key) -> bool:
        """Return True if the host has an object that may appear under a virtual key.

        Whether the virtual side has an object there makes no difference.
        """
        host = ctx.host(self.host_resource, self.host_key(ctx.settings, key))
        return host is not None and self.virtual_key(ctx, host) == key

    def sync_from_host(self, ctx: Context[CustomConfig], host: Obj) -> Decision:
        """Create the virtual object."""
        key = self.virtual_key(ctx, host)
        if key is None:
            return skip(reasons.LEFT_OUT(self.section))
        if key.namespace:
            reference = ObjectRef(Side.VIRTUAL, NAMESPACES, Key("", key.namespace))
            namespace = ctx.virtual(NAMESPACES, reference.key)
            if namespace is None:
                return wait(reasons.NO_NAMESPACE(key.namespace), on=(reference,))
            if is_deleting(namespace):
                ends = reasons.VIRTUAL_ENDS(f"namespace {key.namespace}")
                return wait(ends, on=(reference,))
        exact = self._options.exact_for(host, None)
        why = "the host has it and the virtual cluster does not yet"
        return apply(virtual=self._shown(ctx, host, key), reason=why, exact=exact)

    def sync(self, ctx: Context[CustomConfig], pair: Pair) -> Decision:
        """Update the virtual object from the host's."""
        exact = self._options.exact_for(pair.host, pair.virtual)
        return apply(virtual=self._shown(ctx, pair.host, key_of(pair.virtual)), exact=exact)

    def _shown(self, ctx: Context[CustomConfig], host: Obj, key: Key) -> Obj:
        return shown(ctx, host, key, self._options.up_of(host))
