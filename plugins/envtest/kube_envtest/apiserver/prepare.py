"""Values that admission and the kinds' strategies set in a new object after decoding; nobody owns
these fields.

Source: `kubernetes/plugin/pkg/admission` (defaulttolerationseconds, nodetaint, priority,
storageobjectinuseprotection) and the `strategy.go` of each kind.
"""

from collections.abc import Callable, Mapping
from typing import Any

Obj = dict[str, Any]

#: Allocates the addresses of a Service: takes its spec, returns the clusterIPs.
AllocateClusterIP = Callable[[Obj], list[str]]

_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_SIDES = ("limits", "requests")
_COMPUTE = ("cpu", "memory")


def prepare(kind: str, obj: Obj, *, allocate_cluster_ip: AllocateClusterIP | None = None) -> Obj:
    """Return a new, defaulted object of a built-in kind with the values of admission and strategy.

    Without `allocate_cluster_ip`, Services get no addresses. The input isn't changed.
    """
    if kind == "Service":
        return _service(obj, allocate_cluster_ip)
    change = _KINDS.get(kind)
    return change(obj) if change else obj


def prepare_update(kind: str, obj: Obj) -> Obj:
    """Return a changed, defaulted object with the values that admission also sets on updates: a
    pod's default tolerations.
    """
    if kind != "Pod":
        return obj
    spec = obj.get("spec", {})
    missing = _missing_tolerations(spec.get("tolerations", ()))
    return {**obj, "spec": {**spec, "tolerations": [*spec.get("tolerations", ()), *missing]}} if missing else obj


def _with_spec(obj: Obj, **values: Any) -> Obj:
    return {**obj, "spec": {**values, **obj.get("spec", {})}}


def _pod(obj: Obj) -> Obj:
    spec = obj.get("spec", {})
    tolerations = [*spec.get("tolerations", ()), *_missing_tolerations(spec.get("tolerations", ()))]
    out = _with_spec(obj, priority=0, preemptionPolicy="PreemptLowerPriority")
    out["spec"]["tolerations"] = tolerations
    out["status"] = {"phase": "Pending", "qosClass": qos_class(obj)}
    if spec.get("schedulingGates"):
        why = "Scheduling is blocked due to non-empty scheduling gates"
        gate = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": why}
        out["status"]["conditions"] = [{"lastProbeTime": None, "lastTransitionTime": None, **gate}]
    return out


def _missing_tolerations(given: Any) -> list[Obj]:
    def tolerated(taint: str) -> bool:
        return any(
            one.get("key", taint) == taint and one.get("effect", "NoExecute") == "NoExecute" and not one.get("value")
            for one in given
        )

    extra = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    return [{"key": taint, **extra} for taint in _TAINTS if not tolerated(taint)]


def qos_class(pod: Mapping[str, Any]) -> str:
    """Return the QoS class of a pod: Guaranteed if each container limits cpu and memory to its requests."""
    spec = pod.get("spec", {})
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    needs = [container.get("resources") or {} for container in containers]
    if not any(map(_needs_something, needs)):
        return "BestEffort"
    if all(map(_guaranteed, needs)):
        return "Guaranteed"
    return "Burstable"


def _needs_something(need: Obj) -> bool:
    for side in _SIDES:
        quantities = need.get(side) or {}
        if any(quantities.get(name, "0") != "0" for name in _COMPUTE):
            return True
    return False


def _guaranteed(need: Obj) -> bool:
    limits = need.get("limits") or {}
    requests = need.get("requests") or {}
    return all(name in limits and requests.get(name, limits[name]) == limits[name] for name in _COMPUTE)


def _service(obj: Obj, allocate: AllocateClusterIP | None) -> Obj:
    spec = dict(obj.get("spec", {}))
    if spec.get("type") != "ExternalName":
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        given = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else None)
        addresses = given or (allocate(spec) if allocate else None)
        if addresses:
            spec |= {"clusterIP": addresses[0], "clusterIPs": list(addresses)}
    return {**obj, "spec": spec, "status": {"loadBalancer": {}}}


def _namespace(obj: Obj) -> Obj:
    return {**_with_spec(obj, finalizers=["kubernetes"]), "status": {"phase": "Active"}}


def _finalized(name: str) -> Callable[[Obj], Obj]:
    def change(obj: Obj) -> Obj:
        metadata = obj.get("metadata", {})
        finalizers = metadata.get("finalizers") or []
        added = finalizers if name in finalizers else [*finalizers, name]
        return {**obj, "metadata": {**metadata, "finalizers": added}, "status": {"phase": "Pending"}}

    return change


def _job(obj: Obj) -> Obj:
    """Set the selector and the template labels of a Job, which identify its pods."""
    spec = obj.get("spec", {})
    metadata = obj.get("metadata", {})
    if spec.get("manualSelector"):
        return {**obj, "status": {}}
    uid = metadata.get("uid", "")
    name = metadata.get("name", "")
    mine = {"batch.kubernetes.io/controller-uid": uid}
    labels = {**mine, "batch.kubernetes.io/job-name": name, "controller-uid": uid, "job-name": name}
    template = spec.get("template", {})
    about = template.get("metadata", {})
    own = about.get("labels", {})
    about = {**about, "labels": {**own, **labels}}
    # Labels taken over from the template are the same map, so they get the new ones too.
    if metadata.get("labels", own) == own:
        metadata = {**metadata, "labels": about["labels"]}
    spec = {**spec, "selector": {**spec.get("selector", {}), "matchLabels": mine}}
    spec["template"] = {**template, "metadata": about}
    return {**obj, "metadata": metadata, "spec": spec, "status": {}}


def _node(obj: Obj) -> Obj:
    taints = (obj.get("spec") or {}).get("taints") or []
    if any(taint.get("key") == _TAINTS[0] for taint in taints):
        return obj
    return {**obj, "spec": {**obj.get("spec", {}), "taints": [*taints, {"key": _TAINTS[0], "effect": "NoSchedule"}]}}


_KINDS: Mapping[str, Callable[[Obj], Obj]] = {
    "Job": _job,
    "Namespace": _namespace,
    "Node": _node,
    "PersistentVolume": _finalized("kubernetes.io/pv-protection"),
    "PersistentVolumeClaim": _finalized("kubernetes.io/pvc-protection"),
    "Pod": _pod,
}
