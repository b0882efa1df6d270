"""A controller: a syncer at work in a cluster pair, with its stores and options."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from syncer.api import reasons
from syncer.api.config import Config
from syncer.api.context import Context, CopiedKind, Settings
from syncer.api.errors import NotYet, Refused
from syncer.api.metadata_defaults import is_note, of_every_kind
from syncer.api.metadata_rules import MetadataFilter
from syncer.api.objects import Key, Obj, ObjectRef, Resource, Side, SyncRequest
from syncer.api.optional_roles import AroundReconcile, Excludes, Refers
from syncer.api.paths import FieldPath, metadata_key
from syncer.api.roles import Mirror, Syncer
from syncer.cache.entry import Entry
from syncer.clusters.codec import InvolvedObject
from syncer.directions import Direction, resources_of
from syncer.engine.reconcile.calls import exact_paths
from syncer.engine.stores.informers import Informers, SideInformer
from syncer.engine.stores.references import References
from syncer.observe.logs import get_logger
from syncer.resources.definitions.config import PUBLIC_LABEL

log = get_logger(__name__)

#: Maximum number of recorded reads of a decision; changes of further objects wake no parked
#: request.
MOST_READS = 256
#: Maximum number of names in an object that lead nowhere yet. Each is checked on the live host
#: before the copy is written.
MOST_VACANT = 64
#: Bytes of named copies whose marks a decision reads itself. Those of further copies are read in
#: steps of about so many bytes before the decision is made again: a Pod may name hundreds of large
#: copies.
MOST_NAMED = 1 << 20
#: Longest kind and key in a reason, in characters. API servers check of most names in an object
#: only that they aren't empty.
LONGEST_NAMED = 400


class Vacant(NamedTuple):
    """A host key that a copy names, and where no other object than the one of ``key`` may be."""

    #: The resource on the host.
    resource: Resource
    host_key: Key
    #: The virtual key of the named object.
    key: Key
    #: The controllers that may put it there: those of copies, if there are any of the kind.
    about: "Sequence[BoundSyncer]"

    def is_meant(self, host: Obj) -> bool | None:
        """Return True if an object at the host key stands for the named one.

        None if that is not known before every controller is ready.
        """
        for controller in self.about:
            if controller.match(self.key, host).is_meant:
                return True
        are_all_ready = all(controller.ready for controller in self.about)
        return False if are_all_ready else None


class Read(NamedTuple):
    """A decision's read of an object, with the state at that time.

    It keeps no object: thousands of requests may wait, each for hundreds of large ones.
    """

    store: SideInformer
    key: Key
    #: The resourceVersion, the uid, and the bytes of JSON; None if the object did not exist. The
    #: version is not enough, as an object that is quarantined keeps it.
    state: tuple[str, str, int] | None

    @classmethod
    def of(cls, store: SideInformer, key: Key) -> "Read":
        """Return a read of an object as it is now."""
        return cls(store, key, _state(store.entry(key)))

    def is_current(self) -> bool:
        """Return True if the object is as it was."""
        return self.state == _state(self.store.entry(self.key))


def _state(entry: Entry | None) -> tuple[str, str, int] | None:
    return None if entry is None else (entry.version, entry.uid, entry.size)


class NamedCopy(NamedTuple):
    """A copy that an object names: the controller of its kind, its virtual and its host key."""

    controller: "BoundSyncer"
    key: Key
    host_key: Key

    def check(self) -> "CheckedCopy":
        """Return whether the host object, as it is now, is the named one."""
        store = self.controller.host_at(self.host_key)
        if store is None:
            return CheckedCopy(None, False)
        entry = store.entry(self.host_key)
        match = _match(self.controller, store, self.key, self.host_key)
        return CheckedCopy(entry, match.is_meant)


class CheckedCopy(NamedTuple):
    """Whether a named copy is the right one, and the entry of the host object that was checked."""

    entry: Entry | None
    is_meant: bool


class Match(NamedTuple):
    """Whether a host object stands for a virtual one, and the objects that were read for that."""

    is_meant: bool
    reads: Sequence[Read] = ()


#: The checked copies that an earlier decision about the same request left unread.
CheckedCopies = Mapping[NamedCopy, CheckedCopy]


def _unknown_minor(side: Side) -> int:
    return 0


class Reads:
    """The cached reads of a single decision (:class:`~syncer.api.Reader`)."""

    __slots__ = (
        "_controllers",
        "_informers",
        "_known",
        "_minor",
        "_references",
        "_resolved",
        "_room",
        "left_out",
        "noted",
        "unread",
        "vacant",
    )

    def __init__(
        self,
        informers: Informers,
        references: References,
        controllers: "Mapping[str, BoundSyncer]",
        known: CheckedCopies | None = None,
        minor: Callable[[Side], int] = _unknown_minor,
    ) -> None:
        self._informers = informers
        self._references = references
        self._controllers = controllers
        self._minor = minor
        #: Whether copies are the named ones, as found before; None: a decision reads all by itself.
        self._known = known
        self._room = MOST_NAMED
        #: Named copies that the decision hasn't read, and took for the right ones. It is then made
        #: again.
        self.unread: list[NamedCopy] = []
        #: The objects that the decision read besides its own two, in order.
        self.noted: list[Read] = []
        #: The fields of the virtual object that are not copied; its owner is notified.
        self.left_out: tuple[str, ...] = ()
        #: The host keys that the decision's names lead to, and where the cache has no object.
        self.vacant: tuple[Vacant, ...] = ()
        self._resolved: set[tuple[Resource, Key, bool]] | None = None

    def get(self, side: Side, resource: Resource, key: Key) -> Obj | None:
        """Return a private copy of an object, or None.

        Raises:
            KeyError: The resource is not watched.
        """
        store = self._informers.at(side, resource, key)
        self.note(store, key)
        return store.get(key)

    def keys(self, side: Side, resource: Resource) -> Collection[Key]:
        """Return the keys of all objects."""
        return self._informers.keys(side, resource)

    def indexed(self, side: Side, resource: Resource, index: str, value: str) -> Collection[Key]:
        """Return the keys of the objects for which the index function yielded ``value``."""
        return self._informers.indexed(side, resource, index, value)

    def values(self, side: Side, resource: Resource, index: str, key: Key) -> Collection[str]:
        """Return the values that the index function yielded for the object of a key."""
        return self._informers.store(side, resource).indexer.of(index, key)

    def resolve(
        self, resource: Resource, key: Key, host_key: Key, *, comes_later: bool = False
    ) -> None:
        """Check that a name in a copy leads to nothing but the object that the tenant means.

        A name that only this virtual cluster's objects have on the host may lead to nothing yet:
        the live host must confirm that (``vacant``). A name that is the same on both sides may not:
        the host's own object could appear there at any time.

        Raises:
            NotYet: No copy of the object is there yet.
            Refused: No copy of the object can be there.
        """
        if self._resolved is None:
            self._resolved = set()
        if (resource, key, comes_later) not in self._resolved:
            self._resolve(resource, key, host_key, comes_later)
            self._resolved.add((resource, key, comes_later))

    def _resolve(self, resource: Resource, key: Key, host_key: Key, comes_later: bool) -> None:
        standing = [each for each in self._controllers.values() if each.stands_for == resource]
        for controller in standing:
            if self._leads_home(controller, key, host_key):
                return
        # What isn't there yet is to become a copy, if any syncer makes copies of the kind: one that
        # shows objects of the host may have them anywhere.
        controllers = [each for each in standing if each.direction.goes_down] or standing

        is_same = host_key.name == key.name
        if comes_later and not is_same:
            # The host may have made an earlier object of that name, as unmarked as its own ones.
            return

        shown = str(key)[:LONGEST_NAMED]
        if is_same and not (comes_later or self._references.maker(resource, key)):
            if not controllers:
                why = (
                    f"it names the {resource.kind} {shown}, and no {resource.kind} is synced:"
                    " the host's own would be meant"
                )
                raise Refused(why, reason="ReferenceUnsynced")
            why = reasons.NO_COPY_YET(resource.kind, shown)
            missing = ObjectRef(Side.HOST, controllers[0].syncer.host_resource, host_key)
            raise NotYet(why, on=missing)

        if controllers:
            host_resource = controllers[0].syncer.host_resource
            if len(self.vacant) == MOST_VACANT:
                why = reasons.TOO_MANY_MISSING(MOST_VACANT, resource.kind, shown)
                raise NotYet(why, on=ObjectRef(Side.HOST, host_resource, host_key))
            self.vacant += (Vacant(host_resource, host_key, key, controllers),)

    def _leads_home(self, controller: "BoundSyncer", key: Key, host_key: Key) -> bool:
        """Return True if the object at a host key stands for the virtual object of this key."""
        store = controller.host_at(host_key)
        if store is None:
            return False
        self.note(store, host_key)

        if self._known is not None:
            entry = store.entry(host_key)
            if entry is not None:
                self._room -= entry.size
            if self._room < 0:
                named = NamedCopy(controller, key, host_key)
                checked = self._known.get(named)
                if checked is not None and checked.entry is entry:
                    return checked.is_meant
                self.unread.append(named)
                return True

        match = _match(controller, store, key, host_key)
        if match.reads:
            self.noted += match.reads[: MOST_READS - len(self.noted)]
        return match.is_meant

    def note(self, store: SideInformer, key: Key) -> None:
        """Note a read of an object: when it changes, a request that waits is reconciled again."""
        if len(self.noted) < MOST_READS:
            self.noted.append(Read.of(store, key))

    def used(self, resource: Resource, virtual: Obj) -> bool | None:
        """Return True if a synced object refers to a virtual object; None if not known yet."""
        return self._references.of(resource, virtual)

    def copied_by(self, group: str, kind: str) -> Sequence[CopiedKind]:
        """Return the kinds that running syncers copy to objects of this kind on the host."""
        found = []
        for controller in self._controllers.values():
            syncer = controller.syncer
            host_resource = syncer.host_resource
            if not controller.direction.makes_copies:
                continue
            if host_resource.group == group and host_resource.kind == kind:
                host_key = partial(syncer.host_key, controller.settings)
                references = partial(_referenced_by, syncer)
                found.append(CopiedKind(syncer.resource, host_resource, host_key, references))
        return found

    def synced(self, resource: Resource) -> bool:
        """Return True if a running syncer has host objects for virtual objects of a resource."""
        return any(each.stands_for == resource for each in self._controllers.values())

    def is_complete(self, side: Side, resource: Resource) -> bool:
        """Return True if the cache has been filled: not while the first list fails."""
        return self._informers.store(side, resource).synced

    def minor_version(self, side: Side) -> int:
        """Return the minor version of Kubernetes 1 of a side's API server; 0 if unknown."""
        return self._minor(side)

    def original(self, host_key: Key) -> Key | None:
        """Return the virtual key of the object that has its copy at a host key, or None.

        The object may be of any kind.
        """
        return original(self._controllers.values(), host_key)

    def leave_out(self, fields: Iterable[str]) -> None:
        """Note fields of the virtual object that are not copied."""
        self.left_out = tuple(dict.fromkeys((*self.left_out, *fields)))


