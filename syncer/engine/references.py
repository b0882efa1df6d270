"""Find the virtual objects that synced objects refer to: by name, by label selector, or as owners."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from cachetools import LRUCache, cached

from syncer.api import selectors
from syncer.api.objects import Key, Obj, Resource, Side, key_of, labels_of
from syncer.api.optional_roles import Refers
from syncer.api.roles import Syncer
from syncer.clusters import codec
from syncer.engine.informers import Informers, SideInformer

#: The index of objects by the uids of their owners.
OWNERS = "owners"

#: Memory for cached selectors, and for each besides its text, in bytes, approximately.
SELECTOR_BYTES, OVERHEAD = 1 << 22, 500
#: A resource and a namespace of it, and the text of a selector.
_Selection = tuple[tuple[Resource, str], str]


@dataclass(frozen=True, slots=True)
class _Referrer:
    """A syncer whose objects refer to others, and the store of those objects."""

    name: str
    resource: Resource
    role: Refers
    store: SideInformer
    #: True if the host may create objects for the syncer's copies.
    makes: bool

    def names(self, resource: Resource) -> bool:
        """Return True if its objects may refer to objects of a resource."""
        return resource in self.role.refers_to or resource in self.role.owns


class References:
    """The references of a virtual cluster's synced objects."""

    def __init__(self, informers: Informers) -> None:
        self._informers = informers
        #: Called when a reference to an object begins or ends.
        self.wake: Callable[[Resource, Key], None] = lambda resource, key: None
        #: Called when a syncer must reconcile an object again.
        self.ask: Callable[[str, Key], None] = lambda syncer, key: None
        #: Resources that objects of a missing kind may refer to; the kind may be missing only for a
        #: moment.
        self.doubted: frozenset[Resource] = frozenset()
        self._referrers: dict[str, _Referrer] = {}
        self._tied: set[tuple[str, SideInformer]] = set()

    def add(self, syncer: Syncer, role: Refers, is_synced: Callable[[Obj], bool]) -> None:
        """Add the references of a syncer's virtual objects, whose store must exist.

        Call :meth:`tie` next.

        Only synced objects count.
        """

        def counted(function: Callable[[Obj], Iterable[Any]]) -> Callable[[Obj], Iterable[Any]]:
            return lambda obj: function(obj) if is_synced(obj) else ()

        name, store = syncer.name, self._informers.store(Side.VIRTUAL, syncer.resource)
        referrer = self._referrers[name] = _Referrer(name, syncer.resource, role, store, _makes(role))
        store.add_index(f"refers/{name}", counted(role.refers), owner=name, notify=self._named)
        if role.owns:
            store.add_index(f"owns/{name}", counted(_uid), owner=name, notify=lambda uids: self._owned(role, uids))
        if referrer.makes:
            store.add_index(f"makes/{name}", counted(role.made_on_host), owner=name, notify=self._named)
        if type(role).selects is not Refers.selects:
            selected = counted(lambda obj: _selections(role, obj))
            store.add_index(f"selects/{name}", selected, owner=name, notify=self._selected)

    def remove(self, name: str) -> None:
        """Remove a syncer, which no longer refers to anything; its store has removed it already."""
        self._referrers.pop(name, None)
        self._tied = {(whose, store) for whose, store in self._tied if whose != name}

    def tie(self) -> None:
        """Subscribe to the stores of referenced objects that exist by now."""
        for referrer in self._referrers.values():
            targets = {
                resource: self._informers.store(Side.VIRTUAL, resource)
                for resource in (*referrer.role.refers_to, *referrer.role.owns)
                if self._informers.has(Side.VIRTUAL, resource)
            }
            for resource, store in targets.items():
                if (referrer.name, store) not in self._tied:
                    self._tied.add((referrer.name, store))
                    self._listen(referrer, resource, store)

    def stores(self, resource: Resource) -> Iterator[SideInformer]:
        """Return the stores whose objects may refer to objects of a resource."""
        return (referrer.store for referrer in self._referrers.values() if referrer.names(resource))

    def of(self, resource: Resource, virtual: Obj) -> bool | None:
        """Return True if a synced object refers to a virtual object.

        None if not all objects that might are known yet.
        """
        place, known = (resource, key_of(virtual)), resource not in self.doubted
        for referrer in self._referrers.values():
            if not referrer.names(resource):
                continue
            if referrer.store.indexer.keys(f"refers/{referrer.name}", place) or self._has(referrer, resource, virtual):
                return True
            known = known and referrer.store.is_certain(referrer.name)
        return False if known else None

    def maker(self, resource: Resource, key: Key) -> tuple[Resource, Key] | None:
        """Return the object for whose copy the host creates the object of this key; None if there is
        none.
        """
        for referrer in self._referrers.values():
            if referrer.makes:
                for maker in referrer.store.indexer.keys(f"makes/{referrer.name}", (resource, key)):
                    return referrer.resource, maker
        return None

    # -- inside ------------------------------------------------------------------------------------

    def _has(self, referrer: _Referrer, resource: Resource, virtual: Obj) -> bool:
        """Return True if an object of the referrer selects or owns the virtual object."""
        if resource in referrer.role.owns and any(
            referrer.store.indexer.keys(f"owns/{referrer.name}", uid) for uid in _owners(virtual)
        ):
            return True
        if type(referrer.role).selects is Refers.selects:
            return False
        place, labels = (resource, key_of(virtual).namespace), labels_of(virtual)
        indexer, index = referrer.store.indexer, f"selects/{referrer.name}"
        found: set[_Selection] = {one for key in indexer.keys(index, (place, "")) for one in indexer.of(index, key)}
        return any(where == place and selectors.matches(_selector(text), labels) for where, text in found if text)

    def _listen(self, referrer: _Referrer, resource: Resource, store: SideInformer) -> None:
        if resource in referrer.role.owns and not store.indexer.has(OWNERS):
            store.add_index(OWNERS, _owners)
        if not referrer.role.follows:
            return

        def changed(key: Key, obj: Obj) -> None:
            for owner in referrer.store.indexer.keys(f"refers/{referrer.name}", (resource, key)):
                self.ask(referrer.name, owner)

        store.add_handler(changed, owner=referrer.name)

    def _named(self, places: Iterable[tuple[Resource, Key]]) -> None:
        for resource, key in places:
            self.wake(resource, key)

    def _owned(self, role: Refers, uids: Iterable[str]) -> None:
        owned = [resource for resource in role.owns if self._informers.has(Side.VIRTUAL, resource)]
        for resource in owned:
            for uid in uids:
                for key in list(self._informers.store(Side.VIRTUAL, resource).indexer.keys(OWNERS, uid)):
                    self.wake(resource, key)

    def _selected(self, selections: Iterable[_Selection]) -> None:
        for resource, namespace in {place for place, _ in selections}:
            if self._informers.has(Side.VIRTUAL, resource):
                for key in list(self._informers.keys(Side.VIRTUAL, resource)):
                    if key.namespace == namespace:
                        self.wake(resource, key)


def _makes(role: Refers) -> bool:
    return role.references_down.makes or type(role).made_on_host is not Refers.made_on_host


def _uid(obj: Obj) -> Iterable[str]:
    return (obj["metadata"].get("uid", ""),)


def _owners(obj: Obj) -> Iterable[str]:
    return [owner.get("uid", "") for owner in obj["metadata"].get("ownerReferences") or ()]


def _selections(role: Refers, obj: Obj) -> Iterator[_Selection]:
    """Yield where an object selects, and by which selectors; the text ``""`` finds all that select in a place."""
    namespace = key_of(obj).namespace
    for resource, selector in role.selects(obj):
        yield (resource, namespace), ""
        yield (resource, namespace), codec.encode_sorted(selector)


@cached(LRUCache(SELECTOR_BYTES, getsizeof=lambda selector: OVERHEAD + 4 * len(codec.encode(selector))))
def _selector(text: str) -> Obj:
    """Parse a selector. Cached, so the result must not be changed."""
    found: Obj = codec.decode(text.encode())
    return found
