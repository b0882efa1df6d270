"""Limits: a request about an object that has too many parts, or can't be read, is refused."""

from syncer.api.decision import Decision
from syncer.engine.reconcile.plan import Observed


def refuse_unreadable(observed: Observed) -> Decision | None:
    """Refuse a request whose objects weren't decoded.

    Raises:
        TooLarge: One has too many parts.
        Refused: One can't be read, or has no name on the host.
    """
    if observed.error is not None:
        raise observed.take_error()
    return None
