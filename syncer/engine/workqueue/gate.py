"""The limits of one syncer: how many of its requests are worked on at a time, and how many writes they may cost."""

import asyncio

from syncer.api.objects import Request
from syncer.engine.workqueue.lane import Lane
from syncer.token_bucket import TokenBucket


class Gate:
    """Lets requests of one syncer into the lane of its virtual cluster, as many as its limits allow.

    Each is let in for one write. Where it has made more, the others pay that back by waiting, and where it has made
    none, it is given back. So the limit holds in the long run, and no worker ever waits for it.
    """

    def __init__(
        self, cluster: str, *, concurrency: int, writes_per_second: float, now: float, inside: int = 0
    ) -> None:
        """``concurrency`` and ``writes_per_second`` 0: any number. ``inside`` requests are let in already."""
        self.cluster = cluster
        self._concurrency = concurrency
        rate = writes_per_second
        self._bucket = TokenBucket(rate=rate, burst=int(rate), now=now) if rate else None
        self._lane = Lane()
        self._inside = inside
        #: The time before which nothing is let in.
        self.opens = now
        self.timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._lane.ready) + len(self._lane.low)

    def put(self, request: Request, *, low: bool) -> None:
        """Let a request wait before the gate."""
        self._lane.put(request, low=low)

    def move_up(self, request: Request) -> bool:
        """Let a request that may wait as a low one wait as any other; False where it doesn't wait here."""
        if request not in self._lane.low:
            return False
        self._lane.move_up(request)
        return True

    def admit(self, now: float, *, all_of_them: bool = False) -> tuple[Request, bool] | None:
        """Return the next request that is let in, and whether it is of low priority; None where none is."""
        is_full = self._concurrency and self._inside >= self._concurrency
        if not len(self) or ((now < self.opens or is_full) and not all_of_them):
            return None
        if self._bucket is not None and not all_of_them and (delay := self._bucket.take(now)):
            self._bucket.give_back()
            self.opens = now + delay
            return None
        self._inside += 1
        low = len(self._lane.low)
        return self._lane.next(), len(self._lane.low) < low

    def leave(self, writes: int, now: float) -> None:
        """Take it that the work on a request has ended, and has cost so many writes."""
        self._inside -= 1
        if self._bucket is None:
            return
        if not writes:
            self._bucket.give_back()
            self.opens = now
        for _ in range(writes - 1):
            self._bucket.take(now)
