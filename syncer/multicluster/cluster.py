"""A cluster as controllers see it: a live client, and caches of the resources that they read and watch."""

import asyncio
import contextlib
import os
import random
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential

from syncer.api import selectors
from syncer.api.errors import ClusterError, Missing, SyncerError, Unreachable
from syncer.api.objects import Json, Key, Obj, Resource, key_of
from syncer.clusters import codec, discovery
from syncer.clusters.api_requests import PatchKind, Propagation
from syncer.clusters.client import Client, Objs, target_of
from syncer.clusters.connection import ConnectionSettings, client
from syncer.engine.cache.reflector import Reflector
from syncer.multicluster.cluster_informer import ClusterInformer, InformerListener
from syncer.multicluster.errors import NotRunning
from syncer.observe.logs import get_logger

#: Seconds between attempts to reach a cluster for the first time: at most the first delay, doubled up to the
#: last, each time a random part of it.
FIRST_ATTEMPT, LAST_ATTEMPT = 0.2, 30.0
#: Part of the resync interval by which it varies, so that caches don't resync together.
RESYNC_JITTER = 0.1
#: Objects of a resync after which other tasks may run.
BREATH = 100
#: Raised for a response that is no object.
_MALFORMED = (codec.DecodeError, AttributeError, KeyError, TypeError)

log = get_logger(__name__)


class Part(NamedTuple):
    """The part of a collection that a cache holds: of a namespace (``""``: all), of labels, of fields."""

    namespace: str = ""
    selector: str = ""
    fields: str = ""


#: Changes an object before it is stored, such as to leave out what nobody reads.
Transform = Callable[[Obj], Obj]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """The options of a cluster.

    ``namespace`` limits the caches of namespaced resources to a namespace: the API server is asked for no
    other, so rights in that namespace are enough. ``sync_timeout`` is the longest time, in seconds, that
    a cached read waits for the first list. Every ``resync`` seconds the subscribers of a cache are shown
    all its objects again; 0 is never.

    ``parts`` limits the caches of some resources further, where no part is asked for. Resources in ``live``
    have no cache: they are read from the API server. Each object is stored as the transform of its resource in
    ``transforms`` leaves it, else ``transform``.
    """

    namespace: str = ""
    sync_timeout: float = 10.0
    resync: float = 0.0
    parts: Mapping[Resource, Part] = field(default_factory=dict)
    live: frozenset[Resource] = frozenset()
    transforms: Mapping[Resource, Transform] = field(default_factory=dict)
    transform: Transform | None = None


