"""The requests of a syncer, and which of them haven't changed since they were found in step."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from syncer.api.objects import Key, Obj, Side, SyncRequest
from syncer.engine.controllers.pair import ClusterPair
from syncer.engine.reconcile.controller import BoundSyncer, safely
from syncer.engine.stores.informers import SideInformer


class _Known(NamedTuple):
    """The versions of both objects when their request was found in step.

    Without a request: the objects are not the syncer's.
    """

    virtual: str
    host: str
    request: SyncRequest | None


class VerifiedPairs:
    """The objects of a syncer that were found in step, with their versions.

    The version strings are those of the stores, so an object takes some 200 bytes.
    """

    def __init__(self, pair: ClusterPair, controller: BoundSyncer) -> None:
        self.controller = controller
        self._pair = pair
        self._direction = controller.direction
        #: By virtual key, and by host key for requests whose virtual key doesn't lead to the host
        #: object.
        self._virtual: dict[Key, tuple[str, str]] = {}
        self._host: dict[Key, _Known] = {}
        #: The requests that :meth:`changed` has left out since it began.
        self.unchanged = 0

    def changed(self, *, everything: bool) -> Iterator[SyncRequest | None]:
        """Yield the requests to reconcile, and None after each object without one.

        A request that hasn't changed is left out: its objects are the same as when it was found in
        step. So is an object of the host that a virtual key leads to.
        """
        self.unchanged = 0
        if everything:
            self._virtual.clear()
            self._host.clear()
        reached: set[Key] = set()
        if self._direction.by_virtual:
            yield from self._from_virtual(reached)
        if self._direction.fakes:
            yield from self._faked()
        if self._direction.by_host:
            yield from self._from_host(reached)
        self._prune()

    def add(self, request: SyncRequest) -> None:
        """Record that both objects of a request, as they are now, are in step."""
        host_key = self.controller.host_key_of(request)
        virtual = self._version(Side.VIRTUAL, request.key)
        host = self._version(Side.HOST, host_key)
        is_by_virtual = self._direction.fakes or (self._direction.by_virtual and virtual)
        if request.host_key is None and is_by_virtual:
            self._virtual[request.key] = (virtual, host)
        else:
            self._host[host_key] = _Known(virtual, host, request)

    # -- inside ------------------------------------------------------------------------------------

    def _from_virtual(self, reached: set[Key]) -> Iterator[SyncRequest | None]:
        """Like :meth:`changed`, for virtual objects; add their host keys to ``reached``."""
        virtual = self._virtual_store()
        for key in list(virtual.keys()):
            entry = virtual.entry(key)
            if entry is None:
                continue
            host_key = key  # without host objects, nothing reads it
            host_version = ""
            if self._direction.by_host:
                host_key = self.controller.host_key(key)
                host_version = self._version(Side.HOST, host_key)
            reached.add(host_key)
            if self._virtual.get(key) == (entry.version, host_version):
                self.unchanged += 1
                yield None
            else:
                yield self.controller.request(key)

    def _faked(self) -> Iterator[SyncRequest | None]:
        """Yield the keys that watched objects name and that don't exist."""
        store = self._virtual_store()
        named = self._pair.watched_keys(self.controller)
        for key in named - set(store.keys()):
            host_version = self._version(Side.HOST, self.controller.host_key(key))
            if self._virtual.get(key) == ("", host_version):
                self.unchanged += 1
                yield None
            else:
                yield self.controller.request(key)
        if len(self._virtual) > len(store) + len(named):
            known = self._virtual.items()
            self._virtual = {key: pair for key, pair in known if key in store or key in named}

    def _from_host(self, reached: set[Key]) -> Iterator[SyncRequest | None]:
        """Yield the requests of host objects that no virtual key leads to."""
        if not self._direction.by_host:
            return
        cluster = self.controller.view.settings.cluster
        requests_of = safely(cluster, self.controller.syncer, self._requests_of)
        for store in self.controller.hosts:
            yield from self._unreached(store, reached, requests_of)

    def _unreached(
        self,
        store: SideInformer,
        reached: set[Key],
        requests_of: Callable[[Key, Obj | None], Iterable[SyncRequest]],
    ) -> Iterator[SyncRequest | None]:
        """Like :meth:`_from_host`, for the objects of a store."""
        for key in list(store.keys()):
            if key in reached:
                yield None
                continue
            entry = store.entry(key)
            if entry is None:
                continue
            known = self._host.get(key)
            if known and known.host == entry.version:
                if known.request is None:
                    continue
                if known.virtual == self._version(Side.VIRTUAL, known.request.key):
                    self.unchanged += 1
                    yield None
                    continue
            found = list(requests_of(key, store.get(key)))
            if not found:
                self._host[key] = _Known("", entry.version, None)
            yield from found

    def _requests_of(self, key: Key, obj: Obj | None) -> list[SyncRequest]:
        request = self.controller.request_for(Side.HOST, key, obj)
        if request is None:
            return []
        return [request]

    def _version(self, side: Side, key: Key) -> str:
        store = self.controller.store(side, key)
        entry = store.entry(key) if store is not None else None
        return entry.version if entry else ""

    def _virtual_store(self) -> SideInformer:
        return self._pair.informers.store(Side.VIRTUAL, self.controller.syncer.resource)

    def _prune(self) -> None:
        """Forget objects that are gone."""
        virtual = self._virtual_store()
        if len(self._virtual) > len(virtual) and not self._direction.fakes:
            self._virtual = {
                key: versions for key, versions in self._virtual.items() if key in virtual
            }
        if len(self._host) > sum(len(store) for store in self.controller.hosts):
            has = partial(self.controller.has, Side.HOST)
            self._host = {key: known for key, known in self._host.items() if has(key)}
