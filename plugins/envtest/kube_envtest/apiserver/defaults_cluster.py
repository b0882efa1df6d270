"""Defaults of administrators' kinds: nodes, volumes, classes, quotas, webhooks, CRDs.

Source: the `defaults.go` of `kubernetes/pkg/apis/{core,storage,scheduling,admissionregistration}`
and of apiextensions.
"""

from typing import Any

from kube_envtest.apiserver.defaults_pods import quantities_in
from kube_envtest.apiserver.quantities import canonical

Obj = dict[str, Any]


def volume(obj: Obj) -> None:
    """Fill in a PersistentVolume."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    if isinstance(spec.get("hostPath"), dict):
        spec["hostPath"].setdefault("type", "")
    quantities_in(spec, "capacity")
    obj.setdefault("status", {}).setdefault("phase", "Pending")


_NODE_INFO = (
    *("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion"),
    *("kubeProxyVersion", "operatingSystem", "architecture"),
)


def node(obj: Obj) -> None:
    """Fill in a Node."""
    spec = obj.setdefault("spec", {})
    if spec.get("podCIDR"):
        spec.setdefault("podCIDRs", [spec["podCIDR"]])
    elif spec.get("podCIDRs"):
        spec["podCIDR"] = spec["podCIDRs"][0]
    status = obj.setdefault("status", {})
    if "allocatable" not in status and status.get("capacity"):
        status["allocatable"] = dict(status["capacity"])
    quantities_in(status, "capacity", "allocatable")
    endpoint = status.setdefault("daemonEndpoints", {}).setdefault("kubeletEndpoint", {})
    endpoint.setdefault("Port", 0)
    info = status.setdefault("nodeInfo", {})
    for key in _NODE_INFO:
        info.setdefault(key, "")
    for condition in status.get("conditions") or ():
        condition.setdefault("lastHeartbeatTime", None)
        condition.setdefault("lastTransitionTime", None)


def quota(obj: Obj) -> None:
    """Fill in a ResourceQuota."""
    quantities_in(obj.setdefault("spec", {}), "hard")
    quantities_in(obj.setdefault("status", {}), "hard", "used")


def limit_range(obj: Obj) -> None:
    """Fill in a LimitRange."""
    for item in obj.setdefault("spec", {}).get("limits") or ():
        quantities_in(item, "default", "defaultRequest", "max", "min", "maxLimitRequestRatio")
        if item.get("type") == "Container":
            limits = {**(item.get("max") or {}), **(item.get("default") or {})}
            requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
            item |= {key: value for key, value in (("default", limits), ("defaultRequest", requests)) if value}


def storage_class(obj: Obj) -> None:
    """Fill in a StorageClass."""
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def priority_class(obj: Obj) -> None:
    """Fill in a PriorityClass."""
    obj.setdefault("value", 0)
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def runtime_class(obj: Obj) -> None:
    """Fill in a RuntimeClass."""
    quantities_in(obj.get("overhead") or {}, "podFixed")


def csi_capacity(obj: Obj) -> None:
    """Fill in a CSIStorageCapacity."""
    for key in ("capacity", "maximumVolumeSize"):
        if key in obj:
            obj[key] = canonical(obj[key], milli=False)


def webhooks(obj: Obj) -> None:
    """Fill in a webhook configuration."""
    for hook in obj.get("webhooks") or ():
        for key, value in (("failurePolicy", "Fail"), ("matchPolicy", "Equivalent"), ("timeoutSeconds", 10)):
            hook.setdefault(key, value)
        hook.setdefault("namespaceSelector", {})
        hook.setdefault("objectSelector", {})
        if obj.get("kind") == "MutatingWebhookConfiguration":
            hook.setdefault("reinvocationPolicy", "Never")
        for rule in hook.get("rules") or ():
            rule.setdefault("scope", "*")
        service = (hook.get("clientConfig") or {}).get("service")
        if service:
            service.setdefault("port", 443)


def crd(obj: Obj) -> None:
    """Fill in a CustomResourceDefinition."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("conversion", {"strategy": "None"})
    names = spec.setdefault("names", {})
    kind = names.get("kind", "")
    names.setdefault("singular", kind.lower())
    names.setdefault("listKind", f"{kind}List")
