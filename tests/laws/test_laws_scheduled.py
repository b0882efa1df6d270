"""The laws of Pods that a scheduler of the virtual cluster places."""

from typing import Any

from sampled import SAMPLES

from syncer.api import Obj, key_of
from syncer.resources.classes import StorageClassSyncer
from syncer.resources.host_nodes import HostNodeSyncer
from syncer.resources.pods.placement import DECIDED
from syncer.resources.pods.spec import DROPPED
from syncer.resources.pods.syncer import PodSyncer
from syncer.testing.laws import Scene, Trial, laws_for
from syncer.testing.merge import merged
from syncer.testing.objects import namespace, node
from syncer.testing.pod_strategies import pods

OURS = {"metadata": {"labels": {"vsyncer.dev/cluster": "vc.vc-ns"}}}
CONFIG: dict[str, Any] = {
    "networking": {"dns": {"service": ""}},
    "sync": {
        "toHost": {"pods": {"scheduler": "virtual", "enforcedTaints": ["dedicated"]}},
        "fromHost": {"nodes": {"enabled": True}, "storageClasses": {"enabled": True}},
    },
}


def bound(virtual: Obj) -> Scene:
    """A Pod that is bound to a node that the host shows."""
    conditions = [{"type": "PodScheduled", "status": "True"}]
    placed = merged(virtual, {"spec": {"nodeName": "n1"}, "status": {"conditions": conditions}})
    there = (placed, namespace(key_of(virtual).namespace), node("n1", **OURS))
    return Scene(key_of(virtual), there, (node("n1"),))


def _waits(trial: Trial) -> None:
    for virtual in trial.sources()[:1]:
        trial.world.given(virtual=[merged(virtual, {"spec": {"nodeName": None}})])


def _node_goes(trial: Trial) -> None:
    trial.world.gone(host=[node("n1")])


TestScheduled = laws_for(
    PodSyncer,
    objects=pods().map(bound),
    config=CONFIG,
    together=(HostNodeSyncer, StorageClassSyncer),
    dropped=(*(f"spec.{name}" for name in (*DROPPED, *DECIDED)), "spec.tolerations"),
    events={**SAMPLES["pods"].events, "the Pod isn't bound yet": _waits, "its node goes": _node_goes},
)
