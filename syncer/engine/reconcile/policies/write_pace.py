"""The pace of writes.

A tenant who changes an object again and again costs the host two writes a second.

A write of a quiet object is never delayed, and neither is the second one, as objects are often
changed, or deleted and made again, just after they were made. Further changes are collected, and
the last state is written as soon as two writes fit into a second again. Writes to the virtual side
are never delayed: a Pod's status comes in bursts while it starts, and people watch it.
"""

from collections.abc import Callable
from math import inf

from syncer.api import reasons
from syncer.api.objects import ObjectRef, Side
from syncer.engine.reconcile.calls import Call
from syncer.engine.reconcile.plan import Deferred, Plan, PlannedWrite, ServerAnswer

#: Seconds within which a host object is written twice at most.
WINDOW = 1.0
#: The number of writes within that time.
MOST = 2


class WritePace:
    """The times of the latest writes of host objects; ``clock`` returns seconds.

    It knows only the objects that were written within the last two seconds, in two tables, of which
    the older one is dropped as a whole.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        #: The times of the last write but one and of the last write.
        self._recent: dict[ObjectRef, tuple[float, float]] = {}
        self._earlier: dict[ObjectRef, tuple[float, float]] = {}
        #: When the recent writes become the earlier ones.
        self._turn = -inf

    def __len__(self) -> int:
        return len(self._recent) + len(self._earlier)

    def admit(self, plan: Plan, written_from: str | None) -> Deferred | None:
        """Defer a plan while its writes would be too many within a second.

        If its own request has just written from the same original, the syncer is never content with
        our writes, so the request backs off.
        """
        seconds = 0.0
        for planned in plan.writes:
            if planned.calls:
                times = self._recent.get(planned.ref) or self._earlier.get(planned.ref)
                if times:
                    seconds = max(
                        seconds, times[len(planned.calls) >= MOST] + WINDOW - self._clock()
                    )
        if seconds <= 0:
            return None
        return Deferred(reasons.PACED(), seconds, backs_off=written_from == plan.original)

    def sent(self, planned: PlannedWrite, call: Call, answer: ServerAnswer | None) -> None:
        """Record a call to the host, also one that failed, and forget those that were long ago."""
        ref = planned.ref
        if ref.side is not Side.HOST:
            return
        now = self._clock()
        if now >= self._turn:
            self._earlier = self._recent if now < self._turn + WINDOW else {}
            self._recent = {}
            self._turn = now + WINDOW
        before = self._recent.get(ref) or self._earlier.get(ref) or _NEVER
        self._recent[ref] = (before[1], now)


_NEVER = (-inf, -inf)
