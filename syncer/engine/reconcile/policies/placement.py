"""A copy at another key than its virtual key translates to is left alone.

The name translator was changed.
"""

from syncer.api import reasons
from syncer.api.decision import Decision, skip
from syncer.api.errors import Refused
from syncer.engine.reconcile.plan import Observed


def refuse_other_key(observed: Observed) -> Decision | None:
    """Refuse a request about such a copy.

    Raises:
        Refused: The copy is at another key.
    """
    request = observed.request
    syncer = observed.controller.syncer
    if not request.host_key or not observed.controller.direction.goes_down:
        return None
    if observed.host is None:
        return skip(reasons.OTHER_PLACE_GONE())
    host_key = observed.ctx.host_key(request.key)
    raise Refused(
        f"{syncer.host_resource.kind} {request.host_key} on the host is marked as the copy of"
        f" {request.key}, which is now translated to {host_key};"
        " set names.translator back, or delete it by hand",
        reason="NameCollision",
    )
