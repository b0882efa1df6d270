"""The directions in which the objects of a syncer go. They are chosen once, from its roles.

``ToHost``: a virtual object gets a copy on the host. ``FromHost``: a host object appears on the
virtual side. ``Fake``: an object is on the virtual side alone. Each says what has to be watched and
which rights that takes, which request a change is a matter of, which host object a request is
about, and which role is asked. Marks and uids are looked at here, so that no syncer has to.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import ClassVar, Protocol

from syncer.api.context import Context, Settings
from syncer.api.contract import deprecations
from syncer.api.decision import Decision, delete, skip, wait
from syncer.api.errors import Refused
from syncer.api.objects import (
    Key,
    Obj,
    Pair,
    Request,
    Resource,
    Side,
    annotations_of,
    is_deleting,
    key_of,
    uid_of,
)
from syncer.api.paths import FieldPath, path_steps
from syncer.api.roles import FakeSyncUp, Sync, SyncDown, Syncer, SyncFromHost, SyncUp
from syncer.api.sources import Right, Source

#: Objects are made by POST, changed by PATCH and removed by DELETE; nothing is ever replaced by PUT.
WRITE = ("create", "patch", "delete")


class Sight(Protocol):
    """What a direction sees of the controller that it belongs to."""

    @property
    def settings(self) -> Settings:
        """The settings of the virtual cluster."""
        ...

    def context(self) -> Context:
        """Return the context of the syncer, as of now."""
        ...

    def request(self, key: Key, host_key: Key | None = None) -> Request:
        """Return the request for a virtual key."""
        ...

    def place(self, key: Key) -> Key:
        """Return the place of a virtual key's copy; the key itself where the syncer can't say it."""
        ...

    def has(self, side: Side, key: Key) -> bool:
        """Return True if an object of the syncer's resource is on a side."""
        ...

    def may_have_copy(self, virtual: Obj) -> bool:
        """Return what the syncer's ``predicate`` says of a virtual object; True where it raises."""
        ...


class Direction(ABC):
    """A way in which the objects of a syncer go. As it is: nowhere, for a syncer that syncs nothing."""

    #: Whether virtual objects have copies on the host.
    goes_down: ClassVar[bool] = False
    #: Whether host objects appear on the virtual side.
    comes_up: ClassVar[bool] = False
    #: Whether objects are made on the virtual side that are nowhere else.
    fakes: ClassVar[bool] = False

    def __init__(self, syncer: Syncer) -> None:
        self.syncer = syncer
        #: Whether objects of the host side lead to requests.
        self.by_host = self.goes_down or self.comes_up

    @property
    def by_virtual(self) -> bool:
        """Return True if every key of the virtual side is a request."""
        return self.goes_down or self.fakes

    @property
    def remakes(self) -> bool:
        """Return True if a copy that is deleted on the host is made again, unless a policy says otherwise."""
        return self.goes_down and not self.syncer.own_deletion

    @abstractmethod
    def sources(self) -> Iterable[Source]:
        """Yield what has to be watched of the syncer's own resources."""

    @abstractmethod
    def rights(self) -> Iterable[Right]:
        """Yield the rights to write that follow from the roles and the paths of the syncer."""

    @abstractmethod
    def request_for(self, sight: Sight, side: Side, key: Key, obj: Obj | None) -> Request | None:
        """Return the request that a changed object of the syncer's resource is a matter of.

        ``obj`` is None for a virtual object of which nothing but its key is known. Raises whatever
        the syncer raises.
        """

    @abstractmethod
    def decide(self, ctx: Context, key: Key, *, virtual: Obj | None, host: Obj | None) -> Decision:
        """Ask the right role about a key.

        ``key`` is the virtual key; ``virtual`` and ``host`` are private copies of what was last
        seen, or None. Raises :class:`~syncer.api.Refused`, and whatever the syncer raises.
        """

    def is_about(self, ctx: Context, key: Key, host: Obj) -> bool:
        """Return True if the host object at the place of a virtual key is the one that the key is about."""
        return True

    def narrowed(self, source: Source, settings: Settings) -> Source:
        """Return a source of the syncer with no more in it than can be a matter of it."""
        return source


