"""The limits of a syncer: its concurrent requests, and its writes per second."""

import asyncio

from syncer.api.objects import SyncRequest
from syncer.token_bucket import TokenBucket
from syncer.workqueue.lane import Lane


class Gate:
    """Admits requests of a syncer to the lane of its virtual cluster, within its limits.

    Each request is admitted for a single write. If it made more writes, later requests wait for
    these; if it made none, the write is given back. So the limit is kept in the long run, and no
    worker waits for it.
    """

    def __init__(
        self,
        cluster: str,
        *,
        concurrency: int,
        writes_per_second: float,
        now: float,
        inside: int = 0,
    ) -> None:
        """Create a gate with limits; 0 is no limit.

        ``inside`` is the number of requests that are admitted already.
        """
        self.cluster = cluster
        self._concurrency = concurrency
        rate = writes_per_second
        self._bucket: TokenBucket | None = None
        if rate:
            self._bucket = TokenBucket(rate=rate, burst=int(rate), now=now)
        self._lane = Lane()
        self._inside = inside
        #: The time before which no request is admitted.
        self.opens = now
        self.timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._lane.ready) + len(self._lane.low)

    def put(self, request: SyncRequest, *, low: bool) -> None:
        """Put a request at the gate."""
        self._lane.put(request, low=low)

    def move_up(self, request: SyncRequest) -> bool:
        """Raise a waiting request to normal priority.

        Return False if it doesn't wait here with low priority.
        """
        if request not in self._lane.low:
            return False
        self._lane.move_up(request)
        return True

    def admit(self, now: float, *, all_of_them: bool = False) -> tuple[SyncRequest, bool] | None:
        """Admit the next request, and return it with True if it is of low priority.

        Return None if no request waits or may enter. With ``all_of_them`` there are no limits.
        """
        is_full = self._concurrency and self._inside >= self._concurrency
        if not len(self) or ((now < self.opens or is_full) and not all_of_them):
            return None
        if self._bucket is not None and not all_of_them:
            delay = self._bucket.take(now)
            if delay:
                self._bucket.give_back()
                self.opens = now + delay
                return None
        self._inside += 1
        low = len(self._lane.low)
        return self._lane.next(), len(self._lane.low) < low

    def leave(self, writes: int, now: float) -> None:
        """Finish a request that took so many writes."""
        self._inside -= 1
        if self._bucket is None:
            return
        if not writes:
            self._bucket.give_back()
            self.opens = now
        for _ in range(writes - 1):
            self._bucket.take(now)
