"""Every object under its own namespace and name: one virtual cluster to a host."""

from functools import lru_cache
from typing import ClassVar

from syncer.api import Key, Resource
from syncer.names.joined import SEPARATOR
from syncer.names.reserved import move_away, move_back
from syncer.names.single_namespace import REMEMBERED


class Unchanged:
    """Leaves keys as they are, but for those that every host has already: see :mod:`syncer.names.reserved`.

    With a second virtual cluster on the same host, both would want the same places. The first keeps them; what the
    second wants there is parked, since the objects don't bear its mark.
    """

    #: No name depends on the host namespace, so none has to be configured.
    needs_namespace: ClassVar[bool] = False

    def __init__(self, *, cluster: str, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace
        self._suffix = SEPARATOR + cluster
        self._remembered = lru_cache(REMEMBERED)(self._translate)

    def to_host(self, resource: Resource, key: Key) -> Key:
        """Return the same key. Raises Refused for a reserved name with no room for the suffix."""
        return self._remembered(resource, key)

    def to_virtual(self, resource: Resource, key: Key) -> Key | None:
        """Return the same key; None for the host's own reserved objects."""
        name = move_back(resource, key, self._suffix)
        return Key(key.namespace, name) if name else None

    def host_namespaces(self) -> tuple[str, ...] | None:
        """Not known beforehand: any namespace that the virtual cluster has."""
        return None

    def _translate(self, resource: Resource, key: Key) -> Key:
        return Key(key.namespace, move_away(resource, key, self._suffix))
