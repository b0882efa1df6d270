"""One syncer at work in one cluster pair: its stores, its options, and what its requests are about."""

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

#: The most reads of one decision that are noted; what lies beyond them wakes no parked request.
MOST_READS = 256


class Read(NamedTuple):
    """A read of an object by a decision, with its entry at that time; None: it was not there."""

    store: Informer
    key: Key
    entry: Entry | None


class Reads:
    """The cached reads of one decision (:class:`~syncer.api.Reader`). Each decision has its own."""

    __slots__ = ("_informers", "_references", "noted")

    def __init__(self, informers: Informers, references: References) -> None:
        self._informers, self._references = informers, references
        #: The objects that the decision has read beside its own two, in order.
        self.noted: list[Read] = []

    def get(self, side: Side, resource: Resource, key: Key) -> Obj | None:
        """Return a private copy of an object. Raises KeyError where its resource isn't watched."""
        store = self._informers.store(side, resource)
        if len(self.noted) < MOST_READS:
            self.noted.append(Read(store, key, store.entry(key)))
        return store.get(key)

    def keys(self, side: Side, resource: Resource) -> Collection[Key]:
        """Return the keys of all objects."""
        return self._informers.store(side, resource).keys()

    def indexed(self, side: Side, resource: Resource, index: str, value: str) -> Collection[Key]:
        """Return the keys of the objects for which an index function gave this value."""
        return self._informers.store(side, resource).indexer.keys(index, value)

    def used(self, resource: Resource, virtual: Obj) -> bool | None:
        """Return True if a synced object refers to a virtual object; None if that can't be known now."""
        return self._references.of(resource, virtual)


@dataclass(frozen=True, slots=True)
class View:
    """What the controllers of one pair share: the settings, what was last seen of both sides, and the time."""

    settings: Settings
    informers: Informers
    references: References
    utcnow: Callable[[], datetime]

    def reads(self) -> Reads:
        """Return the reader of one decision."""
        return Reads(self.informers, self.references)


@dataclass(slots=True, eq=False)
class Controller:
    """One syncer at work in one pair."""

    syncer: Syncer
    config: Config
    view: View
    #: The syncer's predicate, as the only item, and nothing where it raises; None where every object may have a copy.
    predicate: Callable[[Obj], Sequence[bool]] | None
    #: Who owns which fields, and what a deleted copy means; None where all is as usual.
    ownership: "Ownership | None"
    #: The way that its objects go.
    direction: Direction
    stores: tuple[Informer, ...]
    #: Stores of other syncers' objects that it only reads; it begins without those that can't be had.
    extras: tuple[Informer, ...] = ()
    #: Set once all its stores are filled; before that nothing is decided.
    ready: bool = False
    #: The extras that it has begun without.
    missed: set[Informer] = field(default_factory=set)
    #: The policies that hold for its requests, and those of them that hold for a scan of the patroller.
    pipeline: "Pipeline" = field(init=False)
    scan_pipeline: "Pipeline" = field(init=False)
    #: By side: the paths of a write below which the other side may have nothing of its own.
    exact: Mapping[Side, tuple[FieldPath, ...]] = field(init=False)
    #: The labels and annotations that cross; None if all do.
    metadata: MetadataFilter | None = field(init=False)
    #: The settings of the virtual cluster.
    settings: Settings = field(init=False)
    #: The stores of its own objects; None on a side where it has none.
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
        """The syncer's name."""
        return self.syncer.name

    def store(self, side: Side) -> Informer | None:
        """Return the store of the syncer's objects on a side; None where it has none there."""
        return self.virtual if side is Side.VIRTUAL else self.host

    def has(self, side: Side, key: Key) -> bool:
        """Return True if an object of the syncer's resource is on a side."""
        store = self.store(side)
        return store is not None and key in store

    def may_have_copy(self, virtual: Obj) -> bool:
        """Return what the predicate says of a virtual object; True where it raises, or there is none."""
        return self.predicate is None or self.predicate(virtual) != [False]

    def own_stores(self) -> list[Informer]:
        """Return the stores of the syncer's objects on both sides."""
        return [store for store in (self.virtual, self.host) if store is not None]

    def request(self, key: Key, host_key: Key | None = None) -> Request:
        """Return the request for a virtual key."""
        return Request(self.view.settings.cluster, self.syncer.name, key, host_key)

    def context(self, reads: Reads | None = None, place: Callable[[Settings, Key], Key] | None = None) -> Context:
        """Return what the syncer may see, as of now; ``place`` stands for its ``host_key``."""
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
        """Return the place on the host of a virtual key's copy.

        Where the syncer can't say it, that is the key itself, and the request for the key fails with the reason.
        """
        try:
            return self.syncer.host_key(self.view.settings, key)
        except Exception:  # noqa: BLE001 — a bug of the syncer, too
            return key

    def request_for(self, side: Side, key: Key, obj: Obj | None) -> Request | None:
        """Return the request that an object of the syncer's resource on a side concerns, if any."""
        return self.direction.request_for(self, side, key, obj)


def safely(cluster: str, syncer: Syncer, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of a syncer, so that what it raises does not stop the watch that feeds every syncer."""
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
