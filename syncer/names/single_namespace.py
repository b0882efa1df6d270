"""A single host namespace for a virtual cluster, with names like ``name-x-namespace-x-cluster``.

The default.
"""

from functools import lru_cache

from syncer.api import LONGEST_LABEL, LONGEST_NAME, REMEMBERED, Key, Resource
from syncer.names.forms import form_of
from syncer.names.joined import join, split

# A reconcile translates the same few names several times. functools' cache answers in 0.2 µs,
# cachetools' in 0.4 µs; a readable name takes 1.4 µs to compute and a hashed one 5 µs.

#: Longest namespace and name, together and in bytes, whose translation is cached. API servers
#: accept 63 and 253, but a reference may contain any text, which would be cached long after its
#: object is gone.
LONGEST = LONGEST_LABEL + LONGEST_NAME


def is_remembered(key: Key) -> bool:
    """Return True if the translation of a key may be cached: it isn't long."""
    namespace, name = key
    if len(namespace) + len(name) > LONGEST:
        return False
    if namespace.isascii() and name.isascii():
        return True
    # A character of another text takes up to four bytes.
    return len(f"{namespace}{name}".encode(errors="replace")) <= LONGEST


class SingleNamespace:
    """Translates names into a single host namespace.

    ``db`` in ``shop`` of the virtual cluster ``vc`` becomes ``db-x-shop-x-vc``. Cluster-scoped
    objects share their names with the whole host, so their names contain the host namespace, too:
    ``gold-x-vc-x-vc-ns``. A name is hashed if it would be too long or ambiguous; see
    :mod:`syncer.names.joined` for why no two objects share a name.
    """

    def __init__(self, *, cluster: str, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self._remembered = lru_cache(REMEMBERED)(self._translate)

    def to_host(self, resource: Resource, key: Key) -> Key:
        """Return the host key; never refuses."""
        translate = self._remembered if is_remembered(key) else self._translate
        return translate(resource, key)

    def to_virtual(self, resource: Resource, key: Key) -> Key | None:
        """Return the virtual key, if the name is a readable one of this virtual cluster."""
        tail: tuple[str, ...] = (self.cluster,)
        if not resource.namespaced:
            tail = (self.cluster, self.namespace)
        parts = split(key.name)
        head = parts[: -len(tail)]
        if parts[len(head) :] != tail:
            return None

        if len(head) == 2:
            found = Key(head[1], head[0])
        elif len(head) == 1:
            found = Key("", head[0])
        else:
            return None
        if self.to_host(resource, found) != key:
            return None
        return found

    def host_namespaces(self) -> tuple[str, ...] | None:
        """Return the host namespace."""
        return (self.namespace,)

    def _translate(self, resource: Resource, key: Key) -> Key:
        parts: tuple[str, ...] = (key.name, self.cluster)
        if key.namespace:
            parts = (key.name, key.namespace, self.cluster)
        if resource.namespaced:
            return Key(self.namespace, join(parts, form_of(resource)))
        return Key("", join((*parts, self.namespace), form_of(resource)))
