"""Stand-in PersistentVolumes in the virtual cluster, for the volumes of the tenant's claims."""

from collections.abc import Iterable, Sequence

from syncer.api import (
    Config,
    Context,
    Decision,
    FakeSyncUp,
    Index,
    Indexes,
    Key,
    Obj,
    ObjectRef,
    Settings,
    Side,
    Source,
    Syncer,
    Watch,
    Watches,
    annotations_of,
    apply,
    delete,
    dig,
    reasons,
    skip,
    uid_of,
    wait,
)
from syncer.names.forms import SHORT
from syncer.resources import classes
from syncer.resources.claims import ClaimSyncer
from syncer.resources.classes import StorageClassSyncer, provisioner_of
from syncer.resources.host_nodes import shows_label
from syncer.resources.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES

#: Where claims aren't synced there are no stand-ins, and it takes no right to read the host's.
_ON = ClaimSyncer.name
_HOST_CLAIMS = Source(Side.HOST, PERSISTENT_VOLUME_CLAIMS, marked=True, optional_with=_ON)
_VIRTUAL_CLAIMS = Source(Side.VIRTUAL, PERSISTENT_VOLUME_CLAIMS, optional_with=_ON)

_HOST_VOLUMES = Source(Side.HOST, PERSISTENT_VOLUMES)

#: The index of the host's claims by the names of their volumes.
_BY_VOLUME = "volume"
#: The driver of a volume whose provider has a name that is none of a CSI driver.
_NO_DRIVER = "stand-in.vsyncer.dev"
#: The fields of a volume that an API server never changes.
_FIXED = ("spec.csi.driver", "spec.csi.volumeHandle", "spec.nodeAffinity", "spec.volumeMode")
_REQUIRED = "spec.nodeAffinity.required.nodeSelectorTerms"
#: The status without which a virtual cluster's controller for the protection of volumes holds a
#: deleted volume.
RELEASED: Obj = {"phase": "Released"}
_BOUND: Obj = {"phase": "Bound"}


class VolumeConfig(Config):
    """The options of stand-in PersistentVolumes."""

    node_affinity: bool = False
    """Whether a stand-in has the host volume's node affinity, by which a scheduler in the virtual
    cluster chooses nodes that can reach the volume (`sync.toHost.pods.scheduler: virtual`). It
    takes the right to get, list and watch the host's PersistentVolumes, those of all tenants.

    Labels that Nodes don't show (`sync.fromHost.nodes.metadata`) are left out of it.
    """


class VolumeSyncer(Syncer[VolumeConfig], FakeSyncUp[VolumeConfig], Indexes, Watches):
    """Creates a stand-in PersistentVolume for the volume of each bound claim.

    It is made from the claim and its copy alone, read-only, and goes with the claim. The host's
    volumes aren't read unless `nodeAffinity` says so: they say where the data of all tenants are.
    Without it a stand-in has no node affinity. Its `volumeHandle` is its own name, and its
    `persistentVolumeReclaimPolicy` is that of the claim's StorageClass if
    `fromHost.storageClasses` shows it, `Delete` otherwise. It goes where the
    virtual cluster runs the `persistentvolume-protection-controller`, as controller managers do by
    default.
    """

    name = "persistentvolumes"
    section = "fake.persistentVolumes"
    resource = PERSISTENT_VOLUMES
    reads = (_HOST_CLAIMS, _VIRTUAL_CLAIMS)
    up = (
        "spec.accessModes",
        "spec.capacity",
        "spec.claimRef",
        "spec.csi",
        "spec.nodeAffinity",
        "spec.persistentVolumeReclaimPolicy",
        "spec.storageClassName",
        "spec.volumeAttributesClassName",
        "spec.volumeMode",
        "status.phase",
    )
    exact = ("spec.accessModes", "spec.capacity", "spec.claimRef")

    def reads_with(self, settings: Settings) -> Iterable[Source]:
        """Return the claims of both sides, the classes of the host that appear, and its volumes.

        The latter only for their node affinity.
        """
        found = (*self.reads, *classes.sources(settings, StorageClassSyncer))
        config = settings.section(self.name, VolumeConfig)
        if config is not None and config.node_affinity:
            return (*found, _HOST_VOLUMES)
        return found

    def indexes(self) -> Sequence[Index]:
        """Return the index of the host's claims by their volume."""
        index = Index(_HOST_CLAIMS, _BY_VOLUME, _volumes_of, optional_with=_ON, copies_only=True)
        return [index]

    def watches(self) -> Sequence[Watch]:
        """Requeue a volume when a claim that names it changes."""
        return [
            Watch(_HOST_CLAIMS, _keys, when="change", optional_with=_ON),
            Watch(_VIRTUAL_CLAIMS, _keys_of_virtual, optional_with=_ON),
        ]

    def fake_sync_up(self, ctx: Context[VolumeConfig], key: Key) -> Decision:
        """Create the stand-in if a claim is bound to the volume."""
        if waiting := _unread(ctx, key.name):
            return waiting
        volume = _volume(ctx, key.name)
        if volume is None:
            return skip(reasons.VOLUME_UNUSED())
        return apply(virtual=volume, reason="a synced claim is bound to this volume")

    def fake_sync(self, ctx: Context[VolumeConfig], virtual: Obj) -> Decision:
        """Keep the stand-in as it is to be, and delete it after its claim.

        Only called for our own volumes.
        """
        volume = _volume(ctx, virtual["metadata"]["name"])
        if volume is None:
            why = "no synced claim is bound to this volume any more"
            return delete(virtual=virtual, grace=0, final_status=RELEASED, reason=why)
        if waiting := _unread(ctx, virtual["metadata"]["name"]):
            return waiting
        for path in _FIXED:
            if dig(volume, path) != dig(virtual, path):
                why = f"{path} can't be changed, so the stand-in is replaced"
                return delete(virtual=virtual, grace=0, final_status=RELEASED, reason=why)
        return apply(virtual=volume)


