"""Nodes of the host that appear in the virtual cluster. Matrix and sieve have rows of their own for them."""

from hypothesis import strategies as st

from syncer.api import Obj, key_of
from syncer.resources.host_nodes import HostNodeSyncer
from syncer.resources.kinds import NODES
from syncer.testing import strategies
from syncer.testing.laws import Scene
from syncer.testing.samples import Sample

_TAINT = st.fixed_dictionaries(
    {"key": st.sampled_from(["node.kubernetes.io/not-ready", "dedicated"]), "effect": st.sampled_from(["NoSchedule"])}
)
_CONDITION = st.fixed_dictionaries(
    {"type": st.sampled_from(["Ready", "KernelDeadlock"]), "status": st.sampled_from(["True", "Unknown"])}
)
_PARTS = strategies.some(
    {
        "spec": strategies.some({"taints": st.lists(_TAINT, max_size=2), "unschedulable": st.just(True)}),
        "status": strategies.some(
            {
                "capacity": st.just({"cpu": "4", "memory": "8Gi"}),
                "conditions": st.lists(_CONDITION, max_size=2),
                "images": st.just([{"names": ["registry.example.com/a"]}]),
            }
        ),
    }
)


def _on_host(host: Obj) -> Scene:
    return Scene(key_of(host), (), (host,))


SAMPLE = Sample(
    syncer=HostNodeSyncer,
    objects=strategies.objects(NODES, _PARTS).map(_on_host),
    config={"sync": {"fromHost": {"nodes": {"enabled": True}}}},
    # A tenant sees listed fields alone: an unknown one may say something of the host.
    dropped=("spec",),
)
