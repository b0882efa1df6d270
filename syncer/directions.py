"""Directions: the way of a syncer's objects, chosen once from its roles.

``ToHost``: a virtual object gets a copy on the host. ``FromHost``: a host object appears on the
virtual side. ``Fake``: an object exists on the virtual side alone. A direction knows which
resources to watch, which rights that takes, which request a changed object belongs to, which host
object a request is about, and which role to call. It checks marks and uids, so that no syncer has
to.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import ClassVar, Protocol

from syncer.api.context import Context, Settings
from syncer.api.contract import deprecations
from syncer.api.decision import Decision, Precondition, Verb, delete, skip, wait
from syncer.api.errors import NameTaken
from syncer.api.objects import (
    Key,
    Obj,
    ObjectRef,
    Pair,
    Resource,
    Side,
    SyncRequest,
    annotations_of,
    is_deleting,
    key_of,
    uid_of,
)
from syncer.api.paths import FieldPath, path_steps
from syncer.api.roles import FakeSyncUp, Sync, SyncDown, Syncer, SyncFromHost, SyncUp
from syncer.api.sources import Right, Source

#: Objects are created by POST, changed by PATCH and removed by DELETE; never replaced by PUT.
WRITE = ("create", "patch", "delete")


class SyncerView(Protocol):
    """The view that a direction has of its controller."""

    @property
    def settings(self) -> Settings:
        """The settings of the virtual cluster."""
        ...

    def context(self) -> Context:
        """Return the syncer's context, as of now."""
        ...

    def request(self, key: Key, host_key: Key | None = None) -> SyncRequest:
        """Return the request for a virtual key."""
        ...

    def place(self, key: Key) -> Key:
        """Return the host key of a virtual key; the virtual key itself if the syncer refuses to
        translate it.
        """
        ...

    def has(self, side: Side, key: Key) -> bool:
        """Return True if the cache has an object of the syncer's resource at this key."""
        ...

    def may_have_copy(self, virtual: Obj) -> bool:
        """Return the result of the syncer's ``predicate``; True if it raises."""
        ...


class Direction(ABC):
    """The way of a syncer's objects."""

    #: True if virtual objects have copies on the host.
    goes_down: ClassVar[bool] = False
    #: True if host objects appear on the virtual side.
    comes_up: ClassVar[bool] = False
    #: True if it makes objects that exist on the virtual side alone.
    fakes: ClassVar[bool] = False

    def __init__(self, syncer: Syncer) -> None:
        self.syncer = syncer
        #: True if changes of host objects lead to requests.
        self.by_host = self.goes_down or self.comes_up

    @property
    def syncs(self) -> bool:
        """True if the syncer is called with objects at all."""
        return self.goes_down or self.comes_up or self.fakes

    @property
    def by_virtual(self) -> bool:
        """Return True if every key of the virtual side is a request."""
        return self.goes_down or self.fakes

    @property
    def remakes(self) -> bool:
        """Return True if a copy that is deleted on the host is created again, unless a policy forbids it."""
        return self.goes_down and not self.syncer.own_deletion

    @property
    def outlasts_mark(self) -> bool:
        """Return True if a copy stays while its original is being deleted, until that is gone."""
        return self.remakes and self.syncer.deletion == "whenGone"

    def ends_copy(self, virtual: Obj) -> bool:
        """Return True if an original is being deleted, and its copy is to go with that mark already."""
        return is_deleting(virtual) and self.goes_down and not self.outlasts_mark

    @property
    def marked(self) -> bool:
        """Return True if the metadata of a host object is all that tells its request: our marks."""
        return self.goes_down and not self.comes_up

    @abstractmethod
    def sources(self) -> Iterable[Source]:
        """Yield the sources of the syncer's own resources."""

    @abstractmethod
    def rights(self) -> Iterable[Right]:
        """Yield the rights to write that follow from the syncer's roles and paths."""

    @abstractmethod
    def request_for(self, sight: SyncerView, side: Side, key: Key, obj: Obj | None) -> SyncRequest | None:
        """Return the request that a changed object of the syncer's resource belongs to, or None.

        ``obj`` is None for a virtual object of which only the key is known. An exception of the
        syncer is passed on.
        """

    @abstractmethod
    def decide(self, ctx: Context, key: Key, *, virtual: Obj | None, host: Obj | None) -> Decision:
        """Call the role for the objects of a key.

        Args:
            ctx: The syncer's context.
            key: The virtual key.
            virtual: A private copy of the cached virtual object, or None.
            host: A private copy of the cached host object, or None.

        Raises:
            Refused: The objects can't be synced. Any other exception of the syncer is passed on,
                too.
        """

    def is_among_copies(self, settings: Settings) -> bool:
        """Return True if its host objects are in the namespaces that copies are put in, and in no others."""
        return True

    def is_about(self, ctx: Context, key: Key, host: Obj) -> bool:
        """Return True if the host object at the host key of ``key`` is the one that the request is about."""
        return True

    def is_real(self, ctx: Context, host: Obj) -> bool:
        """Return True if the host object is the syncer's, rather than another one with its key."""
        return True

    def shows(self, ctx: Context, key: Key, host: Obj) -> bool:
        """Return True if an unmarked host object appears at this virtual key, now or at its next request."""
        return False

    def narrowed(self, source: Source, settings: Settings) -> Source:
        """Narrow a source of the syncer to the objects that can concern it."""
        return source


