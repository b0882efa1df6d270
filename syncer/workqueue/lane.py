"""The ready requests of a virtual cluster, those of low priority last."""

from collections import OrderedDict, deque
from dataclasses import dataclass, field

from syncer.api.objects import SyncRequest
from syncer.byte_budget import ByteBudget

#: One in this many requests of a lane is of low priority, if there are any.
LOW_SHARE = 16
#: The requests of a lane count as slow from this average of seconds on, and before one has ended.
SLOW_SECONDS = 0.25
#: The share of the latest request in that average.
LATEST = 0.25
#: Requests of fewer seconds don't count in the average, as they have sent nothing to an API server.
#: At a start or in a patrol there are many of them, and with these a cluster with a slow API server
#: would seem fast.
TELLING_SECONDS = 0.002


@dataclass(slots=True, eq=False)
class Lane:
    """The ready requests of a virtual cluster, and the workers that it uses.

    ``used`` is the worker time that it has used, divided by its weight; ``running`` is the number
    of its workers.
    """

    weight: float = 1.0
    ready: deque[SyncRequest] = field(default_factory=deque)
    low: OrderedDict[SyncRequest, None] = field(default_factory=OrderedDict)
    passed_over: int = 0
    used: float = 0.0
    running: int = 0
    #: The bytes that its workers have in memory.
    memory: ByteBudget = field(default_factory=ByteBudget)
    #: The requests that wait for memory for their objects, with the bytes.
    heavy: deque[tuple[SyncRequest, int]] = field(default_factory=deque)
    #: The one of these that was let in last, until its worker has its objects.
    let_in: SyncRequest | None = None
    #: The average seconds of its requests, in which the latest count most.
    average: float = SLOW_SECONDS
    paused: bool = False
    #: The reasons why it is paused.
    reasons: set[str] = field(default_factory=set)
    #: True if it is in the order, or waits for its share of the workers.
    listed: bool = False

    @property
    def is_empty(self) -> bool:
        """True if no request is ready."""
        return not (self.ready or self.low)

    @property
    def depth(self) -> int:
        """The number of its waiting requests."""
        return len(self.ready) + len(self.low) + len(self.heavy)

    @property
    def is_slow(self) -> bool:
        """True if its requests take long."""
        return self.average >= SLOW_SECONDS

    def has_room(self, size: int, had: int = 0) -> bool:
        """Return True if there is room for ``size`` bytes of a request that has ``had`` until now.

        A request that is alone in holding memory always has room, whatever its size.
        """
        return self.memory.used <= had or self.memory.has_room(size - had)

    def put(self, request: SyncRequest, *, low: bool) -> None:
        """Add a request."""
        if low:
            self.low[request] = None
        else:
            self.ready.append(request)

    def move_up(self, request: SyncRequest) -> None:
        """Raise a waiting request to normal priority."""
        if request in self.low:
            del self.low[request]
            self.ready.append(request)

    def ended(self, seconds: float, *, charged: float) -> None:
        """Finish a request that took so many seconds of a worker.

        ``charged`` are the seconds that were charged in advance.
        """
        self.running -= 1
        self.used += (seconds - charged) / self.weight
        if seconds >= TELLING_SECONDS:
            self.average += (seconds - self.average) * LATEST

    def next(self) -> SyncRequest:
        """Return the next request."""
        if self.low and (not self.ready or self.passed_over >= LOW_SHARE - 1):
            self.passed_over = 0
            return self.low.popitem(last=False)[0]
        self.passed_over += bool(self.low)
        return self.ready.popleft()
