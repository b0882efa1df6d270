"""Custom resources that begin on the host: they appear in the virtual cluster under their own names, read-only."""

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
    key_of,
    labels_of,
    selectors,
    skip,
    wait,
)
from syncer.resources.custom.config import CustomConfig
from syncer.resources.custom.contents import copied
from syncer.resources.custom.mirror import Kind
from syncer.resources.kinds import NAMESPACES

_NAMESPACES = Source(Side.VIRTUAL, NAMESPACES)


class FromHost(Syncer[CustomConfig], SyncFromHost[CustomConfig], Sync[CustomConfig]):
    """The host side owns the ``up`` paths; what a tenant changes there is put back."""

    reverts_virtual_changes = True

    def __init__(self, kind: Kind, options: CustomConfig) -> None:
        self._options = options
        self._to_host = {virtual: host for host, virtual in options.namespaces.items()}
        #: What may appear, so that nothing else is watched.
        self.source = Source(
            Side.HOST,
            kind.host,
            selector=selectors.written(options.selector.plain),
            namespaces=tuple(options.namespaces) if kind.host.namespaced else (),
        )
        # What other syncers say in their class, one that is made from configuration says itself.
        vars(self).update(
            name=kind.name,
            resource=kind.virtual,
            host_resource=kind.host,
            section=kind.section,
            up=options.up,
            exact=options.exact,
            reads=(_NAMESPACES,) if kind.virtual.namespaced else (),
        )

    def virtual_key(self, ctx: Context, host: Obj) -> Key | None:
        """Return the same name, in the namespace that the host namespace is mapped to.

        None for what is not to appear.

        No copy of any virtual cluster's object appears: it would show one tenant what another has.
        """
        key = key_of(host)
        if ctx.marks.cluster in labels_of(host) or not self._options.selector.selects(host):
            return None
        if not self.host_resource.namespaced:
            return key
        namespace = self._options.namespaces.get(key.namespace)
        return Key(namespace, key.name) if namespace else None

    def host_key(self, settings: Settings, key: Key) -> Key:
        """Return the place on the host that a virtual key stands for."""
        return Key(self._to_host.get(key.namespace, ""), key.name) if key.namespace else key

    def virtual_namespace(self, host: str) -> str:
        """Return the virtual namespace in which objects of a host namespace appear; as it is where they don't."""
        return self._options.namespaces.get(host, host)

    def host_selector(self, settings: Settings) -> str:
        """Return the labels of what may appear."""
        return self.source.selector

    def host_namespaces(self, settings: Settings) -> tuple[str, ...] | None:
        """Return the host namespaces that are mapped."""
        return self.source.namespaces or None

    def does_show(self, ctx: Context, key: Key) -> bool:
        """Return True if the host has an object that appears under a virtual key, whatever
        is there on the virtual side.
        """
        host = ctx.host(self.host_resource, self.host_key(ctx.settings, key))
        return host is not None and self.virtual_key(ctx, host) == key

    def sync_from_host(self, ctx: Context[CustomConfig], host: Obj) -> Decision:
        """Let the object appear."""
        key = self.virtual_key(ctx, host)
        if key is None:
            return skip(f"sync.{self.section} leaves it out")
        if key.namespace and ctx.virtual(NAMESPACES, Key("", key.namespace)) is None:
            seen = ObjectRef(Side.VIRTUAL, NAMESPACES, Key("", key.namespace))
            return wait(f"the virtual cluster has no namespace {key.namespace} yet", on=(seen,))
        return apply(virtual=self._shown(ctx, host, key), reason="the host has it and the virtual cluster does not yet")

    def sync(self, ctx: Context[CustomConfig], pair: Pair) -> Decision:
        """Keep it as the host's is."""
        return apply(virtual=self._shown(ctx, pair.host, key_of(pair.virtual)))

    def _shown(self, ctx: Context[CustomConfig], host: Obj, key: Key) -> Obj:
        return copied(host, ctx.virtual_copy(host, key), self.up)
