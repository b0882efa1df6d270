"""Which copies may be evicted by programs that empty a node of the host.

``kubectl drain`` without ``--force`` evicts Pods that have a controller, of whatever kind
(``k8s.io/kubectl/pkg/drain``, ``unreplicatedFilter``); a copy gets its namespace as one. By default
the Cluster Autoscaler removes a node only if its Pods have a controller of the few kinds that it
knows, or are marked (``cluster-autoscaler/simulator/drainability/rules``).
"""

from syncer.api import Obj
from syncer.resources.pods.config import PodConfig

#: The Cluster Autoscaler's annotation of a Pod that may be evicted, whatever it stores on its node.
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
#: Its annotation of a Pod that is treated as one of a DaemonSet: it may end with its node, and
#: needs no room on another.
OF_DAEMON_SET = "cluster-autoscaler.kubernetes.io/daemonset-pod"


def is_evictable(config: PodConfig, virtual: Obj) -> bool:
    """Return True if the copy of a Pod may be evicted."""
    if config.evictable == "controlled":
        return _controller(virtual) is not None
    return config.evictable == "all"


def annotations(config: PodConfig, virtual: Obj) -> dict[str, str]:
    """Return the annotation of the copy of a Pod for the Cluster Autoscaler; none if it may stay.

    A Pod with data on its node gets none: by default they keep the Cluster Autoscaler from removing
    a node, and its annotation would override the operator's own setting.
    """
    if not is_evictable(config, virtual):
        return {}
    controller = _controller(virtual)
    if controller is not None and controller.get("kind") == "DaemonSet":
        return {OF_DAEMON_SET: "true"}
    for volume in virtual["spec"].get("volumes") or ():
        if _is_local(volume):
            return {}
    return {SAFE_TO_EVICT: "true"}


def _controller(pod: Obj) -> Obj | None:
    """Return the owner reference of a Pod's controller; None if it has none."""
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            found: Obj = owner
            return found
    return None


def _is_local(volume: Obj) -> bool:
    """Return True if the data of a volume are on the node (``utils/drain``, ``isLocalVolume``)."""
    if "emptyDir" in volume:
        return (volume["emptyDir"] or {}).get("medium") != "Memory"
    return "hostPath" in volume
