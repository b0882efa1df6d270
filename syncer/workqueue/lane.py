"""The ready requests of a virtual cluster, those of low priority last."""

from collections import OrderedDict, deque
from dataclasses import dataclass, field

from syncer.api.objects import SyncRequest

#: One in this many requests of a lane is of low priority, if there are any.
LOW_SHARE = 16
#: Seconds from which on the requests of a lane count as slow, on average; also before one has
#: ended.
SLOW_SECONDS = 0.25
#: The latest request's share of that average.
LATEST = 0.25
#: Seconds below which a request tells nothing of that: it has asked no API server anything. What
#: has nothing to do, as at a start or in a patrol, would else let a cluster whose API server is
#: slow pass for a fast one.
TELLING_SECONDS = 0.002


@dataclass(slots=True, eq=False)
class Lane:
    """The ready requests of a virtual cluster, the worker time that it has used for its weight, and
    the number of workers that it holds.
    """

    weight: float = 1.0
    ready: deque[SyncRequest] = field(default_factory=deque)
    low: OrderedDict[SyncRequest, None] = field(default_factory=OrderedDict)
    passed_over: int = 0
    used: float = 0.0
    running: int = 0
    #: The bytes of the objects that its workers hold, and the requests that wait for room for
    #: theirs, with their bytes.
    weighed: int = 0
    heavy: deque[tuple[SyncRequest, int]] = field(default_factory=deque)
    #: The one of these that was let in last, until its worker holds its objects.
    let_in: SyncRequest | None = None
    #: The average seconds of a request that takes any, the latest counting most.
    average: float = SLOW_SECONDS
    paused: bool = False
    #: Why it is paused.
    reasons: set[str] = field(default_factory=set)
    #: True if it is in the order, or held.
    listed: bool = False

    @property
    def is_empty(self) -> bool:
        """True if no request is ready."""
        return not (self.ready or self.low)

    @property
    def depth(self) -> int:
        """The number of its requests that wait."""
        return len(self.ready) + len(self.low) + len(self.heavy)

    @property
    def is_slow(self) -> bool:
        """True if its requests take long."""
        return self.average >= SLOW_SECONDS

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
        """Finish a request that took so many seconds of a worker, of which some were charged in
        advance.
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
