"""The columns of ``kubectl get`` for built-in resources. A ``+`` marks those of ``-o wide``.

Source: ``pkg/printers/internalversion/printers.go`` of kubernetes.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kube_envtest.apiserver.clock import duration, seconds_of

Obj = dict[str, Any]

NONE = "<none>"
UNKNOWN = "<unknown>"


class Row(NamedTuple):
    """An object, its age as text, and the current time."""

    obj: Obj
    age: str
    now: float

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.obj["metadata"]["name"])

    def part(self, name: str) -> Obj:
        """Return ``spec``, ``status`` or another mapping; empty if it is missing."""
        found: Obj = self.obj.get(name) or {}
        return found


class Columns(NamedTuple):
    """The names of the columns, and the functions that compute them."""

    names: tuple[str, ...]
    cells: Callable[[Row], list[Any]]


def _pod(row: Row) -> list[Any]:
    spec = row.part("spec")
    status = row.part("status")
    states = status.get("containerStatuses") or []
    ready = sum(1 for one in states if one.get("ready"))
    restarts = sum(one.get("restartCount", 0) for one in states)
    return [
        row.name,
        f"{ready}/{len(spec.get('containers') or ())}",
        _pod_status(row, states),
        str(restarts),
        row.age,
        status.get("podIP") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        NONE,
    ]


def _pod_status(row: Row, states: list[Obj]) -> str:
    status = row.part("status")
    reason = str(status.get("reason") or status.get("phase") or "Unknown")
    for one in reversed(states):
        state = one.get("state") or {}
        waiting = state.get("waiting") or {}
        ended = state.get("terminated") or {}
        reason = waiting.get("reason") or ended.get("reason") or reason
    if "deletionTimestamp" in row.obj["metadata"]:
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return reason


def _service(row: Row) -> list[Any]:
    spec = row.part("spec")
    kind = spec.get("type") or "ClusterIP"
    addresses = [one.get("ip") or one.get("hostname") for one in _ingress(row)]
    external = ",".join([*(address for address in addresses if address), *(spec.get("externalIPs") or ())])
    if kind == "ExternalName":
        external = spec.get("externalName", "")
    elif kind == "LoadBalancer" and not external:
        external = "<pending>"
    ports = ",".join(_port(port) for port in spec.get("ports") or ())
    address = spec.get("clusterIP") or NONE
    return [row.name, kind, address, external or NONE, ports or NONE, row.age, labels_text(spec.get("selector"))]


def _ingress(row: Row) -> list[Obj]:
    return (row.part("status").get("loadBalancer") or {}).get("ingress") or []


def _port(port: Obj) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node}/{port.get('protocol', 'TCP')}"


def labels_text(labels: Obj | None) -> str:
    """Format labels as ``a=b,c=d``."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def _config_map(row: Row) -> list[Any]:
    return [row.name, len(row.part("data")) + len(row.part("binaryData")), row.age]


def _secret(row: Row) -> list[Any]:
    return [row.name, row.obj.get("type", "Opaque"), len(row.part("data")), row.age]


