"""CSINodes of the host. Matrix and sieve have rows of their own for them."""

from hypothesis import strategies as st

from syncer.api import Obj, key_of
from syncer.resources.csi import CsiNodeSyncer
from syncer.resources.host_nodes import HostNodeSyncer
from syncer.resources.kinds import CSI_NODES
from syncer.testing import strategies
from syncer.testing.laws import Scene
from syncer.testing.objects import node
from syncer.testing.samples import Sample

_DRIVER = strategies.some(
    {
        "topologyKeys": st.just(["example.org/zone"]),
        "allocatable": st.builds(lambda count: {"count": count}, st.integers(0, 30)),
    }
).map(lambda parts: {"name": "disk.example.org", "nodeID": "i-0123", **parts})


def _beside_its_node(host: Obj) -> Scene:
    return Scene(key_of(host), (), (host, node(key_of(host).name)))


SAMPLE = Sample(
    syncer=CsiNodeSyncer,
    objects=strategies.objects(
        CSI_NODES,
        st.builds(lambda drivers: {"spec": {"drivers": drivers}}, st.lists(_DRIVER, max_size=1)),
    ).map(_beside_its_node),
    config={"sync": {"fromHost": {"csiNodes": {"enabled": True}, "nodes": {"enabled": True}}}},
    together=(HostNodeSyncer,),
    dropped=("spec",),
)
