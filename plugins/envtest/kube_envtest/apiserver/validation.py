"""Validate objects of built-in kinds and changes of them, with the API server's messages.

Source: `kubernetes/pkg/apis/*/validation`. Objects must be defaulted.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kube_envtest.apiserver.fields import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from kube_envtest.apiserver.quantities import amount
from kube_envtest.apiserver.syntax import dns1123_label, dns1123_subdomain
from kube_envtest.apiserver.validation_data import (
    check_config_map,
    check_frozen_data,
    check_secret,
    check_secret_change,
)
from kube_envtest.apiserver.validation_metadata import (
    check_labels,
    check_metadata,
    check_metadata_update,
    check_text,
)
from kube_envtest.apiserver.validation_pods import (
    check_pod,
    check_pod_ephemeral,
    check_pod_resize,
    check_pod_update,
    check_port,
)
from kube_envtest.apiserver.validation_workloads import check_job_change, check_selector_change, check_workload

Obj = Mapping[str, Any]


def validate_create(kind: str, obj: Obj) -> list[FieldError]:
    """Return the errors of a new object of a built-in kind."""
    found = [*check_metadata(kind, obj.get("metadata") or {})]
    check = _KINDS.get(kind)
    return [*found, *(check(obj) if check else ())]


def validate_update(kind: str, old: Obj, new: Obj) -> list[FieldError]:
    """Return the errors of a change of an object of a built-in kind, through its main resource."""
    found = [*check_metadata_update(old.get("metadata") or {}, new.get("metadata") or {})]
    if kind == "Pod":
        return [*found, *check_pod_update(old, new)]
    change = _CHANGES.get(kind)
    check = _KINDS.get(kind)
    changes = change(old, new) if change else ()
    checks = check(new) if check else ()
    return [*found, *checks, *changes] if kind in _STATE_FIRST else [*found, *changes, *checks]


def validate_status_update(kind: str, old: Obj, new: Obj) -> list[FieldError]:
    """Return the errors of a change through the status subresource."""
    found = [*check_metadata_update(old.get("metadata") or {}, new.get("metadata") or {})]
    balancer = (new.get("status") or {}).get("loadBalancer") or {}
    if kind == "Service" and balancer.get("ingress") and (new.get("spec") or {}).get("type") != "LoadBalancer":
        path = "status.loadBalancer.ingress"
        found.append(forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'"))
    return found


def validate_part_update(subresource: str, old: Obj, new: Obj) -> list[FieldError]:
    """Return the errors of a change of a pod through ``ephemeralcontainers`` or ``resize``."""
    found = [*check_metadata_update(old.get("metadata") or {}, new.get("metadata") or {})]
    check = check_pod_ephemeral if subresource == "ephemeralcontainers" else check_pod_resize
    return [*found, *check(old, new)]


_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")


def _service(obj: Obj) -> Iterator[FieldError]:
    spec = obj.get("spec") or {}
    ports = spec.get("ports") or ()
    kind = spec.get("type")
    headless = spec.get("clusterIP") == "None" or spec.get("clusterIPs") == ["None"]
    if not ports and not headless and kind != "ExternalName":
        yield required("spec.ports")
    if kind in ("LoadBalancer", "NodePort") and headless:
        yield invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        yield from _external_name(spec)
    yield from _service_ports(ports, headless=headless, kind=str(kind))
    yield from check_labels(spec.get("selector") or {}, "spec.selector")
    if spec.get("sessionAffinity") not in ("ClientIP", "None"):
        yield not_supported("spec.sessionAffinity", spec.get("sessionAffinity"), ("ClientIP", "None"))
    if kind not in _SERVICE_TYPES:
        yield not_supported("spec.type", kind, _SERVICE_TYPES)


def _external_name(spec: Obj) -> Iterator[FieldError]:
    for key in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(key):
            yield forbidden(f"spec.{key}", "may not be set for ExternalName services")
    name = str(spec.get("externalName", "")).removesuffix(".")
    if not name:
        yield required("spec.externalName")
    else:
        yield from check_text(dns1123_subdomain, name, "spec.externalName")


def _service_ports(ports: Any, *, headless: bool, kind: str) -> Iterator[FieldError]:
    names: set[str] = set()
    pairs: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        path = f"spec.ports[{index}]"
        name = port.get("name")
        if not name and len(ports) > 1:
            yield required(f"{path}.name")
        elif name:
            yield from check_text(dns1123_label, name, f"{path}.name")
            if name in names:
                yield duplicate(f"{path}.name", name)
            names.add(name)
        yield from check_port(port.get("port", 0), f"{path}.port")
        if isinstance(port.get("targetPort"), int):
            yield from check_port(port["targetPort"], f"{path}.targetPort")
        if port.get("protocol") not in ("SCTP", "TCP", "UDP"):
            yield not_supported(f"{path}.protocol", port.get("protocol"), ("SCTP", "TCP", "UDP"))
        if port.get("nodePort") and kind == "ClusterIP":
            yield forbidden(f"{path}.nodePort", "may not be used when `type` is 'ClusterIP'")
        pair = (port.get("port"), port.get("protocol"))
        if pair in pairs and not headless:
            # As the real server prints it, which shows a field of Go's struct whether set or not.
            shown = {
                "Name": "",
                "Protocol": pair[1],
                "AppProtocol": None,
                "Port": pair[0],
                "TargetPort": 0,
                "NodePort": 0,
            }
            yield duplicate(path, shown)
        pairs.add(pair)


def _service_change(old: Obj, new: Obj) -> Iterator[FieldError]:
    before = old.get("spec") or {}
    after = new.get("spec") or {}
    if "ExternalName" in (before.get("type"), after.get("type")):
        return
    was = before.get("clusterIPs") or [ip for ip in [before.get("clusterIP")] if ip]
    now = after.get("clusterIPs") or [ip for ip in [after.get("clusterIP")] if ip]
    if was and not now:
        yield invalid("spec.clusterIPs[0]", now or None, "primary clusterIP can not be unset")
    for index, (one, other) in enumerate(zip(was, now, strict=False)):
        if one != other:
            yield invalid(f"spec.clusterIPs[{index}]", now, "may not change once set")


_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def _claim(obj: Obj) -> Iterator[FieldError]:
    spec = obj.get("spec") or {}
    if not spec.get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    for mode in spec.get("accessModes") or ():
        if mode not in _ACCESS_MODES:
            yield not_supported("spec.accessModes", mode, _ACCESS_MODES)
    requests = (spec.get("resources") or {}).get("requests") or {}
    if "storage" not in requests:
        yield required("spec.resources[storage]")
        return
    if amount(requests["storage"]) <= 0:
        yield invalid("spec.resources[storage]", requests["storage"], "must be greater than zero")


def _claim_change(old: Obj, new: Obj) -> Iterator[FieldError]:
    before = dict(old.get("spec") or {})
    after = dict(new.get("spec") or {})
    if not before.get("volumeName"):
        before.pop("volumeName", None)
        after.pop("volumeName", None)
    if (new.get("status") or {}).get("phase") == "Bound":
        for key in ("resources", "volumeAttributesClassName"):
            before.pop(key, None)
            after.pop(key, None)
    if before != after:
        why = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        yield forbidden("spec", why + "\n")


def _role_ref_change(old: Obj, new: Obj) -> Iterator[FieldError]:
    if old.get("roleRef") != new.get("roleRef"):
        yield invalid("roleRef", new.get("roleRef"), "cannot change roleRef")


def _ingress(obj: Obj) -> Iterator[FieldError]:
    spec = obj.get("spec") or {}
    if not spec.get("rules") and not spec.get("defaultBackend"):
        yield invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
    for index, rule in enumerate(spec.get("rules") or ()):
        paths = (rule.get("http") or {}).get("paths") or ()
        if "http" in rule and not paths:
            yield required(f"spec.rules[{index}].http.paths")
        for at, path in enumerate(paths):
            yield from _ingress_path(path, f"spec.rules[{index}].http.paths[{at}]")


def _ingress_path(path: Obj, at: str) -> Iterator[FieldError]:
    kind = path.get("pathType")
    text = path.get("path", "")
    if not kind:
        yield required(f"{at}.pathType", "pathType must be specified")
    elif kind not in ("Exact", "ImplementationSpecific", "Prefix"):
        yield not_supported(f"{at}.pathType", kind, ("Exact", "ImplementationSpecific", "Prefix"))
    elif kind != "ImplementationSpecific" and not text.startswith("/"):
        yield invalid(f"{at}.path", text, "must be an absolute path")
    service = (path.get("backend") or {}).get("service")
    if service is not None and not service.get("name"):
        yield required(f"{at}.backend.service.name")


def _lease(obj: Obj) -> Iterator[FieldError]:
    spec = obj.get("spec") or {}
    duration = spec.get("leaseDurationSeconds")
    changes = spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        yield invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    if changes is not None and changes < 0:
        yield invalid("spec.leaseTransitions", changes, "must be greater than or equal to 0")


def _node_change(old: Obj, new: Obj) -> Iterator[FieldError]:
    before = old.get("spec") or {}
    after = new.get("spec") or {}
    if before.get("providerID") and before["providerID"] != after.get("providerID"):
        yield forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid')


_KINDS: Mapping[str, Callable[[Obj], Iterator[FieldError]]] = {
    "ConfigMap": check_config_map,
    "DaemonSet": check_workload,
    "Deployment": check_workload,
    "Ingress": _ingress,
    "Job": check_workload,
    "Lease": _lease,
    "PersistentVolumeClaim": _claim,
    "Pod": check_pod,
    "ReplicaSet": check_workload,
    "Secret": check_secret,
    "Service": _service,
    "StatefulSet": check_workload,
}
#: Kinds whose new state is checked before the change, which decides the order of the messages.
_STATE_FIRST = frozenset({"DaemonSet", "Deployment", "Job", "PersistentVolumeClaim", "ReplicaSet"})
_CHANGES: Mapping[str, Callable[[Obj, Obj], Iterator[FieldError]]] = {
    "ClusterRoleBinding": _role_ref_change,
    "ConfigMap": check_frozen_data,
    "DaemonSet": check_selector_change,
    "Deployment": check_selector_change,
    "Job": check_job_change,
    "Node": _node_change,
    "PersistentVolumeClaim": _claim_change,
    "ReplicaSet": check_selector_change,
    "RoleBinding": _role_ref_change,
    "Secret": check_secret_change,
    "Service": _service_change,
}
