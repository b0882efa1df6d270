"""Defaults of pods and pod templates.

Source: `kubernetes/pkg/apis/core/v1/defaults.go`, and the conversion to the internal types and
back.
"""

from collections.abc import Iterator
from typing import Any

from kube_envtest.apiserver.quantities import canonical

Obj = dict[str, Any]

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


def quantities_in(holder: Obj, *keys: str) -> None:
    """Bring the quantities in resource maps into canonical form.

    Raises:
        QuantityError: A value isn't a quantity.
    """
    for key in keys:
        for name, value in (holder.get(key) or {}).items():
            holder[key][name] = canonical(value)


def _items(holder: Obj, *keys: str) -> Iterator[Obj]:
    for key in keys:
        for item in holder.get(key) or ():
            if isinstance(item, dict):
                yield item


def template(obj: Obj) -> None:
    """Fill in a pod template."""
    obj.setdefault("metadata", {})
    pod_spec(obj.setdefault("spec", {}))


def pod(obj: Obj) -> None:
    """Fill in a pod: the defaults of a template, and some more."""
    spec = obj.setdefault("spec", {})
    for container in _items(spec, "containers", "initContainers"):
        resources = container.get("resources") or {}
        limits = resources.get("limits")
        if limits:
            resources["requests"] = {**limits, **(resources.get("requests") or {})}
        if spec.get("hostNetwork"):
            _host_ports(container)
    pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    status(obj.setdefault("status", {}))


def _host_ports(container: Obj) -> None:
    for port in _items(container, "ports"):
        port.setdefault("hostPort", port.get("containerPort"))


def pod_spec(spec: Obj) -> None:
    """Fill in the spec of a pod or template."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    quantities_in(spec, "overhead")
    for one in _items(spec, *_CONTAINERS):
        container(one)
    for volume in _items(spec, "volumes"):
        _volume(volume)


def container(one: Obj) -> None:
    """Fill in a container."""
    one.setdefault("terminationMessagePath", "/dev/termination-log")
    one.setdefault("terminationMessagePolicy", "File")
    one.setdefault("imagePullPolicy", pull_policy(one.get("image", "")))
    quantities_in(one.setdefault("resources", {}), "limits", "requests")
    for port in _items(one, "ports"):
        port.setdefault("protocol", "TCP")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(one.get(name), dict):
            _probe(one[name])
    for hook in (one.get("lifecycle") or {}).values():
        _handler(hook)
    for variable in _items(one, "env"):
        _source(variable.get("valueFrom") or {})


def pull_policy(image: str) -> str:
    """Return the pull policy for an image: Always for the tag `latest` or no tag."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"


def _probe(probe: Obj) -> None:
    for key, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        probe[key] = probe.get(key) or value
    if isinstance(probe.get("grpc"), dict):
        probe["grpc"].setdefault("service", "")
    _handler(probe)


def _handler(handler: Obj) -> None:
    http = handler.get("httpGet")
    if isinstance(http, dict):
        http.setdefault("path", "/")
        http.setdefault("scheme", "HTTP")


def _source(source: Obj) -> None:
    """Fill in the source of a variable or a file."""
    if isinstance(source.get("fieldRef"), dict):
        source["fieldRef"].setdefault("apiVersion", "v1")
    resource = source.get("resourceFieldRef")
    if isinstance(resource, dict):
        resource["divisor"] = canonical(resource.get("divisor", "0"))


def _volume(volume: Obj) -> None:
    if volume.keys() <= {"name"}:
        volume["emptyDir"] = {}
    for kind in ("secret", "configMap", "downwardAPI", "projected"):
        if isinstance(volume.get(kind), dict):
            volume[kind].setdefault("defaultMode", 420)
    if isinstance(volume.get("hostPath"), dict):
        volume["hostPath"].setdefault("type", "")
    empty = volume.get("emptyDir") or {}
    if "sizeLimit" in empty:
        empty["sizeLimit"] = canonical(empty["sizeLimit"], milli=False)
    for source in _items(volume.get("projected") or {}, "sources"):
        if isinstance(source.get("serviceAccountToken"), dict):
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
        _files(source.get("downwardAPI") or {})
    _files(volume.get("downwardAPI") or {})
    claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if isinstance(claim, dict):
        claim.setdefault("metadata", {})
        claim_spec(claim.setdefault("spec", {}))


def _files(downward: Obj) -> None:
    for item in _items(downward, "items"):
        _source(item)


def claim_spec(spec: Obj) -> None:
    """Fill in the spec of a PersistentVolumeClaim."""
    spec.setdefault("volumeMode", "Filesystem")
    quantities_in(spec.setdefault("resources", {}), "limits", "requests")


def status(found: Obj) -> None:
    """Bring a pod's status into the form that the API server serves."""
    for one, many in (("podIP", "podIPs"), ("hostIP", "hostIPs")):
        if found.get(many):
            found.setdefault(one, found[many][0].get("ip"))
        if found.get(one) and found.get(many, [{}])[0].get("ip") != found[one]:
            found[many] = [{"ip": found[one]}]
    for condition in _items(found, "conditions"):
        condition.setdefault("lastProbeTime", None)
        condition.setdefault("lastTransitionTime", None)
    for container_status in _items(found, "containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        always: Obj = {"image": "", "imageID": "", "ready": False, "restartCount": 0, "state": {}, "lastState": {}}
        for key, value in always.items():
            container_status.setdefault(key, value)
