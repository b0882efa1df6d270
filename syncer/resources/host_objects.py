"""ConfigMaps and Secrets of the host that appear in the virtual cluster, read-only.

Only those that ``mappings`` lists appear. Their Pods get them by way of copies, like the tenant's
own ones (:mod:`syncer.resources.used`).
"""

from typing import ClassVar

from syncer.api import (
    Context,
    Decision,
    Key,
    KeyRules,
    MetadataRules,
    Obj,
    ObjectRef,
    Pair,
    Selector,
    Settings,
    Side,
    Source,
    Sync,
    Syncer,
    SyncFromHost,
    annotations_of,
    apply,
    copy_fields,
    delete,
    is_deleting,
    key_of,
    labels_of,
    reasons,
    selectors,
    skip,
    wait,
)
from syncer.resources.configmaps import ROOT_CA
from syncer.resources.custom.contents import must_be_replaced
from syncer.resources.kinds import CONFIG_MAPS, NAMESPACES, SECRETS
from syncer.resources.mappings import MappingConfig
from syncer.resources.secrets import OPAQUE, is_acted_on

_NAMESPACES = Source(Side.VIRTUAL, NAMESPACES)


class HostObjectConfig(MappingConfig):
    """The options of a kind of which listed objects of the host appear."""

    selector: Selector = Selector()
    """The labels of the host's objects that appear, among those that are listed. Empty: all."""


class HostObjectSyncer(
    Syncer[HostObjectConfig], SyncFromHost[HostObjectConfig], Sync[HostObjectConfig]
):
    """Shows the ``up`` fields of listed objects; the host owns them.

    Labels and annotations are the operator's own, and tools act on them: none cross unless they
    are listed.
    """

    reverts_virtual_changes = True
    reads: ClassVar[tuple[Source, ...]] = (_NAMESPACES,)
    metadata = MetadataRules(
        labels=KeyRules(
            allow=(
                "app.kubernetes.io/component",
                "app.kubernetes.io/name",
                "app.kubernetes.io/part-of",
                "app.kubernetes.io/version",
            )
        ),
        annotations=KeyRules(deny=("*",)),
    )

    def is_own(self, host: Obj) -> bool:
        """Return True for an object that every namespace has, or that a tool keeps for itself.

        It appears only if it is listed by its name.
        """
        return False

    def is_fixed(self, virtual: Obj, shown: Obj) -> bool:
        """Return True if an API server refuses to change a virtual object to what it is to be."""
        return must_be_replaced(self.resource, virtual, shown)

    def host_namespaces(self, settings: Settings) -> tuple[str, ...]:
        """Return the host namespaces of which all objects appear."""
        return tuple(self._config(settings).mappings.namespaces)

    def host_names(self, settings: Settings) -> tuple[Key, ...]:
        """Return the keys of the host objects that are listed."""
        return tuple(self._config(settings).mappings.names)

    def host_selector(self, settings: Settings) -> str:
        """Return the label selector of the objects that appear."""
        return selectors.written(self._config(settings).selector.plain)

    def host_key(self, settings: Settings, key: Key) -> Key:
        """Return the key of the host object that appears at a virtual key.

        Without one, it is a key that no object has.
        """
        return self._config(settings).mappings.host_key(key) or Key("", key.name)

    def virtual_key(self, ctx: Context[HostObjectConfig], host: Obj) -> Key | None:
        """Return the virtual key of a host object; None if it doesn't appear.

        Copies of any virtual cluster's objects never do, as one tenant would see another's.
        """
        mappings = ctx.config.mappings
        key = key_of(host)
        if ctx.marks.cluster in labels_of(host) or not ctx.config.selector.selects(host):
            return None
        if key not in mappings.names and self.is_own(host):
            return None
        return mappings.virtual_key(key)

    def sync_from_host(self, ctx: Context[HostObjectConfig], host: Obj) -> Decision:
        """Create the virtual object."""
        key = self.virtual_key(ctx, host)
        if key is None:
            return skip(reasons.LEFT_OUT(f"{self.section}.mappings"))
        reference = ObjectRef(Side.VIRTUAL, NAMESPACES, Key("", key.namespace))
        namespace = ctx.virtual(NAMESPACES, reference.key)
        if namespace is None:
            return wait(reasons.NO_NAMESPACE(key.namespace), on=(reference,))
        if is_deleting(namespace):
            ends = reasons.VIRTUAL_ENDS(f"namespace {key.namespace}")
            return wait(ends, on=(reference,))
        why = f"sync.{self.section}.mappings lists it"
        return apply(virtual=self.shown(ctx, host, key), reason=why)

    def sync(self, ctx: Context[HostObjectConfig], pair: Pair) -> Decision:
        """Update the virtual object from the host's, or replace it if it can't be changed."""
        key = key_of(pair.virtual)
        if self.virtual_key(ctx, pair.host) != key:
            return self.removed(ctx, pair.virtual, f"sync.{self.section}.mappings leaves it out")
        if is_deleting(pair.virtual):
            gone = ObjectRef(Side.VIRTUAL, self.resource, key)
            return wait(reasons.VIRTUAL_ENDS("object"), on=(gone,))
        shown = self.shown(ctx, pair.host, key)
        if self.is_fixed(pair.virtual, shown):
            why = "it can't be changed to match the host's, so it is replaced"
            return delete(virtual=pair.virtual, reason=why)
        return apply(virtual=shown)

    def host_gone(self, ctx: Context[HostObjectConfig], virtual: Obj) -> Decision:
        """Delete the virtual object; the host object is gone, or not listed any more."""
        return self.removed(ctx, virtual, "the host object is gone, or not listed any more")

    def shown(self, ctx: Context[HostObjectConfig], host: Obj, key: Key) -> Obj:
        """Return the virtual object that shows a host object."""
        shown = ctx.virtual_copy(host, key)
        copy_fields(host, shown, self.up)
        note = {ctx.marks.made_for: self.name}
        shown["metadata"]["annotations"] = {**annotations_of(shown), **note}
        return shown

    def removed(self, ctx: Context[HostObjectConfig], virtual: Obj, reason: str) -> Decision:
        """Delete a virtual object of ours; one that another syncer has made stays."""
        made_for = annotations_of(virtual).get(ctx.marks.made_for)
        if made_for != self.name:
            return skip(reasons.ANOTHERS(made_for or "another syncer"))
        return delete(virtual=virtual, reason=reason)

    def _config(self, settings: Settings) -> HostObjectConfig:
        return settings.section(self.name, HostObjectConfig) or HostObjectConfig()


