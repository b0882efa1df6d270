"""Room for large objects: what is decoded and sent for all workers together is bounded.

So a large plan may wait.
The queue counts the bytes of each virtual cluster, and hands a request that waits out again once
there is room.
"""

from collections.abc import Callable

from syncer.api import reasons
from syncer.api.objects import SyncRequest
from syncer.engine.reconcile.calls import Operation
from syncer.engine.reconcile.plan import Deferred, Plan

#: Bytes of objects that aren't weighed, as those of all workers together are few.
SMALL = 8 << 10
#: Bytes that an object in work takes for each of its JSON: a Pod with 256 KiB of variables takes 2
#: MB while its copy is created.
DECODED_OVERHEAD = 8


class Room:
    """The room of the queue.

    Its ``may_hold`` returns True if a request may take so many bytes.
    """

    def __init__(self, may_hold: Callable[[SyncRequest, int], bool]) -> None:
        self._may_hold = may_hold

    def admit(self, plan: Plan, written_from: str | None) -> Deferred | None:
        """Defer a plan whose two objects, with what it creates, are too large for now.

        They are held until its writes are answered.
        """
        size = 0
        observed = plan.observed
        controller = observed.controller
        for store, key in (
            (controller.virtual, observed.request.key),
            (controller.host_at(observed.host_key), observed.host_key),
        ):
            if store is not None and (entry := store.entry(key)) is not None:
                size += entry.size
        for planned in plan.writes:
            for call in planned.calls:
                if call.kind is Operation.CREATE:
                    size += call.size
        if size <= SMALL or self._may_hold(observed.request, size * DECODED_OVERHEAD):
            return None
        return Deferred(reasons.TOO_HEAVY())
