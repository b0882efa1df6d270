"""What an API server makes of a value that we send, where it stores another one.

It is learned from the server's answer: the value isn't sent again over what became of it.

Schemas drop fields, webhooks rewrite values. Once in a while such a value is sent again, as either
may have changed.
"""

from collections.abc import Callable
from typing import NamedTuple

from cachetools import LRUCache

from syncer.api.marks import Marks
from syncer.api.objects import Obj, ObjectRef, SyncRequest
from syncer.engine.reconcile.calls import Call, Operation
from syncer.engine.reconcile.patch_paths import FIELDS, Path, changes, unmet, without
from syncer.engine.reconcile.plan import PlannedWrite, ServerAnswer
from syncer.remembered import REMEMBERED

#: Seconds until a value that was rewritten is sent again.
AGAIN_SECONDS = 600.0
#: Fields of an object of which it is remembered; the oldest are forgotten.
MOST_FIELDS = 2 * FIELDS


class _Rewritten(NamedTuple):
    #: The hash of what was sent, and of what became of it.
    ours: int
    theirs: int
    #: The end, in seconds of the engine's clock.
    until: float


class FutilePatches:
    """The values of a pair that an API server rewrote or dropped; ``clock`` returns seconds."""

    def __init__(self, marks: Marks, clock: Callable[[], float]) -> None:
        self._marks = marks
        self._clock = clock
        #: By object, and by the operation and path of a field.
        self._known: LRUCache[ObjectRef, dict[tuple[Operation, Path], _Rewritten]] = LRUCache(
            REMEMBERED
        )

    def drop_futile(self, planned: PlannedWrite, request: SyncRequest) -> PlannedWrite:
        """Return the write without the fields that are what the API server makes of ours."""
        if planned.live is None or not self._known:
            return planned
        known = self._known.get(planned.ref)
        if known is None:
            return planned
        left = [self._without_futile(call, planned.live, known) for call in planned.calls]
        return planned._replace(calls=[call for call in left if call is not None])

    def _without_futile(
        self, call: Call, live: Obj | None, known: dict[tuple[Operation, Path], _Rewritten]
    ) -> Call | None:
        now = self._clock()
        futile = [
            change.path
            for change in changes(call, live, self._marks)
            if (found := known.get((call.kind, change.path))) is not None
            and found[:2] == (change.ours, change.theirs)
            and found.until > now
        ]
        return without(call, futile) if futile else call

    def rewritten(self, ref: ObjectRef) -> list[Path]:
        """Return the fields of an object that were lately not kept as they were sent."""
        now = self._clock()
        known = self._known.get(ref, {})
        return sorted({path for (_, path), one in known.items() if one.until > now})

    def answered(self, planned: PlannedWrite, call: Call, answer: ServerAnswer | None) -> None:
        """Learn from the answer to a call that creates or changes an object."""
        if answer is None or answer.obj is None:
            return
        ref = planned.ref
        reply = answer.obj
        call = answer.call
        kind: Operation = Operation.PATCH if call.kind is Operation.CREATE else call.kind
        if answer.changed:
            found = unmet(call, reply, verbatim=not ref.resource.is_built_in)
        else:
            found = changes(call, reply, self._marks)
        ended = self._clock() + AGAIN_SECONDS
        new = {
            (kind, path): _Rewritten(ours, theirs, ended)
            for path, ours, theirs in found
            if ours != theirs
        }
        if call.kind is not Operation.CREATE and self._known:
            new = {**self._known.get(ref, {}), **new}
        if new:
            self._known[ref] = dict(list(new.items())[-MOST_FIELDS:])
        elif self._known:
            self._known.pop(ref, None)
