"""Admission: the namespace must be active, and a pod gets its service account."""

from random import Random
from typing import Any

from kube_envtest.apiserver.errors import ApiError, details, forbidden, not_found
from kube_envtest.apiserver.metadata import generated
from kube_envtest.apiserver.request import Call
from kube_envtest.apiserver.resources import CORE
from kube_envtest.apiserver.storage import Storage, key_of

Obj = dict[str, Any]

NAMESPACES = next(rt for rt in CORE if rt.plural == "namespaces")
TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"

#: Lifetime of a pod's token, in seconds. Source: ``TokenExpirationSeconds`` of the ServiceAccount
#: admission.
TOKEN_SECONDS = 3607


class Plugins:
    """The admission plugins NamespaceLifecycle, ServiceAccount and Priority; ``prepare`` has the
    others.

    ``service_accounts`` False disables the second, like
    ``--disable-admission-plugins=ServiceAccount``.
    """

    def __init__(self, storage: Storage, chance: Random, *, service_accounts: bool) -> None:
        self._storage = storage
        self._chance = chance
        self._service_accounts = service_accounts

    def create(self, call: Call, obj: Obj) -> Obj:
        """Return the object to store.

        Raises:
            ApiError: NotFound or Forbidden.
        """
        namespace = obj["metadata"].get("namespace")
        if namespace:
            self._living(call, obj, namespace)
        if call.type.table_name != "/pods":
            return obj
        spec = {**obj.get("spec", {})}
        if self._service_accounts and "kubernetes.io/config.mirror" not in (obj["metadata"].get("annotations") or {}):
            spec = self._account(call, obj, spec)
        spec = self._priority(call, obj, spec)
        return {**obj, "spec": spec}

    def _priority(self, call: Call, obj: Obj, spec: Obj) -> Obj:
        """Set the priority of the named priority class, or of the default one."""
        name = spec.get("priorityClassName")
        classes = [entry.obj for entry in self._storage.scan("scheduling.k8s.io/priorityclasses")]
        for one in classes:
            if one["metadata"]["name"] == name if name else one.get("globalDefault"):
                policy = one.get("preemptionPolicy", "PreemptLowerPriority")
                chosen = {"priority": one["value"], "preemptionPolicy": policy}
                return {**spec, **chosen, "priorityClassName": one["metadata"]["name"]}
        if name:
            why = f"no PriorityClass with name {name} was found"
            raise forbidden(call.type, obj["metadata"]["name"], why)
        return spec

    def _living(self, call: Call, obj: Obj, namespace: str) -> None:
        found = self._storage.get("/namespaces", key_of("", namespace))
        if found is None:
            raise not_found(NAMESPACES, namespace)
        if "deletionTimestamp" in found.obj["metadata"]:
            raise _terminating(call, obj["metadata"]["name"], namespace)

    def _account(self, call: Call, obj: Obj, spec: Obj) -> Obj:
        namespace = obj["metadata"]["namespace"]
        name = spec.get("serviceAccountName") or "default"
        found = self._storage.get("/serviceaccounts", key_of(namespace, name))
        if found is None:
            why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
            raise forbidden(call.type, obj["metadata"]["name"], why)
        spec |= {"serviceAccountName": name, "serviceAccount": name}
        wanted = spec.get("automountServiceAccountToken", found.obj.get("automountServiceAccountToken", True))
        if not spec.get("imagePullSecrets") and found.obj.get("imagePullSecrets"):
            spec["imagePullSecrets"] = found.obj["imagePullSecrets"]
        return self._with_token(spec) if wanted is not False else spec

    def _with_token(self, spec: Obj) -> Obj:
        volume = generated("kube-api-access-", self._chance)
        mount = {"name": volume, "readOnly": True, "mountPath": TOKEN_FOLDER}
        changed = False
        for kind in ("initContainers", "containers"):
            if kind in spec:
                spec[kind] = [_mounted(container, mount) for container in spec[kind]]
                changed = changed or any(mount in (one.get("volumeMounts") or ()) for one in spec[kind])
        if changed:
            spec["volumes"] = [*(spec.get("volumes") or ()), _token_volume(volume)]
        return spec


def _mounted(container: Obj, mount: Obj) -> Obj:
    mounts = container.get("volumeMounts") or []
    if any(other.get("mountPath") == TOKEN_FOLDER for other in mounts):
        return container
    return {**container, "volumeMounts": [*mounts, mount]}


def _token_volume(name: str) -> Obj:
    certificate = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
        {"configMap": certificate},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": 420}}


def _terminating(call: Call, name: str, namespace: str) -> ApiError:
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    message = f'{call.type.full_name} "{name}" is forbidden: {why}'
    causes = [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
    ]
    return ApiError(403, "Forbidden", message, {**details(call.type, name), "causes": causes})
