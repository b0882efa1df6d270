"""Names that the host has already, for translators that leave names as they are.

Every namespace has a ServiceAccount ``default`` and a ConfigMap ``kube-root-ca.crt`` of its own cluster. A virtual
cluster's must stand beside them, above all the ConfigMap: a Pod that got the host's certificate would not trust its
own API server. So a reserved name gets a suffix, and, for that to be injective, so does a reserved name with the
suffix (once more), and so on: as in the hotel where every guest moves up one room.
"""

from collections.abc import Mapping

from syncer.api import Key, Refused, Resource
from syncer.names.forms import form_of

#: By kind: the names that every namespace of a host has. OpenShift publishes a second bundle of certificates.
IN_EVERY_NAMESPACE: Mapping[str, frozenset[str]] = {
    "configmaps": frozenset({"kube-root-ca.crt", "openshift-service-ca.crt"}),
    "serviceaccounts": frozenset({"default"}),
}

#: By kind: the objects that a cluster has for its own API server.
OF_THE_CLUSTER: Mapping[str, frozenset[Key]] = {
    kind: frozenset({Key("default", "kubernetes")})
    for kind in ("services", "endpoints", "endpointslices.discovery.k8s.io")
}


def move_away(resource: Resource, key: Key, suffix: str) -> str:
    """Return the name of a virtual object in a namespace that has the reserved names.

    Raises Refused where a reserved name has no room for one suffix more.
    """
    if not _concerned(resource, key, suffix):
        return key.name
    moved, form = key.name + suffix, form_of(resource)
    if len(moved) > form.limit:
        raise Refused(f"no room for the suffix {suffix} within {form.limit} characters", path="metadata.name")
    return moved


def move_back(resource: Resource, key: Key, suffix: str) -> str | None:
    """Return the virtual name for a name on the host; None for the host's own reserved one."""
    if not _concerned(resource, key, suffix):
        return key.name
    return key.name.removesuffix(suffix) if key.name.endswith(suffix) else None


def _concerned(resource: Resource, key: Key, suffix: str) -> bool:
    kind = str(resource)
    name = key.name
    while name.endswith(suffix):
        name = name.removesuffix(suffix)
    return name in IN_EVERY_NAMESPACE.get(kind, ()) or Key(key.namespace, name) in OF_THE_CLUSTER.get(kind, ())
