"""What must hold on the live API servers before something is deleted."""

from syncer.api.errors import Missing, Refused
from syncer.api.objects import Key, Resource, is_deleting
from syncer.clusters.client import Cluster
from syncer.resources.kinds import NAMESPACES


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
        state = "is being deleted" if is_deleting(home) else ""
        if not state and home["metadata"].get("creationTimestamp", "") > since:
            state = "was made anew"
    if state:
        why = f"the copy is gone, and the host namespace {namespace} {state}: nothing is deleted with that"
        way_out = f"to have the copy made again, take the annotation {mark} off this object"
        raise Refused(f"{why}; {way_out}", reason="HostNamespaceGone")
