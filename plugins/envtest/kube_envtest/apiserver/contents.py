"""What a test reads from and puts into a server, without a request."""

from typing import Any, Protocol

from kube_envtest.apiserver.assembly import Parts
from kube_envtest.apiserver.clock import Clock
from kube_envtest.apiserver.resources import ResourceType
from kube_envtest.apiserver.storage import key_of

Obj = dict[str, Any]


class Resource(Protocol):
    """A resource as other libraries describe it: any object with these three."""

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
    """The helpers of a server that are not async: everything they return is a copy."""

    def __init__(self, parts: Parts, clock: Clock) -> None:
        self._parts = parts
        self._clock = clock

    def _type(self, resource: str | Resource) -> ResourceType:
        if isinstance(resource, str):
            plural, _, group = resource.partition(".")
            versions = self._parts.registry.versions(group)
            version = versions[0] if versions else ""
        else:
            group, version, plural = resource.group, resource.version, resource.plural
        found = self._parts.registry.find(group, version, plural)
        if found is None:
            raise KeyError(f"no such resource: {resource}; name it as 'pods' or 'deployments.apps'")
        return found

    def resources(self) -> list[str]:
        """The resources of which there is any object, each as :meth:`objects` takes it."""
        named = (name.partition("/")[::2] for name, table in self._parts.storage.tables.items() if table.entries)
        return [f"{plural}.{group}" if group else plural for group, plural in named]

    def objects(self, resource: str | Resource, namespace: str = "") -> list[Obj]:
        """Copies of all objects of a resource (``"pods"``, ``"deployments.apps"``), of one namespace or of all."""
        rt = self._type(resource)
        return [entry.copy() for entry in self._parts.storage.scan(rt.table_name, namespace)]

    def get(self, resource: str | Resource, key: Key) -> Obj | None:
        """A copy of one object, ``get("pods", "shop/web")``; None where there is none."""
        entry = self._parts.storage.get(self._type(resource).table_name, _stored(key))
        return None if entry is None else entry.copy()

    def put(self, obj: Obj) -> Obj:
        """Create or replace an object with its status, and its namespace where that is missing; returns a copy.

        It is defaulted and, when new, validated; an object that is there is replaced even where a client couldn't.
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
        """Delete an object at once, whatever its grace period; finalizers hold it as ever."""
        self._parts.remove(self._type(resource), _stored(key), self._clock())
        self._parts.controllers.run()


def _stored(key: Key) -> str:
    """Return the key under which an object is stored."""
    namespace, name = key.rpartition("/")[::2] if isinstance(key, str) else key
    return key_of(namespace, name)
