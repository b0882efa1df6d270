"""The names that vcluster gives to copies.

For a host with dashboards, policies and scripts that depend on these names.
"""

import hashlib
from functools import lru_cache

from syncer.api import REMEMBERED, Key, Resource
from syncer.names.joined import SEPARATOR, split
from syncer.names.single_namespace import is_remembered

#: The longest name of vcluster, whatever the kind.
_LIMIT = 63

#: vcluster's own Service stands for ``default/kubernetes`` of the virtual cluster.
_API_SERVER = Key("default", "kubernetes")
_API_SERVER_KINDS = ("services", "endpoints")


class VclusterCompat:
    """The algorithm of vcluster for a single host namespace, including its faults.

    **Not injective**, unlike the other translators: ``a-x-b`` in ``c`` and ``a`` in ``b-x-c`` share
    a name, and names over 63 characters differ in 40 bits of SHA-256 only. If two objects share a
    host key, the later one is parked with that reason. A name may also be invalid for its kind, as
    in vcluster: the host refuses the object then.

    ``kube-root-ca.crt`` is no exception here: vcluster's ``vcluster-kube-root-ca.crt-x-NAME`` is
    for its other algorithms, which leave names of ConfigMaps as they are, and would be one for all
    namespaces.
    """

    def __init__(self, *, cluster: str, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self._remembered = lru_cache(REMEMBERED)(self._translate)

    @staticmethod
    def name_problem(cluster: str) -> str:
        """Return why a virtual cluster can't have this name; ``""`` if it can.

        In a host namespace of several, ``a`` in ``b`` of ``x-c``, or of ``d-x-c``, has the name of
        an object of ``c``, which is another tenant's.
        """
        if SEPARATOR in cluster or cluster.startswith(SEPARATOR.lstrip("-")):
            why = "with the names of vcluster-compat its copies could be taken for another one's"
            return f"{why}: choose a name that neither has {SEPARATOR} in it nor begins with x-."
        return ""

    def to_host(self, resource: Resource, key: Key) -> Key:
        """Return the host key that vcluster uses; never refuses."""
        translate = self._remembered if is_remembered(key) else self._translate
        return translate(resource, key)

    def to_virtual(self, resource: Resource, key: Key) -> Key | None:
        """Return the virtual key, if the name can be read in a single way."""
        if not resource.namespaced or key.namespace != self.namespace:
            return None
        # Remove the suffix after splitting the whole: it may overlap with the text before it.
        parts = split(key.name)
        inner = parts[: -self.cluster.count(SEPARATOR) - 1]
        if len(inner) != 2:
            return None
        found = Key(inner[1], inner[0])
        if self.to_host(resource, found) != key:
            return None
        return found

    def host_namespaces(self) -> tuple[str, ...] | None:
        """Return the host namespace."""
        return (self.namespace,)

    def _translate(self, resource: Resource, key: Key) -> Key:
        if not resource.namespaced:
            name = "-".join(("vcluster", key.name, "x", self.namespace, "x", self.cluster))
            return Key("", _shortened(name))
        if key == _API_SERVER and str(resource) in _API_SERVER_KINDS:
            return Key(self.namespace, self.cluster)
        name = "-".join((key.name, "x", key.namespace, "x", self.cluster))
        return Key(self.namespace, _shortened(name))


def _shortened(text: str) -> str:
    """Shorten a name exactly as vcluster does (``SafeConcatName``)."""
    if len(text) <= _LIMIT:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    return f"{text[:52]}-{digest}".replace(".-", "-")
