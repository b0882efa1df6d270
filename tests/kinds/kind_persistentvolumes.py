"""Stand-ins of the volumes of claims. Matrix and sieve have rows of their own for them."""

from hypothesis import strategies as st

from syncer.api import Key, Obj
from syncer.resources.claims import ClaimSyncer
from syncer.resources.kinds import PERSISTENT_VOLUME_CLAIMS
from syncer.resources.volumes import VolumeSyncer
from syncer.testing import strategies
from syncer.testing.laws import Scene
from syncer.testing.merge import merged
from syncer.testing.objects import host_copy
from syncer.testing.samples import Sample

_BOUND = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
_PARTS = strategies.some(
    {
        "spec": strategies.some(
            {
                "storageClassName": st.sampled_from(["fast", "slow"]),
                "volumeMode": st.sampled_from(["Filesystem", "Block"]),
            }
        ),
        "status": st.sampled_from([_BOUND, {"phase": "Pending"}, {"phase": "Lost"}]),
    }
)


def _bound(parts: tuple[Obj, Obj]) -> Scene:
    """Return a claim, and its copy that the host has bound."""
    virtual, given = parts
    copy = host_copy(virtual, **merged({"spec": {"volumeName": "pvc-1"}}, given))
    return Scene(Key("", "pvc-1"), (virtual,), (copy,))


SAMPLE = Sample(
    syncer=VolumeSyncer,
    objects=st.tuples(strategies.objects(PERSISTENT_VOLUME_CLAIMS, st.just({})), _PARTS).map(_bound),
    together=(ClaimSyncer,),
)
