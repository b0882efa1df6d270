"""The pace of confirmations.

A write may name many objects that aren't there, and the host is asked about each.

So a tenant who creates Pods that name what doesn't exist would have the host asked dozens of times
for each. A few names are free. Beyond them, the names of all writes of a virtual cluster have a
rate, and each write its turn. A name whose object has its copy costs nothing.
"""

from collections.abc import Callable

from syncer.api import reasons
from syncer.api.objects import ObjectRef, Side
from syncer.engine.reconcile.plan import Deferred, Plan
from syncer.token_bucket import TokenBucket

#: Names in a write that are confirmed without a turn.
FREE = 4
#: Further confirmations per second.
PER_SECOND = 50.0
#: Further confirmations that may be made at once.
AT_ONCE = 500
#: Longest wait for a turn, in seconds. A write that would wait for longer gets no turn, and asks
#: again then.
LONGEST = 60.0
#: Turns that are kept at least before those of writes that didn't come back are dropped.
_KEPT = 1024


class ConfirmationPace:
    """The turns of writes that name many objects which aren't there; ``clock`` returns seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._bucket = TokenBucket(rate=PER_SECOND, burst=AT_ONCE, now=clock())
        #: When the writes that wait have their turns.
        self._turns: dict[ObjectRef, float] = {}
        #: The number of turns at which old ones are dropped.
        self._most = _KEPT

    def __len__(self) -> int:
        return len(self._turns)

    def admit(self, plan: Plan, written_from: str | None) -> Deferred | None:
        """Defer a plan until its turn. With None it has had its turn, or needs none."""
        further = len(plan.vacant) - FREE
        if further <= 0:
            return None
        ref = next(
            (each.ref for each in plan.writes if each.calls and each.ref.side is Side.HOST), None
        )
        if ref is None:
            return None
        now = self._clock()
        turn = self._turns.pop(ref, None)
        if turn is None:
            wait = max(self._bucket.take(now) for _ in range(further))
            if wait > LONGEST:
                for _ in range(further):
                    self._bucket.give_back()
                return Deferred(reasons.CONFIRMED_LATER(), LONGEST)
            turn = now + wait
        if turn <= now:
            return None
        self._turns[ref] = turn
        if len(self._turns) > self._most:
            self._turns = {each: at for each, at in self._turns.items() if at > now - LONGEST}
            self._most = 2 * len(self._turns) + _KEPT
        return Deferred(reasons.CONFIRMED_LATER(), turn - now)
