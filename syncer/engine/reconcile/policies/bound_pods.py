"""A Pod is bound once.

The response to a binding doesn't contain the Pod, and its event may be late.
"""

from cachetools import LRUCache

from syncer.api.decision import Verb
from syncer.api.objects import SyncRequest, uid_of
from syncer.engine.reconcile.calls import Call, Operation
from syncer.engine.reconcile.plan import PlannedWrite, ServerAnswer
from syncer.remembered import REMEMBERED


class BoundPods:
    """The Pods of a pair that were bound a moment ago, by uid."""

    def __init__(self) -> None:
        self._known: LRUCache[str, None] = LRUCache(REMEMBERED)

    def drop_bound(self, planned: PlannedWrite, request: SyncRequest) -> PlannedWrite:
        """Return the write without its call if it binds a Pod once more."""
        write = planned.write
        if write.verb is Verb.BIND and uid_of(write.obj) in self._known:
            return planned._replace(calls=())
        return planned

    def sent(self, planned: PlannedWrite, call: Call, answer: ServerAnswer | None) -> None:
        """Remember a Pod that was bound."""
        if call.kind is Operation.BIND and answer is not None:
            self._known[uid_of(planned.write.obj)] = None

    def clear(self) -> None:
        """Forget all Pods: after an API server went back in time, any may be unbound again."""
        self._known.clear()
