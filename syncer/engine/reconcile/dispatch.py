"""Step 4: which role of the syncer is asked, after the marks have been looked at so that no syncer has to."""

from syncer.api.context import Context
from syncer.api.decision import Decision, delete, skip, wait
from syncer.api.errors import Refused
from syncer.api.objects import Key, Obj, Pair, Side, annotations_of, is_deleting, key_of, uid_of
from syncer.api.optional_roles import AroundReconcile, Excludes
from syncer.api.roles import FakeSyncUp, Sync, SyncDown, Syncer, SyncUp


def decide(syncer: Syncer, ctx: Context, key: Key, *, virtual: Obj | None, host: Obj | None) -> Decision:
    """Ask the right role about a key. Raises :class:`~syncer.api.Refused`, and whatever the syncer raises.

    ``key`` is the virtual key; ``virtual`` and ``host`` are private copies of what was last seen, or None.
    """
    if isinstance(syncer, Excludes) and (reason := _excluded(syncer, ctx, virtual, host)):
        return skip(reason)
    if isinstance(syncer, FakeSyncUp):
        return _fake(syncer, ctx, key, virtual)
    if not isinstance(syncer, SyncDown):
        return _from_host(syncer, ctx, virtual, host)
    if virtual is None:
        return skip("neither side has it") if host is None else _orphan(syncer, ctx, host)
    if _came_up(ctx, virtual) and not (host is not None and _is_ours(syncer, ctx, host)):
        return skip("the virtual object came from the host")
    if host is None:
        if is_deleting(virtual) and not syncer.own_deletion:
            return skip("the virtual object is being deleted")
        return syncer.sync_down(ctx, virtual)
    return _both(syncer, ctx, Pair(virtual, host))


def dispatch(syncer: Syncer, ctx: Context, key: Key, *, virtual: Obj | None, host: Obj | None) -> Decision:
    """:func:`decide`, with the syncer's ``reconcile_start`` before and ``reconcile_end`` after it."""
    if not isinstance(syncer, AroundReconcile):
        return _decided(syncer, ctx, key, virtual, host)
    error: Exception | None = None
    try:
        reason = syncer.reconcile_start(ctx, key)
        return skip(reason) if reason else _decided(syncer, ctx, key, virtual, host)
    except Exception as raised:
        error = raised
        raise
    finally:
        syncer.reconcile_end(ctx, key, error)


def _decided(syncer: Syncer, ctx: Context, key: Key, virtual: Obj | None, host: Obj | None) -> Decision:
    found: object = decide(syncer, ctx, key, virtual=virtual, host=host)
    if not isinstance(found, Decision):
        raise TypeError(f"{syncer.name} returned {found!r:.80} and not a Decision; a role's last line is a `return`")
    return found


def _excluded(syncer: Excludes, ctx: Context, virtual: Obj | None, host: Obj | None) -> str | None:
    for side, obj in ((Side.VIRTUAL, virtual), (Side.HOST, host)):
        reason = syncer.excluded(ctx, side, obj) if obj is not None else None
        if reason:
            return reason
    return None


def _fake(syncer: FakeSyncUp, ctx: Context, key: Key, virtual: Obj | None) -> Decision:
    if virtual is None:
        return syncer.fake_sync_up(ctx, key)
    if not _came_up(ctx, virtual):
        return skip("the virtual object is not one that we made")
    return syncer.fake_sync(ctx, virtual)


def _from_host(syncer: Syncer, ctx: Context, virtual: Obj | None, host: Obj | None) -> Decision:
    """For what begins on the host."""
    if host is None:
        if virtual is not None and isinstance(syncer, Sync) and isinstance(syncer, SyncUp) and _came_up(ctx, virtual):
            if is_deleting(virtual) and not syncer.own_deletion:
                return skip("the host object is gone, and the virtual object is being deleted")
            return syncer.host_gone(ctx, virtual)
        return skip("the host object is gone")
    if virtual is not None and not _came_up(ctx, virtual):
        raise collision(virtual, Side.VIRTUAL)
    if virtual is not None and isinstance(syncer, Sync):
        return syncer.sync(ctx, Pair(virtual, host))
    return syncer.sync_up(ctx, host) if isinstance(syncer, SyncUp) else skip("this syncer has no role for it")


def _came_up(ctx: Context, virtual: Obj) -> bool:
    return ctx.settings.marks.is_from_here(virtual, cluster=ctx.settings.identity)


def _orphan(syncer: Syncer, ctx: Context, host: Obj) -> Decision:
    if not _is_ours(syncer, ctx, host):
        return skip("the host object is not ours")
    if isinstance(syncer, SyncUp):
        return syncer.sync_up(ctx, host)
    if is_deleting(host):
        return skip("the host copy is being deleted")
    return delete(host=host, reason="the virtual object is gone")


def _both(syncer: SyncDown, ctx: Context, pair: Pair) -> Decision:
    assert isinstance(syncer, Syncer)
    if not _is_ours(syncer, ctx, pair.host):
        raise collision(pair.host)
    if annotations_of(pair.host).get(ctx.marks.uid) != uid_of(pair.virtual) and not syncer.adopts:
        if is_deleting(pair.host):
            return wait("the host copy of an earlier object of this name is being deleted")
        return delete(host=pair.host, reason="it is the copy of an earlier object of this name (its uid differs)")
    if not syncer.own_deletion:
        if is_deleting(pair.host):
            return wait("the host copy is being deleted; it is made again when it is gone")
        if is_deleting(pair.virtual):
            return delete(host=pair.host, reason="the virtual object is being deleted")
    if isinstance(syncer, Sync):
        return syncer.sync(ctx, pair)
    return syncer.sync_down(ctx, pair.virtual)


def collision(obj: Obj, side: Side = Side.HOST) -> Refused:
    """The refusal where an object that isn't ours stands where ours should be."""
    what = f"{obj.get('kind', 'an object')} {key_of(obj)}"
    why = f"the {side} cluster has a {what} that is not ours; it is left alone. Rename or remove one of the two"
    return Refused(why, reason="NameCollision", about=obj if side is Side.VIRTUAL else None)


def _is_ours(syncer: Syncer, ctx: Context, host: Obj) -> bool:
    return ctx.settings.marks.is_ours(host, cluster=ctx.settings.identity, resource=syncer.resource)
