"""What of ours there is on both sides, told by its marks, from fresh lists of all that the API servers serve."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from syncer.api.context import Settings
from syncer.api.errors import ClusterError, Expired, Forbidden, Missing
from syncer.api.marks import Marks
from syncer.api.objects import Key, Obj, Resource, Side, annotations_of, key_of, labels_of, uid_of
from syncer.clusters import codec
from syncer.clusters.client import Cluster
from syncer.clusters.discovery import Discovery
from syncer.config import VirtualCluster
from syncer.directions import direction_of, resources_of
from syncer.resources.custom.related import MADE_FOR

#: Lists under way at the same time.
LISTS = 8
#: How often a list is begun anew that has got too old while it was read.
ATTEMPTS = 3
#: What must be possible for a kind to be looked at.
_VERBS = frozenset({"list", "delete"})


@dataclass(frozen=True, slots=True)
class Item:
    """One object that bears marks of ours: which object exactly, and the names of the marks."""

    side: Side
    resource: Resource
    key: Key
    uid: str
    version: str
    labels: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.side} {self.resource.kind} {self.key}"


@dataclass(slots=True)
class Inventory:
    """What was found, and what could not be looked at."""

    #: What we made: copies on the host, and on the virtual side what began on the host or nowhere.
    items: list[Item] = field(default_factory=list)
    #: Objects of the tenant's that have a note of ours, by which the daemon knows that they had a copy.
    noted: list[Item] = field(default_factory=list)
    #: What bears our mark on the virtual side, and is of a kind that we make nothing of there.
    doubtful: list[Item] = field(default_factory=list)
    #: Lists that failed, each with the reason.
    problems: list[str] = field(default_factory=list)
    #: Kinds that no syncer of the configuration is about, and that could not be looked at.
    unseen: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Recognition:
    """Tells what is ours: by the kinds of all syncers that there are, whether or not they are switched on."""

    settings: Settings
    #: Kinds on the host, with the virtual kinds that their objects may be copies of.
    copies: Mapping[str, Sequence[Resource]]
    #: Virtual kinds of which everything that bears our mark was made by us.
    shown: frozenset[str]
    #: Virtual kinds of which there are copies.
    copied: frozenset[str]
    #: The kinds, by side, of which the syncers that are on make objects, or copies.
    wanted: frozenset[tuple[Side, str]]

    @classmethod
    def of(cls, cluster: VirtualCluster) -> "Recognition":
        """Return what recognises all kinds of a virtual cluster."""
        settings, copies = cluster.settings(), defaultdict(list)
        shown = {name for name, entry in cluster.sync.custom.items() if entry.direction == "fromHost"}
        copied = set(cluster.sync.custom) - shown
        for direction in (direction_of(each()) for each in cluster.syncers):
            syncer = direction.syncer
            if direction.goes_down:
                copies[str(syncer.host_resource)].append(syncer.resource)
                copied.add(str(syncer.resource))
            if direction.comes_up or direction.fakes:
                shown.add(str(syncer.resource))
        made = cluster.all_syncers()
        wanted = {(Side.VIRTUAL, str(resource)) for syncer in made for resource in resources_of(syncer)[:1]}
        wanted |= {(Side.HOST, str(syncer.host_resource)) for syncer in made if direction_of(syncer).goes_down}
        return cls(settings, dict(copies), frozenset(shown), frozenset(copied), frozenset(wanted))

    @property
    def marks(self) -> Marks:
        """The names of the marks."""
        return self.settings.marks

    def is_ours(self, side: Side, resource: Resource, obj: Obj) -> bool:
        """Return True if we made an object.

        On the host a copy of our copy, which a controller there made, isn't ours.
        """
        if labels_of(obj).get(self.marks.cluster) != self.settings.identity:
            return False
        if side is Side.HOST:
            kinds = (resource, *self.copies.get(str(resource), ()))
            return any(self.marks.is_ours(obj, cluster=self.settings.identity, resource=kind) for kind in kinds)
        return str(resource) in self.shown or f"{self.marks.prefix}/{MADE_FOR}" in annotations_of(obj)

    def item(self, side: Side, resource: Resource, obj: Obj) -> Item:
        """Return what has to be known of an object."""
        metadata, is_mark = obj["metadata"], self.marks.is_mark
        return Item(
            side,
            resource,
            key_of(obj),
            uid_of(obj),
            metadata.get("resourceVersion", ""),
            tuple(filter(is_mark, labels_of(obj))),
            tuple(filter(is_mark, annotations_of(obj))),
        )


class Lister:
    """Looks at both clusters."""

    def __init__(self, clusters: Mapping[Side, Cluster], known: Recognition) -> None:
        self.clusters, self.known = clusters, known
        self.discoveries = {side: Discovery(cluster) for side, cluster in clusters.items()}
        self._gate = asyncio.Semaphore(LISTS)

    async def look(self) -> Inventory:
        """List everything. Raises ``ClusterError`` where a cluster doesn't even say what it serves."""
        await asyncio.gather(*(discovery.refresh() for discovery in self.discoveries.values()))
        inventory = Inventory()
        for side, discovery in self.discoveries.items():
            for version in discovery.silent:
                why = f"{side} {version}: the API server can't say what it serves of it"
                group = version.rpartition("/")[0]
                about = any(one is side and name.partition(".")[2] == group for one, name in self.known.wanted)
                (inventory.problems if about else inventory.unseen).append(why)
        places = [place for side in Side for place in self._places(side)]
        seen: set[str] = set()
        for found in await asyncio.gather(*(self._one(*place) for place in places)):
            _add(inventory, found, seen)
        inventory.doubtful = _new(inventory.doubtful, seen)
        return inventory

    def kinds(self, side: Side) -> Iterator[Resource]:
        """Yield the kinds that can be listed and deleted, each in the version that the server prefers."""
        named = set()
        for resource in self.discoveries[side].resources():
            if self.discoveries[side].verbs(resource) >= _VERBS and str(resource) not in named:
                named.add(str(resource))
                yield resource

    async def objects(self, side: Side, resource: Resource, namespace: str = "") -> AsyncIterator[Obj]:
        """All objects of a kind, ours or not. Raises ``ClusterError``."""
        async for page in self.clusters[side].list_pages(resource, namespace=namespace):
            for raw in page.items:
                yield codec.seen(raw)

    async def still_there(self, items: Iterable[Item]) -> dict[Item, Obj]:
        """Those of the items that are still there and ours, as they are now. Raises ``ClusterError``."""
        waiting = {item.uid: item for item in items}
        found: dict[Item, Obj] = {}
        for side, resource in {(item.side, item.resource) for item in waiting.values()}:
            for namespace in self._namespaces(side, resource):
                with contextlib.suppress(Missing):
                    async for obj in self._bearing(side, resource, namespace):
                        if uid_of(obj) in waiting and self.known.is_ours(side, resource, obj):
                            found[waiting[uid_of(obj)]] = obj
        return found

    # -- inside ----------------------------------------------------------------------------------------------------

    def _places(self, side: Side) -> Iterator[tuple[Side, Resource, str]]:
        for resource in self.kinds(side):
            for namespace in self._namespaces(side, resource):
                yield side, resource, namespace

    def _namespaces(self, side: Side, resource: Resource) -> Iterable[str]:
        """Where a kind is listed: copies are in certain namespaces, and there may be no right to look elsewhere."""
        namespaces = self.known.settings.names.host_namespaces() if side is Side.HOST else None
        return ("",) if namespaces is None or not resource.namespaced else namespaces

    async def _one(self, side: Side, resource: Resource, namespace: str) -> Inventory:
        for attempt in range(ATTEMPTS):
            found = Inventory()
            try:
                async with self._gate:
                    await self._marked(found, side, resource, namespace)
                    if side is Side.VIRTUAL and str(resource) in self.known.copied:
                        await self._with_notes(found, resource)
                return found
            except Missing:
                return Inventory()  # no longer served, and its objects have gone with it
            except Expired as error:
                if attempt == ATTEMPTS - 1:
                    return Inventory(problems=[str(error)])
            except ClusterError as error:
                unneeded = isinstance(error, Forbidden) and (side, str(resource)) not in self.known.wanted
                return Inventory(unseen=[str(error)]) if unneeded else Inventory(problems=[str(error)])
        raise AssertionError("every attempt returns or is followed by another")

    async def _marked(self, found: Inventory, side: Side, resource: Resource, namespace: str) -> None:
        async for obj in self._bearing(side, resource, namespace):
            item = self.known.item(side, resource, obj)
            if self.known.is_ours(side, resource, obj):
                found.items.append(item)
            elif side is Side.VIRTUAL:
                found.doubtful.append(item)

    async def _bearing(self, side: Side, resource: Resource, namespace: str) -> AsyncIterator[Obj]:
        """Yield the objects that bear our mark."""
        selector = self.known.marks.selector(self.known.settings.identity)
        async for page in self.clusters[side].list_pages(resource, namespace=namespace, selector=selector):
            for raw in page.items:
                yield codec.seen(raw)

    async def _with_notes(self, found: Inventory, resource: Resource) -> None:
        mark = self.known.marks.copied.encode()
        async for page in self.clusters[Side.VIRTUAL].list_pages(resource):
            for obj in (codec.seen(raw) for raw in page.items if mark in bytes(raw)):
                if self.known.marks.copied in annotations_of(obj):
                    found.noted.append(self.known.item(Side.VIRTUAL, resource, obj))


def _add(inventory: Inventory, found: Inventory, seen: set[str]) -> None:
    """Take over what one list has found; some objects are served in several groups."""
    inventory.items += _new(found.items, seen)
    inventory.noted += found.noted
    inventory.doubtful += found.doubtful
    inventory.problems += found.problems
    inventory.unseen += found.unseen


def _new(items: Iterable[Item], seen: set[str]) -> list[Item]:
    """Those that were not seen yet."""
    new = {item.uid: item for item in items if item.uid not in seen}
    seen.update(new)
    return list(new.values())
