"""Copies of virtual PersistentVolumeClaims on the host, which provides the volumes."""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from syncer.api import (
    Config,
    Context,
    Decision,
    HostDeletion,
    Key,
    KeyRules,
    MetadataRules,
    Mirror,
    Obj,
    Pair,
    Refused,
    Resource,
    Settings,
    Side,
    Source,
    Verb,
    Write,
    annotations_of,
    apply,
    dig,
)
from syncer.resources import classes
from syncer.resources.classes import ClassNames, StorageClassSyncer, VolumeAttributesClassSyncer
from syncer.resources.harmless_annotations import CLAIMS, rules_of
from syncer.resources.host_nodes import shown_node, shown_nodes
from syncer.resources.kinds import PERSISTENT_VOLUME_CLAIMS, VOLUME_SNAPSHOTS
from syncer.resources.pods.config import is_bound_first
from syncer.translate.host_deletion import copied_since
from syncer.translate.quantities import quantity

_SIZE = "spec.resources.requests.storage"
_CAPACITY = "status.capacity.storage"
_LOST = (
    "its copy was deleted on the host, and with it, unless its StorageClass retains volumes,"
    " the data: delete this claim and create it again, as a bound claim can't get another volume"
)
#: The class, as it was written before ``spec.storageClassName``.
_BETA = "volume.beta.kubernetes.io/storage-class"
_BETA_PATH = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class"
#: The classes that a claim may name later on, too: its StorageClass is written once.
_LATER: ClassNames = {
    _BETA_PATH: StorageClassSyncer,
    "spec.volumeAttributesClassName": VolumeAttributesClassSyncer,
}
_CLASSES: ClassNames = {"spec.storageClassName": StorageClassSyncer, **_LATER}
#: Annotations by which the host's binder and provisioners act. Some of a tenant's would choose a
#: class or a node.
_HOSTS_OWN = ("pv.kubernetes.io/*", "volume.kubernetes.io/*", "volume.beta.kubernetes.io/*")
#: The annotation with the node that a scheduler has chosen for the first Pod of a claim, whose
#: volume is made for it. A provisioner that can't make it there takes the annotation off.
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
#: The rules where the tenant's scheduler chooses, among the nodes that the host shows.
_WITH_NODE = KeyRules(
    allow=(*rules_of(CLAIMS).allow, _SELECTED_NODE),
    deny=("pv.kubernetes.io/*", "volume.kubernetes.io/storage-*", "volume.beta.kubernetes.io/*"),
)
#: Those that show the tenant whether a claim is bound.
_SHOWN = ("pv.kubernetes.io~1bind-completed", "pv.kubernetes.io~1bound-by-controller")

#: The fields that name the source of a claim's data; an API server fills the one from the other.
_SOURCE_FIELDS = ("dataSource", "dataSourceRef")
#: The kinds of sources, by group and kind.
_SOURCES = {(each.group, each.kind): each for each in (PERSISTENT_VOLUME_CLAIMS, VOLUME_SNAPSHOTS)}


class ClaimConfig(Config):
    """The options of PersistentVolumeClaims."""

    on_host_deletion: HostDeletion = "report"
    """What happens when someone else deletes a copy on the host, and so, as its class says, the
    data.

    `report`: an event is recorded, and no copy is created until the annotation `vsyncer.dev/copied`
    is removed from the virtual object. `recreate`: the copy is created again, with an empty volume.
    `propagate`: the virtual object is deleted too. A bound claim can't get another volume, so with
    `report` and `recreate` an event asks its tenant to delete it and to create it again.
    """


