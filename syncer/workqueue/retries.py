"""The budget for the retries of a syncer in a virtual cluster."""

import asyncio
import heapq
import itertools
from collections.abc import Mapping

from syncer.api.objects import SyncRequest
from syncer.token_bucket import TokenBucket

#: Retries per second that may fail again; this and the next are the numbers of client-go's default
#: rate limiter, which has them for a whole controller.
RETRIES_PER_SECOND = 10.0
#: Retries at once that may fail again.
RETRIES_AT_ONCE = 100
#: Waiting retries are sorted by their times, which are later by this many seconds for each failure:
#: a retry that has failed once comes before those that have failed often, and none waits for ever.
PATIENCE = 120.0
#: Most failures that are counted for that.
MOST_FAILURES = 10


class Retries:
    """Retries after their delay, which wait until the budget has room.

    A retry that succeeds costs nothing, so the others don't wait once the cause of their failures
    is gone. As with timers, an entry is obsolete when the queue's table of delays has another time
    for the request.
    """

    def __init__(self, now: float) -> None:
        self._bucket = TokenBucket(rate=RETRIES_PER_SECOND, burst=RETRIES_AT_ONCE, now=now)
        self._waiting: list[tuple[float, int, SyncRequest]] = []
        self._number = itertools.count()
        #: Retries that have begun, until they succeed or fail.
        self._trying: set[SyncRequest] = set()
        #: The length at which obsolete entries are removed.
        self._most = RETRIES_AT_ONCE
        self.timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, time: float, request: SyncRequest, due: Mapping[SyncRequest, float]) -> None:
        """Add a retry with its time, which is also in the table of delays ``due``."""
        heapq.heappush(self._waiting, (time, next(self._number), request))
        if len(self._waiting) > self._most:
            current = {}
            for entry in self._waiting:
                at, _, waiting = entry
                if due.get(waiting) == at:
                    current[waiting] = entry
            self._waiting = list(current.values())
            heapq.heapify(self._waiting)
            self._most = 2 * len(self._waiting) + RETRIES_AT_ONCE

    def next(self, now: float, due: Mapping[SyncRequest, float]) -> SyncRequest | None:
        """Return the next retry that may begin; None if none may yet, or none waits."""
        while self._waiting and due.get(self._waiting[0][2]) != self._waiting[0][0]:
            heapq.heappop(self._waiting)
        if not self._waiting or not self._bucket.take_now(now):
            return None
        _, _, request = heapq.heappop(self._waiting)
        self._trying.add(request)
        return request

    def failed(self, request: SyncRequest) -> None:
        """Handle that a request has failed."""
        self._trying.discard(request)

    def succeeded(self, request: SyncRequest) -> bool:
        """Handle that a request has succeeded; return True if the budget has more room now."""
        if request not in self._trying:
            return False
        self._trying.discard(request)
        self._bucket.give_back()
        return True