def _match(controller: "BoundSyncer", store: SideInformer, key: Key, host_key: Key) -> Match:
    """Return whether the object at a host key stands for the virtual object of this key."""
    settings = controller.settings
    host = store.outline(host_key)
    if host is not None and not settings.marks.is_at_own_key(host, cluster=settings.identity):
        # Whether the host made it for the tenant may depend on the whole object.
        host = store.get(host_key)
    if host is None:
        return Match(False)
    return controller.match(key, host)


def original(controllers: "Iterable[BoundSyncer]", host_key: Key) -> Key | None:
    """Return the virtual key of the object of any kind that has its copy at a host key, or None.

    The controllers are those of a virtual cluster.
    """
    for controller in controllers:
        store = controller.host
        marks = controller.settings.marks
        if store is None or not controller.direction.goes_down or store.entry(host_key) is None:
            continue
        copy = store.outline(host_key)
        if copy is None:
            continue
        identity = controller.settings.identity
        resource = controller.syncer.resource
        if marks.is_ours(copy, cluster=identity, resource=resource):
            return marks.virtual_key(copy)
    return None


def _referenced_by(syncer: Syncer, virtual: Obj) -> Iterable[tuple[Resource, Key]]:
    """Return the objects that a virtual object of a syncer refers to, or has made on the host."""
    if not isinstance(syncer, Refers):
        return ()
    return (*syncer.refers(virtual), *syncer.made_on_host(virtual))


