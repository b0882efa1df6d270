"""Host objects appear on the virtual side."""

from collections.abc import Iterable
from dataclasses import replace

from syncer.api import reasons
from syncer.api.context import Context, Settings
from syncer.api.decision import Decision, skip
from syncer.api.objects import Key, Obj, ObjectRef, Pair, Side, SyncRequest, is_deleting, key_of
from syncer.api.roles import Sync, Syncer, SyncFromHost
from syncer.api.sources import Right, Source
from syncer.directions.direction import WRITE, Direction, SyncerView, by_path, came_up, collision


class FromHost(Direction):
    """Host objects appear on the virtual side; our objects there bear the cluster mark."""

    comes_up = True

    def __init__(self, syncer: Syncer) -> None:
        super().__init__(syncer)
        assert isinstance(syncer, SyncFromHost)
        self._role: SyncFromHost = syncer
        self._sync = syncer if isinstance(syncer, Sync) else None

    @property
    def by_virtual(self) -> bool:
        """Return True if a virtual key is a request: then virtual changes are reverted."""
        return self._role.reverts_virtual_changes

    def sources(self, settings: Settings | None = None) -> Iterable[Source]:
        """Yield our virtual objects, and the host objects that they are made from."""
        yield Source(Side.VIRTUAL, self.syncer.resource, marked=True)
        yield Source(
            Side.HOST,
            self.syncer.host_resource,
            marked=self._role.host_marked,
            about_copies=self._role.about_copies,
        )

    def narrowed(self, source: Source, settings: Settings) -> Source | None:
        """Narrow the source of host objects to the syncer's selector, namespaces and names, unless
        the source sets its own.
        """
        given = Source(
            Side.HOST,
            self.syncer.host_resource,
            optional_with=source.optional_with,
            about_copies=source.about_copies,
        )
        if source != given:
            return source
        chosen = replace(source, selector=self._role.host_selector(settings))
        namespaces = self._role.host_namespaces(settings)
        if namespaces is None:
            return chosen
        names = self._role.host_names(settings)
        if not (namespaces or names):
            return None
        return replace(chosen, namespaces=namespaces, names=names)

    def is_among_copies(self, settings: Settings) -> bool:
        """Return True unless the syncer names the host namespaces."""
        return self._role.host_namespaces(settings) is None

    def rights(self, settings: Settings | None = None) -> Iterable[Right]:
        """Yield the rights to write virtual objects, and the fields that are copied down."""
        syncer = self.syncer
        down = syncer.down if self._sync is not None else ()
        up = syncer.up if self._sync is not None else ()
        yield Right(Side.VIRTUAL, syncer.resource, WRITE)
        yield from by_path(Side.VIRTUAL, syncer.resource, (*up, *syncer.both))
        yield from by_path(Side.HOST, syncer.host_resource, down)

    def request_for(
        self,
        view: SyncerView,
        side: Side,
        key: Key,
        obj: Obj | None,
    ) -> SyncRequest | None:
        """Return the request of a host object that appears, or of our virtual object.

        A virtual object that was deleted may have been a tenant's own, in the way of ours: it is a
        request too.
        """
        if side is Side.VIRTUAL:
            marks = view.settings.marks
            is_ours = obj is not None and marks.is_from_here(obj, cluster=view.settings.identity)
            if is_ours or not view.has(side, key):
                return view.request(key)
            return None

        if obj is None:
            return None
        virtual_key = self._role.virtual_key(view.context(), obj)
        if virtual_key is None:
            return None
        if self.by_virtual and self.syncer.host_key(view.settings, virtual_key) == key:
            return view.request(virtual_key)
        return view.request(virtual_key, key)

    def is_about(self, ctx: Context, key: Key, host: Obj) -> bool:
        """Return True if the host object appears at this virtual key."""
        return self._role.virtual_key(ctx, host) == key

    def shows(self, ctx: Context, key: Key, host: Obj) -> bool:
        """Return True if the role would put the host object at this virtual key.

        The virtual object that is there makes no difference: a tenant can put any mark on it.
        """
        if self._role.virtual_key(ctx, host) != key:
            return False
        decision = self._role.sync_from_host(ctx, host)
        made = [key_of(write.obj) for write in decision.writes if write.side is Side.VIRTUAL]
        return key in made

    def answer(
        self,
        ctx: Context,
        key: Key,
        *,
        virtual: Obj | None,
        host: Obj | None,
    ) -> Decision | None:
        """Return the decision about a tenant's own objects, and host objects that are gone."""
        if host is None:
            return self._answer_gone(ctx, virtual)
        if virtual is not None and not came_up(ctx, virtual):
            raise collision(ObjectRef(Side.VIRTUAL, self.syncer.resource, key), virtual)
        return None

    def _answer_gone(self, ctx: Context, virtual: Obj | None) -> Decision | None:
        if virtual is None or self._sync is None or not came_up(ctx, virtual):
            return skip(self._why_none(ctx))
        if is_deleting(virtual) and not self.syncer.own_deletion:
            return skip(reasons.BOTH_GO())
        return None

    def _why_none(self, ctx: Context) -> str:
        """Return the reason why no host object appears."""
        section = self.syncer.section
        selector = self._role.host_selector(ctx.settings)
        if selector:
            return reasons.HOST_UNLABELLED(section, selector)
        return reasons.HOST_GONE(section)

    def call_role(
        self,
        ctx: Context,
        key: Key,
        *,
        virtual: Obj | None,
        host: Obj | None,
    ) -> Decision:
        """Call the role for the objects that exist: the host object, our virtual one, or both."""
        if host is None:
            assert virtual is not None
            return self._role.host_gone(ctx, virtual)
        if virtual is not None and self._sync is not None:
            return self._sync.sync(ctx, Pair(virtual, host))
        return self._role.sync_from_host(ctx, host)

    def role_for(self, ctx: Context, virtual: Obj | None, host: Obj | None) -> str:
        """Return the name of the role that :meth:`call_role` calls for these objects."""
        if host is None:
            return "SyncFromHost.host_gone"
        if virtual is not None and self._sync is not None:
            return "Sync.sync"
        return "SyncFromHost.sync_from_host"