class ToHost(Direction):
    """Virtual objects have copies on the host, which bear our marks and are deleted with them."""

    goes_down = True

    def __init__(self, syncer: Syncer) -> None:
        super().__init__(syncer)
        assert isinstance(syncer, SyncDown)
        self._down: SyncDown = syncer
        self._sync = syncer if isinstance(syncer, Sync) else None
        self._up = syncer if isinstance(syncer, SyncUp) else None

    def sources(self) -> Iterable[Source]:
        """Yield the virtual objects that may have copies, and the marked copies."""
        yield Source(Side.VIRTUAL, self.syncer.resource, selector=self._down.virtual_selector)
        yield Source(Side.HOST, self.syncer.host_resource, marked=True)

    def rights(self) -> Iterable[Right]:
        """Yield the rights to write copies, and the fields that are copied up."""
        syncer = self.syncer
        yield Right(Side.HOST, syncer.host_resource, WRITE)
        yield from by_path(Side.HOST, syncer.host_resource, syncer.down)
        yield from by_path(Side.VIRTUAL, syncer.resource, (*(syncer.up if self._sync else ()), *syncer.both))

    def request_for(self, sight: SyncerView, side: Side, key: Key, obj: Obj | None) -> SyncRequest | None:
        """Return the request of a virtual object that may have a copy, or of a copy."""
        syncer, settings = self.syncer, sight.settings
        if side is Side.VIRTUAL:
            concerned = obj is None or sight.may_have_copy(obj) or sight.has(Side.HOST, sight.place(key))
            return sight.request(key) if concerned else None
        if obj is None or not settings.marks.is_ours(obj, cluster=settings.identity, resource=syncer.resource):
            return None
        virtual = settings.marks.virtual_key(obj)
        if virtual is None:
            return None
        usual = syncer.host_key(settings, virtual) == key
        return sight.request(virtual, None if usual else key)

    def decide(self, ctx: Context, key: Key, *, virtual: Obj | None, host: Obj | None) -> Decision:
        """Call the role for the objects that exist: the virtual object, its copy, or both."""
        if virtual is None:
            return skip("neither side has it") if host is None else self._orphan(ctx, key, host)
        if came_up(ctx, virtual) and not (host is not None and self.is_real(ctx, host)):
            return skip("the virtual object came from the host")
        if host is None:
            if self.ends_copy(virtual) and not self.syncer.own_deletion:
                return skip("the virtual object is being deleted")
            if not self._is_selected(ctx, virtual):
                return skip(self._deselected)
            return self._down.sync_down(ctx, virtual)
        return self._both(ctx, Pair(virtual, host))

    def _orphan(self, ctx: Context, key: Key, host: Obj) -> Decision:
        if not self.is_real(ctx, host):
            return skip("the host object is not ours")
        if ctx.marks.virtual_key(host) != key:
            return skip("the host object is the copy of another object")
        if self._up is not None:
            return self._up.sync_up(ctx, host)
        if is_deleting(host):
            return skip("the host copy is being deleted")
        return delete(host=host, reason="the virtual object is gone")

    def _both(self, ctx: Context, pair: Pair) -> Decision:
        if not self.is_real(ctx, pair.host):
            raise collision(ObjectRef(Side.HOST, self.syncer.host_resource, key_of(pair.host)))
        is_earlier = annotations_of(pair.host).get(ctx.marks.uid) != uid_of(pair.virtual)
        if is_earlier:
            self._must_be_its_own(ctx, pair)
        if is_earlier and not self.syncer.adopts:
            if is_deleting(pair.host):
                return _waits_for_earlier(pair)
            why = "it is the copy of an earlier object of this name (its uid differs)"
            return delete(host=pair.host, reason=why)
        if not self.syncer.own_deletion:
            if is_deleting(pair.host):
                return wait("the host copy is being deleted; it is made again when it is gone")
            if self.ends_copy(pair.virtual):
                return delete(host=pair.host, reason="the virtual object is being deleted")
        if not self._is_selected(ctx, pair.virtual):
            if is_deleting(pair.host):
                return wait(f"{self._deselected}; the host copy is being deleted")
            return _if_unchanged(pair.virtual, self.syncer, self._down.deselected(ctx, pair, self._deselected))
        if self._sync is not None:
            return self._sync.sync(ctx, pair)
        return self._down.sync_down(ctx, pair.virtual)

    def _is_selected(self, ctx: Context, virtual: Obj) -> bool:
        """Return True if an object is selected by its labels; one whose deletion ends its copy always is."""
        selector = ctx.config.selector
        return not selector.narrows or selector.selects(virtual) or self.ends_copy(virtual)

    def _must_be_its_own(self, ctx: Context, pair: Pair) -> None:
        """Check that the host object isn't the copy of another virtual object that exists.

        Raises:
            NameTaken: It is.
        """
        other = ctx.marks.virtual_key(pair.host)
        if other and other != key_of(pair.virtual) and ctx.virtual(self.syncer.resource, other) is not None:
            other_one = f"the virtual {self.syncer.resource.kind} {other}"
            raise NameTaken(f"{other_one} has the same name on the host, and keeps it. Rename or remove one of the two")

    @property
    def _deselected(self) -> str:
        return f"its labels are not those of sync.{self.syncer.section}.selector"

    def is_real(self, ctx: Context, host: Obj) -> bool:
        """Return True if the host object is our copy."""
        return ctx.marks.is_ours(host, cluster=ctx.identity, resource=self.syncer.resource)


