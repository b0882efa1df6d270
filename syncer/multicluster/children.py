"""Objects that have a child in another cluster, which is deleted with its parent.

The garbage collector of Kubernetes knows no owners in other clusters. So a parent bears a
finalizer: it goes when its child has gone. With the names of admiralty's multicluster-controller
(pattern ``gc``) for the finalizer, the label and the annotation, both find each other's objects.
"""

import copy
from collections.abc import Callable, Sequence

from syncer.api.errors import SyncerError
from syncer.api.objects import Obj, Resource, is_deleting, key_of, labels_of, uid_of
from syncer.clusters.client import Client
from syncer.multicluster.changes import (
    add_finalizer,
    has_finalizer,
    remove_finalizer,
    write_changes,
)
from syncer.multicluster.cluster import Cluster
from syncer.multicluster.controller import Controller, ControllerOptions
from syncer.multicluster.references import ControllerReference
from syncer.multicluster.requests import Request
from syncer.multicluster.watch_options import EVERYTHING, WatchOptions

#: The finalizer of a parent, by default and of admiralty's.
FINALIZER = "vsyncer.dev/children"
ADMIRALTY_FINALIZER = "multicluster.admiralty.io/multiclusterForegroundDeletion"
#: The label of a child: the uid of its parent.
PARENT_LABEL = "vsyncer.dev/parent-uid"
ADMIRALTY_PARENT_LABEL = "multicluster.admiralty.io/parent-uid"


class DuplicateChildren(SyncerError):
    """A parent has several children: one of them must be deleted by a person."""


def _unchanged(_: Obj, obj: Obj) -> Obj:
    return obj


def _itself(child: Cluster, _: str) -> Cluster:
    return child


class Children:
    """Keeps a child in a cluster for each parent in another one, and deletes it with its parent.

    ``child_cluster`` returns the name of the child's cluster, always the same for a parent;
    ``make`` a new child, whose name, unless it has one, begins with that of the parent and is
    completed by the API server: names made of a namespace and a name could be those of another
    parent. ``update`` gets parent and child and returns the child as it should be;
    ``update_parent`` gets child and parent and returns the parent, such as with the child's status.
    ``writer`` returns the cluster, or client, that writes children for a parent's cluster, such as
    with an impersonated user. ``finalizer``, ``label`` and the ``annotation`` of the options are
    the keys that parents and children bear::

        def cluster_of(parent: Obj) -> str:
            return "us"

        children = Children(parents=PODS, children=GHOSTS, child_cluster=cluster_of, make=ghost)
        children.watch_parents(eu)
        children.watch_children(us)
        manager.add(children.controller)
    """

    def __init__(
        self,
        *,
        parents: Resource,
        children: Resource,
        child_cluster: Callable[[Obj], str],
        make: Callable[[Obj], Obj],
        update: Callable[[Obj, Obj], Obj] = _unchanged,
        update_parent: Callable[[Obj, Obj], Obj] = _unchanged,
        writer: Callable[[Cluster, str], Cluster | Client] = _itself,
        finalizer: str = FINALIZER,
        label: str = PARENT_LABEL,
        options: ControllerOptions | None = None,
    ) -> None:
        self.parents = parents
        self.children = children
        self._child_cluster = child_cluster
        self._make = make
        self._writer = writer
        self._update = update
        self._update_parent = update_parent
        self._finalizer = finalizer
        self._label = label
        self.controller = Controller(self.reconcile, options)

    def watch_parents(self, cluster: Cluster, options: WatchOptions = EVERYTHING) -> None:
        """Keep children for the parents of a cluster that fulfil the conditions.

        A parent that ceases to fulfil them keeps its child.
        """
        self.controller.watch_object(cluster, self.parents, options)

    def watch_children(self, cluster: Cluster) -> None:
        """Repair children in a cluster, at any change of them."""
        cluster.add_index(
            self.children,
            self._label,
            lambda obj: [labels_of(obj).get(self._label, "")],
        )
        self.controller.watch_owner(cluster, self.children, self.parents)

    async def reconcile(self, request: Request) -> None:
        """Bring the child of a parent in step.

        Raises:
            DuplicateChildren: It has several.
            ClusterNotFound: The controller doesn't watch children in the child's cluster.
            ClusterError: A request failed.
        """
        cluster = self.controller.cluster(request.cluster)
        parent = await cluster.get(self.parents, request.key)
        if parent is None:
            return
        if is_deleting(parent):
            if has_finalizer(parent, self._finalizer):
                await self._end(cluster, parent)
            return
        parent = await add_finalizer(cluster, self.parents, parent, self._finalizer)
        child_cluster = self.controller.cluster(self._child_cluster(parent))
        child = await self._child(child_cluster, parent)
        if child is None:
            child = await self._create(child_cluster, cluster, parent)
        elif not is_deleting(child):
            changed = self._update(parent, copy.deepcopy(child))
            writer = self._writer(child_cluster, cluster.name)
            child = await write_changes(writer, self.children, child, changed)
        await write_changes(
            cluster,
            self.parents,
            parent,
            self._update_parent(child, copy.deepcopy(parent)),
        )

    async def _create(self, child_cluster: Cluster, cluster: Cluster, parent: Obj) -> Obj:
        child = self._make(copy.deepcopy(parent))
        metadata = dict(child.get("metadata") or {})
        if not metadata.get("name"):
            metadata.setdefault("generateName", f"{parent['metadata']['name']}-")
        metadata["labels"] = {**(metadata.get("labels") or {}), self._label: uid_of(parent)}
        reference = ControllerReference.to(parent, cluster=cluster.name)
        child = reference.put_on(
            {**child, "metadata": metadata},
            annotation=self.controller.options.annotation,
        )
        return await self._writer(child_cluster, cluster.name).create(self.children, child)

    async def _end(self, cluster: Cluster, parent: Obj) -> None:
        """Delete the child; let the parent go if there is none."""
        child_cluster = self.controller.cluster(self._child_cluster(parent))
        child = await self._child(child_cluster, parent)
        if child is None:
            await remove_finalizer(cluster, self.parents, parent, self._finalizer)
        elif not is_deleting(child):
            writer = self._writer(child_cluster, cluster.name)
            await writer.delete(self.children, key_of(child), uid=uid_of(child))

    async def _child(self, cluster: Cluster, parent: Obj) -> Obj | None:
        """Return the child of a parent; None if the API server says that there is none.

        Raises:
            DuplicateChildren: There are several.
        """
        uid = uid_of(parent)
        found: Sequence[Obj] = await cluster.by_index(self.children, self._label, uid)
        if not found:  # the cache may be behind
            found = await cluster.client.list(self.children, selector=f"{self._label}={uid}")
        if len(found) > 1:
            names = ", ".join(sorted(str(key_of(each)) for each in found))
            kind = self.parents.kind
            raise DuplicateChildren(
                f"{kind} {key_of(parent)} has {len(found)} children in {cluster}: {names}",
            )
        return found[0] if found else None
