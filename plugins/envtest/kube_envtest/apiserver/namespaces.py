"""Namespaces: the initial ones, the default contents of each, and their deletion."""

from typing import Any

from kube_envtest.apiserver.clock import timestamp
from kube_envtest.apiserver.controllers import Now
from kube_envtest.apiserver.deletion import DeleteOptions, Deleter
from kube_envtest.apiserver.internal import Internal
from kube_envtest.apiserver.objects import Objects
from kube_envtest.apiserver.resources import Registry
from kube_envtest.apiserver.storage import Entry, Event, Storage, key_of, keys_in

Obj = dict[str, Any]

#: The initial namespaces. Source: the system-namespaces controller of kube-apiserver.
FIRST = ("default", "kube-system", "kube-public", "kube-node-lease")

#: The tables of the default contents of a namespace.
FURNITURE = ("/serviceaccounts", "/configmaps")

#: Conditions of a terminating namespace: type, reason and message while all is well. Source:
#: ``pkg/controller/namespace/deletion`` of kubernetes.
ENDING = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
)


class Namespaces:
    """The namespace controller, and the controller of default service accounts.

    ``furnish`` enables the latter.
    """

    def __init__(
        self,
        storage: Storage,
        registry: Registry,
        objects: Objects,
        deleter: Deleter,
        internal: Internal,
        now: Now,
        *,
        furnish: bool,
    ) -> None:
        self._storage = storage
        self._registry = registry
        self._objects = objects
        self._deleter = deleter
        self._internal = internal
        self._now = now
        self._furnish = furnish

    def react(self, table: str, event: Event) -> None:
        """Create the default contents of a new namespace; continue the deletion of a terminating one."""
        if table == "/namespaces":
            if event.type == "ADDED" and self._furnish:
                self._fill(event.entry.obj["metadata"]["name"])
            elif event.type == "MODIFIED":
                self._finish(event.entry.obj["metadata"]["name"])
        elif event.type == "DELETED" and (namespace := event.entry.obj["metadata"].get("namespace")):
            self._finish(namespace)
            if self._furnish and table in FURNITURE:
                self._fill(namespace)

    def _fill(self, namespace: str) -> None:
        account = {"metadata": {"name": "default", "namespace": namespace}}
        certificate = {
            "metadata": {"name": "kube-root-ca.crt", "namespace": namespace},
            "data": {"ca.crt": self._internal.certificate},
        }
        self._internal.ensure("serviceaccounts", account)
        self._internal.ensure("configmaps", certificate)

    def _finish(self, name: str) -> None:
        found = self._storage.get("/namespaces", key_of("", name))
        if found is None or "deletionTimestamp" not in found.obj["metadata"]:
            return
        left = self._content(name)
        for table, entry in left:
            self._delete(table, entry)
        remaining = sum(1 for _ in self._content(name))
        current = self._storage.get("/namespaces", found.key)
        if current is None:
            return
        if remaining:
            self._report(current, remaining)
        else:
            self._end(current)

    def _content(self, namespace: str) -> list[tuple[str, Entry]]:
        found: list[tuple[str, Entry]] = []
        for table in list(self._storage.tables.values()):
            found.extend((table.name, table.entries[key]) for key in keys_in(table.keys, namespace))
        return found

    def _delete(self, table: str, entry: Entry) -> None:
        current = self._storage.get(table, entry.key)
        rt = next((rt for rt in self._registry.stored() if rt.table_name == table), None)
        if current is None or rt is None or "deletionTimestamp" in current.obj["metadata"]:
            return
        self._deleter.delete(rt, current, DeleteOptions(propagation="Background", now=self._now()))

    def _report(self, entry: Entry, remaining: int) -> None:
        now = timestamp(self._now())
        conditions: list[Obj] = []
        for kind, reason, message in ENDING:
            condition = {
                "type": kind,
                "status": "False",
                "lastTransitionTime": now,
                "reason": reason,
                "message": message,
            }
            if kind == "NamespaceContentRemaining":
                condition["status"] = "True"
                condition["reason"] = "SomeResourcesRemain"
                condition["message"] = f"Some resources are remaining: {remaining} objects"
            conditions.append(condition)
        status = entry.obj.get("status", {})
        if [_reported(one) for one in status.get("conditions") or ()] == [_reported(one) for one in conditions]:
            return
        changed = {**entry.obj, "metadata": dict(entry.obj["metadata"]), "status": {**status, "conditions": conditions}}
        self._storage.update("/namespaces", entry.key, changed)

    def _end(self, entry: Entry) -> None:
        spec = entry.obj.get("spec") or {}
        finalizers = [name for name in spec.get("finalizers") or () if name != "kubernetes"]
        if not finalizers and not entry.obj["metadata"].get("finalizers"):
            self._storage.delete("/namespaces", entry.key)
        elif finalizers != (spec.get("finalizers") or []):
            spec = {"finalizers": finalizers} if finalizers else {}
            changed = {**entry.obj, "metadata": dict(entry.obj["metadata"]), "spec": spec}
            self._storage.update("/namespaces", entry.key, changed)


def _reported(condition: Obj) -> tuple[str, str, str]:
    return condition["type"], condition["status"], condition["message"]
