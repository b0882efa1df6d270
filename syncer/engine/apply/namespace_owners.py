"""Put the host namespace of an object into it as its controller, just before it is created.

Programs that empty nodes evict a Pod with a controller, and no controller of the host adopts it. A
garbage collector deletes an object whose owners are gone, so the owner has to be one that can't go
before the object does: of all objects on the host that is its namespace alone. For the same reason
the uid must be that of the namespace as it is.
"""

import asyncio
from collections.abc import Callable

from cachetools import TTLCache

from syncer.api.errors import NotFound
from syncer.api.objects import Key, Obj, uid_of
from syncer.clusters.client import SideClient
from syncer.engine.reconcile.policies.host_namespaces import HostNamespaces
from syncer.resources.kinds import NAMESPACES

#: Seconds for which the uid of a namespace counts that isn't watched. Objects that are created with
#: the uid of a namespace that was replaced meanwhile are deleted at once by the garbage collector.
KNOWN_SECONDS = 60.0
#: The most such namespaces whose uid is kept. They are named in the configuration.
KNOWN_NAMESPACES = 256


class NamespaceOwners:
    """The host namespaces of a virtual cluster as owners of objects."""

    __slots__ = ("_homes", "_host", "_reading", "_uids")

    def __init__(self, host: SideClient, homes: HostNamespaces, clock: Callable[[], float]) -> None:
        self._host = host
        self._homes = homes
        self._uids: TTLCache[str, str] = TTLCache(KNOWN_NAMESPACES, KNOWN_SECONDS, timer=clock)
        self._reading = asyncio.Lock()

    async def with_controller(self, obj: Obj) -> Obj:
        """Return an object to create, with its namespace as its controller.

        It is returned as it is if it has a controller, such as by a patch of the operator's, or if
        its namespace is missing, so that the API server refuses to create it.

        Raises:
            ClusterError: The namespace can't be read.
        """
        metadata = obj["metadata"]
        owners = metadata.get("ownerReferences") or []
        if any(owner.get("controller") for owner in owners):
            return obj
        namespace = metadata["namespace"]
        uid = self._homes.uid(namespace) or await self._read(namespace)
        if not uid:
            return obj
        controller = {
            "apiVersion": NAMESPACES.api_version,
            "kind": NAMESPACES.kind,
            "name": namespace,
            "uid": uid,
            "controller": True,
        }
        return {**obj, "metadata": {**metadata, "ownerReferences": [*owners, controller]}}

    def forget(self, namespace: str) -> None:
        """Read a namespace again before the next object is created in it: it may be another one."""
        self._uids.pop(namespace, None)

    async def _read(self, namespace: str) -> str:
        """Return the uid of a namespace that isn't watched; ``""`` if it is missing.

        It is read once, however many objects are created at the same time.
        """
        async with self._reading:
            known = self._uids.get(namespace)
            if known is not None:
                return known
            try:
                found = await self._host.get(NAMESPACES, Key("", namespace))
            except NotFound:
                return ""
            self._uids[namespace] = uid_of(found)
            return uid_of(found)
