"""CustomResourceDefinitions: their conditions, the resources that they define, and their cleanup."""

from collections.abc import Iterator
from typing import Any

from kube_envtest.apiserver import schemas
from kube_envtest.apiserver.clock import timestamp
from kube_envtest.apiserver.controllers import Now
from kube_envtest.apiserver.deletion import CLEANUP, DeleteOptions, Deleter
from kube_envtest.apiserver.objects import Objects
from kube_envtest.apiserver.resources import GROUPED, Registry, ResourceType
from kube_envtest.apiserver.storage import Entry, Event, Storage

Obj = dict[str, Any]

CRDS: ResourceType = next(rt for rt in GROUPED if rt.kind == "CustomResourceDefinition")


class Definitions:
    """Serves defined resources, updates the definition's status, and cleans up after it."""

    def __init__(self, storage: Storage, registry: Registry, objects: Objects, deleter: Deleter, now: Now) -> None:
        self._storage = storage
        self._registry = registry
        self._objects = objects
        self._deleter = deleter
        self._now = now
        self._served: dict[str, list[ResourceType]] = {}
        self._specs: dict[str, Obj] = {}

    def react(self, table: str, event: Event) -> None:
        """Serve, change or withdraw resources as their definition changes."""
        if table == CRDS.table_name:
            if event.type == "DELETED":
                self._withdraw(event.entry.obj["metadata"]["name"])
            else:
                self._follow(event.entry.key)
        elif event.type == "DELETED":
            group, _, plural = table.partition("/")
            self._cleaned(f"/{plural}.{group}")

    def _follow(self, key: str) -> None:
        entry = self._storage.get(CRDS.table_name, key)
        if entry is None:
            return
        if "deletionTimestamp" in entry.obj["metadata"]:
            self._clean(entry)
            return
        status = self._status(entry.obj)
        if status != entry.obj.get("status"):
            changed = {**entry.obj, "metadata": dict(entry.obj["metadata"]), "status": status}
            self._storage.update(CRDS.table_name, key, changed)
        elif self._accepted(entry.obj):
            self._serve(entry.obj)

    def _accepted(self, crd: Obj) -> bool:
        conditions = (crd.get("status") or {}).get("conditions") or ()
        return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

    def _serve(self, crd: Obj) -> None:
        name = crd["metadata"]["name"]
        if self._specs.get(name) == crd["spec"]:
            return
        self._withdraw(name)
        self._specs[name] = crd["spec"]
        self._served[name] = types = list(types_of(crd))
        for rt in types:
            self._registry.add(rt)
            self._storage.table(rt.table_name)

    def _withdraw(self, name: str) -> None:
        """Stop serving a resource as before; the real server ends its watches then, some of them a
        second later.
        """
        self._specs.pop(name, None)
        for rt in self._served.pop(name, ()):
            self._registry.remove(rt)
            self._storage.table(rt.table_name).end_watches()

    def _status(self, crd: Obj) -> Obj:
        names = dict(crd["spec"]["names"])
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")
        taken = self._conflict(crd)
        before = crd.get("status") or {}
        conditions = _conditions(before.get("conditions") or [], taken, timestamp(self._now()))
        return {
            "conditions": conditions,
            "acceptedNames": {} if taken else names,
            "storedVersions": before.get("storedVersions") or [],
        }

    def _conflict(self, crd: Obj) -> str:
        """Return which of the names another resource of the group has."""
        spec = crd["spec"]
        mine = crd["metadata"]["name"]
        for name, types in self._served.items():
            if name != mine and types and types[0].group == spec["group"] and types[0].kind == spec["names"]["kind"]:
                return f'"{spec["names"]["kind"]}" is already in use'
        return ""

    def _clean(self, entry: Entry) -> None:
        """Delete the objects of a resource that ends."""
        rt = next((one for one in types_of(entry.obj) if one.api_version == one.stored_api_version), None)
        if rt is not None:
            for found in list(self._storage.scan(rt.table_name)):
                if "deletionTimestamp" not in found.obj["metadata"]:
                    self._deleter.delete(rt, found, DeleteOptions(now=self._now()))
        self._cleaned(entry.key)

    def _cleaned(self, key: str) -> None:
        entry = self._storage.get(CRDS.table_name, key)
        if entry is None or "deletionTimestamp" not in entry.obj["metadata"]:
            return
        spec = entry.obj["spec"]
        if self._storage.table(f"{spec['group']}/{spec['names']['plural']}").entries:
            return
        left = [name for name in entry.obj["metadata"].get("finalizers") or () if name != CLEANUP]
        if not left:
            self._objects.remove(CRDS, entry)
        elif left != entry.obj["metadata"].get("finalizers"):
            meta = {**entry.obj["metadata"], "finalizers": left}
            self._storage.update(CRDS.table_name, key, {**entry.obj, "metadata": meta})


def storage_version(crd: Obj) -> str:
    """Return the version in which instances are stored."""
    return next((one["name"] for one in crd["spec"]["versions"] if one.get("storage")), "")


def types_of(crd: Obj) -> Iterator[ResourceType]:
    """Yield the resource in each served version."""
    spec = crd["spec"]
    names = crd["spec"]["names"]
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        subresources = version.get("subresources") or {}
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema:
            schema = schemas.compile(schema)
        yield ResourceType(
            spec["group"],
            version["name"],
            names["kind"],
            names["plural"],
            namespaced=spec["scope"] == "Namespaced",
            singular=names.get("singular") or names["kind"].lower(),
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=tuple(sorted(subresources)),
            generation=True,
            unconditional_update=False,
            custom=True,
            storage_version=storage_version(crd),
            schema=schema or None,
            columns=tuple(version.get("additionalPrinterColumns") or ()),
            selectable=tuple(one["jsonPath"] for one in version.get("selectableFields") or ()),
            scale_paths=subresources.get("scale") or {},
        )


def _conditions(before: list[Obj], taken: str, now: str) -> list[Obj]:
    """Return NamesAccepted and Established; an unchanged condition keeps its time."""
    if taken:
        accepted = ("False", "KindConflict", taken)
        established = ("False", "NotAccepted", "not all names are accepted")
    else:
        accepted = ("True", "NoConflicts", "no conflicts found")
        established = ("True", "InitialNamesAccepted", "the initial names have been accepted")
    known = {one["type"]: one for one in before}
    wanted = {"NamesAccepted": accepted, "Established": established}
    found = [one for one in before if one["type"] not in wanted]
    for kind, (status, reason, message) in wanted.items():
        old = known.get(kind)
        since = old["lastTransitionTime"] if old and old["status"] == status else now
        condition = {"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}
        found.append(condition)
    return found
