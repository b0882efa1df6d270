"""Defaults that the API server sets when it decodes an object of a built-in kind.

Source: the `defaults.go` of `kubernetes/pkg/apis`, and fields that Go's structs always write.
Values that admission and the kinds' strategies add later are in `prepare`.
"""

import base64
from collections.abc import Callable, Mapping
from typing import Any

from kube_envtest.apiserver import defaults_cluster as cluster
from kube_envtest.apiserver import defaults_workloads as workloads
from kube_envtest.apiserver.decode_errors import DecodeError, check_micro_time, check_texts, handled
from kube_envtest.apiserver.decoding import decoded
from kube_envtest.apiserver.defaults_pods import claim_spec, pod, quantities_in
from kube_envtest.apiserver.quantities import QuantityError

Obj = dict[str, Any]

__all__ = ["DecodeError", "default"]


_RBAC = "rbac.authorization.k8s.io"


def default(kind: str, obj: Mapping[str, Any]) -> Obj:
    """Return an object of a built-in kind as the API server decodes it; kinds without defaults are
    only decoded.

    The result is a private copy. Defaulting is idempotent.

    Raises:
        DecodeError: A value has a type that the kind's struct can't hold; the API server's 400.
    """
    check_texts(kind, obj)
    out = decoded(obj)
    metadata = out.setdefault("metadata", {})
    for reference in metadata.get("ownerReferences") or ():
        reference.setdefault("name", "")
        reference.setdefault("uid", "")
    fill = _KINDS.get(kind)
    try:
        if fill is not None:
            fill(out)
    except QuantityError as error:
        raise DecodeError(f"{handled(kind, obj)}: {error}") from error
    except (AttributeError, TypeError) as error:
        why = "json: cannot unmarshal a value into a Go struct field of another type"
        raise DecodeError(f"{handled(kind, obj)}: {why}") from error
    return out


def _namespace(obj: Obj) -> None:
    name = obj["metadata"].get("name")
    if name:
        labels = obj["metadata"].setdefault("labels", {})
        labels["kubernetes.io/metadata.name"] = name
    obj.setdefault("spec", {})
    obj.setdefault("status", {}).setdefault("phase", "Active")


def _secret(obj: Obj) -> None:
    obj.setdefault("type", "Opaque")
    given = obj.pop("stringData", None)
    if given:
        texts = {key: base64.b64encode(str(value).encode()).decode() for key, value in given.items()}
        obj["data"] = {**obj.get("data", {}), **texts}


def _service(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("sessionAffinity", "None")
    _affinity(spec)
    kind = spec.setdefault("type", "ClusterIP")
    if not spec.get("selector", True):
        del spec["selector"]
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if not port.get("targetPort"):
            port["targetPort"] = port.get("port")
    if kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs")):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    balancer = obj.setdefault("status", {}).setdefault("loadBalancer", {})
    for address in balancer.get("ingress") or () if kind == "LoadBalancer" else ():
        if address.get("ip"):
            address.setdefault("ipMode", "VIP")


def _affinity(spec: Obj) -> None:
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif (spec.get("sessionAffinityConfig") or {}).get("clientIP", {}).get("timeoutSeconds") is None:
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}


def _ingress(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    backends = [spec.get("defaultBackend")]
    for rule in spec.get("rules") or ():
        backends += [path.get("backend") for path in (rule.get("http") or {}).get("paths") or ()]
    for backend in backends:
        if backend and "service" in backend:
            backend["service"].setdefault("port", {})
    obj.setdefault("status", {}).setdefault("loadBalancer", {})


def _network_policy(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("podSelector", {})
    kinds = ["Ingress"]
    if spec.get("egress"):
        kinds.append("Egress")
    spec.setdefault("policyTypes", kinds)
    for rule in [*(spec.get("ingress") or ()), *(spec.get("egress") or ())]:
        for port in rule.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _claim(obj: Obj) -> None:
    claim_spec(obj.setdefault("spec", {}))
    status = obj.setdefault("status", {})
    status.setdefault("phase", "Pending")
    quantities_in(status, "capacity", "allocatedResources")
    for condition in status.get("conditions") or ():
        condition.setdefault("lastProbeTime", None)
        condition.setdefault("lastTransitionTime", None)


def _role(obj: Obj) -> None:
    obj.setdefault("rules", None)


def _binding(obj: Obj) -> None:
    obj.setdefault("roleRef", {}).setdefault("apiGroup", _RBAC)
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", _RBAC)


def _event(obj: Obj) -> None:
    obj.setdefault("source", {})
    obj.setdefault("involvedObject", {})
    for key in ("firstTimestamp", "lastTimestamp", "eventTime"):
        obj.setdefault(key, None)
    obj.setdefault("reportingComponent", "")
    obj.setdefault("reportingInstance", "")


def _lease(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    for key in ("acquireTime", "renewTime"):
        check_micro_time(spec.get(key), "Lease", obj)


def _endpoints(obj: Obj) -> None:
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _endpoint_slice(obj: Obj) -> None:
    obj.setdefault("endpoints", None)
    obj.setdefault("ports", None)
    for endpoint in obj["endpoints"] or ():
        endpoint.setdefault("conditions", {})
    for port in obj["ports"] or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def _disruption_budget(obj: Obj) -> None:
    status = obj.setdefault("status", {})
    for key in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        status.setdefault(key, 0)


def _only_spec(obj: Obj) -> None:
    obj.setdefault("spec", {})


_KINDS: Mapping[str, Callable[[Obj], None]] = {
    "ClusterRole": _role,
    "ClusterRoleBinding": _binding,
    "CronJob": workloads.cron_job,
    "CSIStorageCapacity": cluster.csi_capacity,
    "CustomResourceDefinition": cluster.crd,
    "DaemonSet": workloads.daemon_set,
    "Deployment": workloads.deployment,
    "Endpoints": _endpoints,
    "EndpointSlice": _endpoint_slice,
    "Event": _event,
    "HorizontalPodAutoscaler": workloads.autoscaler,
    "Ingress": _ingress,
    "IngressClass": _only_spec,
    "Job": workloads.job,
    "Lease": _lease,
    "LimitRange": cluster.limit_range,
    "MutatingWebhookConfiguration": cluster.webhooks,
    "Namespace": _namespace,
    "NetworkPolicy": _network_policy,
    "Node": cluster.node,
    "PersistentVolume": cluster.volume,
    "PersistentVolumeClaim": _claim,
    "Pod": pod,
    "PodDisruptionBudget": _disruption_budget,
    "PodTemplate": workloads.pod_template,
    "PriorityClass": cluster.priority_class,
    "ReplicaSet": workloads.replica_set,
    "ReplicationController": workloads.replication_controller,
    "ResourceQuota": cluster.quota,
    "Role": _role,
    "RoleBinding": _binding,
    "RuntimeClass": cluster.runtime_class,
    "Secret": _secret,
    "Service": _service,
    "StatefulSet": workloads.stateful_set,
    "StorageClass": cluster.storage_class,
    "ValidatingWebhookConfiguration": cluster.webhooks,
}
