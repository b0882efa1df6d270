"""Read and change a server's contents from a test, without a request."""

from typing import Any, Protocol

from kube_envtest.apiserver.assembly import Parts
from kube_envtest.apiserver.clock import Clock
from kube_envtest.apiserver.resources import ResourceType
from kube_envtest.apiserver.storage import key_of

Obj = dict[str, Any]


class Resource(Protocol):
    """A resource of any library: any object with these attributes."""

    @property
    def group(self) -> str:
        """The API group; ``""`` for the core group."""

    @property
    def version(self) -> str:
        """The version within the group, such as ``v1``."""

    @property
    def plural(self) -> str:
        """The name in paths, such as ``configmaps``."""


#: ``"shop/web"``, or namespace and name; the namespace of a cluster-scoped object is ``""``.
Key = str | tuple[str, str]


class Contents:
    """Helpers of a server that are not async; all results are copies."""

    def __init__(self, parts: Parts, clock: Clock) -> None:
        self._parts = parts
        self._clock = clock

    def _type(self, resource: str | Resource) -> ResourceType:
        if isinstance(resource, str):
            plural, _, group = resource.partition(".")
            versions = self._parts.registry.versions(group)
            version = versions[0] if versions else ""
        else:
            group = resource.group
            version = resource.version
            plural = resource.plural
        found = self._parts.registry.find(group, version, plural)
        if found is None:
            raise KeyError(f"no such resource: {resource}; name it as 'pods' or 'deployments.apps'")
        return found

    def resources(self) -> list[str]:
        """Return the resources that have objects, in the form of :meth:`objects`."""
        found = []
        for name, table in self._parts.storage.tables.items():
            if table.entries:
                group, _, plural = name.partition("/")
                if group:
                    plural = f"{plural}.{group}"
                found.append(plural)
        return found

    def objects(self, resource: str | Resource, namespace: str = "") -> list[Obj]:
        """Return copies of the objects of a resource (``"pods"``, ``"deployments.apps"``), in a
        namespace or in all.
        """
        rt = self._type(resource)
        return [entry.copy() for entry in self._parts.storage.scan(rt.table_name, namespace)]

    def get(self, resource: str | Resource, key: Key) -> Obj | None:
        """Return a copy of an object, ``get("pods", "shop/web")``, or None."""
        entry = self._parts.storage.get(self._type(resource).table_name, _stored(key))
        return None if entry is None else entry.copy()

    def put(self, obj: Obj) -> Obj:
        """Create or replace an object with its status, and its namespace if that is missing; return
        a copy.

        It is defaulted and, if new, validated; an existing object is replaced even if a client
        couldn't do so.
        """
        rt = self._parts.registry.by_kind(obj.get("apiVersion", ""), obj.get("kind", ""))
        if rt is None:
            raise KeyError(f"no such kind: {obj.get('apiVersion')} {obj.get('kind')}")
        namespace = obj["metadata"].get("namespace", "")
        if namespace:
            self._parts.internal.ensure("namespaces", {"metadata": {"name": namespace}})
            self._parts.controllers.run()
        entry = self._parts.internal.put(rt, obj)
        self._parts.controllers.run()
        return entry.copy()

    def delete(self, resource: str | Resource, key: Key) -> None:
        """Delete an object at once, whatever its grace period; finalizers still hold it."""
        self._parts.remove(self._type(resource), _stored(key), self._clock())
        self._parts.controllers.run()


def _stored(key: Key) -> str:
    """Return the key under which an object is stored."""
    namespace, name = key.rpartition("/")[::2] if isinstance(key, str) else key
    return key_of(namespace, name)
