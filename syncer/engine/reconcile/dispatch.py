"""Call a syncer: exclusions before it, and its hooks around it."""

from syncer.api.context import Context
from syncer.api.decision import Decision, skip
from syncer.api.objects import Key, Obj, Side
from syncer.api.optional_roles import AroundReconcile, Excludes
from syncer.directions import Direction


def dispatch(direction: Direction, ctx: Context, key: Key, *, virtual: Obj | None, host: Obj | None) -> Decision:
    """Call a syncer about a key, between its ``reconcile_start`` and ``reconcile_end``.

    Args:
        direction: The direction of the syncer.
        ctx: The context of the decision.
        key: The virtual key.
        virtual: A private copy of the cached virtual object, or None.
        host: A private copy of the cached host object, or None.

    Raises:
        Refused: The syncer refuses the objects. Any other exception of it is passed on, too.
    """
    syncer = direction.syncer
    if not isinstance(syncer, AroundReconcile):
        return _decided(direction, ctx, key, virtual, host)
    error: Exception | None = None
    try:
        reason = syncer.reconcile_start(ctx, key)
        return skip(reason) if reason else _decided(direction, ctx, key, virtual, host)
    except Exception as raised:
        error = raised
        raise
    finally:
        syncer.reconcile_end(ctx, key, error)


def _decided(direction: Direction, ctx: Context, key: Key, virtual: Obj | None, host: Obj | None) -> Decision:
    syncer = direction.syncer
    if isinstance(syncer, Excludes) and (reason := _excluded(syncer, ctx, virtual, host)):
        return skip(reason)
    found: object = direction.decide(ctx, key, virtual=virtual, host=host)
    if not isinstance(found, Decision):
        raise TypeError(f"{syncer.name} returned {found!r:.80} and not a Decision; a role's last line is a `return`")
    return found


def _excluded(syncer: Excludes, ctx: Context, virtual: Obj | None, host: Obj | None) -> str | None:
    for side, obj in ((Side.VIRTUAL, virtual), (Side.HOST, host)):
        reason = syncer.excluded(ctx, side, obj) if obj is not None else None
        if reason:
            return reason
    return None
