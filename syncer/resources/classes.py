"""Classes of the host that tenants choose from: they appear in the virtual cluster under their own names, read-only."""

from collections.abc import Iterable
from typing import ClassVar

from syncer.api import (
    Config,
    Context,
    Decision,
    Key,
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
    dig,
    key_of,
    selectors,
    wait,
)
from syncer.resources.kinds import (
    INGRESS_CLASSES,
    PRIORITY_CLASSES,
    RUNTIME_CLASSES,
    STORAGE_CLASSES,
    VOLUME_ATTRIBUTES_CLASSES,
)

#: The prefix of the classes that each API server makes for itself (Kubernetes, "Pod Priority and Preemption").
_RESERVED = "system-"


class ClassConfig(Config):
    """The options of a kind of classes."""

    enabled: bool = False
    """Whether classes of the host appear in the virtual cluster. It takes the right to get, list and watch them."""

    selector: Selector = Selector()
    """The labels of the host's classes that appear. Empty: all of them."""


class HostClass(Syncer[ClassConfig], SyncFromHost[ClassConfig], Sync[ClassConfig]):
    """Shows the ``up`` fields of classes; a tenant's changes are reverted, and their own classes left alone.

    A class whose ``fixed`` fields have changed was made anew on the host, and is made anew here.
    """

    reverts_virtual_changes = True
    #: The fields that the API server lets nobody change.
    fixed: ClassVar[tuple[str, ...]] = ()

    def host_selector(self, settings: Settings) -> str:
        """Return the label selector of the classes that appear."""
        config = settings.section(self.name, ClassConfig)
        return selectors.written(config.selector.plain) if config else ""

    def host_key(self, settings: Settings, key: Key) -> Key:
        """Return the same key: other objects name a class, on both sides."""
        return key

    def virtual_key(self, ctx: Context[ClassConfig], host: Obj) -> Key | None:
        """Return the same key; None for a class that doesn't appear: a copy, say, or one that every API server has."""
        return key_of(host) if _is_chosen(ctx, ctx.config, host) else None

    def sync_from_host(self, ctx: Context[ClassConfig], host: Obj) -> Decision:
        """Create the class in the virtual cluster."""
        return apply(virtual=self._shown(ctx, host), reason="the host has this class")

    def sync(self, ctx: Context[ClassConfig], pair: Pair) -> Decision:
        """Update it from the host's."""
        for path in self.fixed:
            if dig(pair.host, path) != dig(pair.virtual, path):
                return delete(virtual=pair.virtual, reason=f"{path} can't be changed, so the class is made anew")
        return apply(virtual=self._shown(ctx, pair.host))

    def _shown(self, ctx: Context[ClassConfig], host: Obj) -> Obj:
        shown = ctx.virtual_copy(host, key_of(host))
        copy_fields(host, shown, self.up)
        return shown


def is_reserved(name: str) -> bool:
    """Return True for the name of a class that each API server makes for itself."""
    return name.startswith(_RESERVED)


def _is_chosen(ctx: Context, config: ClassConfig, host: Obj) -> bool:
    is_copy = ctx.marks.name in annotations_of(host)
    return config.selector.selects(host) and not is_copy and not is_reserved(key_of(host).name)


class StorageClassSyncer(HostClass):
    """StorageClasses without their parameters, which are for the host's provisioners and may name its Secrets."""

    name = "storageclasses"
    section = "fromHost.storageClasses"
    resource = STORAGE_CLASSES
    up = ("provisioner", "reclaimPolicy", "volumeBindingMode", "allowVolumeExpansion", "allowedTopologies")
    exact = up
    fixed = ("provisioner", "reclaimPolicy", "volumeBindingMode")


class VolumeAttributesClassSyncer(HostClass):
    """VolumeAttributesClasses, whose parameters the API server requires."""

    name = "volumeattributesclasses"
    section = "fromHost.volumeAttributesClasses"
    resource = VOLUME_ATTRIBUTES_CLASSES
    up = ("driverName", "parameters")
    exact = up
    fixed = ("driverName", "parameters")


class IngressClassSyncer(HostClass):
    """IngressClasses without their parameters, which name an object of the host."""

    name = "ingressclasses"
    section = "fromHost.ingressClasses"
    resource = INGRESS_CLASSES
    up = ("spec.controller",)
    exact = up
    fixed = ("spec.controller",)


class PriorityClassSyncer(HostClass):
    """PriorityClasses; the Pods that name one that appears have it on the host, too."""

    name = "priorityclasses"
    section = "fromHost.priorityClasses"
    resource = PRIORITY_CLASSES
    up = ("value", "preemptionPolicy", "globalDefault", "description")
    exact = up
    fixed = ("value", "preemptionPolicy")


class RuntimeClassSyncer(HostClass):
    """RuntimeClasses; Pods may name no other of the host then."""

    name = "runtimeclasses"
    section = "fromHost.runtimeClasses"
    resource = RUNTIME_CLASSES
    up = ("handler", "overhead", "scheduling")
    exact = up
    fixed = ("handler",)


def appears(ctx: Context, syncer: type[HostClass], name: str) -> bool:
    """Return True if the host has a class of this name that appears in the virtual cluster."""
    config = ctx.settings.section(syncer.name, ClassConfig)
    host = ctx.host(syncer.resource, Key("", name)) if config else None
    return config is not None and host is not None and _is_chosen(ctx, config, host)


def missing(ctx: Context, syncer: type[HostClass], name: str | None) -> Decision | None:
    """Return what to wait for if an object names a class that doesn't appear; None otherwise.

    If classes of this kind don't appear at all, it may name any.
    """
    if not name or not ctx.enabled(syncer.name) or appears(ctx, syncer, name):
        return None
    kind, seen = syncer.resource.kind, ObjectRef(Side.HOST, syncer.resource, Key("", name))
    return wait(f"the host has no {kind} {name} for this virtual cluster: name one that is listed", on=(seen,))


def sources(settings: Settings, *syncers: type[HostClass]) -> Iterable[Source]:
    """Return the classes of the host that may be named."""
    return [Source(Side.HOST, syncer.resource) for syncer in syncers if syncer.name in settings.sections]