def _if_unchanged(virtual: Obj, syncer: Syncer, decision: Decision) -> Decision:
    """Return a decision that only deletes if the live virtual object is unchanged, as stale labels
    must end no copy.
    """
    seen = ObjectRef(Side.VIRTUAL, syncer.resource, key_of(virtual))
    latest = Precondition(seen, uid_of(virtual), version=virtual["metadata"].get("resourceVersion", ""))
    writes = (replace(write, precondition=latest) if write.verb is Verb.DELETE else write for write in decision.writes)
    return replace(decision, writes=tuple(writes))


def _waits_for_earlier(pair: Pair) -> Decision:
    """Wait for the end of the copy of an earlier object, which only the host can finish, and tell the tenant."""
    kind = pair.virtual.get("kind", "object")
    why = f"the copy of an earlier {kind} of this name is still being deleted on the host"
    waits = wait("the host copy of an earlier object of this name is being deleted")
    return waits.warn("EarlierCopyEnds", f"{why}; this one is copied once that is gone")


class FromHost(Direction):
    """Host objects appear on the virtual side; our objects there bear the cluster mark."""

    comes_up = True

    def __init__(self, syncer: Syncer) -> None:
        super().__init__(syncer)
        assert isinstance(syncer, SyncFromHost | SyncUp)
        self._role: SyncFromHost | SyncUp = syncer
        self._show = syncer.sync_from_host if isinstance(syncer, SyncFromHost) else syncer.sync_up
        self._sync = syncer if isinstance(syncer, Sync) else None

    @property
    def by_virtual(self) -> bool:
        """Return True if a virtual key leads to the host object, so that virtual changes can be reverted."""
        return self._role.reverts_virtual_changes

    def sources(self) -> Iterable[Source]:
        """Yield our virtual objects, and the host objects that they are made from."""
        yield Source(Side.VIRTUAL, self.syncer.resource, marked=True)
        yield Source(Side.HOST, self.syncer.host_resource, marked=self._role.host_marked)

    def narrowed(self, source: Source, settings: Settings) -> Source:
        """Narrow the source of host objects to the syncer's selector and namespaces, unless the
        source sets its own.
        """
        if source != Source(Side.HOST, self.syncer.host_resource, optional_with=source.optional_with):
            return source
        namespaces = self._role.host_namespaces(settings) or ()
        return replace(source, selector=self._role.host_selector(settings), namespaces=namespaces)

    def is_among_copies(self, settings: Settings) -> bool:
        """Return True unless the syncer names the host namespaces."""
        return self._role.host_namespaces(settings) is None

    def rights(self) -> Iterable[Right]:
        """Yield the rights to write virtual objects, and the fields that are copied down."""
        syncer = self.syncer
        yield Right(Side.VIRTUAL, syncer.resource, WRITE)
        yield from by_path(Side.VIRTUAL, syncer.resource, (*(syncer.up if self._sync else ()), *syncer.both))
        yield from by_path(Side.HOST, syncer.host_resource, syncer.down if self._sync else ())

    def request_for(self, sight: SyncerView, side: Side, key: Key, obj: Obj | None) -> SyncRequest | None:
        """Return the request of a host object that appears, or of our virtual object.

        A virtual object that was deleted may have been a tenant's own, in the way of ours: it is a
        request too.
        """
        if side is Side.VIRTUAL:
            marks, identity = sight.settings.marks, sight.settings.identity
            is_ours = obj is not None and marks.is_from_here(obj, cluster=identity)
            return sight.request(key) if is_ours or not sight.has(side, key) else None
        virtual = self._role.virtual_key(sight.context(), obj) if obj is not None else None
        if virtual is None:
            return None
        usual = self.by_virtual and self.syncer.host_key(sight.settings, virtual) == key
        return sight.request(virtual, None if usual else key)

    def is_about(self, ctx: Context, key: Key, host: Obj) -> bool:
        """Return True if the host object appears at this virtual key."""
        return self._role.virtual_key(ctx, host) == key

    def shows(self, ctx: Context, key: Key, host: Obj) -> bool:
        """Return True if the role would put the host object at this virtual key.

        The virtual object that is there makes no difference: a tenant can put any mark on it.
        """
        if self._role.virtual_key(ctx, host) != key:
            return False
        shown = self._show(ctx, host)
        return any(write.side is Side.VIRTUAL and key_of(write.obj) == key for write in shown.writes)

    def decide(self, ctx: Context, key: Key, *, virtual: Obj | None, host: Obj | None) -> Decision:
        """Call the role for the objects that exist: the host object, our virtual object, or both."""
        if host is None:
            return self._gone(ctx, virtual)
        if virtual is None:
            return self._show(ctx, host)
        if not came_up(ctx, virtual):
            raise collision(ObjectRef(Side.VIRTUAL, self.syncer.resource, key), virtual)
        if self._sync is not None:
            return self._sync.sync(ctx, Pair(virtual, host))
        return self._show(ctx, host)

    def _gone(self, ctx: Context, virtual: Obj | None) -> Decision:
        if virtual is None or self._sync is None or not came_up(ctx, virtual):
            return skip("the host object is gone")
        if is_deleting(virtual) and not self.syncer.own_deletion:
            return skip("the host object is gone, and the virtual object is being deleted")
        return self._role.host_gone(ctx, virtual)


