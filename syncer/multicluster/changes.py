"""Write an object as a function has changed it, if it has."""

from syncer.api.errors import Missing
from syncer.api.objects import Obj, Resource
from syncer.clusters.client import Client
from syncer.multicluster.cluster import Cluster

_STATUS = "status"


async def write_changes(cluster: Cluster | Client, resource: Resource, before: Obj, after: Obj) -> Obj:
    """Replace an object where it differs, its status by the subresource if it has one, and return it.

    Nothing is written if both are equal. The ``resourceVersion`` of ``after`` must be that of
    ``before``, so that no change of others is lost.

    Raises:
        Conflict: The object has changed meanwhile.
        ClusterError: The request failed.
    """
    if _without_status(before) != _without_status(after):
        status = after.get(_STATUS)
        written = await cluster.replace(resource, after)
        before, after = written, {**written, _STATUS: status} if status is not None else written
    if before.get(_STATUS) != after.get(_STATUS):
        try:
            return await cluster.replace(resource, after, subresource=_STATUS)
        except Missing:  # its status is a field like others, or the object is gone
            return await cluster.replace(resource, after)
    return after


def _without_status(obj: Obj) -> Obj:
    return {name: value for name, value in obj.items() if name != _STATUS}
