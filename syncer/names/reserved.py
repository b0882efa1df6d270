"""Names that exist in every host namespace, for translators that leave names unchanged.

Every namespace has a ServiceAccount ``default`` and a ConfigMap ``kube-root-ca.crt`` of its own
cluster. A virtual cluster's must stand beside them, above all the ConfigMap: a Pod that got the
host's certificate would not trust its own API server. So a reserved name gets a suffix. For that to
be injective, a reserved name with the suffix gets it once more, and so on, as in Hilbert's hotel,
where every guest moves up a room.
"""

from collections.abc import Mapping

from syncer.api import Key, Refused, Resource
from syncer.names.forms import form_of

#: Names that exist in every namespace of a host, by kind. OpenShift publishes a second bundle of
#: certificates.
IN_EVERY_NAMESPACE: Mapping[str, frozenset[str]] = {
    "configmaps": frozenset({"kube-root-ca.crt", "openshift-service-ca.crt"}),
    "serviceaccounts": frozenset({"default"}),
}

#: The objects of a cluster for its own API server, by kind.
OF_THE_CLUSTER: Mapping[str, frozenset[Key]] = {
    kind: frozenset({Key("default", "kubernetes")})
    for kind in ("services", "endpoints", "endpointslices.discovery.k8s.io")
}


def move_away(resource: Resource, key: Key, suffix: str) -> str:
    """Return the host name of a virtual object in a namespace that has the reserved names.

    Raises:
        Refused: The name is reserved and has no room for another suffix.
    """
    if not _concerned(resource, key, suffix):
        return key.name
    moved = key.name + suffix
    limit = form_of(resource).limit
    if len(moved) > limit:
        raise Refused(
            f"no room for the suffix {suffix} within {limit} characters",
            path="metadata.name",
        )
    return moved


def move_back(resource: Resource, key: Key, suffix: str) -> str | None:
    """Return the virtual name of a host name; None for the host's own reserved name."""
    if not _concerned(resource, key, suffix):
        return key.name
    if not key.name.endswith(suffix):
        return None
    return key.name.removesuffix(suffix)


def _concerned(resource: Resource, key: Key, suffix: str) -> bool:
    """Return True if the name is a reserved one, with the suffix any number of times."""
    kind = str(resource)
    name = key.name
    while name.endswith(suffix):
        name = name.removesuffix(suffix)
    if name in IN_EVERY_NAMESPACE.get(kind, ()):
        return True
    return Key(key.namespace, name) in OF_THE_CLUSTER.get(kind, ())
