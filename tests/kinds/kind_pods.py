"""Pods, with a kubelet's life. Matrix and sieve have rows of their own for it."""

from typing import Any

from syncer.api import Obj, Side, key_of
from syncer.resources.pods.spec import DROPPED
from syncer.resources.pods.syncer import PodSyncer
from syncer.testing.laws import Scene, Trial
from syncer.testing.merge import merged
from syncer.testing.objects import HOST_NAMESPACE, namespace, node
from syncer.testing.pod_strategies import pods
from syncer.testing.samples import Sample

OURS = {"metadata": {"labels": {"vsyncer.dev/cluster": "vc.vc-ns"}}}
RUNNING = {
    "phase": "Running",
    "podIP": "10.1.0.7",
    "podIPs": [{"ip": "10.1.0.7"}],
    "startTime": "2026-01-01T12:00:05Z",
    "conditions": [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"}],
    "containerStatuses": [{"name": "c0", "ready": True, "restartCount": 0, "image": "i:1", "imageID": "sha256:1"}],
}
#: Selectors of namespaces become selectors of pods.
FOLDED = [
    f"spec.affinity.{part}.requiredDuringSchedulingIgnoredDuringExecution[].namespaceSelector"
    for part in ("podAffinity", "podAntiAffinity")
]


def runnable(virtual: Obj) -> Scene:
    """A Pod with its namespaces and a node."""
    there = (virtual, namespace(key_of(virtual).namespace), node("n1", **OURS))
    return Scene(key_of(virtual), there, (namespace(HOST_NAMESPACE),))


def _placed(trial: Trial) -> None:
    trial.change_copy({"spec": {"nodeName": "n1"}})


def _runs(trial: Trial) -> None:
    _placed(trial)
    trial.change_copy({"status": RUNNING})


def _ends(side: Side) -> Any:
    def end(trial: Trial) -> None:
        found = trial.sources()[0] if side is Side.VIRTUAL and trial.sources() else trial.copied()
        if found is not None:
            mark = {"deletionTimestamp": "2026-01-01T12:30:00Z", "deletionGracePeriodSeconds": 30}
            trial.world.given(**{side.value: [merged(found, {"metadata": mark})]})

    return end


#: What happens to Pods.
LIFE = {
    "the host places the pod": _placed,
    "the host runs the pod": _runs,
    "the tenant deletes the pod": _ends(Side.VIRTUAL),
    "the host deletes the pod": _ends(Side.HOST),
}

SAMPLE = Sample(
    syncer=PodSyncer,
    objects=pods().map(runnable),
    config={"networking": {"dns": {"service": ""}}},
    dropped=(*(f"spec.{name}" for name in DROPPED), *FOLDED),
    events=LIFE,
)