class ClaimSyncer(Mirror[ClaimConfig]):
    """Copies claims; the virtual side owns what is claimed, the host the volume and the status.

    A claim never chooses one of the host's volumes: that could hold anybody's data. Provisioners
    take many annotations for an order to do so, so only harmless ones cross. The copy of a
    claim that is being deleted is deleted at once: either cluster holds its own while Pods use it.
    """

    name = "persistentvolumeclaims"
    section = "toHost.persistentVolumeClaims"
    resource = PERSISTENT_VOLUME_CLAIMS
    has_templates = False
    down = (
        "spec.accessModes",
        "spec.dataSource",
        "spec.dataSourceRef",
        "spec.resources",
        "spec.storageClassName",
        "spec.volumeAttributesClassName",
        "spec.volumeMode",
    )
    up = ("spec.volumeName", *(f"/metadata/annotations/{each}" for each in _SHOWN), "status")
    translates = ("spec.dataSource", "spec.dataSourceRef")
    refers_to = tuple(_SOURCES.values())
    #: Immutable fields (Kubernetes, "Persistent Volumes").
    create_only = (
        "spec.accessModes",
        "spec.dataSource",
        "spec.dataSourceRef",
        "spec.storageClassName",
        "spec.volumeMode",
    )
    metadata: ClassVar[MetadataRules] = MetadataRules(annotations=rules_of(CLAIMS, deny=_HOSTS_OWN))

    def reads_with(self, settings: Settings) -> Iterable[Source]:
        """Return the classes of the host that claims may name, and the nodes they may be for."""
        found = classes.sources(settings, StorageClassSyncer, VolumeAttributesClassSyncer)
        if is_bound_first(settings):
            return (*self.reads, *found, shown_nodes(settings))
        return (*self.reads, *found)

    def refers(self, virtual: Obj) -> Iterable[tuple[Resource, Key]]:
        """Return the objects from which a claim takes its data."""
        return _source_keys(virtual)

    def sync_down(self, ctx: Context[ClaimConfig], virtual: Obj) -> Decision:
        """Create the copy, once the classes that it names appear.

        Raises:
            Refused: The claim chooses a volume of the host, takes any that has no class, or has
                lost its own.
        """
        spec = virtual.get("spec") or {}
        if spec.get("volumeName") and _had_copy(ctx, virtual):
            if ctx.config.on_host_deletion != "propagate":
                raise Refused(_LOST, reason="HostCopyDeleted")
        else:
            _refuse_choice(spec)

        named = {"spec.storageClassName": spec.get("storageClassName")}
        if ctx.metadata.crosses("annotations", _BETA):
            named[f"metadata.annotations[{_BETA}]"] = annotations_of(virtual).get(_BETA)
        for path, name in named.items():
            if name == "":
                why = "a claim without a class would be bound to any host volume without one"
                how = "name one, or leave it out"
                raise Refused(f"{why}: {how}", path=path, reason="VolumeRefused")

        waiting = classes.obstacle(ctx, _CLASSES, virtual)
        if waiting:
            return waiting
        return super().sync_down(ctx, virtual)

    def sync(self, ctx: Context[ClaimConfig], pair: Pair) -> Decision:
        """Update the copy.

        A request that the host has made larger stays, as no volume gets smaller; one that the
        volume hasn't grown to may be taken back (kubernetes.io, "Persistent Volumes", "Recovering
        from Failure when Expanding Volumes").
        """
        if is_bound_first(ctx.settings) and _is_given_back(ctx, pair):
            return apply(virtual=self.reflect(ctx, pair)).then(_unselected(pair.virtual))
        if waiting := classes.obstacle(ctx, _LATER, pair.virtual, pair.host):
            return apply(virtual=self.reflect(ctx, pair)).then(waiting)
        if not _is_too_small(pair):
            return super().sync(ctx, pair)
        kept = {**pair.virtual["spec"], "resources": pair.host["spec"]["resources"]}
        decision = super().sync(ctx, Pair({**pair.virtual, "spec": kept}, pair.host))
        size = dig(pair.host, _SIZE)
        why = f"a volume can't shrink, so where Pods run the claim still asks for {size}"
        return decision.warn("RequestKept", f"{why}: ask for more than its capacity")

    def translate(self, ctx: Context[ClaimConfig], virtual: Obj) -> Obj:
        """Return the copy.

        Raises:
            Refused: It would take the data of something else than a claim or a snapshot of its own
                namespace, or that of a kind that isn't synced.
        """
        if is_bound_first(ctx.settings):
            ctx = ctx.with_annotation_rules(_WITH_NODE)
        host = super().translate(ctx, classes.with_default(ctx, _CLASSES, virtual))
        node = annotations_of(host).get(_SELECTED_NODE)
        if node is not None and shown_node(ctx, node) is None:
            del host["metadata"]["annotations"][_SELECTED_NODE]
        spec = host.get("spec") or {}
        for field in _SOURCE_FIELDS:
            if source := spec.get(field):
                spec = {**spec, field: _from(ctx, virtual, field, source)}
        return {**host, "spec": spec}


