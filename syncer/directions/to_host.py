"""Virtual objects have copies on the host."""

from collections.abc import Iterable
from dataclasses import replace

from syncer.api import reasons
from syncer.api.context import Context, Settings
from syncer.api.decision import Decision, delete, skip, wait
from syncer.api.errors import NameTaken
from syncer.api.objects import (
    Key,
    Obj,
    ObjectRef,
    Pair,
    Side,
    SyncRequest,
    annotations_of,
    is_deleting,
    key_of,
    uid_of,
)
from syncer.api.roles import Sync, SyncDown, Syncer, SyncUp
from syncer.api.sources import Right, Source
from syncer.directions.direction import WRITE, Direction, SyncerView, by_path, came_up, collision


class ToHost(Direction):
    """Virtual objects have copies on the host, which bear our marks and are deleted with them."""

    goes_down = True
    ends_with_both = True

    def __init__(self, syncer: Syncer) -> None:
        super().__init__(syncer)
        assert isinstance(syncer, SyncDown)
        self._down: SyncDown = syncer
        self._sync = syncer if isinstance(syncer, Sync) else None
        self._up = syncer if isinstance(syncer, SyncUp) else None
        if makes_no_copies(type(syncer)):
            self.made_for = syncer.name

    def sources(self, settings: Settings | None = None) -> Iterable[Source]:
        """Yield the virtual objects that may have copies, and the marked copies."""
        yield Source(Side.VIRTUAL, self.syncer.resource, selector=self._down.virtual_selector)
        own = self._down.host_namespaces(settings) if settings is not None else None
        if own != ():
            yield Source(Side.HOST, self.syncer.host_resource, marked=True, namespaces=own or ())

    def rights(self, settings: Settings | None = None) -> Iterable[Right]:
        """Yield the rights to write copies, and the fields that are copied up."""
        syncer = self.syncer
        up = syncer.up if self._sync is not None else ()
        own = self._down.host_namespaces(settings) if settings is not None else None
        if own != ():
            to_write = (
                Right(Side.HOST, syncer.host_resource, WRITE),
                *by_path(Side.HOST, syncer.host_resource, syncer.down),
            )
            yield from (replace(right, namespaces=own or ()) for right in to_write)
        yield from by_path(Side.VIRTUAL, syncer.resource, (*up, *syncer.both))

    def own_namespaces(self, settings: Settings) -> tuple[str, ...] | None:
        """Return the namespaces that the syncer names; None if its objects are copies."""
        return self._down.host_namespaces(settings)

    def request_for(
        self,
        view: SyncerView,
        side: Side,
        key: Key,
        obj: Obj | None,
    ) -> SyncRequest | None:
        """Return the request of a virtual object that may have a copy, or of a copy."""
        if side is Side.VIRTUAL:
            if obj is None or view.may_have_copy(obj) or view.has(Side.HOST, view.host_key(key)):
                return view.request(key)
            return None

        settings = view.settings
        if obj is None or not self.is_copy(settings, obj):
            return None
        virtual_key = settings.marks.virtual_key(obj)
        if virtual_key is None:
            return None
        if self.syncer.host_key(settings, virtual_key) == key:
            return view.request(virtual_key)
        return view.request(virtual_key, key)

    def answer(
        self,
        ctx: Context,
        key: Key,
        *,
        virtual: Obj | None,
        host: Obj | None,
    ) -> Decision | None:
        """Return the decision about objects of others, orphans, earlier copies and deletions."""
        if virtual is None and host is None:
            return skip(reasons.NO_OBJECT())
        if virtual is None:
            assert host is not None
            return self._answer_orphan(ctx, key, host)
        if came_up(ctx, virtual):
            is_copied = host is not None and self.is_real(ctx, host)
            if not (is_copied or self._down.takes_on(ctx, virtual)):
                return skip(reasons.CAME_FROM_HOST())
        if host is not None:
            return self._answer_pair(ctx, Pair(virtual, host))
        if self.ends_copy(virtual) and not self.syncer.own_deletion:
            return skip(reasons.ORIGINAL_ENDS("object"))
        return None

    def _answer_orphan(self, ctx: Context, key: Key, host: Obj) -> Decision | None:
        if not self.is_real(ctx, host):
            return skip(reasons.NOT_OURS())
        if ctx.marks.virtual_key(host) != key:
            return skip(reasons.COPY_OF_ANOTHER())
        if self._up is not None:
            return None
        if is_deleting(host):
            return skip(reasons.HOST_ENDS("copy"))
        return delete(host=host, reason="the virtual object is gone")

    def _answer_pair(self, ctx: Context, pair: Pair) -> Decision | None:
        if not self.is_real(ctx, pair.host):
            raise collision(ObjectRef(Side.HOST, self.syncer.host_resource, key_of(pair.host)))

        is_earlier = annotations_of(pair.host).get(ctx.marks.uid) != uid_of(pair.virtual)
        if is_earlier:
            self._refuse_copy_of_another(ctx, pair)
            if not self.syncer.adopts:
                if is_deleting(pair.host):
                    return _wait_for_earlier(pair)
                why = "it is the copy of an earlier object of this name (its uid differs)"
                return delete(host=pair.host, reason=why)

        if not self.syncer.own_deletion:
            if is_deleting(pair.host):
                return wait(reasons.REMADE("host copy"))
            if self.ends_copy(pair.virtual):
                return delete(host=pair.host, reason="the virtual object is being deleted")
        return None

    def _refuse_copy_of_another(self, ctx: Context, pair: Pair) -> None:
        """Check that the host object isn't the copy of another virtual object that exists.

        Raises:
            NameTaken: It is.
        """
        other = ctx.marks.virtual_key(pair.host)
        if not other or other == key_of(pair.virtual):
            return
        resource = self.syncer.resource
        if ctx.virtual(resource, other) is not None:
            why = f"the virtual {resource.kind} {other} has the same name on the host, and keeps it"
            raise NameTaken(f"{why}. Rename or remove one of the two")

    def call_role(
        self,
        ctx: Context,
        key: Key,
        *,
        virtual: Obj | None,
        host: Obj | None,
    ) -> Decision:
        """Call the role for the objects that exist: the virtual object, its copy, or both."""
        if virtual is None:
            assert self._up is not None
            assert host is not None
            return self._up.sync_up(ctx, host)
        if host is not None and self._sync is not None:
            return self._sync.sync(ctx, Pair(virtual, host))
        return self._down.sync_down(ctx, virtual)

    def role_for(self, ctx: Context, virtual: Obj | None, host: Obj | None) -> str:
        """Return the name of the role that :meth:`call_role` calls for these objects."""
        if virtual is None:
            return "SyncUp.sync_up"
        if host is not None and self._sync is not None:
            return "Sync.sync"
        return "SyncDown.sync_down"

    def deselected(self, ctx: Context, pair: Pair, reason: str) -> Decision:
        """Return the role's decision about the copy of an object that isn't selected any more."""
        return self._down.deselected(ctx, pair, reason)

    def is_real(self, ctx: Context, host: Obj) -> bool:
        """Return True if the host object is our copy."""
        return self.is_copy(ctx.settings, host)

    def is_copy(self, settings: Settings, host: Obj) -> bool:
        """Return True if a host object bears the marks of the syncer's own."""
        return settings.marks.is_ours(
            host,
            cluster=settings.identity,
            resource=self.syncer.resource,
            made_for=self.made_for,
        )


def makes_no_copies(syncer: type[Syncer]) -> bool:
    """Return True if the host objects of a class are in namespaces that the operator names.

    They are no copies proper: another syncer may make those of the same kind.
    """
    if not issubclass(syncer, SyncDown):
        return False
    return syncer.host_namespaces is not SyncDown.host_namespaces


def _wait_for_earlier(pair: Pair) -> Decision:
    """Wait for the end of an earlier object's copy, and notify the tenant.

    Only the host can end it.
    """
    kind = pair.virtual.get("kind", "object")
    why = f"the copy of an earlier {kind} of this name is still being deleted on the host"
    decision = wait(reasons.EARLIER_COPY())
    return decision.warn("EarlierCopyEnds", f"{why}; this one is copied once that is gone")
