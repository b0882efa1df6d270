"""Classes of the host that tenants choose from, read-only in the virtual cluster."""

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
    Selector,
    Settings,
    Side,
    Source,
    annotations_of,
    dig,
    is_within,
    key_of,
    metadata_key,
    path_steps,
    reasons,
    wait,
)
from syncer.resources.host_mirror import HostMirror
from syncer.resources.kinds import (
    INGRESS_CLASSES,
    PERSISTENT_VOLUME_CLAIMS,
    PRIORITY_CLASSES,
    RUNTIME_CLASSES,
    STORAGE_CLASSES,
    VOLUME_ATTRIBUTES_CLASSES,
    VOLUME_SNAPSHOT_CLASSES,
)

#: Seconds until an object that names no class is decided again: a new default class requeues none.
_LOOK_SECONDS = 60.0
#: The prefix of the classes that each API server makes for itself
#: (Kubernetes, "Pod Priority and Preemption").
_RESERVED = "system-"
#: The annotations in which a control plane notes who is to provide the volume of a claim; the
#: second one is that of older versions, which newer ones write, too.
_PROVISIONERS = (
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
)


class ClassConfig(Config):
    """The options of a kind of classes."""

    enabled: bool = False
    """Whether classes of the host appear in the virtual cluster. It takes the right to get, list
    and watch them.
    """

    selector: Selector = Selector()
    """The labels of the host's classes that appear. Empty: all of them."""


class HostClass(HostMirror):
    """A kind of classes."""

    config = ClassConfig
    #: The annotations that make a class the default of its API server, which gives it to objects
    #: that name none.
    default_by: ClassVar[tuple[str, ...]] = ()
    #: False if API servers may lack the kind. What may name such classes is synced all the same.
    is_everywhere: ClassVar[bool] = True

    @classmethod
    def serves(cls, ctx: Context, host: Obj, virtual: Obj) -> bool:
        """Return True if a class of the host may be the default one of an object that names none.

        By default any class may.
        """
        return True

    def virtual_key(self, ctx: Context, host: Obj) -> Key | None:
        """Return the same key; None for a class that doesn't appear.

        Copies don't, nor do the classes that every API server has.
        """
        if _is_chosen(ctx, ctx.config, host):
            return key_of(host)
        return None


def provisioner_of(claim: Obj) -> str:
    """Return the name of the driver that the host asks for the volume of a copy of a claim.

    ``""`` if it asks none. The host's own controllers write it; the tenant's annotations of these
    keys don't cross.
    """
    annotations = annotations_of(claim)
    for key in _PROVISIONERS:
        if key in annotations:
            return annotations[key]
    return ""


def is_reserved(name: str) -> bool:
    """Return True for the name of a class that each API server makes for itself."""
    return name.startswith(_RESERVED)


def _is_chosen(ctx: Context, config: Config, host: Obj) -> bool:
    """Return True if a class of the host appears in the virtual cluster."""
    is_copy = ctx.marks.name in annotations_of(host)
    if is_copy or is_reserved(key_of(host).name):
        return False
    return config.selector.selects(host)


class StorageClassSyncer(HostClass):
    """StorageClasses without their parameters.

    These are for the host's provisioners, and may name Secrets of the host.
    """

    name = "storageclasses"
    section = "fromHost.storageClasses"
    resource = STORAGE_CLASSES
    up = (
        "provisioner",
        "reclaimPolicy",
        "volumeBindingMode",
        "allowVolumeExpansion",
        "allowedTopologies",
    )
    exact = up
    fixed = ("provisioner", "reclaimPolicy", "volumeBindingMode")
    default_by = (
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    )


class VolumeAttributesClassSyncer(HostClass):
    """VolumeAttributesClasses, whose parameters the API server requires."""

    name = "volumeattributesclasses"
    section = "fromHost.volumeAttributesClasses"
    resource = VOLUME_ATTRIBUTES_CLASSES
    up = ("driverName", "parameters")
    exact = up
    fixed = ("driverName", "parameters")
    is_everywhere = False


class VolumeSnapshotClassSyncer(HostClass):
    """VolumeSnapshotClasses without their parameters, which may name Secrets of the host.

    The kind is that of a CRD: they appear once both sides have it.
    """

    name = "volumesnapshotclasses"
    section = "fromHost.volumeSnapshotClasses"
    resource = VOLUME_SNAPSHOT_CLASSES
    up = ("driver", "deletionPolicy")
    exact = up
    default_by = ("snapshot.storage.kubernetes.io/is-default-class",)
    is_everywhere = False

    @classmethod
    def serves(cls, ctx: Context, host: Obj, virtual: Obj) -> bool:
        """Return True for a class of the driver that has provided the volume of a snapshot.

        Each driver has a default class of its own
        (https://kubernetes.io/docs/concepts/storage/volume-snapshot-classes/#default-class).
        """
        name = dig(virtual, "spec.source.persistentVolumeClaimName")
        if not name:
            return False
        claim = ctx.host_of(PERSISTENT_VOLUME_CLAIMS, Key(key_of(virtual).namespace, name))
        if claim is None:
            return False
        return bool(host.get("driver") == provisioner_of(claim))


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


#: The kinds of classes that an object names, by the paths of the names. Of one kind, a field comes
#: before annotations.
ClassNames: TypeAlias = Mapping[FieldPath, type[HostClass]]


def appears(ctx: Context, syncer: type[HostClass], name: str) -> bool:
    """Return True if the host has a class of this name that appears in the virtual cluster."""
    config = ctx.settings.section(syncer.name, ClassConfig)
    if config is None:
        return False
    host = _on_host(ctx, syncer, name)
    return host is not None and _is_chosen(ctx, config, host)