class Fake(Direction):
    """Objects are made on the virtual side because other objects there need them."""

    fakes = True

    def __init__(self, syncer: Syncer) -> None:
        super().__init__(syncer)
        assert isinstance(syncer, FakeSyncUp)
        self._fake: FakeSyncUp = syncer

    def sources(self) -> Iterable[Source]:
        """Yield all virtual objects, including a tenant's own, which may be in the way."""
        yield Source(Side.VIRTUAL, self.syncer.resource)

    def rights(self) -> Iterable[Right]:
        """Yield the rights to write virtual objects and their status."""
        yield Right(Side.VIRTUAL, self.syncer.resource, WRITE)
        yield Right(Side.VIRTUAL, self.syncer.resource, ("patch",), "status")
        yield from by_path(Side.VIRTUAL, self.syncer.resource, self.syncer.both)

    def request_for(self, sight: SyncerView, side: Side, key: Key, obj: Obj | None) -> SyncRequest | None:
        """Return the request of a virtual object; host objects have none."""
        return sight.request(key) if side is Side.VIRTUAL else None

    def decide(self, ctx: Context, key: Key, *, virtual: Obj | None, host: Obj | None) -> Decision:
        """Call the role for a missing object or for our own; a tenant's own object is left alone."""
        if virtual is None:
            return self._fake.fake_sync_up(ctx, key)
        if not came_up(ctx, virtual):
            return skip("the virtual object is not one that we made")
        return self._fake.fake_sync(ctx, virtual)


