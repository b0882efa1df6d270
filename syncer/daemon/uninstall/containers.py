"""Objects of others that would be deleted with ours: custom resources with their CRD, everything in
a Namespace.
"""

from collections.abc import Collection

from syncer.api.errors import ClusterError, NotFound
from syncer.api.objects import Key, Obj, Resource, key_of, labels_of, uid_of
from syncer.daemon.uninstall.inventory import Item, Lister, is_namespace, owners_of
from syncer.resources.definitions.versions import custom_resource
from syncer.resources.endpointslices import MANAGED_BY
from syncer.resources.kinds import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    EVENTS,
    NAMESPACES,
    SECRETS,
    SERVICE_ACCOUNTS,
)

#: Kinds whose objects contain others.
CONTAINERS = frozenset({str(CUSTOM_RESOURCE_DEFINITIONS), str(NAMESPACES)})
#: Objects that every namespace has by default.
_ALWAYS = frozenset(
    {
        (str(CONFIG_MAPS), "kube-root-ca.crt"),
        (str(CONFIG_MAPS), "openshift-service-ca.crt"),
        (str(SERVICE_ACCOUNTS), "default"),
    }
)
#: Kinds whose objects only report about others.
_REPORTS = frozenset({str(EVENTS), "events.events.k8s.io", "endpoints"})


async def others_in(lister: Lister, item: Item, ours: Collection[str]) -> str:
    """Return which objects of others would be deleted with an object, in words; ``""`` if none.

    ``ours`` are the uids of objects that are deleted before it. Objects that can't be listed count
    as others'.
    """
    try:
        if str(item.resource) == str(CUSTOM_RESOURCE_DEFINITIONS):
            return await _in_definition(lister, item, ours)
        if str(item.resource) == str(NAMESPACES):
            return await _in_namespace(lister, item, ours)
    except ClusterError as error:
        return f"it can't be checked for objects of others: {error}"
    return ""


async def _in_definition(lister: Lister, item: Item, ours: Collection[str]) -> str:
    try:
        crd = await lister.clusters[item.side].get(item.resource, item.key)
    except NotFound:
        return ""
    if not any(version.get("served") for version in crd["spec"]["versions"]):
        return "none of its versions is served, so its objects can't be listed"
    resource = custom_resource(crd)
    async for obj in lister.objects(item.side, resource):
        if uid_of(obj) not in ours:
            return f"there is the {resource.kind} {key_of(obj)}, which is not ours"
    return ""


async def _in_namespace(lister: Lister, item: Item, ours: Collection[str]) -> str:
    for resource in lister.kinds(item.side):
        if not resource.namespaced or str(resource) in _REPORTS:
            continue
        async for obj in lister.objects(item.side, resource, item.key.name):
            if uid_of(obj) not in ours and not _goes_by_itself(resource, obj):
                name = Key("", obj["metadata"]["name"])
                return f"it holds the {resource.kind} {name}, which is not ours"
    return ""


def _goes_by_itself(resource: Resource, obj: Obj) -> bool:
    """Return True if an object belongs to another object in the namespace, or is in every one."""
    metadata = obj["metadata"]
    if (str(resource), metadata["name"]) in _ALWAYS:
        return True
    if not all(map(is_namespace, owners_of(obj))):
        return True
    if str(resource) == str(SECRETS):
        return bool(obj.get("type") == "kubernetes.io/service-account-token")
    return MANAGED_BY in labels_of(obj)