def _node(row: Row) -> list[Any]:
    status = row.part("status")
    labels = row.obj["metadata"].get("labels") or {}
    prefix = "node-role.kubernetes.io/"
    roles = sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix))
    info = status.get("nodeInfo") or {}
    addresses = {one["type"]: one["address"] for one in status.get("addresses") or ()}
    return [
        row.name,
        _node_status(row),
        ",".join(roles) or NONE,
        row.age,
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", NONE),
        addresses.get("ExternalIP", NONE),
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _node_status(row: Row) -> str:
    conditions = row.part("status").get("conditions") or ()
    ready = next((one for one in conditions if one["type"] == "Ready"), None)
    if ready is None:
        text = "Unknown"
    elif ready["status"] == "True":
        text = "Ready"
    else:
        text = "NotReady"
    return f"{text},SchedulingDisabled" if row.part("spec").get("unschedulable") else text


def _namespace(row: Row) -> list[Any]:
    return [row.name, row.part("status").get("phase", ""), row.age]


def _event(row: Row) -> list[Any]:
    obj = row.obj
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime")
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp") or first
    return [
        _since(row, last),
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{about.get('kind', '').lower()}/{about.get('name', '')}",
        about.get("fieldPath", ""),
        ", ".join(filter(None, (source.get("component"), source.get("host")))),
        (obj.get("message") or obj.get("note") or "").strip(),
        _since(row, first),
        obj.get("count") or obj.get("deprecatedCount") or 1,
        row.name,
    ]


def _since(row: Row, time: str | None) -> str:
    return duration(row.now - seconds_of(time)) if time else UNKNOWN


def _workload(row: Row) -> tuple[str, str, str]:
    template = (row.part("spec").get("template") or {}).get("spec") or {}
    containers = template.get("containers") or ()
    names = ",".join(one["name"] for one in containers)
    images = ",".join(one.get("image", "") for one in containers)
    return names, images, labels_text((row.part("spec").get("selector") or {}).get("matchLabels"))


def _deployment(row: Row) -> list[Any]:
    status = row.part("status")
    ready = f"{status.get('readyReplicas', 0)}/{row.part('spec').get('replicas', 0)}"
    counts = [status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    return [row.name, ready, *counts, row.age, *_workload(row)]


def _replica_set(row: Row) -> list[Any]:
    status = row.part("status")
    wanted = row.part("spec").get("replicas", 0)
    return [row.name, wanted, status.get("replicas", 0), status.get("readyReplicas", 0), row.age, *_workload(row)]


def _stateful_set(row: Row) -> list[Any]:
    ready = f"{row.part('status').get('readyReplicas', 0)}/{row.part('spec').get('replicas', 0)}"
    return [row.name, ready, row.age, *_workload(row)[:2]]


def _ingress_row(row: Row) -> list[Any]:
    spec = row.part("spec")
    hosts = [one.get("host") or "*" for one in spec.get("rules") or ()]
    address = ",".join(one.get("ip") or one.get("hostname") or "" for one in _ingress(row))
    ports = "80, 443" if spec.get("tls") else "80"
    return [row.name, spec.get("ingressClassName") or NONE, ",".join(hosts) or "*", address, ports, row.age]


def _account(row: Row) -> list[Any]:
    return [row.name, row.age]


def _definition(row: Row) -> list[Any]:
    return [row.name, row.obj["metadata"].get("creationTimestamp", "")]


def _lease(row: Row) -> list[Any]:
    return [row.name, row.part("spec").get("holderIdentity", ""), row.age]


def _claim(row: Row) -> list[Any]:
    spec = row.part("spec")
    status = row.part("status")
    modes = ",".join(MODES.get(mode, mode) for mode in status.get("accessModes") or ())
    capacity = (status.get("capacity") or {}).get("storage", "")
    storage = spec.get("storageClassName", "")
    attributes = spec.get("volumeAttributesClassName", "<unset>")
    mode = spec.get("volumeMode", "<unset>")
    shown = [status.get("phase", ""), spec.get("volumeName", ""), capacity, modes, storage, attributes]
    return [row.name, *shown, row.age, mode]


MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
WORKLOAD = ("+Containers", "+Images", "+Selector")
WIDE_POD = ("+IP", "+Node", "+Nominated Node", "+Readiness Gates")
WIDE_NODE = ("+Internal-IP", "+External-IP", "+OS-Image", "+Kernel-Version", "+Container-Runtime")
EVENT = ("Last Seen", "Type", "Reason", "Object", "+Subobject", "+Source", "Message", "+First Seen", "+Count", "+Name")
CLAIM = ("Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass", "Age", "+VolumeMode")

#: Columns by the table of the resource; other resources show name and creation time.
BUILTIN: Mapping[str, Columns] = {
    "/pods": Columns(("Name", "Ready", "Status", "Restarts", "Age", *WIDE_POD), _pod),
    "/services": Columns(("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "+Selector"), _service),
    "/configmaps": Columns(("Name", "Data", "Age"), _config_map),
    "/secrets": Columns(("Name", "Type", "Data", "Age"), _secret),
    "/nodes": Columns(("Name", "Status", "Roles", "Age", "Version", *WIDE_NODE), _node),
    "/namespaces": Columns(("Name", "Status", "Age"), _namespace),
    "/events": Columns(EVENT, _event),
    "/serviceaccounts": Columns(("Name", "Age"), _account),
    "/persistentvolumeclaims": Columns(("Name", *CLAIM), _claim),
    "apps/deployments": Columns(("Name", "Ready", "Up-to-date", "Available", "Age", *WORKLOAD), _deployment),
    "apps/replicasets": Columns(("Name", "Desired", "Current", "Ready", "Age", *WORKLOAD), _replica_set),
    "apps/statefulsets": Columns(("Name", "Ready", "Age", "+Containers", "+Images"), _stateful_set),
    "networking.k8s.io/ingresses": Columns(("Name", "Class", "Hosts", "Address", "Ports", "Age"), _ingress_row),
    "coordination.k8s.io/leases": Columns(("Name", "Holder", "Age"), _lease),
    "apiextensions.k8s.io/customresourcedefinitions": Columns(("Name", "Created At"), _definition),
}
