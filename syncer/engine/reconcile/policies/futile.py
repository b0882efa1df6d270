"""A patch that changed nothing is not sent again over the same version: the API server normalises
its values.
"""

from cachetools import LRUCache

from syncer.api.objects import Request
from syncer.engine.reconcile.calls import Call
from syncer.engine.reconcile.plan import Place, PlannedWrite
from syncer.translate.three_way import digest

#: Maximum number of remembered patches; there should be none.
REMEMBERED = 1024


class FutilePatches:
    """The patches of a pair that changed nothing, each with the version that it was sent over."""

    def __init__(self) -> None:
        #: The version of the object and a hash of the call, since the call may be as large as the
        #: object.
        self._known: LRUCache[Place, tuple[str, str]] = LRUCache(REMEMBERED)

    def drop_futile(self, planned: PlannedWrite, request: Request) -> PlannedWrite:
        """Return the write without calls that are known to change nothing."""
        if not self._known or planned.live is None:
            return planned
        known = self._known.get(planned.place)
        if known is None:
            return planned
        version = planned.live["metadata"]["resourceVersion"]
        return planned._replace(calls=[call for call in planned.calls if known != (version, _hash(call))])

    def note(self, place: Place, call: Call, version: str) -> None:
        """Record that a patch over this version changed nothing."""
        self._known[place] = (version, _hash(call))

    def forget(self, place: Place) -> None:
        """Forget the patches of an object, which may change something again."""
        if self._known:
            self._known.pop(place, None)


def _hash(call: Call) -> str:
    return digest([call.kind.value, call.body])
