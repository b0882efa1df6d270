"""What must hold on the live API servers before something is deleted."""

from syncer.api.errors import Forbidden, Missing, Refused
from syncer.api.objects import Key, Obj, Resource, is_deleting
from syncer.clusters.client import Cluster
from syncer.resources.kinds import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES


async def must_be_unused(cluster: Cluster, resource: Resource, key: Key, *, users: Resource) -> None:
    """Refuse a deletion for as long as there is an object that would go with it."""
    try:
        found = [item async for page in cluster.list_pages(users, limit=1) for item in page.items[:1]]
    except Missing as error:
        why = f"the {cluster.side} cluster doesn't serve {users} now, so nobody knows whether there are any"
        raise Refused(f"{resource.kind} {key} is not deleted: {why}", reason="InUse") from error
    if found:
        why = f"{resource.kind} {key} is not deleted while the {cluster.side} cluster has any {users}"
        raise Refused(f"{why}; delete those first", reason="InUse")


async def must_have_home(host: Cluster, namespace: str, *, since: str, mark: str) -> None:
    """Raise Refused where a host namespace is gone, on its way out, or was made later than a copy that was in it.

    What went with its namespace was not deleted for itself, and nothing of the tenant's goes with it. ``mark`` is the
    annotation that says that there was a copy.
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
    """Raise Refused where the CRD of a kind is gone on the host, is on its way out, or was made later than a copy.

    All objects go with it. Without the right to see it only that it is gone can be told. ``mark`` as in
    :func:`must_have_home`.
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
    """Why what was in a container then may have gone with it; ``""``: it has not."""
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