class _OrFake(Direction):
    """Fakes objects for keys that have neither a tenant's object nor one on the host."""

    fakes = True
    #: The other direction.
    first: ClassVar[type[Direction]]

    def __init__(self, syncer: Syncer) -> None:
        super().__init__(syncer)
        self._first, self._fake = self.first(syncer), Fake(syncer)

    def sources(self) -> Iterable[Source]:
        """Yield all virtual objects, and the other direction's sources on the host."""
        yield from self._fake.sources()
        yield from (source for source in self._first.sources() if source.side is Side.HOST)

    def narrowed(self, source: Source, settings: Settings) -> Source:
        """Return the source as the other direction narrows it."""
        return self._first.narrowed(source, settings)

    def is_among_copies(self, settings: Settings) -> bool:
        """Return the result of the other direction."""
        return self._first.is_among_copies(settings)

    def rights(self) -> Iterable[Right]:
        """Yield the rights of both directions."""
        yield from self._first.rights()
        yield from self._fake.rights()

    def request_for(self, sight: SyncerView, side: Side, key: Key, obj: Obj | None) -> SyncRequest | None:
        """Return the request of any virtual object, or of a host object that concerns the other direction."""
        way = self._fake if side is Side.VIRTUAL else self._first
        return way.request_for(sight, side, key, obj)

    def is_about(self, ctx: Context, key: Key, host: Obj) -> bool:
        """Return the result of the other direction for the host object."""
        return self._first.is_about(ctx, key, host)

    def shows(self, ctx: Context, key: Key, host: Obj) -> bool:
        """Return the result of the other direction for the host object."""
        return self._first.shows(ctx, key, host)

    def decide(self, ctx: Context, key: Key, *, virtual: Obj | None, host: Obj | None) -> Decision:
        """Call the fake's role for a key without real objects, otherwise the other direction."""
        is_tenants = virtual is not None and not came_up(ctx, virtual)
        is_real = is_tenants or (host is not None and self._first.is_real(ctx, host))
        return (self._first if is_real else self._fake).decide(ctx, key, virtual=virtual, host=host)


