"""Find the virtual objects that synced objects refer to.

They refer to them by name, by label selector, or as owners.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from syncer.api.objects import Key, Obj, Resource, Side, key_of
from syncer.api.optional_roles import Refers
from syncer.api.roles import Syncer
from syncer.api.selection import Selector
from syncer.engine.stores.fan_out import FEW, FanOut
from syncer.engine.stores.informers import Informers, SideInformer
from syncer.engine.stores.selections import Selection, Selections, index_labels, selected

#: The index of objects by the uids of their owners.
OWNERS = "owners"


@dataclass(frozen=True, slots=True)
class _Referrer:
    """A syncer whose objects refer to others, and the store of those objects."""

    name: str
    resource: Resource
    role: Refers
    store: SideInformer
    #: None if the objects select none.
    selections: Selections | None

    def names(self, resource: Resource) -> bool:
        """Return True if its objects may refer to objects of a resource."""
        return resource in self.role.refers_to or resource in self.role.owns


def _ignore(*_: object) -> None:
    """Do nothing about a reference."""


class References:
    """The references of a virtual cluster's synced objects."""

    def __init__(
        self,
        informers: Informers,
        fan_out: FanOut,
        *,
        used_or_not: Callable[[Resource, Iterable[Key]], None] = _ignore,
        ask: Callable[[str, Key], None] = _ignore,
    ) -> None:
        """Create it without syncers.

        Args:
            informers: The stores of the virtual cluster.
            fan_out: Notifies many objects in steps.
            used_or_not: Called when references to objects begin or end.
            ask: Called when a syncer must reconcile an object again.
        """
        self._informers = informers
        self._fan_out = fan_out
        self._used_or_not = used_or_not
        self._ask = ask
        #: Resources that objects of a missing kind may refer to; the kind may be missing only for a
        #: moment.
        self.doubted: frozenset[Resource] = frozenset()
        self._referrers: dict[str, _Referrer] = {}
        #: Those whose copies the host may create objects for; each decision about a copy asks them.
        self._makers: list[_Referrer] = []
        self._tied: set[tuple[str, SideInformer]] = set()

    def add(self, syncer: Syncer, role: Refers, selector: Selector) -> None:
        """Add the references of a syncer's virtual objects, whose store must exist.

        Call :meth:`tie` next.

        Only objects that the ``selector`` selects count, as no others are synced.
        """

        def counted(function: Callable[[Obj], Iterable[Any]]) -> Callable[[Obj], Iterable[Any]]:
            if not selector.narrows:
                return function

            def values(obj: Obj) -> Iterable[Any]:
                if not selector.selects(obj):
                    return ()
                return function(obj)

            return values

        name = syncer.name
        store = self._informers.store(Side.VIRTUAL, syncer.resource)
        selections = None
        if type(role).selects is not Refers.selects:
            selections = Selections(name, store.indexer)
        has_made = type(role).made_on_host is not Refers.made_on_host
        referrer = _Referrer(name, syncer.resource, role, store, selections)
        self._referrers[name] = referrer

        store.add_index(
            f"refers/{name}",
            counted(role.refers),
            owner=name,
            notify=self._named,
            when="used",
            by_spec=role.refers_by_spec and not selector.narrows,  # labels may change by themselves
        )
        if role.owns:
            owned = partial(self._owned, role)
            store.add_index(f"owns/{name}", counted(_uid), owner=name, notify=owned)
        if role.references_down.makes or has_made:
            self._makers.append(referrer)
            made = counted(role.made_on_host)
            store.add_index(f"makes/{name}", made, owner=name, notify=self._named)
        if selections:
            selections.add_to(store, counted(role.selects), partial(self._selected, selections))

    def remove(self, name: str) -> None:
        """Remove a syncer, which no longer refers to anything; its store has removed it already."""
        self._referrers.pop(name, None)
        self._makers = [each for each in self._makers if each.name != name]
        self._tied = {(syncer, store) for syncer, store in self._tied if syncer != name}

    def doubt(self, resources: frozenset[Resource]) -> frozenset[Resource]:
        """Count references to these resources as unknown, and no others.

        Return the resources whose references are known now, and were not before.
        """
        certain = self.doubted - resources
        self.doubted = resources
        return certain

    def tie(self) -> None:
        """Subscribe to the stores of referenced objects that exist by now."""
        for referrer in self._referrers.values():
            for resource in (*referrer.role.refers_to, *referrer.role.owns):
                if not self._informers.has(Side.VIRTUAL, resource):
                    continue
                store = self._informers.store(Side.VIRTUAL, resource)
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
        reference = (resource, key_of(virtual))
        is_certain = resource not in self.doubted
        for referrer in self._referrers.values():
            if not referrer.names(resource):
                continue
            if referrer.store.indexer.keys(f"refers/{referrer.name}", reference):
                return True
            if resource in referrer.role.owns:
                for uid in _owners(virtual):
                    if referrer.store.indexer.keys(f"owns/{referrer.name}", uid):
                        return True
            if referrer.selections is not None and referrer.selections.find(resource, virtual):
                return True
            is_certain = is_certain and referrer.store.is_certain(referrer.name)
        return False if is_certain else None

    def maker(self, resource: Resource, key: Key) -> tuple[Resource, Key] | None:
        """Return the object for whose copy the host creates the object of this key.

        None if there is none.
        """
        for referrer in self._makers:
            index = f"makes/{referrer.name}"
            for maker in referrer.store.indexer.keys(index, (resource, key)):
                return referrer.resource, maker
        return None

    # -- inside ------------------------------------------------------------------------------------

    def _listen(self, referrer: _Referrer, resource: Resource, store: SideInformer) -> None:
        if resource in referrer.role.owns and not store.indexer.has(OWNERS):
            store.add_index(OWNERS, _owners)
        if referrer.selections:
            index_labels(store)
        if not referrer.role.follows:
            return

        index = f"refers/{referrer.name}"

        def changed(key: Key, obj: Obj) -> None:
            reference = (resource, key)
            most = len(referrer.store.indexer.keys(index, reference))
            steps = partial(self._asked, referrer, index, reference)
            self._fan_out.notify((index, resource, key), most, steps)

        store.add_handler(changed, owner=referrer.name)

    def _asked(
        self, referrer: _Referrer, index: str, reference: tuple[Resource, Key]
    ) -> Iterator[None]:
        """Request with each step an object that has a reference."""
        if self._referrers.get(referrer.name) is referrer:
            for owner in list(referrer.store.indexer.keys(index, reference)):
                self._ask(referrer.name, owner)
                yield

    def _named(self, references: Iterable[tuple[Resource, Key]]) -> None:
        found: defaultdict[Resource, list[Key]] = defaultdict(list)
        for resource, key in references:
            found[resource].append(key)
        for resource, keys in found.items():
            self._used_or_not(resource, keys)

    def _owned(self, role: Refers, uids: Iterable[str]) -> None:
        uids = list(uids)
        for resource in role.owns:
            if self._informers.has(Side.VIRTUAL, resource):
                store = self._informers.store(Side.VIRTUAL, resource)
                found = set(store.indexer.doubted(OWNERS))
                for uid in uids:
                    found.update(store.indexer.keys(OWNERS, uid))
                self._wake(store, found)

    def _selected(self, selections: Selections, changed: Iterable[Selection]) -> None:
        for selection in changed:
            if selections.holders(selection) >= 2:
                continue  # another object selects the same, so nothing has changed
            if self._informers.has(Side.VIRTUAL, selection.resource):
                store = self._informers.store(Side.VIRTUAL, selection.resource)
                self._wake(store, selected(store, selection))

    def _wake(self, store: SideInformer, found: Collection[Key]) -> None:
        """Wake objects; if they are many, all of their namespaces, in steps."""
        if len(found) <= FEW:
            self._used_or_not(store.resource, found)
            return
        for namespace in {key.namespace for key in found}:
            change = (store.resource, namespace)
            self._fan_out.notify(change, len(store), partial(self._woken, store, namespace))

    def _woken(self, store: SideInformer, namespace: str) -> Iterator[None]:
        """Wake an object of a namespace with each step."""
        keys = [key for key in store.keys() if key.namespace == namespace]  # noqa: SIM118
        for key in keys:
            self._used_or_not(store.resource, (key,))
            yield


def _uid(obj: Obj) -> Iterable[str]:
    return (obj["metadata"].get("uid", ""),)


def _owners(obj: Obj) -> Iterable[str]:
    return [owner.get("uid", "") for owner in obj["metadata"].get("ownerReferences") or ()]
