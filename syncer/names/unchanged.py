"""Names and namespaces are unchanged: a single virtual cluster on a host."""

from functools import lru_cache
from typing import ClassVar

from syncer.api import REMEMBERED, Key, Resource
from syncer.names.joined import SEPARATOR
from syncer.names.reserved import move_away, move_back
from syncer.names.single_namespace import is_remembered


class Unchanged:
    """Leaves keys unchanged, except those that exist on every host.

    These are in :mod:`syncer.names.reserved`.

    A second virtual cluster on the same host would use the same host keys. The first keeps its
    objects; requests of the second are parked, since the existing objects don't bear its mark.
    """

    #: No name depends on the host namespace, so none must be configured.
    needs_namespace: ClassVar[bool] = False
    #: A tenant's names are the host's, so it is configured only for a tenant that is trusted.
    needs_trust: ClassVar[bool] = True

    def __init__(self, *, cluster: str, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self._suffix = SEPARATOR + cluster
        self._remembered = lru_cache(REMEMBERED)(self._translate)

    def to_host(self, resource: Resource, key: Key) -> Key:
        """Return the same key.

        Raises:
            Refused: The name is reserved and has no room for the suffix.
        """
        translate = self._remembered if is_remembered(key) else self._translate
        return translate(resource, key)

    def to_virtual(self, resource: Resource, key: Key) -> Key | None:
        """Return the same key; None for the host's own reserved objects."""
        name = move_back(resource, key, self._suffix)
        if not name:
            return None
        return Key(key.namespace, name)

    def host_namespaces(self) -> tuple[str, ...] | None:
        """Return None: copies can be in any namespace of the virtual cluster."""
        return None

    def _translate(self, resource: Resource, key: Key) -> Key:
        return Key(key.namespace, move_away(resource, key, self._suffix))
