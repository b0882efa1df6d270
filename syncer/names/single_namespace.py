"""A single host namespace for a virtual cluster, with names like ``name-x-namespace-x-cluster``.

The default.
"""

from functools import lru_cache

from syncer.api import LONGEST_LABEL, LONGEST_NAME, Key, Resource
from syncer.names.forms import form_of
from syncer.names.joined import join, split

#: Number of cached translations: those in use, not all. A reconcile translates the same few names
#: several times. functools' cache answers in 0.2 µs, cachetools' in 0.4 µs; a readable name takes
#: 1.4 µs to compute and a hashed one 5 µs. They take some 5 MB at most.
REMEMBERED = 4096
#: Longest namespace and name together whose translation is cached, in bytes. API servers accept 63
#: and 253, but a reference may contain any text, which would be cached long after its object is gone.
LONGEST = LONGEST_LABEL + LONGEST_NAME


def is_remembered(key: Key) -> bool:
    """Return True if the translation of a key may be cached: it isn't long."""
    namespace, name = key
    if len(namespace) + len(name) > LONGEST:
        return False
    # Of other texts, a character takes up to four bytes.
    return (namespace.isascii() and name.isascii()) or len(f"{namespace}{name}".encode(errors="replace")) <= LONGEST


class SingleNamespace:
    """Translates ``db`` in ``shop`` of the virtual cluster ``vc`` to ``db-x-shop-x-vc`` in the host
    namespace.

    Cluster-scoped objects share their names with the whole host, so their names contain the host
    namespace, too: ``gold-x-vc-x-vc-ns``. A name is hashed if it would be too long or ambiguous;
    see :mod:`syncer.names.joined` for why no two objects share a name.
    """

    def __init__(self, *, cluster: str, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace
        self._remembered = lru_cache(REMEMBERED)(self._translate)

    def to_host(self, resource: Resource, key: Key) -> Key:
        """Return the host key; never refuses."""
        translate = self._remembered if is_remembered(key) else self._translate
        return translate(resource, key)

    def to_virtual(self, resource: Resource, key: Key) -> Key | None:
        """Return the virtual key, if the name is a readable one of this virtual cluster."""
        tail = (self.cluster,) if resource.namespaced else (self.cluster, self.namespace)
        parts = split(key.name)
        head = parts[: -len(tail)]
        if parts[len(head) :] != tail or not 1 <= len(head) <= 2:
            return None
        found = Key(head[1] if len(head) == 2 else "", head[0])
        return found if self.to_host(resource, found) == key else None

    def host_namespaces(self) -> tuple[str, ...] | None:
        """Return the host namespace."""
        return (self.namespace,)

    def _translate(self, resource: Resource, key: Key) -> Key:
        parts = (key.name, key.namespace, self.cluster) if key.namespace else (key.name, self.cluster)
        if resource.namespaced:
            return Key(self.namespace, join(parts, form_of(resource)))
        return Key("", join((*parts, self.namespace), form_of(resource)))
