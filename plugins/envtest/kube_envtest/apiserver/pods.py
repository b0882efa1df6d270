"""Subresources of pods: binding, eviction, ephemeral containers and resizing."""

from typing import Any

from kube_envtest.apiserver.bodies import parse, read_object
from kube_envtest.apiserver.deletion import DeleteOptions, Deleter
from kube_envtest.apiserver.errors import ApiError, bad_request, conflict, modified
from kube_envtest.apiserver.objects import Objects, uid_mismatch
from kube_envtest.apiserver.patching import APPLY, applied, patch_kind, patched
from kube_envtest.apiserver.rbac import label_selector
from kube_envtest.apiserver.reads import Reader
from kube_envtest.apiserver.request import Call, Response, reply
from kube_envtest.apiserver.storage import Entry, Storage, keys_in
from kube_envtest.apiserver.writes import private

Obj = dict[str, Any]

SUCCESS: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


class Pods:
    """Handlers of the pod subresources."""

    def __init__(self, storage: Storage, objects: Objects, deleter: Deleter, reader: Reader) -> None:
        self._storage = storage
        self._objects = objects
        self._deleter = deleter
        self._reader = reader

    def bind(self, call: Call, now: float) -> Response:
        """Handle a POST of a Binding: set the pod's node and its PodScheduled condition."""
        del now
        binding = parse(call.request.body, call.request.content_type)
        meta = binding.get("metadata") or {}
        node = (binding.get("target") or {}).get("name") or ""
        if meta.get("name") != call.name:
            raise bad_request("name in URL does not match name in Binding object")
        if not node:
            raise ApiError(500, "", "target.name: Required value")
        entry = self._objects.existing(call)
        _bindable(call, entry.obj, meta)
        bound = _bound(entry.copy(), node, meta, call.now)
        if not call.request.dry_run:
            self._storage.update(call.table, entry.key, bound)
        return reply(201, {**SUCCESS, "code": 201})

    def evict(self, call: Call, now: float) -> Response:
        """Handle a POST of an Eviction: delete the pod, unless a disruption budget forbids it."""
        eviction = parse(call.request.body, call.request.content_type)
        if (eviction.get("metadata") or {}).get("name") != call.name:
            raise bad_request("name in URL does not match name in Eviction object")
        entry = self._objects.existing(call)
        if not _ended(entry.obj):
            self._budget(entry, now, dry_run=call.request.dry_run)
        asked = eviction.get("deleteOptions") or {}
        wanted = asked.get("preconditions") or {}
        options = DeleteOptions(
            asked.get("gracePeriodSeconds"),
            wanted.get("uid") or "",
            wanted.get("resourceVersion") or "",
            asked.get("propagationPolicy") or "",
            call.request.dry_run or asked.get("dryRun") == ["All"],
            now,
        )
        self._deleter.delete(call.type, self._storage.table(call.table).entries[entry.key], options)
        return reply(201, {**SUCCESS, "code": 201})

    def _budget(self, entry: Entry, now: float, *, dry_run: bool) -> None:
        """Take a disruption from the budget that covers the pod."""
        covering = self._budgets(entry)
        if len(covering) > 1:
            text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise ApiError(500, "", text)
        for budget in covering:
            status = budget.obj.get("status") or {}
            allowed = status.get("disruptionsAllowed", 0)
            if allowed <= 0:
                raise _disrupted(budget.obj)
            if not dry_run:
                taken = {**status, "disruptionsAllowed": allowed - 1}
                changed = {**budget.obj, "metadata": dict(budget.obj["metadata"]), "status": taken}
                self._storage.update("policy/poddisruptionbudgets", budget.key, changed)

    def _budgets(self, entry: Entry) -> list[Entry]:
        labels = entry.obj["metadata"].get("labels") or {}
        namespace = entry.obj["metadata"]["namespace"]
        table = self._storage.table("policy/poddisruptionbudgets")
        found = [table.entries[key] for key in keys_in(table.keys, namespace)]
        return [budget for budget in found if covers((budget.obj.get("spec") or {}).get("selector"), labels)]

    def part(self, call: Call, now: float) -> Response:
        """Handle GET, PUT and PATCH of ``ephemeralcontainers`` and ``resize``, which change nothing else."""
        entry = self._objects.existing(call)
        if call.verb == "get":
            return Response(200, self._reader.view(call, now).one(entry))
        new = self._wanted(call, entry)
        limited = _ephemeral if call.subresource == "ephemeralcontainers" else _resized
        changed = self._objects.update(call, entry, limited(entry.copy(), new))
        return Response(200, self._reader.view(call, now).one(changed))

    def _wanted(self, call: Call, entry: Entry) -> Obj:
        if call.verb == "update":
            return read_object(call.type, call.request.body, call.request.content_type)
        form = patch_kind(call)
        copied = private(call.type, entry)
        return applied(call, copied) if form == APPLY else patched(call, form, copied)


