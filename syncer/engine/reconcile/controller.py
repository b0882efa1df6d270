"""A controller: a syncer at work in a cluster pair, with its stores and options."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from syncer.api.config import Config
from syncer.api.context import Context, Settings
from syncer.api.metadata_rules import MetadataFilter
from syncer.api.objects import Key, Obj, Request, Resource, Side
from syncer.api.paths import FieldPath
from syncer.api.roles import Syncer
from syncer.directions import Direction, resources_of
from syncer.engine.cache.informer import Informer
from syncer.engine.cache.informers import Informers
from syncer.engine.cache.references import References
from syncer.engine.cache.store import Entry
from syncer.engine.reconcile.calls import exact_paths
from syncer.observe.logs import get_logger

if TYPE_CHECKING:
    from syncer.engine.reconcile.pipeline import Pipeline
    from syncer.engine.reconcile.policies.ownership import Ownership

log = get_logger(__name__)

#: Maximum number of recorded reads of a decision; changes of further objects wake no parked
#: request.
MOST_READS = 256


class Read(NamedTuple):
    """A decision's read of an object, with its store entry at that time; None if it did not exist."""

    store: Informer
    key: Key
    entry: Entry | None


class Reads:
    """The cached reads of a single decision (:class:`~syncer.api.Reader`)."""

    __slots__ = ("_controllers", "_informers", "_references", "noted")

    def __init__(self, informers: Informers, references: References, controllers: "Mapping[str, Controller]") -> None:
        self._informers, self._references, self._controllers = informers, references, controllers
        #: The objects that the decision read besides its own two, in order.
        self.noted: list[Read] = []

    def get(self, side: Side, resource: Resource, key: Key) -> Obj | None:
        """Return a private copy of an object, or None.

        Raises:
            KeyError: The resource is not watched.
        """
        store = self._informers.store(side, resource)
        if len(self.noted) < MOST_READS:
            self.noted.append(Read(store, key, store.entry(key)))
        return store.get(key)

    def keys(self, side: Side, resource: Resource) -> Collection[Key]:
        """Return the keys of all objects."""
        return self._informers.store(side, resource).keys()

    def indexed(self, side: Side, resource: Resource, index: str, value: str) -> Collection[Key]:
        """Return the keys of the objects for which the index function yielded ``value``."""
        return self._informers.store(side, resource).indexer.keys(index, value)

    def used(self, resource: Resource, virtual: Obj) -> bool | None:
        """Return True if a synced object refers to a virtual object, None if that is not known yet."""
        return self._references.of(resource, virtual)

    def copied_by(self, group: str, kind: str) -> Sequence[Syncer]:
        """Return the running syncers whose copies have this kind on the host."""
        going_down = (each.syncer for each in self._controllers.values() if each.direction.goes_down)
        return [
            syncer for syncer in going_down if (syncer.host_resource.group, syncer.host_resource.kind) == (group, kind)
        ]


@dataclass(frozen=True, slots=True)
class View:
    """The shared state of a pair's controllers: the settings, the cached objects of both sides, and
    the time.
    """

    settings: Settings
    informers: Informers
    references: References
    utcnow: Callable[[], datetime]
    #: The running controllers, by the name of their syncers.
    controllers: "Mapping[str, Controller]"

    def reads(self) -> Reads:
        """Return a reader for a decision."""
        return Reads(self.informers, self.references, self.controllers)

    def copies(self) -> list[Informer]:
        """Return the stores of copies and of their originals."""
        going_down = (each for each in self.controllers.values() if each.direction.goes_down)
        return [store for each in going_down for store in each.own_stores()]