class HostConfigMapSyncer(HostObjectSyncer):
    """ConfigMaps of the host that `mappings` lists, read-only.

    `kube-root-ca.crt`, which every namespace has, appears only if it is listed by its name.
    """

    name = "host-configmaps"
    section = "fromHost.configMaps"
    resource = CONFIG_MAPS
    up = ("data", "binaryData", "immutable")

    def is_own(self, host: Obj) -> bool:
        """Return True for the CA that each API server publishes in every namespace."""
        return key_of(host).name == ROOT_CA


class HostSecretSyncer(HostObjectSyncer):
    """Secrets of the host that `mappings` lists, read-only.

    Types that a control plane or Helm acts on become `Opaque`. Secrets of such types, as tokens of
    the host's own service accounts are, appear only if they are listed by their names.
    """

    name = "host-secrets"
    section = "fromHost.secrets"
    resource = SECRETS
    up = ("data", "type", "immutable")

    def is_own(self, host: Obj) -> bool:
        """Return True for credentials of the host's control plane, and Helm's releases."""
        return is_acted_on(host.get("type", OPAQUE))

    def shown(self, ctx: Context[HostObjectConfig], host: Obj, key: Key) -> Obj:
        """Return the virtual Secret, Opaque if the virtual cluster would act on its type."""
        shown = super().shown(ctx, host, key)
        if is_acted_on(shown.get("type", OPAQUE)):
            shown["type"] = OPAQUE
        return shown