def _volumes_of(claim: Obj) -> Iterable[str]:
    """Return the name of the volume that a claim names; nothing if it names none."""
    name = dig(claim, "spec.volumeName")
    if name:
        return (name,)
    return ()


def _keys(claim: Obj, settings: Settings) -> Iterable[Key]:
    """Yield the volume to requeue when a claim of the host changes."""
    if settings.marks.is_ours(claim, cluster=settings.identity, resource=PERSISTENT_VOLUME_CLAIMS):
        yield from _keys_of_virtual(claim, settings)


def _keys_of_virtual(claim: Obj, settings: Settings) -> Iterable[Key]:
    """Yield the volume to requeue when a virtual claim changes."""
    for name in _volumes_of(claim):
        yield Key("", name)


def _volume(ctx: Context[VolumeConfig], name: str) -> Obj | None:
    """Return the stand-in for a volume of the host; None if no claim of the tenant's has it.

    What the host has bound counts, whatever the tenant's claim says of its volume.
    """
    if not ctx.enabled(_ON):
        return None
    for key in sorted(ctx.reader.indexed(Side.HOST, PERSISTENT_VOLUME_CLAIMS, _BY_VOLUME, name)):
        copy = ctx.host(PERSISTENT_VOLUME_CLAIMS, key)
        if copy is None or dig(copy, "status.phase") != "Bound":
            continue
        claim = ctx.virtual_of(PERSISTENT_VOLUME_CLAIMS, copy)
        if claim is not None and annotations_of(copy).get(ctx.marks.uid) == uid_of(claim):
            return _stand_in(ctx, name, claim, copy)
    return None


def _stand_in(ctx: Context[VolumeConfig], name: str, claim: Obj, copy: Obj) -> Obj:
    """Return the stand-in for the volume of a claim and its copy."""
    wanted = copy.get("spec") or {}
    given = copy.get("status") or {}
    driver = provisioner_of(copy)
    # An API server takes the name of a driver for a subdomain of 63 characters, in either case.
    if not SHORT.fits(driver.lower()):
        driver = _NO_DRIVER

    spec: Obj = {
        "accessModes": given.get("accessModes") or wanted.get("accessModes") or [],
        "capacity": {
            "storage": dig(given, "capacity.storage") or dig(wanted, "resources.requests.storage")
        },
        "claimRef": {
            "apiVersion": PERSISTENT_VOLUME_CLAIMS.api_version,
            "kind": PERSISTENT_VOLUME_CLAIMS.kind,
            "namespace": claim["metadata"]["namespace"],
            "name": claim["metadata"]["name"],
            "uid": uid_of(claim),
        },
        "csi": {"driver": driver, "volumeHandle": name},
        "persistentVolumeReclaimPolicy": _reclaim_policy(ctx, wanted.get("storageClassName")),
        "volumeMode": wanted.get("volumeMode") or "Filesystem",
    }
    for field, value in (
        ("storageClassName", wanted.get("storageClassName")),
        ("volumeAttributesClassName", given.get("currentVolumeAttributesClassName")),
    ):
        if value:
            spec[field] = value
    if ctx.config.node_affinity and (affinity := _node_affinity(ctx, name)):
        spec["nodeAffinity"] = affinity
    return {
        "apiVersion": PERSISTENT_VOLUMES.api_version,
        "kind": PERSISTENT_VOLUMES.kind,
        "metadata": {"name": name, "labels": {ctx.marks.cluster: ctx.identity}},
        "spec": spec,
        "status": _BOUND,
    }


def _unread(ctx: Context[VolumeConfig], name: str) -> Decision | None:
    """Return a wait if the node affinity of a volume isn't known yet; None if there is no need to.

    A volume that no claim of the tenant's has is of no interest.
    """
    if not ctx.config.node_affinity or _volume(ctx, name) is None:
        return None
    key = Key("", name)
    if ctx.host(PERSISTENT_VOLUMES, key) is not None:
        return None
    return wait(reasons.VOLUME_UNREAD(name), on=(ObjectRef(Side.HOST, PERSISTENT_VOLUMES, key),))


def _node_affinity(ctx: Context[VolumeConfig], name: str) -> Obj | None:
    """Return the node affinity of a volume, by labels that Nodes show; None for any node.

    Terms are alternatives, so one without such a label admits every node.
    """
    host = ctx.host(PERSISTENT_VOLUMES, Key("", name)) or {}
    terms = []
    for term in dig(host, _REQUIRED) or ():
        given = term.get("matchExpressions") or ()
        expressions = [each for each in given if shows_label(ctx.settings, each.get("key", ""))]
        if not expressions:
            return None
        terms.append({"matchExpressions": expressions})
    if not terms:
        return None
    return {"required": {"nodeSelectorTerms": terms}}


def _reclaim_policy(ctx: Context[VolumeConfig], name: str | None) -> str:
    """Return the reclaim policy of a volume of a class.

    Where the class isn't shown it is the usual one, by which no tenant counts on data that are
    gone.
    """
    if name and classes.appears(ctx, StorageClassSyncer, name):
        found = ctx.host(STORAGE_CLASSES, Key("", name)) or {}
        return str(found.get("reclaimPolicy") or "Delete")
    return "Delete"
