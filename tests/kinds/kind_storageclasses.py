"""StorageClasses of the host. Matrix and sieve have a row of their own for classes."""

from hypothesis import strategies as st

from syncer.api import Obj, key_of
from syncer.resources.classes import StorageClassSyncer
from syncer.resources.kinds import STORAGE_CLASSES
from syncer.testing import strategies
from syncer.testing.laws import Scene
from syncer.testing.samples import Sample


def _on_host(host: Obj) -> Scene:
    return Scene(key_of(host), (), (host,))


SAMPLE = Sample(
    syncer=StorageClassSyncer,
    objects=strategies.objects(
        STORAGE_CLASSES,
        strategies.some(
            {
                "provisioner": st.sampled_from(["disk.example.org", "nfs.example.org"]),
                "reclaimPolicy": st.sampled_from(["Delete", "Retain"]),
                "volumeBindingMode": st.sampled_from(["Immediate", "WaitForFirstConsumer"]),
                "allowVolumeExpansion": st.booleans(),
                "parameters": st.just({"type": "fast"}),
            }
        ),
    ).map(_on_host),
    config={"sync": {"fromHost": {"storageClasses": {"enabled": True}}}},
    dropped=("parameters",),
)
