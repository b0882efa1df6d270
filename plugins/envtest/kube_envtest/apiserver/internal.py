"""Writes by the server itself, and by a test through it: the same steps, without authorisation."""

from collections.abc import Callable
from typing import Any

from kube_envtest.apiserver.authority import SYSTEM
from kube_envtest.apiserver.clock import timestamp
from kube_envtest.apiserver.objects import Objects
from kube_envtest.apiserver.request import JSON, Call, Request
from kube_envtest.apiserver.resources import Registry, ResourceType
from kube_envtest.apiserver.storage import Entry, Storage, key_of

Obj = dict[str, Any]


#: The contents of kube-root-ca.crt without TLS: a valid form, but useless.
NO_CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"


class Internal:
    """Writes as ``system:apiserver``; ``certificate`` is stored in kube-root-ca.crt."""

    def __init__(self, storage: Storage, registry: Registry, objects: Objects, now: Callable[[], float]) -> None:
        self._storage = storage
        self._registry = registry
        self._objects = objects
        self._now = now
        self.certificate = NO_CERTIFICATE

    def call(self, rt: ResourceType, verb: str, namespace: str, name: str, subresource: str = "") -> Call:
        """Return a call as if it came from a client."""
        request = Request(verb.upper(), rt.path(namespace, name), {}, b"", JSON, JSON, SYSTEM, "kube-apiserver")
        if not rt.namespaced:
            namespace = ""
        return Call(request, rt, verb, namespace, name, subresource, timestamp(self._now()))

    def ensure(self, plural: str, obj: Obj) -> None:
        """Create a built-in object of the core group unless it exists, or its namespace doesn't."""
        rt = self._registry.find("", "v1", plural)
        namespace = obj["metadata"].get("namespace", "")
        if rt is None or (namespace and not self._alive(namespace)):
            return
        self.ensure_of(rt, obj)

    def ensure_of(self, rt: ResourceType, obj: Obj) -> None:
        """Create an object unless it exists."""
        namespace = obj["metadata"].get("namespace", "")
        name = obj["metadata"]["name"]
        if self._storage.get(rt.table_name, key_of(namespace, name)) is None:
            self._objects.create(self.call(rt, "create", namespace, name), obj)

    def publish(self, certificate: str) -> None:
        """Store the certificate in every kube-root-ca.crt."""
        self.certificate = certificate
        rt = self._registry.find("", "v1", "configmaps")
        if rt is None:
            return
        for entry in list(self._storage.scan(rt.table_name)):
            if entry.key.endswith("/kube-root-ca.crt"):
                self.put(rt, {**entry.obj, "data": {"ca.crt": certificate}})

    def _alive(self, namespace: str) -> bool:
        found = self._storage.get("/namespaces", key_of("", namespace))
        return found is not None and "deletionTimestamp" not in found.obj["metadata"]

    def put(self, rt: ResourceType, obj: Obj) -> Entry:
        """Create or replace an object as it is given, including its status."""
        namespace = obj["metadata"].get("namespace", "")
        name = obj["metadata"].get("name", "")
        found = self._storage.get(rt.table_name, key_of(namespace, name)) if name else None
        if found is None:
            entry = self._objects.create(self.call(rt, "create", namespace, ""), obj)
        else:
            call = self.call(rt, "put", namespace, name)
            entry = self._objects.update(call, found, _current(obj, found), check=False)
        is_there = self._storage.get(rt.table_name, entry.key) is not None  # it may have lost its last finalizer
        if is_there and "status" in obj and "status" in rt.subresources:
            name = entry.obj["metadata"]["name"]
            whole = {**entry.obj, "status": obj["status"]}
            entry = self._objects.update(self.call(rt, "put", namespace, name, "status"), entry, whole)
        return entry


def _current(obj: Obj, found: Entry) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": found.obj["metadata"]["resourceVersion"]}}
