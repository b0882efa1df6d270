"""The requests of a syncer, and which of them haven't changed since they were found in step."""

from collections.abc import Iterator
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
    """The objects of a syncer that were found in step, by the stores' own version strings: some 200
    bytes each.
    """

    def __init__(self, pair: ClusterPair, controller: BoundSyncer) -> None:
        self._pair, self.controller = pair, controller
        self._direction = controller.direction
        #: By virtual key, and by host key for requests whose virtual key doesn't lead to the host
        #: object.
        self._virtual: dict[Key, tuple[str, str]] = {}
        self._host: dict[Key, _Known] = {}

    def look(self, *, everything: bool) -> Iterator[SyncRequest | None]:
        """Yield the requests to reconcile, and None for each that hasn't changed since it was found
        in step.
        """
        if everything:
            self._forget()
        reached: set[Key] = set()
        if self._direction.by_virtual:
            yield from self._from_virtual(reached)
        if self._direction.fakes:
            yield from self._faked()
        if self._direction.by_host:
            yield from self._from_host(reached)
        self._prune()

    def right(self, request: SyncRequest) -> None:
        """Record that both objects of a request, as they are now, are in step."""
        place = self._place(request)
        virtual, host = self._version(Side.VIRTUAL, request.key), self._version(Side.HOST, place)
        if request.host_key is None and (self._direction.fakes or (self._direction.by_virtual and virtual)):
            self._virtual[request.key] = (virtual, host)
        else:
            self._host[place] = _Known(virtual, host, request)

    # -- inside ------------------------------------------------------------------------------------

    def _forget(self) -> None:
        self._virtual.clear()
        self._host.clear()

    def _from_virtual(self, reached: set[Key]) -> Iterator[SyncRequest | None]:
        virtual, host = self._store(Side.VIRTUAL), self._host_store()
        for key in list(virtual.keys()):
            entry = virtual.entry(key)
            if entry is None:
                continue
            place = self.controller.place(key) if host is not None else key
            there = host.entry(place) if host is not None else None
            reached.add(place)
            if self._virtual.get(key) == (entry.version, there.version if there else ""):
                yield None
            else:
                yield self.controller.request(key)

    def _faked(self) -> Iterator[SyncRequest | None]:
        """Yield the keys that watched objects name and that don't exist."""
        store, named = self._store(Side.VIRTUAL), self._pair.watched_keys(self.controller)
        for key in named - set(store.keys()):
            host = self._version(Side.HOST, self.controller.place(key))
            yield None if self._virtual.get(key) == ("", host) else self.controller.request(key)
        if len(self._virtual) > len(store) + len(named):
            self._virtual = {key: known for key, known in self._virtual.items() if key in store or key in named}

    def _from_host(self, reached: set[Key]) -> Iterator[SyncRequest | None]:
        store = self._host_store()
        request_of = safely(self.controller.view.settings.cluster, self.controller.syncer, self._requests_of)
        for key in [] if store is None else [key for key in store.keys() if key not in reached]:  # noqa: SIM118 — a store
            entry, known = store.entry(key) if store else None, self._host.get(key)
            if entry is None:
                continue
            if known and known.host == entry.version and self._is_as_it_was(known):
                if known.request:
                    yield None
                continue
            found = list(request_of(key, store.get(key) if store else None))
            if not found:
                self._host[key] = _Known("", entry.version, None)
            yield from found

    def _requests_of(self, key: Key, obj: Obj | None) -> list[SyncRequest]:
        request = self.controller.request_for(Side.HOST, key, obj)
        return [] if request is None else [request]

    def _is_as_it_was(self, known: _Known) -> bool:
        return known.request is None or known.virtual == self._version(Side.VIRTUAL, known.request.key)

    def _place(self, request: SyncRequest) -> Key:
        return request.host_key or self.controller.place(request.key)

    def _version(self, side: Side, key: Key) -> str:
        store = self._store(side) if side is Side.VIRTUAL else self._host_store()
        entry = store.entry(key) if store is not None else None
        return entry.version if entry else ""

    def _store(self, side: Side) -> SideInformer:
        syncer = self.controller.syncer
        return self._pair.informers.store(side, syncer.resource if side is Side.VIRTUAL else syncer.host_resource)

    def _host_store(self) -> SideInformer | None:
        """Return the store of the host objects; None if the syncer has none."""
        return self._store(Side.HOST) if self._direction.by_host else None

    def _prune(self) -> None:
        """Forget objects that are gone."""
        virtual, host = self._store(Side.VIRTUAL), self._host_store()
        if len(self._virtual) > len(virtual) and not self._direction.fakes:
            self._virtual = {key: versions for key, versions in self._virtual.items() if key in virtual}
        if host is not None and len(self._host) > len(host):
            self._host = {key: known for key, known in self._host.items() if key in host}