def _had_copy(ctx: Context[ClaimConfig], virtual: Obj) -> bool:
    """Return True if a claim has had a copy, from which its volume was copied up."""
    if ctx.config.on_host_deletion == "recreate":
        # Then no annotation records that there was a copy.
        return bool(dig(virtual, "status.phase") == "Bound")
    return copied_since(ctx.marks, virtual) is not None


def _is_given_back(ctx: Context[ClaimConfig], pair: Pair) -> bool:
    """Return True if the host has taken off the node that the tenant's scheduler has chosen."""
    if _SELECTED_NODE not in annotations_of(pair.virtual):
        return False
    if _SELECTED_NODE in annotations_of(pair.host):
        return False
    return ctx.marks.is_set(pair.host, "metadata", "annotations", _SELECTED_NODE)


def _unselected(virtual: Obj) -> Decision:
    """Return the decision to take the chosen node off a claim, so that another one is chosen."""
    own = virtual["metadata"]
    metadata = {name: own[name] for name in ("name", "namespace", "uid") if name in own}
    metadata["annotations"] = {_SELECTED_NODE: None}
    claim = {
        "apiVersion": PERSISTENT_VOLUME_CLAIMS.api_version,
        "kind": PERSISTENT_VOLUME_CLAIMS.kind,
        "metadata": metadata,
    }
    why = "the host can't make its volume for the node that was chosen"
    return Decision((Write(Side.VIRTUAL, Verb.NOTE, claim),), why)


def _refuse_choice(spec: Obj) -> None:
    """Refuse a claim that chooses its volume."""
    for field in ("volumeName", "selector"):
        if spec.get(field):
            why = "a claim can't choose a volume of the host"
            how = "create the claim without the field"
            raise Refused(f"{why}: {how}", path=f"spec.{field}", reason="VolumeRefused")


def _is_too_small(pair: Pair) -> bool:
    """Return True if a claim asks for less than the API server lets its copy ask for."""
    wanted = quantity(dig(pair.virtual, _SIZE, ""))
    given = quantity(dig(pair.host, _SIZE, ""))
    if wanted is None or given is None or wanted >= given:
        return False
    size = quantity(dig(pair.host, _CAPACITY, ""))
    return size is None or wanted <= size


def _source_keys(virtual: Obj) -> Iterator[tuple[Resource, Key]]:
    """Yield the objects from which a claim takes its data, of the kinds that it may name."""
    namespace = virtual["metadata"].get("namespace", "")
    for field in _SOURCE_FIELDS:
        source = dig(virtual, f"spec.{field}") or {}
        resource = _SOURCES.get((source.get("apiGroup") or "", source.get("kind") or ""))
        if resource is not None and source.get("name"):
            yield resource, Key(namespace, source["name"])


def _from(ctx: Context, virtual: Obj, field: str, source: Obj) -> Obj:
    """Return the source of a claim's data under its name on the host.

    See kubernetes.io, "Persistent Volumes", "Volume populators and data sources".
    """
    namespace = virtual["metadata"].get("namespace", "")
    resource = _SOURCES.get((source.get("apiGroup") or "", source.get("kind") or ""))
    if resource is None:
        why = f"a {source.get('kind')} can't be the source of data here"
        how = "name a PersistentVolumeClaim or a VolumeSnapshot, or leave it out"
        raise Refused(f"{why}: {how}", path=f"spec.{field}", reason="DataSourceRefused")
    if source.get("namespace") not in (None, "", namespace):
        why = "an object of another namespace can't be the source of data here"
        how = f"name a {resource.kind} of this namespace"
        raise Refused(f"{why}: {how}", path=f"spec.{field}.namespace", reason="DataSourceRefused")
    if not ctx.synced(resource):
        why = f"objects of the kind {resource.kind} are not synced to where the data are"
        how = "the claim waits until the operator of this virtual cluster enables a syncer of"
        raise Refused(f"{why}: {how} {resource}", path=f"spec.{field}", reason="DataSourceRefused")
    translated = {key: value for key, value in source.items() if key != "namespace"}
    translated["name"] = ctx.host_name(resource, namespace, source.get("name", ""))
    return translated