class Cluster:
    """A cluster with a name of its owner's choice.

    :meth:`get`, :meth:`list` and :meth:`find` read from caches; ``client`` reads from the API server.
    Writes go to the API server, and their result is in the caches before they return, so that the
    next decision is made from it.

    Caches are filled while :meth:`run` runs, and a cache is created when it is first asked for, before or
    while the cluster runs. An unreachable cluster is retried for ever, by itself: it delays no other cluster,
    and its cached reads fail with :class:`NotSynced` instead of waiting::

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
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """Create a cluster, in a running event loop; nothing is sent yet.

        Raises:
            ConfigError: The kubeconfig can't be used.
        """
        if isinstance(connection, ConnectionSettings):
            connection = client(connection, name=name, environ=environ)
        self.name = name
        self._caches = _Caches(name, connection, options or ClusterOptions())

    def alias(self, name: str) -> "Cluster":
        """Return the same cluster by another name, with the same client and the same caches."""
        alias = object.__new__(Cluster)
        alias.name, alias._caches = name, self._caches
        return alias

    def is_alias_of(self, other: "Cluster") -> bool:
        """Return True if both share their client and caches."""
        return self._caches is other._caches

    # -- life --------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Fill the caches and keep them up to date, until cancelled.

        It can be called again afterwards: everything is listed anew, and subscribers are notified of all that
        changed or was deleted meanwhile.

        Raises:
            NotRunning: The cluster, or an alias of it, runs already.
        """
        await self._caches.run()

    @property
    def is_running(self) -> bool:
        """True while :meth:`run` runs, for this cluster or an alias of it."""
        return self._caches.tasks is not None

    @property
    def is_kept(self) -> bool:
        """True if a :class:`~syncer.multicluster.ClusterCache` runs it while it is connected, and nobody else may."""
        return self._caches.is_kept

    def keep(self) -> None:
        """Leave it to a cache of clusters to run it."""
        self._caches.is_kept = True

    @property
    def error(self) -> SyncerError | None:
        """The reason why a cache isn't filled or kept up to date at present; None if there is none."""
        return self._caches.error()

    @property
    def client(self) -> Client:
        """The client of the API server. Its writes are seen by the caches when the watch shows them."""
        return self._caches.client

    def use(self, client: Client) -> None:
        """Replace the client, such as after a change of address; the caches are kept.

        The former client isn't closed.

        Raises:
            NotRunning: The cluster runs, with the former client.
        """
        self._caches.use(client)

    async def close(self) -> None:
        """Close the connections of the client."""
        await self.client.close()

    # -- reads from caches -------------------------------------------------------------------------

    def informer(
        self, resource: Resource, *, namespace: str = "", selector: str = "", fields: str = ""
    ) -> ClusterInformer:
        """Return the cache of a resource: always the same for the same arguments.

        ``namespace`` (``""``: that of the options, or all), ``selector`` (a label selector as text) and
        ``fields`` (a field selector) limit it on the API server.

        Raises:
            ValueError: The cluster is limited to another namespace.
        """
        return self._caches.informer(resource, Part(namespace, selector, fields))

    def forget(self, informer: ClusterInformer) -> None:
        """Remove a cache that nobody reads any more.

        Raises:
            NotRunning: The cluster runs, and fills it.
        """
        self._caches.forget(informer)

    def informers(self) -> Sequence[ClusterInformer]:
        """Return the caches that exist."""
        return self._caches.all()

    def add_index(self, resource: Resource, name: str, values: Callable[[Obj], Iterable[Hashable]]) -> None:
        """Index the objects of a resource by the values of a function, such as fields or labels; at any time."""
        self.informer(resource).add_index(name, values)

    async def get(self, resource: Resource, key: Key) -> Obj | None:
        """Return a private copy of a cached object; None if there is none.

        Raises:
            NotSynced: The cache isn't filled within ``sync_timeout``.
            ValueError: The cluster is limited to another namespace.
        """
        if resource.namespaced and self._caches.options.namespace not in ("", key.namespace):
            raise self._caches.elsewhere(key.namespace)
        if resource in self._caches.options.live:
            with contextlib.suppress(Missing):
                return await self.client.get(resource, key)
            return None
        return (await self._synced(resource)).get(key)

    async def list(
        self, resource: Resource, *, namespace: str = "", selector: Mapping[str, Json] | None = None
    ) -> Sequence[Obj]:
        """Return private copies of the cached objects, of a namespace (``""``: all) and of a LabelSelector
        (``{"matchLabels": …, "matchExpressions": …}``).

        Raises:
            NotSynced: The cache isn't filled within ``sync_timeout``.
        """
        if resource in self._caches.options.live:
            return await self.client.list(
                resource, namespace=namespace, selector=selectors.written(selector) if selector else ""
            )
        return (await self._synced(resource)).objects(namespace=namespace, selector=selector)

    async def find(self, resource: Resource, index: str, value: Hashable) -> Sequence[Obj]:
        """Return private copies of the cached objects that have a value in an index.

        Raises:
            NotSynced: The cache isn't filled within ``sync_timeout``.
            KeyError: There is no such index.
        """
        return (await self._synced(resource)).indexed(index, value)

    async def resource(self, name: str) -> Resource:
        """Return the resource of a name such as ``pods`` or ``foos.example.org``, as served by the API server.

        A name that isn't known is looked up again, so a CustomResourceDefinition may come later.

        Raises:
            Missing: The API server has no such resource.
            ClusterError: It can't be asked.
        """
        known = self._caches.discovery
        try:
            return known.find(name)
        except Missing:
            await known.refresh()
            return known.find(name)

    # -- writes ------------------------------------------------------------------------------------

    async def create(self, resource: Resource, obj: Obj, *, subresource: str = "", key: Key | None = None) -> Obj:
        """Create an object, and return it as the server stored it, mostly without ``managedFields``.

        With a ``subresource`` (``binding``, ``token``, ``eviction``), ``key`` is the parent object.

        Raises:
            Exists: Another object has the name.
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
            changed = await self.client.patch(resource, key, patch, kind=kind, subresource=subresource, force=force)
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
            Missing: There is no such object.
            Conflict: The object has another uid or version.
            ClusterError: The request failed.
        """
        with self._caches.writing(resource, key) as wrote:
            marked = await self.client.delete(
                resource, key, uid=uid, resource_version=resource_version, grace=grace, propagation=propagation
            )
            wrote(marked)
        return marked

    async def _synced(self, resource: Resource) -> ClusterInformer:
        informer = self.informer(resource)
        await informer.wait_synced(self._caches.options.sync_timeout)
        return informer

    def __str__(self) -> str:
        return self.name


