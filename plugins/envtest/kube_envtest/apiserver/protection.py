"""The controllers that remove the protecting finalizers of unused volumes and claims."""

from collections.abc import Iterable

from kube_envtest.apiserver.objects import Objects, emptied
from kube_envtest.apiserver.resources import Registry
from kube_envtest.apiserver.storage import Entry, Event, Storage, key_of

CLAIMS = "/persistentvolumeclaims"
VOLUMES = "/persistentvolumes"
PODS = "/pods"
FINALIZERS = {CLAIMS: "kubernetes.io/pvc-protection", VOLUMES: "kubernetes.io/pv-protection"}


class Protection:
    """The controllers pvc-protection and pv-protection."""

    def __init__(self, storage: Storage, registry: Registry, objects: Objects) -> None:
        self._storage = storage
        self._registry = registry
        self._objects = objects

    def react(self, table: str, event: Event) -> None:
        """Check objects that are terminating, and the claims of a deleted pod."""
        if table in FINALIZERS and event.type == "MODIFIED":
            self._release(table, event.entry.key)
        elif table == PODS and event.type == "DELETED":
            namespace = event.entry.obj["metadata"]["namespace"]
            for name in claims_of(event.entry):
                self._release(CLAIMS, key_of(namespace, name))

    def _release(self, table: str, key: str) -> None:
        entry = self._storage.get(table, key)
        if entry is None or "deletionTimestamp" not in entry.obj["metadata"] or self._used(table, entry):
            return
        before = entry.obj["metadata"].get("finalizers") or []
        after = [name for name in before if name != FINALIZERS[table]]
        if after == before:
            return
        meta = {**entry.obj["metadata"], "finalizers": after}
        obj = {**entry.obj, "metadata": {name: value for name, value in meta.items() if value != []}}
        rt = self._registry.find("", "v1", table.lstrip("/"))
        if rt is not None and emptied(obj, entry.obj):
            self._objects.remove(rt, entry, obj)
        else:
            self._storage.update(table, key, obj)

    def _used(self, table: str, entry: Entry) -> bool:
        if table == VOLUMES:
            return (entry.obj.get("status") or {}).get("phase") == "Bound"
        meta = entry.obj["metadata"]
        return any(meta["name"] in claims_of(pod) for pod in self._storage.scan(PODS, meta["namespace"]))


def claims_of(pod: Entry) -> Iterable[str]:
    """Return the names of the claims that a pod uses."""
    volumes = (pod.obj.get("spec") or {}).get("volumes") or ()
    return [one["persistentVolumeClaim"]["claimName"] for one in volumes if "persistentVolumeClaim" in one]