class ToHost(Direction):
    """Virtual objects have copies on the host, which bear our marks and go with them."""

    goes_down = True

    def __init__(self, syncer: Syncer) -> None:
        super().__init__(syncer)
        assert isinstance(syncer, SyncDown)
        self._down: SyncDown = syncer
        self._sync = syncer if isinstance(syncer, Sync) else None
        self._up = syncer if isinstance(syncer, SyncUp) else None

    def sources(self) -> Iterable[Source]:
        """Yield all virtual objects, and the copies."""
        yield Source(Side.VIRTUAL, self.syncer.resource)
        yield Source(Side.HOST, self.syncer.host_resource, marked=True)

    def rights(self) -> Iterable[Right]:
        """Yield the rights to write copies, and what comes up from them."""
        syncer = self.syncer
        yield Right(Side.HOST, syncer.host_resource, WRITE)
        yield from by_path(Side.HOST, syncer.host_resource, syncer.down)
        yield from by_path(Side.VIRTUAL, syncer.resource, (*(syncer.up if self._sync else ()), *syncer.both))

    def request_for(self, sight: Sight, side: Side, key: Key, obj: Obj | None) -> Request | None:
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
        """Ask the role for what there is: the original, its copy, or both."""
        if virtual is None:
            return skip("neither side has it") if host is None else self._orphan(ctx, host)
        if came_up(ctx, virtual) and not (host is not None and self._is_copy(ctx, host)):
            return skip("the virtual object came from the host")
        if host is None:
            if is_deleting(virtual) and not self.syncer.own_deletion:
                return skip("the virtual object is being deleted")
            return self._down.sync_down(ctx, virtual)
        return self._both(ctx, Pair(virtual, host))

    def _orphan(self, ctx: Context, host: Obj) -> Decision:
        if not self._is_copy(ctx, host):
            return skip("the host object is not ours")
        if self._up is not None:
            return self._up.sync_up(ctx, host)
        if is_deleting(host):
            return skip("the host copy is being deleted")
        return delete(host=host, reason="the virtual object is gone")

    def _both(self, ctx: Context, pair: Pair) -> Decision:
        if not self._is_copy(ctx, pair.host):
            raise collision(pair.host)
        is_earlier = annotations_of(pair.host).get(ctx.marks.uid) != uid_of(pair.virtual)
        if is_earlier and not self.syncer.adopts:
            if is_deleting(pair.host):
                return wait("the host copy of an earlier object of this name is being deleted")
            why = "it is the copy of an earlier object of this name (its uid differs)"
            return delete(host=pair.host, reason=why)
        if not self.syncer.own_deletion:
            if is_deleting(pair.host):
                return wait("the host copy is being deleted; it is made again when it is gone")
            if is_deleting(pair.virtual):
                return delete(host=pair.host, reason="the virtual object is being deleted")
        if self._sync is not None:
            return self._sync.sync(ctx, pair)
        return self._down.sync_down(ctx, pair.virtual)

    def _is_copy(self, ctx: Context, host: Obj) -> bool:
        return ctx.marks.is_ours(host, cluster=ctx.identity, resource=self.syncer.resource)


