"""VolumeSnapshotClasses of the host. Matrix and sieve have a row of their own for classes."""

from hypothesis import strategies as st

from syncer.api import Obj, key_of
from syncer.resources.classes import VolumeSnapshotClassSyncer
from syncer.resources.kinds import VOLUME_SNAPSHOT_CLASSES
from syncer.testing import strategies
from syncer.testing.laws import Scene
from syncer.testing.samples import Sample


def _on_host(host: Obj) -> Scene:
    return Scene(key_of(host), (), (host,))


SAMPLE = Sample(
    syncer=VolumeSnapshotClassSyncer,
    objects=strategies.objects(
        VOLUME_SNAPSHOT_CLASSES,
        strategies.some(
            {
                "driver": st.sampled_from(["disk.example.org", "nfs.example.org"]),
                "deletionPolicy": st.sampled_from(["Delete", "Retain"]),
                "parameters": st.just({"csi.storage.k8s.io/snapshotter-secret-name": "credentials"}),
            }
        ),
    ).map(_on_host),
    config={"sync": {"fromHost": {"volumeSnapshotClasses": {"enabled": True}}}},
    dropped=("parameters",),
)