class _Caches:
    """The client and the caches that a cluster shares with its aliases."""

    def __init__(self, name: str, client: Client, options: ClusterOptions) -> None:
        self.name, self.client, self.options = name, client, options
        self.discovery = discovery.Discovery(client)
        self.is_kept = False
        #: The running tasks; None while the cluster doesn't run.
        self.tasks: asyncio.TaskGroup | None = None
        self._informers: dict[tuple[Resource, Part], ClusterInformer] = {}
        self._reflectors: dict[ClusterInformer, Reflector] = {}
        #: The reason why the first contact fails; None before it and afterwards.
        self._no_contact: SyncerError | None = None
        self._is_ordered = False
        self._has_contact = False
        self._listener = InformerListener(self._works)

    # -- life --------------------------------------------------------------------------------------

    async def run(self) -> None:
        """See :meth:`Cluster.run`."""
        if self.tasks is not None:
            raise NotRunning(f"cluster {self.name} runs already")
        for informer in self._informers.values():
            informer.begin()
        try:
            async with asyncio.TaskGroup() as self.tasks:
                await self._contact()
                for informer in self._informers.values():
                    self._start(informer)
                if self.options.resync:
                    self.tasks.create_task(self._resync())
                await asyncio.Event().wait()
        finally:
            self.tasks, self._no_contact, self._has_contact = None, None, False
            self._reflectors.clear()

    def use(self, client: Client) -> None:
        """See :meth:`Cluster.use`."""
        if self.tasks is not None:
            raise NotRunning(f"cluster {self.name} runs with its client; stop it before another is used")
        self.client, self.discovery = client, discovery.Discovery(client)

    def error(self) -> SyncerError | None:
        """See :attr:`Cluster.error`."""
        return self._no_contact or next((each.error for each in self._informers.values() if each.error), None)

    async def _contact(self) -> None:
        """Find out whether versions are ordered: a single request is retried while the cluster doesn't answer."""
        wait = wait_random_exponential(multiplier=FIRST_ATTEMPT, max=LAST_ATTEMPT)
        retry = retry_if_exception_type((ClusterError, codec.DecodeError))
        attempts = AsyncRetrying(retry=retry, wait=wait, before_sleep=self._missed)
        self._is_ordered = await attempts(discovery.orders_versions, self.client)
        if self._no_contact is not None:
            log.info("a cluster answers", cluster=self.name)
        self._no_contact, self._has_contact = None, True

    def _missed(self, attempt: RetryCallState) -> None:
        error = attempt.outcome.exception() if attempt.outcome else None
        if not isinstance(error, SyncerError):
            error = Unreachable(f"cluster {self.name}: its version can't be read: {error}", cluster=self.name)
        if self._no_contact is None:
            log.warning("no answer from a cluster, will try again", cluster=self.name, error=str(error))
        self._no_contact = error
        for informer in self._informers.values():
            informer.failed(error)

    def _start(self, informer: ClusterInformer) -> None:
        assert self.tasks is not None
        informer.begin()
        reflector = self._reflectors[informer] = Reflector(
            self.client,
            informer,
            self._listener,
            namespace=informer.namespace,
            selector=informer.selector,
            fields=informer.fields,
        )
        self.tasks.create_task(reflector.run())

    def _works(self) -> None:
        """Retry at once what had no answer: the cluster is back."""
        for reflector in self._reflectors.values():
            if isinstance(reflector.error, Unreachable):
                reflector.hurry()

    async def _resync(self) -> None:
        """Show all objects to the subscribers again, at intervals."""
        vary = random.Random().uniform  # noqa: S311 — jitter, not a secret
        while True:
            await asyncio.sleep(self.options.resync * vary(1 - RESYNC_JITTER, 1 + RESYNC_JITTER))
            for informer in self.all():
                for number, key in enumerate(list(informer.keys()), start=1):
                    informer.show(key)
                    if not number % BREATH:
                        await asyncio.sleep(0)

    # -- caches ------------------------------------------------------------------------------------

    def informer(self, resource: Resource, part: Part) -> ClusterInformer:
        """See :meth:`Cluster.informer`."""
        options = self.options
        limit = options.namespace if resource.namespaced else ""
        if limit and part.namespace not in ("", limit):
            raise self.elsewhere(part.namespace)
        part = options.parts.get(resource, part) if part == Part() else part
        part = part._replace(namespace=part.namespace or limit)
        informer = self._informers.get((resource, part))
        if informer is None:
            informer = self._informers[resource, part] = ClusterInformer(
                self.name,
                resource,
                **part._asdict(),
                transform=options.transforms.get(resource, options.transform),
                clock=asyncio.get_running_loop().time,
                ordered=lambda: self._is_ordered,
            )
            if self._has_contact:
                self._start(informer)
            elif self._no_contact is not None:
                informer.failed(self._no_contact)
        return informer

    def forget(self, informer: ClusterInformer) -> None:
        """See :meth:`Cluster.forget`."""
        if self.tasks is not None:
            raise NotRunning(f"cluster {self.name} runs, with the cache of {informer}; stop it before")
        self._informers = {place: each for place, each in self._informers.items() if each is not informer}

    def all(self) -> Sequence[ClusterInformer]:
        """Return the caches that exist."""
        return list(self._informers.values())

    def elsewhere(self, namespace: str) -> ValueError:
        """Return the error of a cached read outside the namespace that the cluster is limited to."""
        limit = self.options.namespace
        return ValueError(f"cluster {self.name} caches namespace {limit} alone; read {namespace!r} by its client")

    @contextlib.contextmanager
    def writing(self, resource: Resource, key: Key) -> Iterator[Callable[[Obj | None], None]]:
        """Surround a write; the block passes the response on, or None if the object is gone."""
        with contextlib.ExitStack() as stack:
            informers = [each for each in self._informers.values() if each.synced and each.is_part_of(resource, key)]
            uids = [entry.uid if (entry := each.entry(key)) else "" for each in informers]
            begun = [stack.enter_context(each.writing(key)) for each in informers]

            def wrote(response: Obj | None) -> None:
                for informer, writing, uid in zip(informers, begun, uids, strict=True):
                    if response is not None:
                        with contextlib.suppress(*_MALFORMED):  # the watch will show it
                            if key_of(response) == key or key_of(response) not in informer:
                                informer.seen_live(response, writing)
                    elif uid:
                        informer.deleted(key, writing, uid)

            yield wrote
