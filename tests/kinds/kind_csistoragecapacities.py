"""CSIStorageCapacities of the host. Matrix and sieve have rows of their own for them."""

from hypothesis import strategies as st

from syncer.api import Key, Obj, key_of
from syncer.resources.classes import StorageClassSyncer
from syncer.resources.csi import HOME, CsiCapacitySyncer
from syncer.resources.host_nodes import HostNodeSyncer
from syncer.resources.kinds import CSI_CAPACITIES, STORAGE_CLASSES
from syncer.testing import strategies
from syncer.testing.laws import Scene
from syncer.testing.merge import merged
from syncer.testing.objects import build, node
from syncer.testing.samples import Sample

_TOPOLOGIES = [
    {},
    {"matchLabels": {"topology.kubernetes.io/zone": "a"}},
    {"matchLabels": {"topology.kubernetes.io/zone": "a", "example.org/rack": "r1"}},
    {"matchExpressions": [{"key": "example.org/rack", "operator": "In", "values": ["r1"]}]},
    {"matchLabels": {"topology.kubernetes.io/zone": "b"}},
]
_LABELS = {"topology.kubernetes.io/zone": "a", "example.org/rack": "r1"}


def _of_a_driver(given: Obj) -> Scene:
    """Return a capacity of the host, with its class and a node that appears."""
    host = merged(given, {"metadata": {"namespace": "storage"}, "storageClassName": "fast"})
    of_class = build(STORAGE_CLASSES, "fast", provisioner="disk.example.org")
    of_node = node("n1", metadata={"labels": _LABELS})
    return Scene(Key(HOME, f"storage.{key_of(host).name}"), (), (host, of_class, of_node))


SAMPLE = Sample(
    syncer=CsiCapacitySyncer,
    objects=strategies.objects(
        CSI_CAPACITIES,
        strategies.some(
            {
                "nodeTopology": st.sampled_from(_TOPOLOGIES),
                "capacity": st.sampled_from(["0", "10Gi"]),
                "maximumVolumeSize": st.just("1Gi"),
            }
        ),
    ).map(_of_a_driver),
    config={
        "sync": {
            "fromHost": {
                "csiStorageCapacities": {"enabled": True, "namespaces": ["storage"]},
                "nodes": {"enabled": True},
                "storageClasses": {"enabled": True},
            }
        }
    },
    together=(HostNodeSyncer, StorageClassSyncer),
    dropped=("nodeTopology",),
)
