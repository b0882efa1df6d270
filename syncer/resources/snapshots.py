"""Copies of virtual VolumeSnapshots on the host, which takes the snapshots."""

from collections.abc import Iterable
from typing import ClassVar

from syncer.api import (
    Config,
    Context,
    Decision,
    HostDeletion,
    MetadataRules,
    Mirror,
    Obj,
    References,
    Refused,
    Settings,
    Side,
    Source,
    dig,
)
from syncer.resources import classes
from syncer.resources.classes import ClassNames, VolumeSnapshotClassSyncer
from syncer.resources.harmless_annotations import SNAPSHOTS, rules_of
from syncer.resources.kinds import PERSISTENT_VOLUME_CLAIMS, VOLUME_SNAPSHOTS
from syncer.translate.host_deletion import copied_since

_CLAIM = "spec.source.persistentVolumeClaimName"
_CLASS = "spec.volumeSnapshotClassName"
_CLASSES: ClassNames = {_CLASS: VolumeSnapshotClassSyncer}
_LOST = (
    "its copy was deleted on the host, and with it, unless its class retains snapshots, the data:"
    " delete this snapshot; a copy that is made once the annotation {} is off has the data of then"
)


class SnapshotConfig(Config):
    """The options of VolumeSnapshots."""

    enabled: bool = False
    """Whether VolumeSnapshots are synced, and claims may have one as the source of their data.

    Off by default: snapshots take room in the host's storage. A ResourceQuota on the host can limit
    them (`count/volumesnapshots.snapshot.storage.k8s.io`).
    """

    on_host_deletion: HostDeletion = "report"
    """What happens when someone else deletes a copy on the host, and so, as its class says, the
    data.

    `report`: an event is recorded, and no copy is created until the annotation `vsyncer.dev/copied`
    is removed from the virtual object. `recreate`: the copy is created again, of the data that the
    claim has then. `propagate`: the virtual object is deleted too.
    """


class SnapshotSyncer(Mirror[SnapshotConfig]):
    """Copies snapshots of the tenant's claims; the host owns the status.

    A snapshot never takes a VolumeSnapshotContent of the host, which could be of anybody's data.
    Contents don't appear in the virtual cluster: they name the snapshots in the storage behind the
    host, of all tenants. Class and claim count when the copy is made.
    """

    name = "volumesnapshots"
    section = "toHost.volumeSnapshots"
    resource = VOLUME_SNAPSHOTS
    has_templates = False
    down = (_CLAIM, _CLASS)
    up = ("status",)
    create_only = (_CLAIM, _CLASS)
    reads = (Source(Side.HOST, PERSISTENT_VOLUME_CLAIMS, marked=True),)
    references: ClassVar[References] = {_CLAIM: PERSISTENT_VOLUME_CLAIMS}
    metadata: ClassVar[MetadataRules] = MetadataRules(annotations=rules_of(SNAPSHOTS))

    def reads_with(self, settings: Settings) -> Iterable[Source]:
        """Return the claims, by whose driver a default class is chosen, and the host's classes."""
        return (*self.reads, *classes.sources(settings, VolumeSnapshotClassSyncer))

    def sync_down(self, ctx: Context[SnapshotConfig], virtual: Obj) -> Decision:
        """Create the copy, once the class that it names appears.

        Raises:
            Refused: The snapshot chooses a content of the host, or has lost its own.
        """
        if dig(virtual, "spec.source.volumeSnapshotContentName"):
            why = "a snapshot can't choose a VolumeSnapshotContent of the host"
            how = "name a claim in spec.source.persistentVolumeClaimName"
            path = "spec.source.volumeSnapshotContentName"
            raise Refused(f"{why}: {how}", path=path, reason="DataSourceRefused")
        reports = ctx.config.on_host_deletion == "report"
        if reports and dig(virtual, "status.readyToUse") and copied_since(ctx.marks, virtual):
            raise Refused(_LOST.format(ctx.marks.copied), reason="HostCopyDeleted")

        waiting = classes.obstacle(ctx, _CLASSES, virtual)
        if waiting:
            return waiting
        return super().sync_down(ctx, virtual)

    def translate(self, ctx: Context[SnapshotConfig], virtual: Obj) -> Obj:
        """Return the copy, with the host's default class where a selector chooses the classes."""
        return super().translate(ctx, classes.with_default(ctx, _CLASSES, virtual))
