"""The direction of a syncer follows from its roles."""

from collections.abc import Iterable

from syncer.api import reasons
from syncer.api.context import Context, Settings
from syncer.api.decision import Decision, skip
from syncer.api.objects import Key, Obj, Side, SyncRequest
from syncer.api.roles import FakeSyncUp, SyncDown, Syncer, SyncFromHost
from syncer.api.sources import Right, Source
from syncer.directions.direction import Direction, SyncerView, resources_of
from syncer.directions.fakes import Fake, FromHostOrFake, ToHostOrFake
from syncer.directions.from_host import FromHost
from syncer.directions.to_host import ToHost


class Nowhere(Direction):
    """Nothing is synced; the syncer has only optional roles."""

    def sources(self, settings: Settings | None = None) -> Iterable[Source]:
        """Yield the virtual objects of its resource, if it names one."""
        for resource in resources_of(self.syncer)[:1]:
            yield Source(Side.VIRTUAL, resource)

    def rights(self, settings: Settings | None = None) -> Iterable[Right]:
        """Return no rights."""
        return ()

    def request_for(
        self,
        view: SyncerView,
        side: Side,
        key: Key,
        obj: Obj | None,
    ) -> SyncRequest | None:
        """Return None: no object leads to a request."""
        return None

    def answer(
        self,
        ctx: Context,
        key: Key,
        *,
        virtual: Obj | None,
        host: Obj | None,
    ) -> Decision | None:
        """Return a skip."""
        return skip(reasons.SYNCS_NOTHING())

    def call_role(
        self,
        ctx: Context,
        key: Key,
        *,
        virtual: Obj | None,
        host: Obj | None,
    ) -> Decision:
        """Return a skip, as there is no role to call."""
        return skip(reasons.SYNCS_NOTHING())

    def role_for(self, ctx: Context, virtual: Obj | None, host: Obj | None) -> str:
        """Return ``""``."""
        return ""


def direction_class(syncer: type[Syncer]) -> type[Direction]:
    """Return the direction that the roles of a class imply."""
    fakes = issubclass(syncer, FakeSyncUp)
    if issubclass(syncer, SyncDown):
        return ToHostOrFake if fakes else ToHost
    if issubclass(syncer, SyncFromHost):
        return FromHostOrFake if fakes else FromHost
    return Fake if fakes else Nowhere


def direction_of(syncer: Syncer) -> Direction:
    """Return the direction of a syncer."""
    return direction_class(type(syncer))(syncer)