class ToHostOrFake(_OrFake):
    """Virtual objects have copies on the host; objects that are needed and don't exist are faked."""

    goes_down = True
    first = ToHost


class FromHostOrFake(_OrFake):
    """Host objects appear on the virtual side; objects that are needed and don't exist are faked."""

    comes_up = True
    first = FromHost


class Nowhere(Direction):
    """Nothing is synced; the syncer has only optional roles."""

    def sources(self) -> Iterable[Source]:
        """Yield the virtual objects of its resource, if it names one."""
        yield from (Source(Side.VIRTUAL, resource) for resource in resources_of(self.syncer)[:1])

    def rights(self) -> Iterable[Right]:
        """Return no rights."""
        return ()

    def request_for(self, sight: SyncerView, side: Side, key: Key, obj: Obj | None) -> SyncRequest | None:
        """Return None: no object leads to a request."""
        return None

    def decide(self, ctx: Context, key: Key, *, virtual: Obj | None, host: Obj | None) -> Decision:
        """Return a skip."""
        return skip("this syncer syncs nothing")


def way_of(syncer: type[Syncer]) -> type[Direction]:
    """Return the direction that the roles of a class imply."""
    fakes = issubclass(syncer, FakeSyncUp)
    if issubclass(syncer, SyncDown):
        return ToHostOrFake if fakes else ToHost
    if issubclass(syncer, SyncFromHost | SyncUp):
        return FromHostOrFake if fakes else FromHost
    return Fake if fakes else Nowhere


def direction_of(syncer: Syncer) -> Direction:
    """Return the direction of a syncer, and warn about deprecated features of its class."""
    for message in deprecations(type(syncer)):
        warnings.warn(message, DeprecationWarning, stacklevel=2)
    return way_of(type(syncer))(syncer)


def resources_of(syncer: Syncer | type[Syncer]) -> tuple[Resource, ...]:
    """Return the virtual and the host resource of a syncer; empty if it has none, because it syncs
    nothing.
    """
    return (syncer.resource, syncer.host_resource) if hasattr(syncer, "resource") else ()


def came_up(ctx: Context, virtual: Obj) -> bool:
    """Return True if we made a virtual object."""
    settings = ctx.settings
    return settings.marks.is_from_here(virtual, cluster=settings.identity)


def collision(taken: ObjectRef, virtual: Obj | None = None, *, is_watched: bool = True) -> NameTaken:
    """Return the refusal for an object that is not ours at the key where ours would be.

    Args:
        taken: The object. A tenant sees it only on the virtual side.
        virtual: The object itself, on the virtual side: it gets the event.
        is_watched: False for an object that no watch shows.
    """
    side, resource, key = taken
    kind = resource.kind
    if side is Side.HOST:
        why = f"another {kind} on the host has the name that this object's copy would get"
        why = f"{why}. Rename this object, or ask the operator"
    else:
        why = f"the host has a {kind} that would have the name of this one here, which is left alone"
        why = f"{why}. Rename or remove this one to have that of the host"
    operator = f"the {side} cluster has a {kind} {key} that is not ours; it is left alone"
    return NameTaken(
        why,
        about=virtual,
        for_operator=f"{operator}. Rename or remove one of the two",
        in_the_way=None if is_watched else taken,
    )


def by_path(side: Side, resource: Resource, paths: Iterable[FieldPath]) -> Iterator[Right]:
    """Yield the rights to patch the fields; ``status`` is a subresource with a right of its own."""
    firsts = {path_steps(path)[0] for path in paths}
    if "status" in firsts:
        yield Right(side, resource, ("patch",), "status")
    if firsts - {"status"}:
        yield Right(side, resource, ("patch",))
