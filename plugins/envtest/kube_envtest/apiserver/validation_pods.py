"""Checks of pods and pod templates.

Source: `kubernetes/pkg/apis/core/validation/validation.go`; the parts that a syncer can run into,
not all of it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kube_envtest.apiserver.fields import FieldError, duplicate, forbidden, invalid, not_supported, required
from kube_envtest.apiserver.prepare import qos_class
from kube_envtest.apiserver.quantities import amount
from kube_envtest.apiserver.syntax import dns1123_label, dns1123_subdomain, env_name, port_name
from kube_envtest.apiserver.validation_metadata import check_labels, check_text

Obj = Mapping[str, Any]

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_CHANGEABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_MOST_INT32 = 2147483647


def check_pod(pod: Obj) -> Iterator[FieldError]:
    """Check a new pod."""
    spec = pod.get("spec") or {}
    yield from check_pod_spec(spec, "spec")
    if spec.get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def check_pod_spec(spec: Obj, path: str) -> Iterator[FieldError]:
    """Check the spec of a pod or template."""
    volumes: set[str] = set()
    yield from _volumes(spec.get("volumes") or (), f"{path}.volumes", volumes)
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    names: set[str] = set()
    for key in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(key) or ()):
            yield from _container(container, f"{path}.{key}[{index}]", names, volumes)
    yield from _debuggers(spec, path, names, volumes)
    yield from _one_of(spec, path, "restartPolicy", ("Always", "OnFailure", "Never"))
    yield from _one_of(spec, path, "dnsPolicy", ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"))
    yield from check_labels(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    for key, rule in (("serviceAccountName", dns1123_subdomain), ("nodeName", dns1123_subdomain)):
        if spec.get(key):
            yield from check_text(rule, spec[key], f"{path}.{key}")
    for key in ("hostname", "subdomain"):
        if spec.get(key):
            yield from check_text(dns1123_label, spec[key], f"{path}.{key}")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _MOST_INT32:
        yield invalid(f"{path}.activeDeadlineSeconds", deadline, f"must be between 1 and {_MOST_INT32}, inclusive")


def _one_of(spec: Obj, path: str, key: str, options: tuple[str, ...]) -> Iterator[FieldError]:
    value = spec.get(key)
    if value not in options:
        shown = ", ".join(f'"{option}"' for option in options)
        text = f'Unsupported value: "{value}": supported values: {shown}'
        yield FieldError(f"{path}.{key}", text, "FieldValueNotSupported")


def _volumes(volumes: Any, path: str, names: set[str]) -> Iterator[FieldError]:
    for index, volume in enumerate(volumes):
        at = f"{path}[{index}]"
        name = volume.get("name")
        if not name:
            yield required(f"{at}.name")
        else:
            yield from check_text(dns1123_label, name, f"{at}.name")
        if name in names:
            yield duplicate(f"{at}.name", name)
        sources = [key for key in volume if key != "name"]
        for extra in sources[1:]:
            yield forbidden(f"{at}.{extra}", "may not specify more than 1 volume type")
        names.add(name)


def _container(container: Obj, path: str, names: set[str], volumes: set[str]) -> Iterator[FieldError]:
    name = container.get("name")
    if not name:
        yield required(f"{path}.name")
    else:
        yield from check_text(dns1123_label, name, f"{path}.name")
    if not container.get("image"):
        yield required(f"{path}.image")
    if name in names:
        yield duplicate(f"{path}.name", name)
    names.add(str(name))
    yield from _ports(container.get("ports") or (), f"{path}.ports")
    for index, variable in enumerate(container.get("env") or ()):
        if not variable.get("name"):
            yield required(f"{path}.env[{index}].name")
        else:
            yield from check_text(env_name, variable["name"], f"{path}.env[{index}].name")
        if variable.get("value") and variable.get("valueFrom"):
            yield invalid(f"{path}.env[{index}].valueFrom", "", "may not be specified when `value` is not empty")
    yield from _mounts(container.get("volumeMounts") or (), f"{path}.volumeMounts", volumes)
    if container.get("imagePullPolicy") not in ("Always", "IfNotPresent", "Never"):
        options = ("Always", "IfNotPresent", "Never")
        yield not_supported(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), options)
    yield from check_resources(container.get("resources") or {}, f"{path}.resources")


#: Fields that an ephemeral container can't have.
_NOT_EPHEMERAL = ("ports", "resources", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle")


def _debuggers(spec: Obj, path: str, names: set[str], volumes: set[str]) -> Iterator[FieldError]:
    """Check the ephemeral containers; ``names`` are those of the others."""
    targets = frozenset(names)
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        at = f"{path}.ephemeralContainers[{index}]"
        target = container.get("targetContainerName")
        yield from _container(container, at, names, volumes)
        if target and target not in targets:
            yield FieldError(f"{at}.targetContainerName", f'Not found: "{target}"', "FieldValueNotFound")
        for field in _NOT_EPHEMERAL:
            if container.get(field):
                yield forbidden(f"{at}.{field}", "cannot be set for an Ephemeral Container")


def _ports(ports: Any, path: str) -> Iterator[FieldError]:
    names: set[str] = set()
    for index, port in enumerate(ports):
        at = f"{path}[{index}]"
        name = port.get("name")
        if name:
            yield from check_text(port_name, name, f"{at}.name")
            if name in names:
                yield duplicate(f"{at}.name", name)
            names.add(name)
        if not port.get("containerPort"):
            yield required(f"{at}.containerPort")
        for key in ("containerPort", "hostPort"):
            yield from check_port(port.get(key) or 1, f"{at}.{key}")
        if port.get("protocol") not in _PROTOCOLS:
            yield not_supported(f"{at}.protocol", port.get("protocol"), _PROTOCOLS)


def check_port(port: Any, path: str) -> Iterator[FieldError]:
    """Check the number of a port."""
    if not isinstance(port, int) or not 1 <= port <= 65535:
        yield invalid(path, port, "must be between 1 and 65535, inclusive")


def _mounts(mounts: Any, path: str, volumes: set[str]) -> Iterator[FieldError]:
    mount_paths: set[str] = set()
    for index, mount in enumerate(mounts):
        at = f"{path}[{index}]"
        name = mount.get("name", "")
        mount_path = mount.get("mountPath", "")
        if not name:
            yield required(f"{at}.name")
        if name not in volumes:
            yield FieldError(f"{at}.name", f'Not found: "{name}"', "FieldValueNotFound")
        if not mount_path:
            yield required(f"{at}.mountPath")
        if mount_path in mount_paths:
            yield invalid(f"{at}.mountPath", mount_path, "must be unique")
        mount_paths.add(mount_path)


def check_resources(resources: Obj, path: str) -> Iterator[FieldError]:
    """Check limits and requests: none negative, and no request above its limit."""
    limits = resources.get("limits") or {}
    for side in ("limits", "requests"):
        for name, value in (resources.get(side) or {}).items():
            if str(value).startswith("-"):
                yield invalid(f"{path}.{side}[{name}]", value, "must be greater than or equal to 0")
    for name, value in (resources.get("requests") or {}).items():
        if name in limits and amount(value) > amount(limits[name]):
            why = f"must be less than or equal to {name} limit of {limits[name]}"
            yield invalid(f"{path}.requests", value, why)


def check_pod_update(old: Obj, new: Obj) -> Iterator[FieldError]:
    """Check a changed pod: only a few fields of its spec may change."""
    before = old.get("spec") or {}
    after = new.get("spec") or {}
    yield from check_pod_spec(after, "spec")
    for key in ("containers", "initContainers"):
        if len(after.get(key) or ()) != len(before.get(key) or ()):
            yield forbidden(f"spec.{key}", "pod updates may not add or remove containers")
            return
    yield from _deadline(before, after)
    yield from _tolerations(before, after)
    yield from _gates(before, after)
    if before != after and _frozen(after, before) != before:
        yield forbidden("spec", f"pod updates may not change fields other than {_CHANGEABLE}\n")


def check_pod_ephemeral(old: Obj, new: Obj) -> Iterator[FieldError]:
    """Check a pod whose ephemeral containers changed: they can only be added."""
    before = old.get("spec") or {}
    after = new.get("spec") or {}
    yield from check_pod_spec(after, "spec")
    path = "spec.ephemeralContainers"
    there = {one["name"]: one for one in after.get("ephemeralContainers") or ()}
    for one in before.get("ephemeralContainers") or ():
        if one["name"] not in there:
            yield forbidden(path, f'existing ephemeral containers "{one["name"]}" may not be removed\n')
        elif there[one["name"]] != one:
            yield forbidden(path, f'existing ephemeral containers "{one["name"]}" may not be changed\n')


def check_pod_resize(old: Obj, new: Obj) -> Iterator[FieldError]:
    """Check a pod whose resources changed: cpu and memory may, but nothing may be removed, and the
    quality of service stays.
    """
    before = old.get("spec") or {}
    after = new.get("spec") or {}
    yield from check_pod_spec(after, "spec")
    if qos_class(new) != ((old.get("status") or {}).get("qosClass") or qos_class(old)):
        yield invalid("spec", qos_class(new), "Pod QOS Class may not change as a result of resizing")
    for key in ("containers", "initContainers"):
        ones = before.get(key) or ()
        others = after.get(key) or ()
        if len(ones) != len(others):
            yield forbidden(f"spec.{key}", f"{key} may not be added or removed on resize")
            return
        for index, (one, other) in enumerate(zip(ones, others, strict=True)):
            at = f"spec.{key}[{index}]"
            if one["name"] != other["name"]:
                yield forbidden(f"{at}.name", f"{key} may not be renamed or reordered on resize")
                return
            yield from _resize(one.get("resources") or {}, other.get("resources") or {}, f"{at}.resources")
    yield from _resize(before.get("resources") or {}, after.get("resources") or {}, "spec.resources")


def _resize(before: Obj, after: Obj, path: str) -> Iterator[FieldError]:
    for side in ("requests", "limits"):
        was = before.get(side) or {}
        now = after.get(side) or {}
        if was.keys() - now.keys():
            yield forbidden(f"{path}.{side}", f"resource {side} cannot be removed")
        if any(was.get(name) != now.get(name) for name in was.keys() | now.keys() if name not in ("cpu", "memory")):
            yield forbidden("spec", "only cpu and memory resources are mutable")


def _deadline(before: Obj, after: Obj) -> Iterator[FieldError]:
    was = before.get("activeDeadlineSeconds")
    now = after.get("activeDeadlineSeconds")
    if now is None and was is not None:
        yield invalid("spec.activeDeadlineSeconds", None, "must not update from a positive integer to nil value")
    elif now is not None and was is not None and now > was:
        yield invalid("spec.activeDeadlineSeconds", now, "must be less than or equal to previous value")


def _tolerations(before: Obj, after: Obj) -> Iterator[FieldError]:
    def timeless(spec: Obj) -> list[Obj]:
        return [_without(one, "tolerationSeconds") for one in spec.get("tolerations") or ()]

    now = timeless(after)
    if any(one not in now for one in timeless(before)):
        yield forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")


def _without(value: Obj, key: str) -> dict[str, Any]:
    return {name: sub for name, sub in value.items() if name != key}


def _gates(before: Obj, after: Obj) -> Iterator[FieldError]:
    known = {gate["name"] for gate in before.get("schedulingGates") or ()}
    for index, gate in enumerate(after.get("schedulingGates") or ()):
        if gate["name"] not in known:
            why = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            yield forbidden(f"spec.schedulingGates[{index}].name", why)


def _frozen(after: Obj, before: Obj) -> dict[str, Any]:
    """Return the new spec with the old values of all mutable fields: equal to the old one if
    nothing else changed.
    """
    changeable = ["activeDeadlineSeconds", "schedulingGates", "tolerations"]
    if (before.get("terminationGracePeriodSeconds") or 0) < 0 and after.get("terminationGracePeriodSeconds") == 1:
        changeable.append("terminationGracePeriodSeconds")
    out = {key: value for key, value in after.items() if key not in changeable}
    out |= {key: before[key] for key in changeable if key in before}
    for key in ("containers", "initContainers"):
        if key in out:
            pairs = zip(out[key], before.get(key) or (), strict=True)
            out[key] = [{**one, "image": was.get("image")} for one, was in pairs]
    if before.get("schedulingGates"):
        _free_placement(out, before)
    return out


def _free_placement(out: dict[str, Any], before: Obj) -> None:
    """Keep allowed changes of a gated pod's placement: more labels in its node selector, or a first
    node affinity.
    """
    selector = before.get("nodeSelector") or {}
    if selector.items() <= (out.get("nodeSelector") or {}).items():
        out.pop("nodeSelector", None)
        out |= {"nodeSelector": selector} if selector else {}
    affinity = out.get("affinity") or {}
    if "nodeAffinity" in affinity and not (before.get("affinity") or {}).get("nodeAffinity"):
        rest = _without(affinity, "nodeAffinity")
        out.pop("affinity")
        out |= {"affinity": rest} if rest or "affinity" in before else {}
