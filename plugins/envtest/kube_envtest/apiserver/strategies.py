"""The strategies of kinds before an object is stored: status kept separate, generation counted.

Source: the ``strategy.go`` of each resource in kubernetes/pkg/registry.
"""

from collections.abc import Mapping
from typing import Any

from kube_envtest.apiserver import defaults, prepare, validation
from kube_envtest.apiserver.definitions import definition_problems
from kube_envtest.apiserver.errors import bad_request
from kube_envtest.apiserver.patches import same
from kube_envtest.apiserver.resources import ResourceType
from kube_envtest.apiserver.services import Allocator, carried
from kube_envtest.apiserver.validation_metadata import check_metadata, check_metadata_update

Obj = dict[str, Any]

#: The initial status of new objects without one from ``prepare``; the client's status is dropped.
FIRST_STATUS: Mapping[str, Obj] = {
    "networking.k8s.io/ingresses": {"loadBalancer": {}},
    "apps/deployments": {},
    "apps/replicasets": {"replicas": 0},
    "apps/statefulsets": {"replicas": 0, "availableReplicas": 0},
    "apps/daemonsets": {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    },
    "batch/cronjobs": {},
    "policy/poddisruptionbudgets": {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    },
    "/resourcequotas": {},
}

#: Resources that keep the status on creation.
STATUS_AT_CREATE = {"/nodes"}

CRD = "CustomResourceDefinition"

#: Resources whose generation counts changes of all contents rather than of a spec.
WHOLE_CONTENT = {"discovery.k8s.io/endpointslices", "scheduling.k8s.io/priorityclasses"}

NOT_COUNTED = {"kind", "apiVersion", "metadata", "status"}


class Strategies:
    """Prepares objects in two steps: ``decoded`` before field ownership is computed, the others
    after it.

    ``allocator`` allocates the addresses of Services.
    """

    def __init__(self, allocator: Allocator) -> None:
        self._allocator = allocator

    def decoded(self, rt: ResourceType, new: Obj, old: Obj | None, subresource: str = "") -> Obj:
        """Return the object pruned and with its defaults; a custom resource's status only if the
        endpoint may set it.
        """
        if not rt.custom:
            return _read(rt, new)
        if subresource == "status" and old is not None:
            new = _with({**old, "metadata": new["metadata"]}, "status", new)
        elif "status" in rt.subresources:
            new = _with(new, "status", old or {})
        return new if rt.schema is None else rt.schema.default(new)

    def create(self, rt: ResourceType, obj: Obj) -> Obj:
        """Return the object to store."""
        if not rt.custom:
            obj = prepare.prepare(rt.kind, _first_status(rt, obj))
        if rt.generation:
            obj["metadata"]["generation"] = 1
        if rt.table_name == "/namespaces":
            return _namespace(obj)
        return _with_stored_versions(obj, {}) if rt.kind == CRD else obj

    def allocate(self, rt: ResourceType, obj: Obj, old: Obj | None, *, dry_run: bool = False) -> Obj:
        """Return the object with values that are allocated last; a dry run allocates none.

        Raises:
            ApiError: Invalid.
        """
        if rt.table_name != "/services":
            return obj
        return self._allocator.would_allocate(obj) if dry_run else self._allocator.allocate(obj, old)

    def update(self, rt: ResourceType, new: Obj, old: Obj, subresource: str) -> Obj:
        """Return the object to store, with the old values of fields that the endpoint can't change."""
        if subresource == "status":
            return _status_only(rt, new, old)
        if rt.table_name == "/services":
            new = carried(new, old)
        if not rt.custom:
            new = prepare.prepare_update(rt.kind, new)
        if "status" in rt.subresources:
            new = _with(new, "status", old)
        if rt.table_name == "/namespaces":
            if subresource != "finalize":
                new = _with(new, "spec", old)
            new = _namespace(new)
        if rt.kind == CRD:
            new = _with_stored_versions(new, old)
        if rt.generation and not same(_counted(rt, new), _counted(rt, old)):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        return new

    def check_create(self, rt: ResourceType, obj: Obj) -> list[Obj]:
        """Return the causes why an object can't be created."""
        if rt.custom:
            problems = [*check_metadata(rt.kind, obj["metadata"]), *_schema_problems(rt, obj)]
        else:
            problems = [
                *validation.validate_create(rt.kind, obj),
                *(definition_problems(obj) if rt.kind == CRD else ()),
            ]
        return [problem.cause for problem in problems]

    def check_update(self, rt: ResourceType, old: Obj, new: Obj, subresource: str) -> list[Obj]:
        """Return the causes why an object can't be changed this way."""
        if rt.custom:
            problems = [*check_metadata_update(old["metadata"], new["metadata"]), *_schema_problems(rt, new)]
        elif subresource == "status":
            problems = validation.validate_status_update(rt.kind, old, new)
        elif subresource in ("ephemeralcontainers", "resize"):
            problems = validation.validate_part_update(subresource, old, new)
        elif subresource:
            problems = []
        else:
            problems = validation.validate_update(rt.kind, old, new)
            problems += definition_problems(new) if rt.kind == CRD else []
        return [problem.cause for problem in problems]

    def removed(self, rt: ResourceType, obj: Obj) -> None:
        """Release the allocations of a deleted object."""
        if rt.table_name == "/services":
            self._allocator.release(obj)


