"""A controller that keeps a label, an annotation or a default on objects that others make."""

import copy
from collections.abc import Callable

from syncer.api.objects import Obj, Resource, is_deleting
from syncer.multicluster.changes import write_changes
from syncer.multicluster.cluster import Cluster
from syncer.multicluster.controller import Controller, ControllerOptions
from syncer.multicluster.requests import Request
from syncer.multicluster.watch_options import EVERYTHING, WatchOptions


class Decorator:
    """Changes objects as a function says, in each cluster that it watches.

    ``decorate`` gets a private copy, may change it, and returns it; nothing is written if it is as
    before::

        def labelled(pod: Obj) -> Obj:
            pod["metadata"].setdefault("labels", {})["seen"] = "yes"
            return pod

        decorator = Decorator(PODS, labelled)
        decorator.watch(cluster)
        manager.add(decorator.controller)
    """

    def __init__(
        self,
        resource: Resource,
        decorate: Callable[[Obj], Obj],
        *,
        options: ControllerOptions | None = None,
    ) -> None:
        self.resource = resource
        self._decorate = decorate
        self.controller = Controller(self.reconcile, options)

    def watch(self, cluster: Cluster, options: WatchOptions = EVERYTHING) -> None:
        """Decorate the objects of a cluster that fulfil the conditions."""
        self.controller.watch_object(cluster, self.resource, options)

    async def reconcile(self, request: Request) -> None:
        """Decorate an object, unless it is being deleted.

        Raises:
            ClusterError: It can't be written; it is retried.
            ClusterNotFound: Its cluster has left.
        """
        cluster = self.controller.cluster(request.cluster)
        obj = await cluster.get(self.resource, request.key)
        if obj is not None and not is_deleting(obj):
            await write_changes(cluster, self.resource, obj, self._decorate(copy.deepcopy(obj)))
