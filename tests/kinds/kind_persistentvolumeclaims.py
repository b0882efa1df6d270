"""PersistentVolumeClaims. Until one is bound, an API server refuses changes of its spec."""

from typing import Any

from hypothesis import strategies as st

from syncer.api import Obj
from syncer.resources.claims import ClaimSyncer
from syncer.resources.kinds import PERSISTENT_VOLUME_CLAIMS, VOLUME_SNAPSHOTS
from syncer.testing import strategies
from syncer.testing.objects import NAMESPACE, build
from syncer.testing.samples import Sample


def _claim(name: str) -> Obj:
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}
    return build(PERSISTENT_VOLUME_CLAIMS, name, spec=spec)


def _reported(phase: str) -> Any:
    return {"status": {"phase": phase, "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}}


#: The kinds that a source of data may be of, and a volume populator's.
_KINDS: tuple[Any, ...] = (
    {"kind": PERSISTENT_VOLUME_CLAIMS.kind},
    {"apiGroup": VOLUME_SNAPSHOTS.group, "kind": VOLUME_SNAPSHOTS.kind},
    {"apiGroup": "hello.example.org", "kind": "Hello"},
)
_SOURCE = st.builds(lambda kind, name: {**kind, "name": name}, st.sampled_from(_KINDS), strategies.NAMES)
_SOURCE_REF = st.builds(
    lambda source, namespace: {**source, **namespace},
    _SOURCE,
    strategies.some({"namespace": st.sampled_from([NAMESPACE, "other"])}),
)
_SPEC = strategies.some(
    {
        "accessModes": st.just(["ReadWriteOnce"]),
        "storageClassName": st.sampled_from(["fast", "slow", ""]),
        "resources": st.sampled_from(["1Gi", "2Gi"]).map(lambda size: {"requests": {"storage": size}}),
        "volumeMode": st.sampled_from(["Filesystem", "Block"]),
        "volumeName": st.just("of-the-host"),
        "selector": st.just({"matchLabels": {"tier": "gold"}}),
        "dataSource": _SOURCE,
        "dataSourceRef": _SOURCE_REF,
    }
)

SAMPLE = Sample(
    syncer=ClaimSyncer,
    objects=strategies.objects(PERSISTENT_VOLUME_CLAIMS, st.fixed_dictionaries({"spec": _SPEC})),
    make=_claim,
    # A copy that someone has deleted took its data along; by default it isn't made again.
    config={"sync": {"toHost": {"persistentVolumeClaims": {"onHostDeletion": "recreate"}}}},
    reports=(_reported("Pending"), _reported("Bound")),
)
