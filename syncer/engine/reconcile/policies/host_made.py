"""An object that the host creates by itself for a copy is left to the host.

It would overwrite our copy, and we its, for ever.
"""

from syncer.api import reasons
from syncer.api.decision import Decision, delete, skip
from syncer.api.objects import is_deleting
from syncer.engine.reconcile.plan import Observed


def leave_to_the_host(observed: Observed) -> Decision | None:
    """Return that an object which the host creates has no copy; None for any other object."""
    controller = observed.controller
    host = observed.host
    ctx = observed.ctx
    resource = controller.syncer.resource
    maker = controller.view.references.maker(resource, observed.request.key)
    if maker is None:
        return None
    reason = reasons.HOST_MAKES(maker[0].kind, maker[1])
    if host is None or is_deleting(host):
        return skip(reason)
    if not controller.direction.is_real(ctx, host):
        return skip(reason)
    return delete(host=host, reason=reason)
