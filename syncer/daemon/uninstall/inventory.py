"""The inventory: all marked objects on both sides, from fresh lists of every served kind."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import (
    AsyncIterator,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from typing import Any

from syncer.api.context import Settings
from syncer.api.errors import ClusterError, Expired, Forbidden, NotFound
from syncer.api.marks import Marks
from syncer.api.objects import Key, Obj, Resource, Side, annotations_of, key_of, labels_of, uid_of
from syncer.api.texts import shortened
from syncer.clusters import codec
from syncer.clusters.client import SideClient
from syncer.clusters.discovery import Discovery
from syncer.config import VirtualCluster
from syncer.directions import direction_of, resources_of
from syncer.engine.reconcile.calls import fields_before
from syncer.resources.host_objects import HostObjectSyncer
from syncer.resources.kinds import ENDPOINT_SLICES, NAMESPACES, PODS, SERVICES
from syncer.resources.metrics_api import OBJECTS as METRICS_OBJECTS
from syncer.resources.namespaces import GIVEN
from syncer.resources.pods.eviction import OF_DAEMON_SET, SAFE_TO_EVICT
from syncer.resources.published_services import PublishedServiceSyncer

#: Number of concurrent lists.
LISTS = 8
#: How often an expired list is started again.
ATTEMPTS = 3
#: The longest grace period of a Pod, in seconds. A tenant may give it years.
GRACE = 60
#: Annotations by which the host may evict copies of Pods. No other is made in place of one that is
#: kept, so they are removed with the marks.
EVICTION = (SAFE_TO_EVICT, OF_DAEMON_SET)
#: The verbs that a kind must support to be listed.
_VERBS = frozenset({"list", "delete"})
#: Raised by what reads an object that isn't one: a tenant's API server may answer anything.
_MALFORMED = (AttributeError, KeyError, TypeError, ValueError, codec.DecodeError)
#: The objects that lead the virtual API server to the daemon, beside those of syncers.
_METRICS = frozenset((str(resource), key) for resource, key in METRICS_OBJECTS)


@dataclass(frozen=True, slots=True)
class Item:
    """A marked object: its identity, and the keys of its marks."""

    side: Side
    resource: Resource
    key: Key
    uid: str
    version: str
    labels: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    #: The grace period to delete it with, in seconds; None for its own.
    grace: int | None = None
    #: True if the host namespace is its controller.
    is_controlled: bool = False

    def __str__(self) -> str:
        return f"{self.side} {self.resource.kind} {self.key}"


@dataclass(slots=True)
class Inventory:
    """The objects that were found, and the kinds that could not be listed."""

    #: Objects that we made: copies on the host, and on the virtual side those from the host and
    #: fakes.
    items: list[Item] = field(default_factory=list)
    #: The tenant's objects with an annotation of ours, such as the one that records their copy.
    noted: list[Item] = field(default_factory=list)
    #: Marked virtual objects of kinds that we never create there.
    doubtful: list[Item] = field(default_factory=list)
    #: Failed lists, each with the reason.
    problems: list[str] = field(default_factory=list)
    #: Kinds that no syncer of the configuration is about, and that could not be listed.
    unseen: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Recognition:
    """Recognises our objects, by the kinds of all available syncers, enabled or not."""

    settings: Settings
    #: Host kinds, each with the virtual kinds that its objects may be copies of, or are made for;
    #: and the syncer that makes them if they are no copies proper, otherwise ``""``.
    copies: Mapping[str, Sequence[tuple[Resource, str]]]
    #: Virtual kinds whose marked objects were all made by us. ConfigMaps, Secrets and Services
    #: aren't among them: the tenant has some, too, and ours have a note of what made them.
    shown: frozenset[str]
    #: Virtual kinds that have copies.
    copied: frozenset[str]
    #: The kinds, by side, of the objects that enabled syncers make.
    wanted: frozenset[tuple[Side, str]]
    #: The host namespaces besides those of copies that enabled syncers put objects of a kind in.
    own_namespaces: Mapping[str, Collection[str]]

    @classmethod
    def of(cls, cluster: VirtualCluster) -> "Recognition":
        """Return a recogniser of all kinds of a virtual cluster."""
        settings = cluster.settings()
        copies: defaultdict[str, list[tuple[Resource, str]]] = defaultdict(list)
        custom = cluster.sync.custom
        shown = {name for name, entry in custom.items() if entry.direction == "fromHost"}
        copied = set(custom) - shown
        for direction in (direction_of(each()) for each in cluster.syncers):
            syncer = direction.syncer
            if direction.goes_down:
                copies[str(syncer.host_resource)].append((syncer.resource, direction.made_for))
                copied.add(str(syncer.resource))
            makes_all_marked = direction.comes_up and not isinstance(syncer, HostObjectSyncer)
            if makes_all_marked or direction.fakes:
                shown.add(str(syncer.resource))
        for resource in GIVEN:
            copies[str(resource)].append((NAMESPACES, ""))
        copies[str(ENDPOINT_SLICES)].append((SERVICES, PublishedServiceSyncer.name))
        wanted = set[tuple[Side, str]]()
        own_namespaces: defaultdict[str, set[str]] = defaultdict(set)
        for syncer in cluster.all_syncers():
            direction = direction_of(syncer)
            for resource in resources_of(syncer)[:1]:
                wanted.add((Side.VIRTUAL, str(resource)))
            if direction.goes_down:
                wanted.add((Side.HOST, str(syncer.host_resource)))
            for right in (*direction.rights(settings), *syncer.rights_with(settings)):
                if "delete" in right.verbs:
                    own_namespaces[str(right.resource)].update(right.namespaces)
        return cls(
            settings,
            dict(copies),
            frozenset(shown),
            frozenset(copied),
            frozenset(wanted),
            dict(own_namespaces),
        )

    @property
    def marks(self) -> Marks:
        """The names of the marks."""
        return self.settings.marks

    @property
    def notes(self) -> frozenset[str]:
        """The annotations that we write on the tenant's objects."""
        return frozenset({self.marks.copied, self.marks.address})

    def is_ours(self, side: Side, resource: Resource, obj: Obj) -> bool:
        """Return True if we made an object.

        On the host, a copy of our copy, made by a controller there, isn't ours.
        """
        if labels_of(obj).get(self.marks.cluster) != self.settings.identity:
            return False
        if side is Side.HOST:
            for kind, made_for in ((resource, ""), *self.copies.get(str(resource), ())):
                if self.marks.is_ours(
                    obj, cluster=self.settings.identity, resource=kind, made_for=made_for
                ):
                    return True
            return False
        if (str(resource), key_of(obj)) in _METRICS:
            return True
        if str(resource) in self.shown:
            return True
        return self.marks.made_for in annotations_of(obj)

    def item(self, side: Side, resource: Resource, obj: Obj) -> Item:
        """Return the item of an object."""
        annotations = list(filter(self.marks.is_mark, annotations_of(obj)))
        is_copied_pod = side is Side.HOST and str(resource) == str(PODS)
        if is_copied_pod:
            noted = fields_before(obj, self.marks).get("metadata", {}).get("annotations", {})
            annotations += [name for name in EVICTION if name in noted]
        return Item(
            side,
            resource,
            key_of(obj),
            uid_of(obj),
            obj["metadata"].get("resourceVersion", ""),
            tuple(filter(self.marks.is_mark, labels_of(obj))),
            tuple(annotations),
            bounded_grace(resource, obj),
            is_copied_pod and any(map(is_namespace, owners_of(obj))),
        )


