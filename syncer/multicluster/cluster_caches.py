"""The client, the caches and the recorders of Events that a cluster shares with its aliases."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_random_exponential

from syncer.api.errors import ClusterError, NotFound, SyncerError, Unreachable
from syncer.api.objects import Key, Obj, Resource, key_of
from syncer.byte_budget import ByteBudget
from syncer.cache.reflector import Reflector
from syncer.clusters import codec, discovery
from syncer.clusters.client import Client
from syncer.multicluster.cluster_informer import ClusterInformer, InformerListener
from syncer.multicluster.cluster_options import ClusterOptions, Part
from syncer.multicluster.errors import CacheTooLarge, NotRunning
from syncer.multicluster.recorder import Recorder
from syncer.observe.logs import get_logger
from syncer.steps import STEP_OBJECTS

#: Seconds between attempts to reach a cluster for the first time: at most this for the first,
#: doubled each time, and a random part of it.
FIRST_ATTEMPT = 0.2
#: Most seconds between two of these attempts.
LAST_ATTEMPT = 30.0
#: Part of the resync interval by which it varies, so that caches don't resync together.
RESYNC_JITTER = 0.1
#: Raised for a response that is no object.
_MALFORMED = (codec.DecodeError, AttributeError, KeyError, TypeError)

log = get_logger(__name__)


class Caches:
    """The client, the caches and the recorders of Events that a cluster shares with its aliases."""

    def __init__(self, name: str, client: Client, options: ClusterOptions) -> None:
        self.name = name
        self.client = client
        self.options = options
        self.discovery = discovery.Discovery(client)
        self.is_kept = False
        self.owns_client = False
        #: The running tasks; None while the cluster doesn't run.
        self.tasks: asyncio.TaskGroup | None = None
        #: The functions of the indexes of resources that have no cache.
        self.live_indexes: dict[tuple[Resource, str], Callable[[Obj], Iterable[Hashable]]] = {}
        #: The memory of the cached objects; more than that ends the cluster.
        self._budget = ByteBudget(options.max_bytes, over=self._is_too_large)
        self._limit = asyncio.timeout(None)
        self._informers: dict[tuple[Resource, Part], ClusterInformer] = {}
        self._reflectors: dict[ClusterInformer, Reflector] = {}
        self._recorders: dict[str, Recorder] = {}
        #: The reason why the first contact fails; None before it and afterwards.
        self._no_contact: SyncerError | None = None
        self._is_ordered = False
        self._has_contact = False
        #: Set once there is a cache, or a recorder of Events.
        self._is_used = asyncio.Event()
        self._listener = InformerListener(self._works, self._fails)

    # -- life --------------------------------------------------------------------------------------

    async def run(self) -> None:
        """See :meth:`.Cluster.run`."""
        if self.tasks is not None:
            raise NotRunning(f"cluster {self.name} runs already")
        self._limit = asyncio.timeout(None)
        try:
            async with self._limit:
                await self._run()
        except TimeoutError:
            if not self._limit.expired():
                raise
            most = self.options.max_bytes / 1e6
            why = f"the objects of cluster {self.name} take more than {most:g} MB (max_bytes)"
            raise CacheTooLarge(why) from None

    def _is_too_large(self) -> None:
        if self.tasks is not None and self._limit.when() is None:
            self._limit.reschedule(asyncio.get_running_loop().time())

    async def _run(self) -> None:
        for informer in self._informers.values():
            informer.begin()
        try:
            async with asyncio.TaskGroup() as self.tasks:
                if self.is_kept:  # whoever keeps it has asked whether it answers
                    await self._is_used.wait()
                await self._contact()
                for informer in self._informers.values():
                    self._start(informer)
                for recorder in self._recorders.values():
                    self.tasks.create_task(recorder.run())
                if self.options.resync:
                    self.tasks.create_task(self._resync())
                await asyncio.Event().wait()
        finally:
            self.tasks = None
            self._no_contact = None
            self._has_contact = False
            self._reflectors.clear()

    def use(self, client: Client) -> None:
        """See :meth:`.Cluster.use`."""
        if self.tasks is not None:
            instead = "stop it before another is used"
            raise NotRunning(f"cluster {self.name} runs with its client; {instead}")
        self.client = client
        self.discovery = discovery.Discovery(client)
        self.owns_client = False

    def error(self) -> SyncerError | None:
        """See :attr:`.Cluster.error`."""
        if self._no_contact is not None:
            return self._no_contact
        return next((each.error for each in self._informers.values() if each.error), None)

    def recorder(self, component: str) -> Recorder:
        """See :meth:`.Cluster.recorder`."""
        known = self._recorders.get(component)
        if known is None:
            known = Recorder(component, self.name, lambda: self.client)
            self._recorders[component] = known
            self._is_used.set()
            if self.tasks is not None and self._has_contact:
                self.tasks.create_task(known.run())
        return known

    async def _contact(self) -> None:
        """Find out whether versions are ordered, by a single request that is retried while the
        cluster doesn't answer.
        """
        wait = wait_random_exponential(multiplier=FIRST_ATTEMPT, max=LAST_ATTEMPT)
        retry = retry_if_exception_type((ClusterError, codec.DecodeError))
        attempts = AsyncRetrying(retry=retry, wait=wait, before_sleep=self._missed)
        self._is_ordered = await attempts(discovery.orders_versions, self.client)
        if self._no_contact is not None:
            log.info("a cluster answers", cluster=self.name)
        self._no_contact = None
        self._has_contact = True

    def _missed(self, attempt: RetryCallState) -> None:
        error = None
        if attempt.outcome is not None:
            error = attempt.outcome.exception()
        if not isinstance(error, SyncerError):
            why = f"cluster {self.name}: its version can't be read: {error}"
            error = Unreachable(why, cluster=self.name)
        if self._no_contact is None:
            text = "no answer from a cluster, will try again"
            log.warning(text, cluster=self.name, error=str(error))
        self._no_contact = error
        for informer in self._informers.values():
            informer.failed(error)

    def _start(self, informer: ClusterInformer) -> None:
        assert self.tasks is not None
        informer.begin()
        reflector = Reflector(
            self.client,
            informer,
            self._listener,
            namespace=informer.namespace,
            selector=informer.selector,
            fields=informer.fields,
        )
        self._reflectors[informer] = reflector
        self.tasks.create_task(reflector.run())

    def _works(self) -> None:
        """Retry at once what had no answer: the cluster is back."""
        for reflector in self._reflectors.values():
            if isinstance(reflector.error, Unreachable):
                reflector.hurry()

    def _fails(self, informer: ClusterInformer, before: SyncerError | None) -> None:
        """Log that a cluster doesn't answer, or that a cache can't be filled for another reason,
        once until they work again.

        The former is logged by the connection, if a :class:`~syncer.multicluster.ClusterCache`
        keeps the cluster.
        """
        error = informer.error
        if isinstance(error, Unreachable):
            others = [each.error for each in self._informers.values() if each is not informer]
            is_known = any(isinstance(each, Unreachable) for each in (before, *others))
            if not (self.is_kept or is_known):
                text = "no answer from a cluster, will try again"
                log.warning(text, cluster=self.name, error=str(error))
        elif type(error) is not type(before):
            about = {"cluster": self.name, "what": str(informer.resource), "error": str(error)}
            if isinstance(error, NotFound):
                about["hint"] = "is its plural right, and is its CustomResourceDefinition there?"
            log.warning("a resource can't be listed or watched, will try again", **about)

    async def _resync(self) -> None:
        """Show all objects to the subscribers again, at intervals."""
        vary = random.Random().uniform  # noqa: S311 — jitter, not a secret
        while True:
            await asyncio.sleep(self.options.resync * vary(1 - RESYNC_JITTER, 1 + RESYNC_JITTER))
            for informer in self.all():
                for number, key in enumerate(list(informer.keys()), start=1):
                    informer.show(key)
                    if not number % STEP_OBJECTS:
                        await asyncio.sleep(0)

    # -- caches ------------------------------------------------------------------------------------

    def informer(self, resource: Resource, part: Part) -> ClusterInformer:
        """See :meth:`.Cluster.informer`."""
        options = self.options
        limit = self.limited(resource, part.namespace)
        if part == Part():
            part = options.by_object.get(resource, part)
        part = part._replace(namespace=part.namespace or limit)
        known = self._informers.get((resource, part))
        if known is not None:
            return known

        informer = ClusterInformer(
            self.name,
            resource,
            **part._asdict(),
            transform=options.transforms.get(resource, options.transform),
            clock=asyncio.get_running_loop().time,
            ordered=lambda: self._is_ordered,
            budget=self._budget,
        )
        self._informers[resource, part] = informer
        self._is_used.set()
        if self._has_contact:
            self._start(informer)
        elif self._no_contact is not None:
            informer.failed(self._no_contact)
        return informer

    def forget(self, informer: ClusterInformer) -> None:
        """See :meth:`.Cluster.forget`."""
        if self.tasks is not None:
            why = f"cluster {self.name} runs, with the cache of {informer}; stop it before"
            raise NotRunning(why)
        others = {key: each for key, each in self._informers.items() if each is not informer}
        self._informers = others
        informer.empty()

    def all(self) -> Sequence[ClusterInformer]:
        """Return the caches that exist."""
        return list(self._informers.values())

    def limited(self, resource: Resource, namespace: str) -> str:
        """Return the namespace to read a resource in (``""``: all), if a namespace is asked for
        (``""``: none).

        Raises:
            ValueError: The cluster is limited to another namespace.
        """
        limit = ""
        if resource.namespaced:
            limit = self.options.namespace
        if limit and namespace not in ("", limit):
            cached = f"cluster {self.name} caches namespace {limit} alone"
            raise ValueError(f"{cached}; read {namespace!r} by its client")
        return namespace or limit

    @contextlib.contextmanager
    def writing(self, resource: Resource, key: Key) -> Iterator[Callable[[Obj | None], None]]:
        """Surround a write; the block passes the response on, or None if the object is gone."""
        with contextlib.ExitStack() as stack:
            informers = []
            uids = []
            for informer in self._informers.values():
                if informer.synced and informer.is_part_of(resource, key):
                    entry = informer.entry(key)
                    uid = ""
                    if entry is not None:
                        uid = entry.uid
                    informers.append(informer)
                    uids.append(uid)
            begun = [stack.enter_context(informer.writing(key)) for informer in informers]

            def wrote(response: Obj | None) -> None:
                for informer, writing, uid in zip(informers, begun, uids, strict=True):
                    if response is not None:
                        with contextlib.suppress(*_MALFORMED):  # the watch will show it
                            if key_of(response) == key or key_of(response) not in informer:
                                informer.seen_live(response, writing)
                    elif uid:
                        informer.deleted(key, writing, uid)

            yield wrote
