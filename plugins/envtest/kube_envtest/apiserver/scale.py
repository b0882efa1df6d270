"""The scale subresource: replicas of any kind, in a common form."""

from collections.abc import Mapping
from typing import Any

from kube_envtest.apiserver.bodies import parse
from kube_envtest.apiserver.errors import ApiError, bad_request, cause, invalid
from kube_envtest.apiserver.objects import Objects
from kube_envtest.apiserver.patching import APPLY, applied, patch_kind, patched
from kube_envtest.apiserver.request import Call, Response, reply
from kube_envtest.apiserver.resources import ResourceType
from kube_envtest.apiserver.storage import Entry

Obj = dict[str, Any]

#: The paths of replicas in the built-in kinds; a CustomResourceDefinition declares its own.
PATHS: Mapping[str, str] = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": "",
}

SCALE = ResourceType("autoscaling", "v1", "Scale", "scales")


class Scaler:
    """Handlers of ``scale``."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def get(self, call: Call, now: float) -> Response:
        """Handle GET: return the wanted and the current replicas."""
        del now
        return reply(200, scale_of(call.type, self._objects.existing(call)))

    def change(self, call: Call, now: float) -> Response:
        """Handle PUT and PATCH: set the wanted replicas."""
        del now
        entry = self._objects.existing(call)
        wanted = self._wanted(call, scale_of(call.type, entry))
        replicas = (wanted.get("spec") or {}).get("replicas", 0)
        if not isinstance(replicas, int) or replicas < 0:
            text = f"Invalid value: {replicas}: must be greater than or equal to 0"
            raise invalid(SCALE, call.name, [cause("spec.replicas", text)])
        obj = entry.copy()
        set_at(obj, _paths(call.type)["specReplicasPath"], replicas)
        obj["metadata"]["resourceVersion"] = (wanted.get("metadata") or {}).get("resourceVersion")
        if not obj["metadata"]["resourceVersion"]:
            obj["metadata"]["resourceVersion"] = entry.obj["metadata"]["resourceVersion"]
        return reply(200, scale_of(call.type, self._objects.update(call, entry, obj)))

    def _wanted(self, call: Call, scale: Obj) -> Obj:
        if call.verb == "patch":
            form = patch_kind(call)
            if form == APPLY:
                return applied(call, scale)
            return patched(call, form, scale)
        wanted = parse(call.request.body, call.request.content_type)
        if not isinstance(wanted, dict) or wanted.get("kind", "Scale") != "Scale":
            raise bad_request("the object in the body is no autoscaling/v1 Scale")
        return wanted


def _paths(rt: ResourceType) -> Mapping[str, str]:
    return rt.scale_paths or PATHS


def scale_of(rt: ResourceType, entry: Entry) -> Obj:
    """Return the Scale of an object."""
    obj = entry.obj
    paths = _paths(rt)
    replicas = find(obj, paths["specReplicasPath"])
    if rt.custom and replicas is None:
        text = f'the spec replicas field "{paths["specReplicasPath"]}" does not exist'
        raise ApiError(500, "InternalError", f"Internal error occurred: {text}", {"causes": [{"message": text}]})
    status: Obj = {"replicas": find(obj, paths["statusReplicasPath"]) or 0}
    if selector := _selector(rt, obj, paths):
        status["selector"] = selector
    kept = {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}
    metadata = {key: value for key, value in obj["metadata"].items() if key in kept}
    head = {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata}
    return {**head, "spec": {"replicas": replicas} if replicas else {}, "status": status}


def _selector(rt: ResourceType, obj: Obj, paths: Mapping[str, str]) -> str:
    if rt.custom:
        path = paths.get("labelSelectorPath") or ""
        return str(find(obj, path) or "") if path else ""
    labels = ((obj.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def find(obj: Obj, path: str) -> Any:
    """Return the value at a path like ``.spec.replicas``, or None."""
    found: Any = obj
    for step in path.strip(".").split("."):
        if not isinstance(found, dict):
            return None
        found = found.get(step)
    return found


def set_at(obj: Obj, path: str, value: Any) -> None:
    """Set the value at a path like ``.spec.replicas``."""
    *steps, last = path.strip(".").split(".")
    for step in steps:
        obj = obj.setdefault(step, {})
    obj[last] = value
