"""Preconditions on the live API servers before a deletion."""

from syncer.api.errors import Forbidden, Missing, Refused
from syncer.api.objects import Key, Obj, Resource, is_deleting
from syncer.clusters.client import Cluster
from syncer.resources.kinds import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES


async def must_be_unused(cluster: Cluster, resource: Resource, key: Key, *, users: Resource) -> None:
    """Refuse a deletion while there is an object that it would delete, too.

    Raises:
        Refused: There is such an object.
    """
    try:
        found = [item async for page in cluster.list_pages(users, limit=1) for item in page.items[:1]]
    except Missing as error:
        why = f"the {cluster.side} cluster doesn't serve {users} now, so nobody knows whether there are any"
        raise Refused(f"{resource.kind} {key} is not deleted: {why}", reason="InUse") from error
    if found:
        why = f"{resource.kind} {key} is not deleted while the {cluster.side} cluster has any {users}"
        raise Refused(f"{why}; delete those first", reason="InUse")


async def must_have_home(host: Cluster, namespace: str, *, since: str, mark: str) -> None:
    """Check that a host namespace exists, is not terminating, and is older than a copy that was in it.

    An object that went with its namespace was not deleted for itself, so nothing of the tenant's is
    deleted. ``mark`` is the annotation that records the copy.

    Raises:
        Refused: One of these doesn't hold.
    """
    try:
        home = await host.get(NAMESPACES, Key("", namespace))
    except Missing:
        state = "is gone"
    else:
        state = _state(home, since)
    if state:
        why = f"the copy is gone, and the host namespace {namespace} {state}: nothing is deleted with that"
        way_out = f"to have the copy made again, take the annotation {mark} off this object"
        raise Refused(f"{why}; {way_out}", reason="HostNamespaceGone")


async def must_be_served(host: Cluster, resource: Resource, namespace: str, *, since: str, mark: str) -> None:
    """Check that the CRD of a kind exists on the host, is not terminating, and is older than a copy.

    A CRD's objects are deleted with it. Without the right to read CRDs, only a missing one is
    noticed. ``mark`` is the annotation that records the copy.

    Raises:
        Refused: One of these doesn't hold.
    """
    if not resource.group:
        return
    try:
        state = _state(await host.get(CUSTOM_RESOURCE_DEFINITIONS, Key("", str(resource))), since)
    except (Missing, Forbidden):
        state = "" if await _is_served(host, resource, namespace) else "is gone"
    if state:
        why = f"the copy is gone, and the kind {resource} {state} on the host: nothing is deleted with that"
        way_out = f"to have the copy made again when it is back, take the annotation {mark} off this object"
        raise Refused(f"{why}; {way_out}", reason="HostKindGone")


def _state(container: Obj, since: str) -> str:
    """Return why an object may have been deleted with its container; ``""`` if it was not."""
    if is_deleting(container):
        return "is being deleted"
    return "was made anew" if container["metadata"].get("creationTimestamp", "") > since else ""


async def _is_served(host: Cluster, resource: Resource, namespace: str) -> bool:
    try:
        async for _ in host.list_pages(resource, namespace=namespace, limit=1):
            break
    except Missing:
        return False
    return True
