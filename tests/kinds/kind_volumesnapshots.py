"""VolumeSnapshots. Their claim needs not be there: then the host's controller waits for it."""

from typing import Any

from hypothesis import strategies as st

from syncer.api import Obj
from syncer.resources.kinds import VOLUME_SNAPSHOTS
from syncer.resources.snapshots import SnapshotSyncer
from syncer.testing import strategies
from syncer.testing.objects import build
from syncer.testing.samples import Sample


def _snapshot(name: str) -> Obj:
    spec = {"source": {"persistentVolumeClaimName": "data"}, "volumeSnapshotClassName": "fast"}
    return build(VOLUME_SNAPSHOTS, name, spec=spec)


def _reported(size: str, *, ready: bool) -> Any:
    status = {"boundVolumeSnapshotContentName": "snapcontent-1", "readyToUse": ready, "restoreSize": size}
    return {"status": status}


_SOURCE = st.one_of(
    st.fixed_dictionaries({"persistentVolumeClaimName": strategies.NAMES}),
    st.fixed_dictionaries({"volumeSnapshotContentName": st.just("of-the-host")}),
)

SAMPLE = Sample(
    syncer=SnapshotSyncer,
    objects=strategies.objects(
        VOLUME_SNAPSHOTS,
        st.fixed_dictionaries(
            {"spec": strategies.some({"source": _SOURCE, "volumeSnapshotClassName": st.sampled_from(["fast", "slow"])})}
        ),
    ),
    make=_snapshot,
    # A copy that someone has deleted took its data along; by default it isn't made again.
    config={"sync": {"toHost": {"volumeSnapshots": {"onHostDeletion": "recreate"}}}},
    reports=(_reported("1Gi", ready=False), _reported("2Gi", ready=True)),
)