def _schema_problems(rt: ResourceType, obj: Obj) -> list[Any]:
    return [] if rt.schema is None else list(rt.schema.validate(obj))


def _read(rt: ResourceType, obj: Obj) -> Obj:
    """Return the object as decoded into a Go struct.

    Raises:
        ApiError: BadRequest: it can't be decoded.
    """
    try:
        read: Obj = defaults.default(rt.kind, obj)
    except defaults.DecodeError as problem:
        raise bad_request(str(problem)) from None
    return read


def _first_status(rt: ResourceType, obj: Obj) -> Obj:
    if "status" not in rt.subresources or rt.table_name in STATUS_AT_CREATE:
        return obj
    first = FIRST_STATUS.get(rt.table_name)
    kept = {key: value for key, value in obj.items() if key != "status"}
    return kept if first is None else {**kept, "status": dict(first)}


def _namespace(obj: Obj) -> Obj:
    metadata = obj["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    return obj


def _with_stored_versions(crd: Obj, old: Obj) -> Obj:
    """Return a definition whose status lists the currently stored version."""
    status = old.get("status") or {}
    stored = list(status.get("storedVersions") or ())
    versions = (crd.get("spec") or {}).get("versions") or ()
    stored += [one["name"] for one in versions if one.get("storage") and one["name"] not in stored]
    return {**crd, "status": {**status, "storedVersions": stored}}


def _status_only(rt: ResourceType, new: Obj, old: Obj) -> Obj:
    metadata = new["metadata"]
    if rt.custom:
        managed = metadata.get("managedFields")
        metadata = dict(old["metadata"]) | ({"managedFields": managed} if managed else {})
    elif rt.group == "apps" and rt.kind != "StatefulSet":
        metadata = _with(metadata, "labels", old["metadata"])
    return _with({**old, "metadata": metadata}, "status", new)


def _with(obj: Obj, field: str, source: Obj) -> Obj:
    """Return ``obj`` with a field of ``source``, or without it."""
    rest = {key: value for key, value in obj.items() if key != field}
    if field in source:
        rest[field] = source[field]
    return rest


def _counted(rt: ResourceType, obj: Obj) -> Any:
    if not (rt.custom or rt.table_name in WHOLE_CONTENT):
        return obj.get("spec")
    skip = NOT_COUNTED if "status" in rt.subresources or not rt.custom else NOT_COUNTED - {"status"}
    return {key: value for key, value in obj.items() if key not in skip}
