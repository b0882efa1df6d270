"""Classes of the host that tenants choose from: they appear in the virtual cluster under their own names, read-only."""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, TypeAlias

from syncer.api import (
    Config,
    Context,
    Decision,
    FieldPath,
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
    is_within,
    key_of,
    metadata_key,
    path_steps,
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

#: Seconds until an object that names no class is looked at again: a new default class wakes nothing.
_LOOK_SECONDS = 60.0
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
    #: The annotations that make a class the default of its API server, which gives it to objects that name none.
    default_by: ClassVar[tuple[str, ...]] = ()
    #: False if API servers may lack the kind. What may name such classes is synced all the same.
    is_everywhere: ClassVar[bool] = True

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
    default_by = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


class VolumeAttributesClassSyncer(HostClass):
    """VolumeAttributesClasses, whose parameters the API server requires."""

    name = "volumeattributesclasses"
    section = "fromHost.volumeAttributesClasses"
    resource = VOLUME_ATTRIBUTES_CLASSES
    up = ("driverName", "parameters")
    exact = up
    fixed = ("driverName", "parameters")
    is_everywhere = False


class IngressClassSyncer(HostClass):
    """IngressClasses without their parameters, which name an object of the host."""

    name = "ingressclasses"
    section = "fromHost.ingressClasses"
    resource = INGRESS_CLASSES
    up = ("spec.controller",)
    exact = up
    fixed = ("spec.controller",)
    default_by = ("ingressclass.kubernetes.io/is-default-class",)


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


#: The kinds of classes that an object names, by the paths of the names. Of one kind, a field comes before annotations.
ClassNames: TypeAlias = Mapping[FieldPath, type[HostClass]]


def appears(ctx: Context, syncer: type[HostClass], name: str) -> bool:
    """Return True if the host has a class of this name that appears in the virtual cluster."""
    config = ctx.settings.section(syncer.name, ClassConfig)
    if config is None:
        return False
    try:
        host = ctx.host(syncer.resource, Key("", name))
    except KeyError:
        if syncer.is_everywhere:
            raise
        return False  # the host doesn't serve the kind
    return host is not None and _is_chosen(ctx, config, host)


def missing(ctx: Context, syncer: type[HostClass], name: str | None) -> Decision | None:
    """Return what to wait for if an object names a class that doesn't appear; None otherwise.

    If classes of this kind don't appear at all, it may name any.
    """
    if not name or not ctx.enabled(syncer.name) or appears(ctx, syncer, name):
        return None
    kind, seen = syncer.resource.kind, ObjectRef(Side.HOST, syncer.resource, Key("", name))
    why = f"the host has no {kind} {name} for this virtual cluster: name one that is listed"
    return wait(why, on=(seen,)).warn("ClassNotListed", why)


def obstacle(ctx: Context, names: ClassNames, virtual: Obj, copy: Obj | None = None) -> Decision | None:
    """Return what to wait for if an object may not have the classes that it names, or the one that the host
    would give it as it names none; None otherwise.

    What its ``copy`` names already isn't asked about, nor a field that the host owns there.
    """
    asked = {path: syncer for path, syncer in names.items() if copy is None or not _is_hosts(ctx.config, path)}
    for path, syncer in asked.items():
        name = _name(ctx, path, virtual)
        is_new = copy is None or dig(copy, path) != name
        if is_new and (waiting := missing(ctx, syncer, name)):
            return waiting
    for _, syncer in _unnamed(ctx, asked, virtual):
        if _default(ctx, syncer) is None:
            kind = syncer.resource.kind
            why = f"it names no {kind}, and the host's default isn't for this virtual cluster: name one that is listed"
            return wait(why, after=_LOOK_SECONDS).warn("ClassNotListed", why)
    return None


def with_default(ctx: Context, names: ClassNames, virtual: Obj) -> Obj:
    """Return an object that names the host's default class where a selector chooses the classes and it names none.

    Left to the host, the choice could fall on a class that doesn't appear.
    """
    for path, syncer in _unnamed(ctx, names, virtual):
        if name := _default(ctx, syncer):
            part, field = path_steps(path)
            virtual = {**virtual, part: {**(virtual.get(part) or {}), field: name}}
    return virtual


def _is_hosts(config: Config, path: FieldPath) -> bool:
    """Return True if the host owns a field once the copy is there."""
    return any(owner == "host" and is_within(path, owned) for owned, owner in config.authority.items())


def _name(ctx: Context, path: FieldPath, virtual: Obj) -> str | None:
    """Return the name at a path; None if there is none, or if it stays behind."""
    key = metadata_key(path)
    return dig(virtual, path) if key is None or ctx.metadata.crosses(*key) else None


def _unnamed(ctx: Context, names: ClassNames, virtual: Obj) -> Iterator[tuple[FieldPath, type[HostClass]]]:
    """Yield the fields that the host would fill with its default class, where a selector chooses the classes."""
    for path, syncer in names.items():
        config = ctx.settings.section(syncer.name, ClassConfig) if syncer.default_by else None
        if config is None or not config.selector.narrows or metadata_key(path) is not None:
            continue
        if not any(_name(ctx, other, virtual) for other, each in names.items() if each is syncer):
            yield path, syncer


def _default(ctx: Context, syncer: type[HostClass]) -> str | None:
    """Return the name of the host's default class; None if it has none, or if that doesn't appear.

    Of several, it is the newest (https://kubernetes.io/docs/concepts/storage/storage-classes/#default-storageclass).
    """
    found: list[tuple[str, str]] = []
    for key in sorted(ctx.reader.keys(Side.HOST, syncer.resource)):
        host = ctx.host(syncer.resource, key)
        if host is not None and any(annotations_of(host).get(mark) == "true" for mark in syncer.default_by):
            found.append((host["metadata"].get("creationTimestamp") or "", key.name))
    _, name = max(found, key=lambda each: each[0], default=("", ""))
    return name if name and appears(ctx, syncer, name) else None


def sources(settings: Settings, *syncers: type[HostClass]) -> Iterable[Source]:
    """Return the classes of the host that may be named."""
    return [
        Source(Side.HOST, syncer.resource, optional_with="" if syncer.is_everywhere else syncer.name)
        for syncer in syncers
        if syncer.name in settings.sections
    ]
