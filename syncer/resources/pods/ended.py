"""The status of a Pod that the host runs no more, as a kubelet and PodGC leave it behind.

As in Kubernetes, a Pod has failed if no kubelet can report how it ended. ``TerminatePod`` of the
kubelet's ``status_manager.go`` is the model for the containers and readiness,
``markFailedAndDeletePod`` of PodGC's ``gc_controller.go`` for the phase and the condition
``DisruptionTarget``. Controllers, among them that of Jobs, wait for this status before they remove
their finalizers.
"""

from collections.abc import Iterable
from datetime import datetime

from syncer.api import Obj
from syncer.translate import times

#: The condition of a Pod that ends by no fault of its own, and PodGC's reason for it.
DISRUPTED = "DisruptionTarget"
BY_POD_GC = "DeletionByPodGC"
#: The messages for the tenant about a Pod that the host has lost, and about one whose node it has.
LOST = "its copy on the host was deleted, though this Pod was not"
NODE_GONE = "it was bound to a Node that isn't there, and had not started"

#: The state of a container that nothing is known of, as a kubelet sets it.
_UNKNOWN = {
    "terminated": {
        "reason": "ContainerStatusUnknown",
        "message": "The container could not be located when the pod was terminated",
        "exitCode": 137,
    }
}
_READY = ("Ready", "ContainersReady")
_NETWORK = "PodReadyToStartContainers"
#: Conditions that only a Pod has which has not ended.
_OF_THE_RUNNING = ("PodResizePending", "PodResizeInProgress")


def failed_status(virtual: Obj, now: datetime, *, is_disrupted: bool, message: str = LOST) -> Obj:
    """Return the status of a virtual Pod as failed, without changing the Pod.

    Args:
        virtual: The virtual Pod, whose phase is not terminal.
        now: The time of the transition.
        is_disrupted: True if the Pod isn't being deleted in the virtual cluster.
        message: Why it ends then.
    """
    before = virtual.get("status") or {}
    generation = virtual["metadata"].get("generation")
    status = {**before, "phase": "Failed"}
    if "observedGeneration" in before and generation:
        status["observedGeneration"] = generation

    given = before.get("conditions") or ()
    conditions = _Conditions(given, generation=generation, now=times.written(now))
    if any(conditions.is_true(kind) for kind in _READY):
        for kind in _READY:
            conditions.set(kind, "False", reason="PodFailed")
    if conditions.is_true(_NETWORK):
        conditions.set(_NETWORK, "False")
    if is_disrupted and not conditions.is_true(DISRUPTED):
        conditions.set(DISRUPTED, "True", reason=BY_POD_GC, message=message)
    status["conditions"] = conditions.listed()

    if "containerStatuses" in before and _has_initialized(virtual):
        status["containerStatuses"] = [_terminated(one) for one in before["containerStatuses"]]
    if inits := before.get("initContainerStatuses"):
        # Those up to the last one that has run have begun, and at least the first one.
        numbers = [number for number, one in enumerate(inits, 1) if _has_run(one)]
        begun = max(numbers, default=1)
        ended = [_terminated(one) for one in inits[:begun]]
        status["initContainerStatuses"] = [*ended, *inits[begun:]]
    if debugs := before.get("ephemeralContainerStatuses"):
        ended = []
        for one in debugs:
            ended.append(one if _is_waiting(one) else _terminated(one))
        status["ephemeralContainerStatuses"] = ended
    return status


class _Conditions:
    """The conditions of a Pod while they are changed."""

    def __init__(self, before: Iterable[Obj], *, generation: int | None, now: str) -> None:
        kept = [one for one in before if one.get("type") not in _OF_THE_RUNNING]
        self._by_type = {one.get("type"): one for one in kept}
        self._generation = generation
        self._now = now

    def is_true(self, kind: str) -> bool:
        return self._by_type.get(kind, {}).get("status") == "True"

    def set(self, kind: str, value: str, *, reason: str = "", message: str = "") -> None:
        before = self._by_type.get(kind, {})
        condition: Obj = {"type": kind, "status": value, "lastTransitionTime": self._now}
        if before.get("status") == value and "lastTransitionTime" in before:
            condition["lastTransitionTime"] = before["lastTransitionTime"]
        if reason:
            condition["reason"] = reason
        if message:
            condition["message"] = message
        if "observedGeneration" in before and self._generation:
            condition["observedGeneration"] = self._generation
        self._by_type[kind] = condition

    def listed(self) -> list[Obj]:
        return list(self._by_type.values())


def _is_waiting(status: Obj) -> bool:
    return bool((status.get("state") or {}).get("waiting"))


def _has_run(status: Obj) -> bool:
    """Return True if a container has ever left the state of waiting."""
    return not _is_waiting(status) or bool((status.get("lastState") or {}).get("terminated"))


def _terminated(status: Obj) -> Obj:
    """Return the status of a container as ended; how it ended is kept where that is known."""
    if (status.get("state") or {}).get("terminated"):
        return status
    result = {**status, "state": _UNKNOWN, "ready": False}
    if "started" in status:
        result["started"] = False
    return result


def _has_initialized(pod: Obj) -> bool:
    """Return True if a container may have been started after the init containers."""
    inits = (pod.get("spec") or {}).get("initContainers") or ()
    if not inits:
        return True
    status = pod["status"]
    if any(_has_run(one) for one in status.get("containerStatuses") or ()):
        return True
    reported = status.get("initContainerStatuses") or ()
    if not reported:
        return False
    last = reported[-1]
    if inits[-1].get("restartPolicy") == "Always":
        return bool((last.get("state") or {}).get("running")) and bool(last.get("started"))
    ends = ((last.get(state) or {}).get("terminated") for state in ("state", "lastState"))
    return any(end is not None and end.get("exitCode") == 0 for end in ends)
