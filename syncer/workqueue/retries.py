"""The budget for the retries of a syncer in a virtual cluster."""

import asyncio
import heapq
import itertools
from collections.abc import Mapping

from syncer.api.objects import SyncRequest
from syncer.token_bucket import TokenBucket

#: Retries per second that may fail again, and how many may at once: those of client-go's default
#: controller rate limiter, there for a whole controller.
RETRIES_PER_SECOND, RETRIES_AT_ONCE = 10.0, 100
#: Retries that wait have the order of their times, each later by this many seconds for each failure
#: before, up to a number of failures: one that has failed once comes before those that have failed
#: often, and none waits for ever.
PATIENCE, MOST_FAILURES = 120.0, 10


class Retries:
    """Retries whose delay is over, and that wait until the budget has room.

    A retry that succeeds costs nothing, so they aren't held up once what they failed of is over. As
    with timers, a request is no longer meant once its time in the queue's table of delays is
    another one.
    """

    def __init__(self, now: float) -> None:
        self._bucket = TokenBucket(rate=RETRIES_PER_SECOND, burst=RETRIES_AT_ONCE, now=now)
        self._waiting: list[tuple[float, int, SyncRequest]] = []
        self._number = itertools.count()
        #: Retries that were let go, until they succeed or fail.
        self._trying: set[SyncRequest] = set()
        #: The length at which entries that are no longer meant are removed.
        self._most = RETRIES_AT_ONCE
        self.timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, place: float, request: SyncRequest, due: Mapping[SyncRequest, float]) -> None:
        """Let a retry wait at a place, which is its time in the table of delays ``due``."""
        heapq.heappush(self._waiting, (place, next(self._number), request))
        if len(self._waiting) > self._most:
            current = {entry[2]: entry for entry in self._waiting if due.get(entry[2]) == entry[0]}
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
        """Note that a request has failed."""
        self._trying.discard(request)

    def succeeded(self, request: SyncRequest) -> bool:
        """Note that a request has succeeded; return True if there is more room now."""
        if request not in self._trying:
            return False
        self._trying.discard(request)
        self._bucket.give_back()
        return True
