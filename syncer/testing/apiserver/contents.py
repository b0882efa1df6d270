"""What a test reads from and puts into a server, without a request."""

from typing import Any

from syncer.api import Key, Resource
from syncer.testing.apiserver.assembly import Parts
from syncer.testing.apiserver.clock import Clock
from syncer.testing.apiserver.resources import ResourceType
from syncer.testing.apiserver.storage import key_of

Obj = dict[str, Any]


class Contents:
    """The helpers of a server that are not async: everything they return is a copy."""

    def __init__(self, parts: Parts, clock: Clock) -> None:
        self._parts = parts
        self._clock = clock

    def _type(self, resource: str | Resource) -> ResourceType:
        if isinstance(resource, Resource):
            group, version, plural = resource.group, resource.version, resource.plural
        else:
            plural, _, group = resource.partition(".")
            versions = self._parts.registry.versions(group)
            version = versions[0] if versions else ""
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

    def get(self, resource: str | Resource, key: str | Key) -> Obj | None:
        """A copy of one object, ``get("pods", "shop/web")``; None where there is none."""
        rt, found = self._type(resource), Key.parse(key) if isinstance(key, str) else key
        entry = self._parts.storage.get(rt.table_name, key_of(found.namespace, found.name))
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

    def delete(self, resource: str | Resource, key: str | Key) -> None:
        """Delete an object at once, whatever its grace period; finalizers hold it as ever."""
        rt, found = self._type(resource), Key.parse(key) if isinstance(key, str) else key
        self._parts.remove(rt, key_of(found.namespace, found.name), self._clock())
        self._parts.controllers.run()