def _bindable(call: Call, pod: Obj, meta: Obj) -> None:
    found = pod["metadata"]
    if meta.get("uid") and meta["uid"] != found["uid"]:
        raise conflict(call.type, call.name, uid_mismatch(call, meta["uid"], found["uid"]))
    if meta.get("resourceVersion") and meta["resourceVersion"] != found["resourceVersion"]:
        raise modified(call.type, call.name)
    spec = pod.get("spec") or {}
    why = ""
    if "deletionTimestamp" in found:
        why = f"pod {call.name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {call.name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {call.name} has non-empty .spec.schedulingGates"
    if why:
        message = f'Operation cannot be fulfilled on pods/binding "{call.name}": {why}'
        raise ApiError(409, "Conflict", message, {"name": call.name, "kind": "pods/binding"})


def _bound(pod: Obj, node: str, meta: Obj, now: str) -> Obj:
    pod["spec"]["nodeName"] = node
    for field in ("annotations", "labels"):
        if meta.get(field):
            pod["metadata"][field] = {**(pod["metadata"].get(field) or {}), **meta[field]}
    status = pod.setdefault("status", {})
    status.pop("nominatedNodeName", None)
    others = [one for one in status.get("conditions") or () if one.get("type") != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    status["conditions"] = [*others, scheduled]
    return pod


def _ended(pod: Obj) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _disrupted(budget: Obj) -> ApiError:
    name = budget["metadata"]["name"]
    status = budget.get("status") or {}
    detail = (
        f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods and has "
        f"{status.get('currentHealthy', 0)} currently"
    )
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    causes = [{"reason": "DisruptionBudget", "message": detail}]
    return ApiError(429, "TooManyRequests", message, {"causes": causes})


def covers(selector: Any, labels: Obj) -> bool:
    """Return True if a label selector (``matchLabels``, ``matchExpressions``) matches; None matches
    nothing.
    """
    return selector is not None and label_selector(selector)(labels)


def _ephemeral(pod: Obj, new: Obj) -> Obj:
    """Return the pod with the ephemeral containers of a new one, and with its preconditions."""
    wanted = (new.get("spec") or {}).get("ephemeralContainers")
    spec = {name: value for name, value in pod["spec"].items() if name != "ephemeralContainers"}
    pod["spec"] = {**spec, "ephemeralContainers": wanted} if wanted else spec
    return _guarded(pod, new)


def _resized(pod: Obj, new: Obj) -> Obj:
    """Return the pod with the resources of a new one, and with its preconditions.

    With other containers it is the new spec as it is, which is refused then (``dropNonResizeUpdates``
    of ``registry/core/pod/strategy.go``).
    """
    old = pod["spec"]
    wanted = new.get("spec") or {}
    parts = {}
    for part in ("containers", "initContainers"):
        before = old.get(part) or []
        after = wanted.get(part) or []
        if [one["name"] for one in before] != [one.get("name") for one in after]:
            parts[part] = after
        elif before:
            parts[part] = [
                {**one, "resources": other.get("resources") or {}} for one, other in zip(before, after, strict=True)
            ]
    pod["spec"] = {**old, **parts}
    if "resources" in wanted or "resources" in old:
        pod["spec"]["resources"] = wanted.get("resources")
    return _guarded(pod, new)


def _guarded(pod: Obj, new: Obj) -> Obj:
    for name in ("resourceVersion", "uid"):
        pod["metadata"][name] = new["metadata"].get(name)
    return pod