class FromHost(Direction):
    """Host objects appear on the virtual side; what is made there bears our mark."""

    comes_up = True

    def __init__(self, syncer: Syncer) -> None:
        super().__init__(syncer)
        assert isinstance(syncer, SyncFromHost | SyncUp)
        self._role: SyncFromHost | SyncUp = syncer
        self._show = syncer.sync_from_host if isinstance(syncer, SyncFromHost) else syncer.sync_up
        self._sync = syncer if isinstance(syncer, Sync) else None

    @property
    def by_virtual(self) -> bool:
        """Return True if a virtual key leads to the host object, so that changes can be reverted."""
        return self._role.reverts_virtual_changes

    def sources(self) -> Iterable[Source]:
        """Yield what we made on the virtual side, and what it is made from."""
        yield Source(Side.VIRTUAL, self.syncer.resource, marked=True)
        yield Source(Side.HOST, self.syncer.host_resource, marked=self._role.host_marked)

    def narrowed(self, source: Source, settings: Settings) -> Source:
        """Return the source of host objects as the syncer narrows it, unless it says more itself."""
        if source != Source(Side.HOST, self.syncer.host_resource, optional_with=source.optional_with):
            return source
        namespaces = self._role.host_namespaces(settings) or ()
        return replace(source, selector=self._role.host_selector(settings), namespaces=namespaces)

    def rights(self) -> Iterable[Right]:
        """Yield the rights to write virtual objects, and what goes down from them."""
        syncer = self.syncer
        yield Right(Side.VIRTUAL, syncer.resource, WRITE)
        yield from by_path(Side.VIRTUAL, syncer.resource, (*(syncer.up if self._sync else ()), *syncer.both))
        yield from by_path(Side.HOST, syncer.host_resource, syncer.down if self._sync else ())

    def request_for(self, sight: Sight, side: Side, key: Key, obj: Obj | None) -> Request | None:
        """Return the request of a host object that appears, or of what we made of it.

        A virtual object that is gone may have been a tenant's own that stood in the way.
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
        """Return True if the host object appears under the key."""
        return self._role.virtual_key(ctx, host) == key

    def decide(self, ctx: Context, key: Key, *, virtual: Obj | None, host: Obj | None) -> Decision:
        """Ask the role for what there is: the host object, what we made of it, or both."""
        if host is None:
            return self._gone(ctx, virtual)
        if virtual is None:
            return self._show(ctx, host)
        if not came_up(ctx, virtual):
            raise collision(virtual, Side.VIRTUAL)
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
    """Objects are made on the virtual side because something there needs them."""

    fakes = True

    def __init__(self, syncer: Syncer) -> None:
        super().__init__(syncer)
        assert isinstance(syncer, FakeSyncUp)
        self._fake: FakeSyncUp = syncer

    def sources(self) -> Iterable[Source]:
        """Yield all virtual objects, as a tenant's own may be in the way."""
        yield Source(Side.VIRTUAL, self.syncer.resource)

    def rights(self) -> Iterable[Right]:
        """Yield the rights to write virtual objects and their status."""
        yield Right(Side.VIRTUAL, self.syncer.resource, WRITE)
        yield Right(Side.VIRTUAL, self.syncer.resource, ("patch",), "status")
        yield from by_path(Side.VIRTUAL, self.syncer.resource, self.syncer.both)

    def request_for(self, sight: Sight, side: Side, key: Key, obj: Obj | None) -> Request | None:
        """Return the request of a virtual object."""
        return sight.request(key) if side is Side.VIRTUAL else None

    def decide(self, ctx: Context, key: Key, *, virtual: Obj | None, host: Obj | None) -> Decision:
        """Ask about what is missing, or about what we made; a tenant's own is left alone."""
        if virtual is None:
            return self._fake.fake_sync_up(ctx, key)
        if not came_up(ctx, virtual):
            return skip("the virtual object is not one that we made")
        return self._fake.fake_sync(ctx, virtual)


class Nowhere(Direction):
    """Nothing is synced: the syncer does something else."""

    def sources(self) -> Iterable[Source]:
        """Return nothing."""
        return ()

    def rights(self) -> Iterable[Right]:
        """Return nothing."""
        return ()

    def request_for(self, sight: Sight, side: Side, key: Key, obj: Obj | None) -> Request | None:
        """Return None."""
        return None

    def decide(self, ctx: Context, key: Key, *, virtual: Obj | None, host: Obj | None) -> Decision:
        """Skip whatever is asked."""
        return skip("this syncer syncs nothing")


def way_of(syncer: type[Syncer]) -> type[Direction]:
    """Return the direction that the roles of a class stand for."""
    ways = ((FakeSyncUp, Fake), (SyncDown, ToHost), (SyncFromHost, FromHost), (SyncUp, FromHost))
    return next((way for role, way in ways if issubclass(syncer, role)), Nowhere)


def direction_of(syncer: Syncer) -> Direction:
    """Return the direction of a syncer. Warns of what its class has that will not be there much longer."""
    for message in deprecations(type(syncer)):
        warnings.warn(message, DeprecationWarning, stacklevel=2)
    return way_of(type(syncer))(syncer)


def came_up(ctx: Context, virtual: Obj) -> bool:
    """Return True if we made a virtual object."""
    settings = ctx.settings
    return settings.marks.is_from_here(virtual, cluster=settings.identity)


def collision(obj: Obj, side: Side = Side.HOST) -> Refused:
    """Return the refusal where an object that isn't ours stands where ours should be."""
    what = f"{obj.get('kind', 'an object')} {key_of(obj)}"
    why = f"the {side} cluster has a {what} that is not ours; it is left alone. Rename or remove one of the two"
    return Refused(why, reason="NameCollision", about=obj if side is Side.VIRTUAL else None)


def by_path(side: Side, resource: Resource, paths: Iterable[FieldPath]) -> Iterator[Right]:
    """Yield the rights to patch fields; status is a subresource with a right of its own."""
    firsts = {path_steps(path)[0] for path in paths}
    if "status" in firsts:
        yield Right(side, resource, ("patch",), "status")
    if firsts - {"status"}:
        yield Right(side, resource, ("patch",))
