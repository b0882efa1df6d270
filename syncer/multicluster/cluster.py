"""A cluster as controllers see it: a live client, and caches of the resources that they read and
watch.
"""

import contextlib
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from syncer.api import selectors
from syncer.api.errors import NotConnected, NotFound, SyncerError
from syncer.api.objects import Json, Key, Obj, Resource, key_of
from syncer.clusters.api_requests import PatchKind, Propagation
from syncer.clusters.client import Client, Objs, target_of
from syncer.clusters.connection import ConnectionSettings, client
from syncer.multicluster.arguments import must_be
from syncer.multicluster.cluster_caches import Caches
from syncer.multicluster.cluster_informer import ClusterInformer
from syncer.multicluster.cluster_options import ClusterOptions, Part
from syncer.multicluster.errors import NotSynced
from syncer.multicluster.recorder import Recorder

_NOBODY = "; nobody runs this cluster: add it to a Manager or a ClusterCache, or run it"


class Cluster:
    """A cluster with a name of its owner's choice.

    :meth:`get`, :meth:`list` and :meth:`by_index` read from caches; ``client`` reads from the API
    server. Writes go to the API server, and their result is in the caches before they return, so
    that the next decision is made from it.

    Caches are filled while :meth:`run` runs, and a cache is created when it is first asked for,
    before or while the cluster runs. An unreachable cluster is retried for ever, by itself: it
    delays no other cluster, and its cached reads fail with :class:`NotSynced` instead of waiting::

        cluster = Cluster("eu", ConnectionSettings(context="eu"))
        pods = cluster.informer(PODS)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(cluster.run())
            print(await cluster.list(PODS, namespace="shop"))
    """

    def __init__(
        self,
        name: str,
        connection: ConnectionSettings | Client,
        *,
        options: ClusterOptions | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Create a cluster, in a running event loop; nothing is sent yet.

        Raises:
            ConfigError: The kubeconfig can't be used.
            TypeError: The connection is none, such as the name of a context.
        """
        owns_client = False
        if isinstance(connection, ConnectionSettings):
            owns_client = True
            if environ is None:
                environ = os.environ
            connection = client(connection, name=name, environ=environ)
        must_be(connection, Client, what=f"the connection of cluster {name}")
        self.name = name
        self._caches = Caches(name, connection, options or ClusterOptions())
        self._caches.owns_client = owns_client

    def alias(self, name: str) -> "Cluster":
        """Return the same cluster by another name, with the same client and the same caches."""
        alias = object.__new__(Cluster)
        alias.name = name
        alias._caches = self._caches
        return alias

    def is_alias_of(self, other: "Cluster") -> bool:
        """Return True if both share their client and caches."""
        return self._caches is other._caches

    # -- life --------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Fill the caches and keep them up to date, until cancelled.

        It can be called again afterwards: everything is listed again, and subscribers are notified
        of all that changed or was deleted meanwhile.

        Raises:
            NotRunning: The cluster, or an alias of it, runs already.
            TooLarge: Its objects take more memory than ``max_bytes`` of the options. They stay in
                the caches, so make another cluster to begin again.
        """
        await self._caches.run()

    @property
    def is_running(self) -> bool:
        """True while :meth:`run` runs, for this cluster or an alias of it."""
        return self._caches.tasks is not None

    @property
    def is_kept(self) -> bool:
        """True if a :class:`~syncer.multicluster.ClusterCache` runs it while it is connected, and
        nobody else may.
        """
        return self._caches.is_kept

    def keep(self) -> None:
        """Leave it to a cache of clusters to run it."""
        self._caches.is_kept = True

    @property
    def error(self) -> SyncerError | None:
        """The reason why a cache isn't filled or kept up to date at present; None if all are."""
        return self._caches.error()

    @property
    def client(self) -> Client:
        """The client of the API server. Its writes are seen by the caches when the watch shows
        them.
        """
        return self._caches.client

    @property
    def owns_client(self) -> bool:
        """True if the client was made with the cluster, from settings: no other code has it."""
        return self._caches.owns_client

    def use(self, client: Client) -> None:
        """Replace the client, such as after a change of address; the caches are kept.

        The former client isn't closed.

        Raises:
            NotRunning: The cluster runs, with the former client.
        """
        self._caches.use(client)

    def recorder(self, component: str) -> Recorder:
        """Return what records Events about the cluster's objects: always the same for a component,
        in the event loop.

        They are written while :meth:`run` runs.
        """
        return self._caches.recorder(component)

    async def close(self) -> None:
        """Close the connections of the client."""
        await self.client.close()

    # -- reads from caches -------------------------------------------------------------------------

    def informer(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        selector: str | Mapping[str, Json] = "",
        fields: str = "",
    ) -> ClusterInformer:
        """Return the cache of a resource: always the same for the same arguments.

        ``namespace`` (``""``: that of the options, or all), ``selector`` (a LabelSelector, or the
        same as text) and ``fields`` (a field selector) limit it on the API server.

        Raises:
            ValueError: The cluster is limited to another namespace, or the selector is none.
            TypeError: The resource is none, such as its name: :meth:`resource` finds it by that.
        """
        must_be(resource, Resource, what=f"what is read from cluster {self.name}")
        if not isinstance(selector, str):
            selectors.must_be_selector(selector, "selector")
            selector = selectors.written(selector)
        return self._caches.informer(resource, Part(namespace, selector, fields))

    def forget(self, informer: ClusterInformer) -> None:
        """Remove a cache that is no longer read.

        Raises:
            NotRunning: The cluster runs, and fills it.
        """
        self._caches.forget(informer)

    def forget_unused(self) -> None:
        """Remove the caches that have no index and no subscriber.

        Raises:
            NotRunning: The cluster runs, and fills them.
        """
        for informer in self.informers():
            if not informer.is_used:
                self.forget(informer)

    def informers(self) -> Sequence[ClusterInformer]:
        """Return the caches that exist."""
        return self._caches.all()

    def add_index(
        self,
        resource: Resource,
        name: str,
        values: Callable[[Obj], Iterable[Hashable]],
    ) -> None:
        """Index the objects of a resource by the values of a function, such as fields or labels; at
        any time.

        A resource without a cache is listed by each :meth:`by_index`.
        """
        if self._is_live(resource):
            self._caches.live_indexes[resource, name] = values
        else:
            self.informer(resource).add_index(name, values)

    async def get(self, resource: Resource, key: Key) -> Obj | None:
        """Return a private copy of a cached object; None if there is none.

        Raises:
            NotSynced: The cache isn't filled within ``sync_timeout``.
            NotConnected: It isn't filled, and the cluster has lost its connection.
            ValueError: The cluster is limited to another namespace.
        """
        self._caches.limited(resource, key.namespace)
        if self._is_live(resource):
            with contextlib.suppress(NotFound):
                return await self.client.get(resource, key)
            return None
        return (await self._synced(resource)).get(key)

    async def list(
        self, resource: Resource, *, namespace: str = "", selector: Mapping[str, Json] | None = None
    ) -> Sequence[Obj]:
        """Return private copies of the cached objects, of a namespace (``""``: all) and of a
        LabelSelector (``{"matchLabels": …, "matchExpressions": …}``).

        Raises:
            NotSynced: The cache isn't filled within ``sync_timeout``.
            NotConnected: It isn't filled, and the cluster has lost its connection.
            ValueError: The cluster is limited to another namespace, or the selector is none.
        """
        selectors.must_be_selector(selector, "selector")
        limited = self._caches.limited(resource, namespace)
        if self._is_live(resource):
            written = selectors.written(selector) if selector else ""
            return await self.client.list(resource, namespace=limited, selector=written)
        return (await self._synced(resource)).objects(namespace=namespace, selector=selector)

    async def by_index(self, resource: Resource, index: str, value: Hashable) -> Sequence[Obj]:
        """Return private copies of the cached objects that have a value in an index.

        Raises:
            NotSynced: The cache isn't filled within ``sync_timeout``.
            NotConnected: It isn't filled, and the cluster has lost its connection.
            KeyError: There is no such index.
        """
        if self._is_live(resource):
            values = self._caches.live_indexes[resource, index]
            return [obj for obj in await self.list(resource) if value in values(obj)]
        return (await self._synced(resource)).indexed(index, value)

    async def resource(self, name: str) -> Resource:
        """Return the resource of a name such as ``pods`` or ``foos.example.org``, as served by the
        API server.

        A name that isn't known is looked up again, so a CustomResourceDefinition may come later.

        Raises:
            NotFound: The API server has no such resource.
            ClusterError: It can't be asked.
        """
        known = self._caches.discovery
        try:
            return known.find(name)
        except NotFound:
            await known.refresh()
            return known.find(name)

    # -- writes ------------------------------------------------------------------------------------

    async def create(
        self,
        resource: Resource,
        obj: Obj,
        *,
        subresource: str = "",
        key: Key | None = None,
    ) -> Obj:
        """Create an object as :meth:`Client.create` does; without a subresource, the caches have it
        before this returns.

        Raises:
            AlreadyExists: Another object has the name.
            ClusterError: The request failed.
        """
        if subresource:
            return await self.client.create(resource, obj, subresource=subresource, key=key)
        with self._caches.writing(resource, target_of(obj)) as wrote:
            created = await self.client.create(resource, obj)
            wrote(created)
        return created

    async def replace(self, resource: Resource, obj: Obj, *, subresource: str = "") -> Obj:
        """Replace an object or its status; with a ``resourceVersion`` in it only that version.

        Raises:
            Conflict: The object has another version.
            ClusterError: The request failed.
        """
        with self._caches.writing(resource, key_of(obj)) as wrote:
            replaced = await self.client.replace(resource, obj, subresource=subresource)
            wrote(replaced)
        return replaced

    async def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Obj | Objs,
        *,
        kind: PatchKind = "merge",
        subresource: str = "",
        force: bool = False,
    ) -> Obj:
        """Patch an object or its status, and return it, mostly without ``managedFields``.

        ``force`` takes fields from other managers, for ``apply`` only.

        Raises:
            ClusterError: The request failed.
        """
        with self._caches.writing(resource, key) as wrote:
            changed = await self.client.patch(
                resource,
                key,
                patch,
                kind=kind,
                subresource=subresource,
                force=force,
            )
            wrote(changed)
        return changed

    async def delete(
        self,
        resource: Resource,
        key: Key,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace: int | None = None,
        propagation: Propagation | None = None,
    ) -> Obj | None:
        """Delete an object, with uid and version as preconditions if given.

        Return None if it is gone at once, and the object if it is only marked.

        Raises:
            NotFound: There is no such object.
            Conflict: The object has another uid or version.
            ClusterError: The request failed.
        """
        with self._caches.writing(resource, key) as wrote:
            marked = await self.client.delete(
                resource,
                key,
                uid=uid,
                resource_version=resource_version,
                grace=grace,
                propagation=propagation,
            )
            wrote(marked)
        return marked

    def _is_live(self, resource: Resource) -> bool:
        return resource in self._caches.options.disable_for

    @property
    def _is_lost(self) -> bool:
        """True while a cache of clusters that keeps it isn't connected to it."""
        return self.is_kept and not self.is_running

    async def _synced(self, resource: Resource) -> ClusterInformer:
        informer = self.informer(resource)
        seconds = self._caches.options.sync_timeout
        if seconds is None:
            seconds = self.client.timeout
        if self._is_lost:
            seconds = 0.0
        hint = _NOBODY
        if self.is_running:
            hint = ""
        try:
            await informer.wait_synced(seconds, hint=hint)
        except NotSynced as error:
            if self._is_lost:
                why = f"{informer} aren't listed, and it isn't connected"
                raise NotConnected(why, cluster=self.name) from error
            raise
        return informer

    def __str__(self) -> str:
        return self.name
