"""Objects exist on the virtual side alone: all of a syncer's, or those that have no real object."""

from collections.abc import Iterable
from typing import ClassVar

from syncer.api import reasons
from syncer.api.context import Context, Settings
from syncer.api.decision import Decision, skip
from syncer.api.objects import Key, Obj, Pair, Side, SyncRequest
from syncer.api.roles import FakeSyncUp, Syncer
from syncer.api.sources import Right, Source
from syncer.directions.direction import WRITE, Direction, SyncerView, by_path, came_up
from syncer.directions.from_host import FromHost
from syncer.directions.to_host import ToHost


class Fake(Direction):
    """Objects are made on the virtual side because other objects there need them."""

    fakes = True

    def __init__(self, syncer: Syncer) -> None:
        super().__init__(syncer)
        assert isinstance(syncer, FakeSyncUp)
        self._fake: FakeSyncUp = syncer

    def sources(self, settings: Settings | None = None) -> Iterable[Source]:
        """Yield all virtual objects, including a tenant's own, which may be in the way."""
        yield Source(Side.VIRTUAL, self.syncer.resource)

    def rights(self, settings: Settings | None = None) -> Iterable[Right]:
        """Yield the rights to write virtual objects and their status."""
        yield Right(Side.VIRTUAL, self.syncer.resource, WRITE)
        yield Right(Side.VIRTUAL, self.syncer.resource, ("patch",), "status")
        yield from by_path(Side.VIRTUAL, self.syncer.resource, self.syncer.both)

    def request_for(
        self,
        view: SyncerView,
        side: Side,
        key: Key,
        obj: Obj | None,
    ) -> SyncRequest | None:
        """Return the request of a virtual object; host objects have none."""
        return view.request(key) if side is Side.VIRTUAL else None

    def answer(
        self,
        ctx: Context,
        key: Key,
        *,
        virtual: Obj | None,
        host: Obj | None,
    ) -> Decision | None:
        """Return the decision about a tenant's own object, which is left alone."""
        if virtual is not None and not came_up(ctx, virtual):
            return skip(reasons.TENANTS_OWN())
        return None

    def call_role(
        self,
        ctx: Context,
        key: Key,
        *,
        virtual: Obj | None,
        host: Obj | None,
    ) -> Decision:
        """Call the role for a missing object or for our own."""
        if virtual is None:
            return self._fake.fake_sync_up(ctx, key)
        return self._fake.fake_sync(ctx, virtual)

    def role_for(self, ctx: Context, virtual: Obj | None, host: Obj | None) -> str:
        """Return the name of the role that :meth:`call_role` calls for these objects."""
        return "FakeSyncUp.fake_sync_up" if virtual is None else "FakeSyncUp.fake_sync"


class _OrFake(Direction):
    """Fakes objects for keys that have neither a tenant's object nor one on the host."""

    fakes = True
    #: The other direction.
    first: ClassVar[type[Direction]]

    def __init__(self, syncer: Syncer) -> None:
        super().__init__(syncer)
        self._first = self.first(syncer)
        self._fake = Fake(syncer)
        self.made_for = self._first.made_for

    def sources(self, settings: Settings | None = None) -> Iterable[Source]:
        """Yield all virtual objects, and the other direction's sources on the host."""
        yield from self._fake.sources(settings)
        for source in self._first.sources(settings):
            if source.side is Side.HOST:
                yield source

    def narrowed(self, source: Source, settings: Settings) -> Source | None:
        """Return the source as the other direction narrows it."""
        return self._first.narrowed(source, settings)

    def is_among_copies(self, settings: Settings) -> bool:
        """Return the result of the other direction."""
        return self._first.is_among_copies(settings)

    def own_namespaces(self, settings: Settings) -> tuple[str, ...] | None:
        """Return the result of the other direction."""
        return self._first.own_namespaces(settings)

    def rights(self, settings: Settings | None = None) -> Iterable[Right]:
        """Yield the rights of both directions."""
        yield from self._first.rights(settings)
        yield from self._fake.rights(settings)

    def request_for(
        self,
        view: SyncerView,
        side: Side,
        key: Key,
        obj: Obj | None,
    ) -> SyncRequest | None:
        """Return the request of a virtual object, or the other direction's of a host object."""
        direction = self._fake if side is Side.VIRTUAL else self._first
        return direction.request_for(view, side, key, obj)

    def is_about(self, ctx: Context, key: Key, host: Obj) -> bool:
        """Return the result of the other direction for the host object."""
        return self._first.is_about(ctx, key, host)

    def is_real(self, ctx: Context, host: Obj) -> bool:
        """Return the result of the other direction for the host object."""
        return self._first.is_real(ctx, host)

    def shows(self, ctx: Context, key: Key, host: Obj) -> bool:
        """Return the result of the other direction for the host object."""
        return self._first.shows(ctx, key, host)

    def deselected(self, ctx: Context, pair: Pair, reason: str) -> Decision:
        """Return the decision of the other direction."""
        return self._first.deselected(ctx, pair, reason)

    def answer(
        self,
        ctx: Context,
        key: Key,
        *,
        virtual: Obj | None,
        host: Obj | None,
    ) -> Decision | None:
        """Return the answer of the direction that the objects belong to."""
        return self._direction(ctx, virtual, host).answer(ctx, key, virtual=virtual, host=host)

    def call_role(
        self,
        ctx: Context,
        key: Key,
        *,
        virtual: Obj | None,
        host: Obj | None,
    ) -> Decision:
        """Call the role of the direction that the objects belong to."""
        return self._direction(ctx, virtual, host).call_role(ctx, key, virtual=virtual, host=host)

    def role_for(self, ctx: Context, virtual: Obj | None, host: Obj | None) -> str:
        """Return the name of the role that :meth:`call_role` calls for these objects."""
        return self._direction(ctx, virtual, host).role_for(ctx, virtual, host)

    def _direction(self, ctx: Context, virtual: Obj | None, host: Obj | None) -> Direction:
        """Return the fake direction for a key without real objects, otherwise the other one."""
        is_tenants = virtual is not None and not came_up(ctx, virtual)
        has_real = is_tenants or (host is not None and self._first.is_real(ctx, host))
        return self._first if has_real else self._fake


class ToHostOrFake(_OrFake):
    """Virtual objects have copies on the host; missing ones that are needed are faked."""

    goes_down = True
    first = ToHost


class FromHostOrFake(_OrFake):
    """Host objects appear on the virtual side; missing ones that are needed are faked."""

    comes_up = True
    first = FromHost
