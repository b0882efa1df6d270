"""The cache of a resource of a cluster, with the reading methods of controllers."""

import asyncio
from collections.abc import Callable, Hashable, Mapping, Sequence
from math import inf

from syncer.api import selectors
from syncer.api.errors import SyncerError
from syncer.api.objects import Json, Key, Obj, Resource, labels_of
from syncer.byte_budget import ByteBudget
from syncer.cache.informer import Informer
from syncer.cache.reflector import Reflector
from syncer.clusters import codec
from syncer.multicluster.errors import NotSynced


class ClusterInformer(Informer):
    """The cache of a resource in a cluster: of all objects, or of a namespace or label selector.

    It is filled while its cluster runs, and keeps its objects, indexes and subscribers when the
    cluster stops. When the cluster runs again, everything is listed again: objects that were
    deleted meanwhile are removed, and subscribers are notified of each.

    Subscribers are :meth:`add_map_function` and :meth:`add_handler`, indexes are :meth:`add_index`;
    each can be added at any time, and :meth:`forget` removes those of an owner. An index sees the
    objects that are there already; a handler doesn't.
    """

    most_parts = inf

    def __init__(
        self,
        cluster: str,
        resource: Resource,
        *,
        namespace: str,
        selector: str,
        fields: str = "",
        transform: Callable[[Obj], Obj] | None = None,
        clock: Callable[[], float],
        ordered: Callable[[], bool],
        budget: ByteBudget | None = None,
    ) -> None:
        super().__init__(resource, clock=clock, ordered=ordered, budget=budget)
        self.cluster = cluster
        self.namespace = namespace
        self.selector = selector
        self.fields = fields
        self._transform = transform
        #: The reason why the cache isn't kept up to date at present; None if it is, or isn't known.
        self.error: SyncerError | None = None
        self._settled = asyncio.Event()
        #: Set once everything has been listed since the cluster began to run.
        self.current = asyncio.Event()
        self._subscribers: list[Callable[[], None]] = []

    def __str__(self) -> str:
        return f"{self.resource} of {self.cluster}"

    async def wait_synced(self, seconds: float, *, hint: str = "") -> None:
        """Wait until the first list is complete, and indexes have seen each object, at most so many
        seconds.

        A list that has failed already isn't awaited, so that a cluster that is known to be dead
        delays no reader.

        Raises:
            NotSynced: It isn't complete.
        """
        if not self.synced:
            try:
                async with asyncio.timeout(seconds):
                    await self._settled.wait()
            except TimeoutError:
                raise self._not_synced(f"aren't listed after {seconds:g} s{hint}") from self.error
            if not self.synced:
                raise self._not_synced(f"can't be listed: {self.error}") from self.error
        if self.newcomers:
            await self.newcomers.catch_up()

    async def filled(self) -> None:
        """Wait until the first list is complete, however long that takes, and indexes have seen
        each object.
        """
        if not self.synced:
            listed = asyncio.Event()
            self.when_synced(listed.set)
            await listed.wait()
        await self.newcomers.catch_up()

    def when_synced(self, notify: Callable[[], None]) -> None:
        """Call ``notify`` once, when the first list is complete; at once if it is."""
        if self.synced:
            notify()
        else:
            self._subscribers.append(notify)

    def objects(
        self,
        *,
        namespace: str = "",
        selector: Mapping[str, Json] | None = None,
    ) -> Sequence[Obj]:
        """Return private copies of the cached objects, of a namespace (``""``: all) and of a
        LabelSelector (``{"matchLabels": …, "matchExpressions": …}``).
        """
        keys = [key for key in self.keys() if namespace in ("", key.namespace)]
        return [self._cached(key) for key in keys if self._is_selected(key, selector)]

    def indexed(self, index: str, value: Hashable) -> Sequence[Obj]:
        """Return private copies of the objects that have a value in an index.

        Raises:
            KeyError: There is no such index.
        """
        return [self._cached(key) for key in self.indexer.keys(index, value)]

    def is_part_of(self, resource: Resource, key: Key) -> bool:
        """Return True if an object is certainly of this cache, whatever its labels."""
        if self.selector or self.fields:
            return False
        return self.resource == resource and self.namespace in ("", key.namespace)

    @property
    def is_used(self) -> bool:
        """True if there is an index or a subscriber."""
        return bool(self.handlers or self.indexer.indexes)

    def show(self, key: Key) -> None:
        """Notify the subscribers of an object, as if it had changed."""
        obj = self.get(key)
        if obj is not None:
            for function in self.handlers.map_functions:
                function.update(key, obj)
            self.handlers.notify(key, obj)

    def map_again(self, key: Key, *, owner: str) -> bool:
        """Have an owner's map functions map an object again for which one has raised.

        Return False if one raises again.
        """
        if self.newcomers.hides(key):
            return True
        obj = self.get(key)
        if obj is None:
            return True
        owned = [each for each in self.handlers.map_functions if each.owner == owner]
        functions = [each for each in owned if key in each.failed]
        for function in functions:
            function.update(key, obj)
        return not any(key in each.failed for each in functions)

    def keep(self, key: Key, obj: Obj, text: bytes = b"") -> Obj:
        """Store an object as its transform leaves it, and return that."""
        if self._transform is not None and codec.UNREADABLE not in obj:
            obj = self._transform(obj)
            text = b""
        return super().keep(key, obj, text)

    # -- notifications of the reflector ------------------------------------------------------------

    def begin(self) -> None:
        """Begin again: no attempt has failed."""
        self.error = None
        self.current.clear()
        if not self.synced:
            self._settled.clear()

    def failed(self, error: SyncerError) -> None:
        """Record why the cache isn't kept up to date, and wake those who wait for it."""
        self.error = error
        self._settled.set()

    def listed(self) -> None:
        """Record that a list is complete, and wake those who wait for the first one."""
        self.error = None
        self._settled.set()
        self.current.set()
        waiting = self._subscribers
        self._subscribers = []
        for notify in waiting:
            notify()

    # -- inside ------------------------------------------------------------------------------------

    def _cached(self, key: Key) -> Obj:
        obj = self.get(key)
        assert obj is not None, key
        return obj

    def _is_selected(self, key: Key, selector: Mapping[str, Json] | None) -> bool:
        if selector is None:
            return True
        outline = self.outline(key)
        return outline is not None and selectors.matches(selector, labels_of(outline))

    def _not_synced(self, why: str) -> NotSynced:
        return NotSynced(
            f"cluster {self.cluster}: {self.resource} {why}",
            cluster=self.cluster,
            verb="list",
            resource=self.resource,
        )


class InformerListener:
    """Passes the notifications of the reflectors of a cluster to their informers.

    ``works`` is called when one works again, ``fails`` after each failure, with the former error.
    """

    def __init__(
        self,
        works: Callable[[], None],
        fails: Callable[[ClusterInformer, SyncerError | None], None],
    ) -> None:
        self._works = works
        self._fails = fails

    def synced(self, reflector: Reflector) -> None:
        """Handle a complete list."""
        informer_of(reflector).listed()

    def watching(self, reflector: Reflector) -> None:
        """Handle a newly opened watch."""
        informer_of(reflector).error = None

    def failed(self, reflector: Reflector, error: SyncerError) -> None:
        """Handle a failed list or watch, which will be retried."""
        informer = informer_of(reflector)
        before = informer.error
        informer.failed(error)
        self._fails(informer, before)

    def went_back(self, reflector: Reflector) -> None:
        """Handle a list of an older state: subscribers are notified of each object by the list
        itself.
        """

    def working(self, reflector: Reflector) -> None:
        """Handle a watch that works after a failure."""
        self._works()


def informer_of(reflector: Reflector) -> ClusterInformer:
    """Return the informer that a reflector fills."""
    informer = reflector.store
    assert isinstance(informer, ClusterInformer)
    return informer
