"""Write an object as a function has changed it, if it has; finalizers."""

from syncer.api.errors import NotFound
from syncer.api.objects import Obj, Resource, key_of
from syncer.clusters.client import Client
from syncer.multicluster.cluster import Cluster
from syncer.translate.alike import same

_STATUS = "status"


async def write_changes(
    cluster: Cluster | Client,
    resource: Resource,
    before: Obj,
    after: Obj,
) -> Obj:
    """Replace an object where it differs, its status by the subresource if it has one, and return
    it.

    Nothing is written if both are equal. The ``resourceVersion`` of ``after`` must be that of
    ``before``, so that no change of others is lost.

    Raises:
        Conflict: The object has changed meanwhile.
        ClusterError: The request failed.
    """
    if not same(_without_status(before), _without_status(after)):
        status = after.get(_STATUS)
        written = await cluster.replace(resource, after)
        before = written
        after = {**written, _STATUS: status} if status is not None else written
    if not same(before.get(_STATUS), after.get(_STATUS)):
        try:
            return await cluster.replace(resource, after, subresource=_STATUS)
        except NotFound:  # its status is a field like others, or the object is gone
            return await cluster.replace(resource, after)
    return after


def has_finalizer(obj: Obj, finalizer: str) -> bool:
    """Return True if an object has a finalizer."""
    return finalizer in _finalizers(obj)


async def add_finalizer(
    cluster: Cluster | Client,
    resource: Resource,
    obj: Obj,
    finalizer: str,
) -> Obj:
    """Add a finalizer to this very version of an object, and return it; nothing is written if it
    has it.

    Raises:
        Conflict: The object has changed meanwhile.
        ClusterError: The request failed.
    """
    if has_finalizer(obj, finalizer):
        return obj
    return await _set_finalizers(cluster, resource, obj, [*_finalizers(obj), finalizer])


async def remove_finalizer(
    cluster: Cluster | Client,
    resource: Resource,
    obj: Obj,
    finalizer: str,
) -> Obj:
    """Remove a finalizer from this very version of an object, and return it; those of others stay.

    Raises:
        Conflict: The object has changed meanwhile.
        ClusterError: The request failed.
    """
    if not has_finalizer(obj, finalizer):
        return obj
    return await _set_finalizers(
        cluster,
        resource,
        obj,
        [each for each in _finalizers(obj) if each != finalizer],
    )


async def _set_finalizers(
    cluster: Cluster | Client,
    resource: Resource,
    obj: Obj,
    finalizers: list[str],
) -> Obj:
    version = obj["metadata"]["resourceVersion"]
    patch = {"metadata": {"finalizers": finalizers, "resourceVersion": version}}
    return await cluster.patch(resource, key_of(obj), patch)


def _finalizers(obj: Obj) -> list[str]:
    return list(obj["metadata"].get("finalizers") or ())


def _without_status(obj: Obj) -> Obj:
    return {name: value for name, value in obj.items() if name != _STATUS}
