"""A host namespace for each virtual namespace; names are unchanged."""

from functools import lru_cache

from syncer.api import REMEMBERED, Key, Resource
from syncer.names.forms import LABEL
from syncer.names.joined import SEPARATOR, join, split
from syncer.names.reserved import move_away, move_back
from syncer.names.single_namespace import SingleNamespace, is_remembered


class PerNamespace:
    """Translates each virtual namespace to a host namespace of its own.

    ``db`` in ``shop`` of the virtual cluster ``vc`` becomes ``db`` in ``shop-x-vc-x-vc-ns``. The
    host namespace is named like a cluster-scoped object: by name, cluster, and the cluster's
    own host namespace (hashed if too long or ambiguous). Names that exist in every host namespace
    get the cluster as a suffix: see :mod:`syncer.names.reserved`.
    """

    def __init__(self, *, cluster: str, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self._suffix = SEPARATOR + cluster
        self._without_namespace = SingleNamespace(cluster=cluster, namespace=namespace)
        self._remembered = lru_cache(REMEMBERED)(self._translate)

    def to_host(self, resource: Resource, key: Key) -> Key:
        """Return the host key.

        Raises:
            Refused: The name is reserved and has no room for the suffix.
        """
        translate = self._remembered if is_remembered(key) else self._translate
        return translate(resource, key)

    def to_virtual(self, resource: Resource, key: Key) -> Key | None:
        """Return the virtual key.

        None if the host namespace has no readable name of this virtual cluster.
        """
        if key.namespace in ("", self.namespace):
            found = self._without_namespace.to_virtual(resource, key)
            if found is None or self.to_host(resource, found) != key:
                return None
            return found

        virtual, *tail = split(key.namespace)
        if tail != [self.cluster, self.namespace] or self._namespace(virtual) != key.namespace:
            return None
        name = move_back(resource, key, self._suffix)
        if not name:
            return None
        return Key(virtual, name)

    def host_namespaces(self) -> tuple[str, ...] | None:
        """Return None: each virtual namespace has its own host namespace."""
        return None

    def _translate(self, resource: Resource, key: Key) -> Key:
        if not (key.namespace and resource.namespaced):
            return self._without_namespace.to_host(resource, key)
        return Key(self._namespace(key.namespace), move_away(resource, key, self._suffix))

    def _namespace(self, virtual: str) -> str:
        return join((virtual, self.cluster, self.namespace), LABEL)
