"""VolumeAttributesClasses of the host. Matrix and sieve have a row of their own for classes."""

from hypothesis import strategies as st

from syncer.api import Obj, key_of
from syncer.resources.classes import VolumeAttributesClassSyncer
from syncer.resources.kinds import VOLUME_ATTRIBUTES_CLASSES
from syncer.testing import strategies
from syncer.testing.laws import Scene
from syncer.testing.samples import Sample


def _on_host(host: Obj) -> Scene:
    return Scene(key_of(host), (), (host,))


SAMPLE = Sample(
    syncer=VolumeAttributesClassSyncer,
    objects=strategies.objects(
        VOLUME_ATTRIBUTES_CLASSES,
        strategies.some(
            {
                "driverName": st.sampled_from(["disk.example.org", "nfs.example.org"]),
                "parameters": st.dictionaries(st.sampled_from(["iops", "throughput"]), st.just("10"), min_size=1),
            }
        ),
    ).map(_on_host),
    config={"sync": {"fromHost": {"volumeAttributesClasses": {"enabled": True}}}},
    dropped=(),
)
