"""Call a syncer: exclusions before it, and its hooks around it."""

from collections.abc import Callable, Sequence

from syncer.api.context import Context
from syncer.api.decision import Decision, skip
from syncer.api.objects import Obj, Side
from syncer.api.optional_roles import Excludes
from syncer.engine.reconcile.plan import Observed


def dispatch(
    observed: Observed, substitutes: Sequence[Callable[[Observed], Decision | None]] = ()
) -> Decision:
    """Call a syncer about its two objects, between its ``reconcile_start`` and ``reconcile_end``.

    ``substitutes`` may decide instead of a role; the first decision counts.

    Raises:
        Refused: The syncer refuses the objects. Any other exception of it is passed on, too.
    """
    syncer = observed.controller.around
    if syncer is None:
        return _decided(observed, substitutes)

    ctx = observed.ctx
    key = observed.request.key
    error: Exception | None = None
    try:
        reason = syncer.reconcile_start(ctx, key)
        return skip(reason) if reason else _decided(observed, substitutes)
    except Exception as raised:
        error = raised
        raise
    finally:
        syncer.reconcile_end(ctx, key, error)


def _decided(
    observed: Observed, substitutes: Sequence[Callable[[Observed], Decision | None]]
) -> Decision:
    ctx = observed.ctx
    key = observed.request.key
    virtual = observed.virtual
    host = observed.host
    controller = observed.controller
    direction = controller.direction

    if controller.excludes is not None:
        reason = _excluded(controller.excludes, ctx, virtual, host)
        if reason:
            # A tenant can have an object excluded, but can't so keep the copy of an object that
            # isn't selected.
            instead = None
            if host is not None and ctx.marks.virtual_key(host) == key:
                instead = _first(observed, substitutes)
            return instead or skip(reason)

    answered = direction.answer(ctx, key, virtual=virtual, host=host)
    if answered is not None:
        return answered

    instead = _first(observed, substitutes)
    if instead is not None:
        return instead

    decision: object = direction.call_role(ctx, key, virtual=virtual, host=host)
    if not isinstance(decision, Decision):
        why = f"{controller.name} returned {decision!r:.80} and not a Decision"
        raise TypeError(f"{why}; a role's last line is a `return`")
    return decision


def _first(
    observed: Observed, substitutes: Sequence[Callable[[Observed], Decision | None]]
) -> Decision | None:
    """Return the first decision of the substitutes; None if they leave it to the syncer."""
    for substitute in substitutes:
        instead = substitute(observed)
        if instead is not None:
            return instead
    return None


def _excluded(syncer: Excludes, ctx: Context, virtual: Obj | None, host: Obj | None) -> str | None:
    for side, obj in ((Side.VIRTUAL, virtual), (Side.HOST, host)):
        reason = syncer.excluded(ctx, side, obj) if obj is not None else None
        if reason:
            return reason
    return None