@dataclass(frozen=True, slots=True)
class View:
    """The shared state of a pair's controllers.

    The settings, the cached objects of both sides, and the time.
    """

    settings: Settings
    informers: Informers
    references: References
    utcnow: Callable[[], datetime]
    #: The running controllers, by the name of their syncers.
    controllers: "Mapping[str, BoundSyncer]"
    #: Returns the minor version of Kubernetes 1 of a side's API server; 0 if unknown.
    minor: Callable[[Side], int] = _unknown_minor

    def reads(self, known: CheckedCopies | None = None) -> Reads:
        """Return a reader for a decision.

        With ``known`` the reader leaves some named copies unread (:attr:`Reads.unread`).
        """
        return Reads(self.informers, self.references, self.controllers, known, self.minor)

    def has_copy(self, about: InvolvedObject) -> bool:
        """Return True if an Event of the host is about a copy, or about one to come or gone.

        A kind that no syncer has may get one later, with its definition. Not in groups whose names
        have no dot: every API server has them from its start.
        """
        is_known = False
        for controller in self.controllers.values():
            resource = controller.syncer.host_resource
            if resource.kind != about.kind or resource.group != about.group:
                continue
            is_known = True
            if controller.direction.makes_copies and controller.is_or_was_copied(about):
                return True
        return not is_known and "." in about.group

    def copies(self) -> list[SideInformer]:
        """Return the stores of copies and of their originals."""
        stores: list[SideInformer] = []
        for controller in self.controllers.values():
            if controller.direction.goes_down:
                stores += controller.own_stores()
        return stores