def owners_of(obj: Obj) -> Sequence[Obj]:
    """Return the owner references of an object."""
    return obj["metadata"].get("ownerReferences") or ()


def is_namespace(owner: Obj) -> bool:
    """Return True if an owner reference is to a Namespace."""
    kind = (owner.get("apiVersion"), owner.get("kind"))
    return kind == (NAMESPACES.api_version, NAMESPACES.kind)


def bounded_grace(resource: Resource, obj: Obj) -> int | None:
    """Return the grace period to delete an object with, in seconds: :data:`GRACE` if it is a Pod
    whose own is longer, or that is being deleted with a longer one; otherwise None, for its own.
    """
    if str(resource) != str(PODS):
        return None
    own = (obj.get("spec") or {}).get("terminationGracePeriodSeconds") or 0
    of_deletion = obj["metadata"].get("deletionGracePeriodSeconds") or 0
    return GRACE if max(own, of_deletion) > GRACE else None


class Lister:
    """Lists the clusters: both, or one of them."""

    def __init__(self, clusters: Mapping[Side, SideClient], known: Recognition) -> None:
        self.clusters = clusters
        self.known = known
        self.discoveries = {side: Discovery(cluster) for side, cluster in clusters.items()}
        self._gate = asyncio.Semaphore(LISTS)

    async def look(self) -> Inventory:
        """List everything.

        Raises:
            ClusterError: Discovery failed.
        """
        await asyncio.gather(*(discovery.refresh() for discovery in self.discoveries.values()))
        inventory = Inventory()
        for side, discovery in self.discoveries.items():
            for version in discovery.silent:
                why = f"{side} {version}: the API server gives no list of its kinds"
                group = version.rpartition("/")[0]
                wanted = [name for one, name in self.known.wanted if one is side]
                if group in [name.partition(".")[2] for name in wanted]:
                    inventory.problems.append(why)
                else:
                    inventory.unseen.append(why)

        lists: list[Coroutine[Any, Any, Inventory]] = []
        for side in self.discoveries:
            for resource in self.kinds(side):
                namespaces = self._namespaces(side, resource)
                lists += [self._one(side, resource, namespace) for namespace in namespaces]
        known: set[str] = set()
        for found in await asyncio.gather(*lists):
            # Some objects are served in several groups.
            inventory.items += _new(found.items, known)
            inventory.noted += found.noted
            inventory.doubtful += found.doubtful
            inventory.problems += found.problems
            inventory.unseen += found.unseen
        inventory.doubtful = _new(inventory.doubtful, known)
        return inventory

    def kinds(self, side: Side) -> Iterator[Resource]:
        """Yield the kinds that can be listed and deleted, in the server's preferred versions."""
        named = set()
        discovery = self.discoveries[side]
        for resource in discovery.resources():
            if discovery.verbs(resource) >= _VERBS and str(resource) not in named:
                named.add(str(resource))
                yield resource

    async def objects(
        self,
        side: Side,
        resource: Resource,
        namespace: str = "",
    ) -> AsyncIterator[Obj]:
        """Yield all objects of a kind, ours or not.

        Raises:
            ClusterError: The list failed.
        """
        async for page in self.clusters[side].list_pages(resource, namespace=namespace):
            for raw in page.items:
                yield codec.observed(raw)

    async def still_there(self, items: Iterable[Item]) -> dict[Item, Obj]:
        """Return those of the items that still exist and are ours, as they are now.

        Raises:
            ClusterError: A request failed.
        """
        waiting = {item.uid: item for item in items}
        found: dict[Item, Obj] = {}
        for side, resource in {(item.side, item.resource) for item in waiting.values()}:
            for namespace in self._namespaces(side, resource):
                with contextlib.suppress(NotFound):
                    async for obj in self._bearing(side, resource, namespace):
                        if uid_of(obj) in waiting and self.known.is_ours(side, resource, obj):
                            found[waiting[uid_of(obj)]] = obj
        return found

    # -- inside ------------------------------------------------------------------------------------

    def _namespaces(self, side: Side, resource: Resource) -> Iterable[str]:
        """Return the namespaces to list: copies are in certain namespaces, and there may be no
        right to list others.
        """
        namespaces = self.known.settings.names.host_namespaces() if side is Side.HOST else None
        if namespaces is None or not resource.namespaced:
            return ("",)
        return {*namespaces, *self.known.own_namespaces.get(str(resource), ())}

    async def _one(self, side: Side, resource: Resource, namespace: str) -> Inventory:
        for attempt in range(ATTEMPTS):
            found = Inventory()
            try:
                async with self._gate:
                    await self._marked(found, side, resource, namespace)
                    if side is Side.VIRTUAL and str(resource) in self.known.copied:
                        await self._with_notes(found, resource)
                return found
            except NotFound:
                return Inventory()  # no longer served, so its objects are gone, too
            except Expired as error:
                if attempt == ATTEMPTS - 1:
                    return Inventory(problems=[str(error)])
            except ClusterError as error:
                if isinstance(error, Forbidden) and (side, str(resource)) not in self.known.wanted:
                    return Inventory(unseen=[str(error)])
                return Inventory(problems=[str(error)])
            except _MALFORMED as error:
                why = f"{self.clusters[side].title}: a list of {resource} can't be read"
                why = f"{why}: {type(error).__name__}: {error}"
                return Inventory(problems=[shortened(why)])
        raise AssertionError("every attempt returns or is followed by another")

    async def _marked(
        self,
        found: Inventory,
        side: Side,
        resource: Resource,
        namespace: str,
    ) -> None:
        async for obj in self._bearing(side, resource, namespace):
            item = self.known.item(side, resource, obj)
            if self.known.is_ours(side, resource, obj):
                found.items.append(item)
            elif side is Side.VIRTUAL:
                found.doubtful.append(item)

    async def _bearing(self, side: Side, resource: Resource, namespace: str) -> AsyncIterator[Obj]:
        """Yield the marked objects."""
        selector = self.known.marks.selector(self.known.settings.identity)
        client = self.clusters[side]
        async for page in client.list_pages(resource, namespace=namespace, selector=selector):
            for raw in page.items:
                yield codec.observed(raw)

    async def _with_notes(self, found: Inventory, resource: Resource) -> None:
        notes = self.known.notes
        marks = [note.encode() for note in notes]
        async for page in self.clusters[Side.VIRTUAL].list_pages(resource):
            for raw in page.items:
                if not any(mark in bytes(raw) for mark in marks):
                    continue
                obj = codec.observed(raw)
                if notes & annotations_of(obj).keys():
                    found.noted.append(self.known.item(Side.VIRTUAL, resource, obj))


def _new(items: Iterable[Item], known: set[str]) -> list[Item]:
    """Return the items with a uid that isn't known yet, and add the uids."""
    new = {item.uid: item for item in items if item.uid not in known}
    known.update(new)
    return list(new.values())