def is_withdrawn(ctx: Context, names: ClassNames, copy: Obj) -> bool:
    """Return True if a copy names a class of the host that doesn't appear any more.

    The selector leaves that class out now, or its labels have changed. A class that the host has
    deleted isn't withdrawn: in an upgrade of its controller it comes back. Fields that the host
    owns aren't checked.
    """
    for path, syncer in _checked(ctx, names).items():
        name = dig(copy, path)
        if not name or not ctx.enabled(syncer.name) or appears(ctx, syncer, name):
            continue
        if _on_host(ctx, syncer, name) is not None:
            return True
    return False


def _on_host(ctx: Context, syncer: type[HostClass], name: str) -> Obj | None:
    """Return a class of the host; None if it has no such class, or doesn't serve the kind."""
    try:
        return ctx.host(syncer.resource, Key("", name))
    except KeyError:
        if syncer.is_everywhere:
            raise
        return None


def _keys_on_host(ctx: Context, syncer: type[HostClass]) -> Iterable[Key]:
    """Return the keys of the host's classes; none if it doesn't serve the kind."""
    try:
        return ctx.reader.keys(Side.HOST, syncer.resource)
    except KeyError:
        if syncer.is_everywhere:
            raise
        return ()


def _checked(ctx: Context, names: ClassNames) -> ClassNames:
    """Return the fields of a copy whose classes are checked: those that the host doesn't own."""
    owned = [path for path, owner in ctx.config.authority.items() if owner == "host"]
    return {
        path: syncer
        for path, syncer in names.items()
        if not any(is_within(path, each) for each in owned)
    }


def missing(ctx: Context, syncer: type[HostClass], name: str | None) -> Decision | None:
    """Return a wait if an object names a class that doesn't appear; None otherwise.

    If classes of this kind don't appear at all, it may name any.
    """
    if not name or not ctx.enabled(syncer.name) or appears(ctx, syncer, name):
        return None
    kind = syncer.resource.kind
    reference = ObjectRef(Side.HOST, syncer.resource, Key("", name))
    why = reasons.CLASS_NOT_LISTED(kind, name)
    return wait(why, on=(reference,)).warn("ClassNotListed", why)


def obstacle(
    ctx: Context,
    names: ClassNames,
    virtual: Obj,
    copy: Obj | None = None,
) -> Decision | None:
    """Return a wait if an object may not have one of its classes; None otherwise.

    Its classes are those that it names, and the host's default ones where it names none. A class
    that its ``copy`` names already isn't checked, nor a field that the host owns there.
    """
    checked = names
    if copy is not None:
        checked = _checked(ctx, names)

    for path, syncer in checked.items():
        name = _name(ctx, path, virtual)
        if copy is not None and dig(copy, path) == name:
            continue
        if waiting := missing(ctx, syncer, name):
            return waiting

    for _, syncer in _unnamed(ctx, checked, virtual):
        if _default(ctx, syncer, virtual) is None:
            why = reasons.DEFAULT_NOT_LISTED(syncer.resource.kind)
            return wait(why, after=_LOOK_SECONDS).warn("ClassNotListed", why)
    return None


def with_default(ctx: Context, names: ClassNames, virtual: Obj) -> Obj:
    """Return an object that names the host's default class where it names none itself.

    This is done where a selector chooses the classes that appear. Left to the host, the choice
    could fall on another one.
    """
    for path, syncer in _unnamed(ctx, names, virtual):
        if name := _default(ctx, syncer, virtual):
            part, field = path_steps(path)
            fields = {**(virtual.get(part) or {}), field: name}
            virtual = {**virtual, part: fields}
    return virtual


def _name(ctx: Context, path: FieldPath, virtual: Obj) -> str | None:
    """Return the name at a path; None if there is none, or if it stays behind."""
    key = metadata_key(path)
    if key is not None and not ctx.metadata.crosses(*key):
        return None
    name: str | None = dig(virtual, path)
    return name


def _unnamed(
    ctx: Context,
    names: ClassNames,
    virtual: Obj,
) -> Iterator[tuple[FieldPath, type[HostClass]]]:
    """Yield the fields that the host would fill with its default class.

    Only kinds whose classes a selector chooses are considered.
    """
    for path, syncer in names.items():
        if not syncer.default_by or metadata_key(path) is not None:
            continue
        config = ctx.settings.section(syncer.name, ClassConfig)
        if config is None or not config.selector.narrows:
            continue
        of_kind = [other for other, each in names.items() if each is syncer]
        if not any(_name(ctx, other, virtual) for other in of_kind):
            yield path, syncer


def _default(ctx: Context, syncer: type[HostClass], virtual: Obj) -> str | None:
    """Return the name of the host's default class for an object that names none.

    None if the host has none, or if that doesn't appear.

    Of several, it is the newest
    (https://kubernetes.io/docs/concepts/storage/storage-classes/#default-storageclass).
    """
    newest = ""
    name = ""
    for key in sorted(_keys_on_host(ctx, syncer)):
        host = ctx.host(syncer.resource, key)
        if host is None or not syncer.serves(ctx, host, virtual):
            continue
        annotations = annotations_of(host)
        if not any(annotations.get(mark) == "true" for mark in syncer.default_by):
            continue
        created = host["metadata"].get("creationTimestamp") or ""
        # Of several that are equally old, the first one counts.
        if not name or created > newest:
            newest = created
            name = key.name
    if name and appears(ctx, syncer, name):
        return name
    return None


def sources(settings: Settings, *syncers: type[HostClass]) -> Iterable[Source]:
    """Yield the kinds of the host's classes that an object may name."""
    for syncer in syncers:
        if syncer.name in settings.sections:
            optional_with = "" if syncer.is_everywhere else syncer.name
            yield Source(Side.HOST, syncer.resource, optional_with=optional_with)