@dataclass(slots=True, eq=False)
class BoundSyncer:
    """A syncer at work in a cluster pair."""

    syncer: Syncer
    config: Config
    view: View
    #: Returns the result of the syncer's predicate as the only item, or nothing if it raises. None
    #: if every object may have a copy.
    predicate: Callable[[Obj], Sequence[bool]] | None
    #: True if copies may be written back: ``authority`` or ``onHostDeletion`` isn't the default.
    writes_back: bool
    #: The direction of its objects.
    direction: Direction
    stores: tuple[SideInformer, ...]
    #: Stores of other syncers' objects that it only reads; it works without those that are
    #: unavailable.
    extras: tuple[SideInformer, ...] = ()
    #: True once all its stores are filled; before that nothing is decided.
    ready: bool = False
    #: The first store that it waited for when that was last looked at; None if it waits for none.
    awaited: SideInformer | None = None
    #: The extras that were unavailable when it began.
    missed: set[SideInformer] = field(default_factory=set)
    #: By side: paths of a write below which the other side keeps no fields of its own.
    exact: Mapping[Side, tuple[FieldPath, ...]] = field(init=False)
    #: The labels and annotations that are copied.
    metadata: MetadataFilter = field(init=False)
    #: The settings of the virtual cluster.
    settings: Settings = field(init=False)
    #: The resources of its own objects, by side; none if it syncs nothing.
    resources: Mapping[Side, Resource] = field(init=False)
    #: The resource of the virtual objects that it has host objects for, to which a name in a copy
    #: may lead; None if it has none.
    stands_for: Resource | None = field(init=False)
    #: The host namespaces that its objects are put in; None if these are copies.
    own_namespaces: tuple[str, ...] | None = field(init=False)
    #: True if its host objects are only in the namespaces that copies are put in.
    is_among_copies: bool = field(init=False)
    #: The stores of its own objects; None on a side without objects, or where these are in parts.
    virtual: SideInformer | None = field(init=False)
    host: SideInformer | None = field(init=False)
    #: The stores of its own host objects: that one, or those of its parts.
    hosts: tuple[SideInformer, ...] = field(init=False)
    #: True if each change of a copy is followed by another decision, whatever the answer shows.
    looks_back: bool = field(init=False)
    #: The same for the creation of a copy.
    looks_at_creation: bool = field(init=False)
    #: The syncer, if it has these optional roles.
    around: AroundReconcile | None = field(init=False)
    excludes: Excludes | None = field(init=False)

    def __post_init__(self) -> None:
        self.exact = {side: exact_paths(self.syncer, side) for side in Side}
        self.settings = self.view.settings
        self.metadata = self._metadata_filter()

        self.resources = dict(zip(Side, resources_of(self.syncer), strict=False))
        self.stands_for = None
        if self.direction.by_host and not self.direction.made_for:
            self.stands_for = self.syncer.resource
        own: dict[Side, SideInformer] = {}
        for side, resource in self.resources.items():
            if self.view.informers.has(side, resource):
                own[side] = self.view.informers.store(side, resource)
        self.virtual = own.get(Side.VIRTUAL)
        self.host = own.get(Side.HOST)
        self.hosts = tuple(own[side] for side in (Side.HOST,) if side in own)
        self.own_namespaces = self.direction.own_namespaces(self.settings)
        self.is_among_copies = self.direction.is_among_copies(self.settings)
        if not self.is_among_copies:
            self.host = None
            host_resource = self.syncer.host_resource
            self.hosts = self.view.informers.parts(Side.HOST, host_resource, self.name)

        syncer: object = self.syncer
        self.around = syncer if isinstance(syncer, AroundReconcile) else None
        self.excludes = syncer if isinstance(syncer, Excludes) else None

        kind = type(self.syncer)
        is_plain = (
            issubclass(kind, Mirror) and kind.sync is Mirror.sync and kind.reflect is Mirror.reflect
        )
        patches = self.config.patches
        if patches.down or patches.up:
            self.looks_back = True
            self.looks_at_creation = True
        else:
            self.looks_back = kind.looks_back and not is_plain
            # What admission has put into the copy of a mirror may have to go.
            self.looks_at_creation = kind.looks_back

    def _metadata_filter(self) -> MetadataFilter:
        goes_down = self.direction.goes_down
        # Labels and annotations that patches have written up are no more the tenant's than those
        # that the kind brings up.
        patched: set[str] = set()
        for patch in self.config.patches.up:
            path = metadata_key(patch.path)
            if path:
                patched.add(path[1])

        def is_note_or_patched(key: str) -> bool:
            return is_note(key) or key in patched

        reserved: set[str] = set()
        if goes_down:
            reserved.add(PUBLIC_LABEL)
            for section in self.settings.sections.values():
                reserved.update(section.reserved_labels())
        up = self.syncer.up if goes_down else ()
        return MetadataFilter(
            self.syncer.metadata,
            self.config.metadata,
            up,
            every=of_every_kind(goes_down=goes_down),
            prefix=self.settings.marks.prefix,
            is_note=is_note_or_patched,
            reserved=reserved,
        )

    @property
    def name(self) -> str:
        """The name of the syncer."""
        return self.syncer.name

    def match(self, key: Key, host: Obj) -> Match:
        """Return whether a host object stands for the virtual object of this key.

        It is its copy, or the host made it for the tenant.
        """
        marks = self.settings.marks
        if marks.is_at_own_key(host, cluster=self.settings.identity):
            return Match(marks.virtual_key(host) == key)
        reads = self.view.reads()
        try:
            is_shown = self.direction.shows(self.context(reads), key, host)
        except Exception:  # noqa: BLE001 — a bug of the syncer, whose own request reports it
            is_shown = False
        return Match(is_shown, reads.noted)

    def store(self, side: Side, key: Key) -> SideInformer | None:
        """Return the store of the syncer's object at a key on a side, or None if it has none."""
        return self.virtual if side is Side.VIRTUAL else self.host_at(key)

    def host_at(self, key: Key) -> SideInformer | None:
        """Return the store of the syncer's host object at a key, or None if it has none there."""
        if self.host is not None:
            return self.host
        for store in self.hosts:
            if store.part is not None and store.part.contains(key):
                return store
        return None

    def store_of(self, ref: ObjectRef) -> SideInformer:
        """Return the store of an object; of the syncer's own kind, the one that it decides by.

        The part of another syncer may contain the object's key, too.

        Raises:
            KeyError: The resource isn't watched there.
        """
        store = None
        if self.resources.get(ref.side) == ref.resource:
            store = self.store(ref.side, ref.key)
        if store is None:
            store = self.view.informers.at(*ref)
        return store

    def has(self, side: Side, key: Key) -> bool:
        """Return True if the cache has an object of the syncer's resource at this key."""
        store = self.store(side, key)
        return store is not None and key in store

    def is_over(self, key: Key, host_key: Key) -> bool:
        """Return True if a request needs no further decision, as neither of its objects exists.

        A syncer with hooks around its decisions sees all of them.
        """
        if not self.direction.ends_with_both or self.around is not None:
            return False
        return not (self.has(Side.VIRTUAL, key) or self.has(Side.HOST, host_key))

    def may_have_copy(self, virtual: Obj) -> bool:
        """Return the result of the predicate; True if it raises, or if there is none."""
        return self.predicate is None or self.predicate(virtual) != [False]

    def is_or_was_copied(self, about: InvolvedObject) -> bool:
        """Return True if an object of the host is a copy; if it isn't there, by its name.

        Also if the name translator raises: this is asked in the task that reads for all clusters.
        """
        store = self.host_at(about.key)
        entry = None if store is None else store.entry(about.key)
        if entry is not None:
            return not about.uid or entry.uid == about.uid
        if store is not None and store.is_writing(about.key):
            return True  # Events may arrive before the response to its creation
        try:
            virtual = self.settings.names.to_virtual(self.syncer.host_resource, about.key)
        except Exception:  # noqa: BLE001 — the syncer of Events reports it
            return True
        return virtual is not None and self.has(Side.VIRTUAL, virtual)

    def own_stores(self) -> list[SideInformer]:
        """Return the stores of the syncer's objects."""
        return [store for store in (self.virtual, *self.hosts) if store is not None]

    def request(self, key: Key, host_key: Key | None = None) -> SyncRequest:
        """Return the request for a virtual key."""
        return SyncRequest(self.view.settings.cluster, self.syncer.name, key, host_key)

    def context(
        self, reads: Reads | None = None, host_key: Callable[[Settings, Key], Key] | None = None
    ) -> Context:
        """Return the syncer's context, as of now; ``host_key`` replaces that of the syncer."""
        syncer = self.syncer
        view = self.view
        if reads is None:
            reads = view.reads()
        return Context(
            settings=view.settings,
            config=self.config,
            resource=syncer.resource,
            host_resource=syncer.host_resource,
            reader=reads,
            now=view.utcnow(),
            translate=host_key or syncer.host_key,
            metadata=self.metadata,
            made_for=self.direction.made_for,
        )

    def host_key(self, key: Key) -> Key:
        """Return the host key of a virtual key's copy.

        If the syncer refuses to translate it, return the key itself; its request fails with the
        reason.
        """
        try:
            return self.syncer.host_key(self.view.settings, key)
        except Exception:  # noqa: BLE001 — a bug of the syncer, too
            return key

    def host_key_of(self, request: SyncRequest) -> Key:
        """Return the key of a request's host object: its own, or that of the copy."""
        return request.host_key or self.host_key(request.key)

    def request_for(self, side: Side, key: Key, obj: Obj | None) -> SyncRequest | None:
        """Return the request that an object of the syncer's resource belongs to, or None."""
        return self.direction.request_for(self, side, key, obj)


def safely(cluster: str, syncer: Syncer, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of a syncer, so that its exceptions don't end the watch of every syncer."""
    logged = False

    def safe(*arguments: Any) -> Any:
        nonlocal logged
        try:
            found = function(*arguments)
            return list(found) if found is not None else ()
        except Exception:
            if not logged:
                message = "an index, a watch, a key function or predicate of a syncer raised"
                log.exception(message, cluster=cluster, syncer=syncer.name)
            logged = True
            return ()

    return safe
