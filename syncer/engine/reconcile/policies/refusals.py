"""A merge into a subresource that the API server refused is not sent again for some minutes.

Such a refusal must not hold up the rest of the object, whose request therefore isn't parked. A
tenant who changes the fields makes another merge of it, which is sent at once.
"""

from collections.abc import Callable
from typing import NamedTuple

from cachetools import LRUCache

from syncer.api.decision import Write
from syncer.api.objects import ObjectRef, SyncRequest, uid_of
from syncer.api.reasons import MERGE_REFUSED
from syncer.api.texts import shortened
from syncer.engine.reconcile.plan import PlannedWrite, PostponedFields
from syncer.translate.three_way import digest

#: Seconds until a refused merge is sent again, as for a parked request.
AGAIN_SECONDS = 300.0
#: Refused merges that are remembered; of others, the oldest are sent once more.
REMEMBERED = 1024


class _Refusal(NamedTuple):
    why: str
    #: The end, in seconds of the engine's clock.
    until: float


class Refusals:
    """The refused merges of a pair; ``clock`` returns seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: LRUCache[tuple[ObjectRef, str], _Refusal] = LRUCache(REMEMBERED)

    def drop_refused(self, planned: PlannedWrite, request: SyncRequest) -> PlannedWrite:
        """Return the write without its calls if it was refused recently."""
        if not self._known or not planned.write.subresource:
            return planned
        known = self._known.get((planned.ref, _hash(planned.write)))
        if known is None:
            return planned
        left = known.until - self._clock()
        if left <= 0:
            return planned
        return planned._replace(
            calls=(), refused=PostponedFields(MERGE_REFUSED, known.why, left, new=False)
        )

    def note(self, planned: PlannedWrite, error: Exception) -> PostponedFields:
        """Record that a merge was refused, and return the report about it.

        The error itself is the news.
        """
        why = shortened(f"{planned.ref.resource}/{planned.write.subresource} is refused: {error}")
        self._known[planned.ref, _hash(planned.write)] = _Refusal(
            why, self._clock() + AGAIN_SECONDS
        )
        return PostponedFields(MERGE_REFUSED, why, AGAIN_SECONDS, new=False)


def _hash(write: Write) -> str:
    parts = {name: value for name, value in write.obj.items() if name != "metadata"}
    return digest([write.subresource, uid_of(write.obj), parts])