@dataclass(slots=True, eq=False)
class Controller:
    """A syncer at work in a cluster pair."""

    syncer: Syncer
    config: Config
    view: View
    #: Returns the result of the syncer's predicate as the only item, or nothing if it raises. None if
    #: every object may have a copy.
    predicate: Callable[[Obj], Sequence[bool]] | None
    #: The policy for ``authority`` and ``onHostDeletion``; None if both have their defaults.
    ownership: "Ownership | None"
    #: The direction of its objects.
    direction: Direction
    stores: tuple[Informer, ...]
    #: Stores of other syncers' objects that it only reads; it works without those that are
    #: unavailable.
    extras: tuple[Informer, ...] = ()
    #: True once all its stores are filled; before that nothing is decided.
    ready: bool = False
    #: The extras that were unavailable when it began.
    missed: set[Informer] = field(default_factory=set)
    #: The policies for its requests, and the shorter list for a scan of the patroller.
    pipeline: "Pipeline" = field(init=False)
    scan_pipeline: "Pipeline" = field(init=False)
    #: By side: paths of a write below which the other side keeps no fields of its own.
    exact: Mapping[Side, tuple[FieldPath, ...]] = field(init=False)
    #: The labels and annotations that are copied; None for all.
    metadata: MetadataFilter | None = field(init=False)
    #: The settings of the virtual cluster.
    settings: Settings = field(init=False)
    #: The stores of its own objects; None on a side without objects.
    virtual: Informer | None = field(init=False)
    host: Informer | None = field(init=False)

    def __post_init__(self) -> None:
        self.exact = {side: exact_paths(self.syncer, side) for side in Side}
        rules = MetadataFilter(
            self.syncer.metadata, self.config.metadata, self.syncer.up if self.direction.goes_down else ()
        )
        self.metadata = rules if rules.narrows else None
        self.settings = self.view.settings
        informers, resources = self.view.informers, zip(Side, resources_of(self.syncer), strict=False)
        own = {place[0]: informers.store(*place) for place in resources if informers.has(*place)}
        self.virtual, self.host = own.get(Side.VIRTUAL), own.get(Side.HOST)

    @property
    def name(self) -> str:
        """The name of the syncer."""
        return self.syncer.name

    def store(self, side: Side) -> Informer | None:
        """Return the store of the syncer's objects on a side, or None if it has none there."""
        return self.virtual if side is Side.VIRTUAL else self.host

    def has(self, side: Side, key: Key) -> bool:
        """Return True if the cache has an object of the syncer's resource at this key."""
        store = self.store(side)
        return store is not None and key in store

    def may_have_copy(self, virtual: Obj) -> bool:
        """Return the result of the predicate; True if it raises, or if there is none."""
        return self.predicate is None or self.predicate(virtual) != [False]

    def own_stores(self) -> list[Informer]:
        """Return the stores of the syncer's objects."""
        return [store for store in (self.virtual, self.host) if store is not None]

    def request(self, key: Key, host_key: Key | None = None) -> Request:
        """Return the request for a virtual key."""
        return Request(self.view.settings.cluster, self.syncer.name, key, host_key)

    def context(self, reads: Reads | None = None, place: Callable[[Settings, Key], Key] | None = None) -> Context:
        """Return the syncer's context, as of now; ``place`` replaces its ``host_key``."""
        syncer, view = self.syncer, self.view
        return Context(
            settings=view.settings,
            config=self.config,
            resource=syncer.resource,
            host_resource=syncer.host_resource,
            reader=reads if reads is not None else view.reads(),
            now=view.utcnow(),
            place=place or syncer.host_key,
            metadata=self.metadata,
        )

    def place(self, key: Key) -> Key:
        """Return the host key of a virtual key's copy.

        If the syncer refuses to translate it, return the key itself; its request fails with the
        reason.
        """
        try:
            return self.syncer.host_key(self.view.settings, key)
        except Exception:  # noqa: BLE001 — a bug of the syncer, too
            return key

    def request_for(self, side: Side, key: Key, obj: Obj | None) -> Request | None:
        """Return the request that an object of the syncer's resource belongs to, or None."""
        return self.direction.request_for(self, side, key, obj)


def safely(cluster: str, syncer: Syncer, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of a syncer, so that its exceptions don't stop the watch that feeds every syncer."""
    logged = False

    def safe(*arguments: Any) -> Any:
        nonlocal logged
        try:
            found = function(*arguments)
            return list(found) if found is not None else ()
        except Exception:
            if not logged:
                what = "an index, a watch, a key function or predicate of a syncer raised"
                log.exception(what, cluster=cluster, syncer=syncer.name)
            logged = True
            return ()

    return safe
