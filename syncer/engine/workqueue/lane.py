"""The requests of one virtual cluster that are ready to be worked on, those of low priority after the others."""

from collections import OrderedDict, deque
from dataclasses import dataclass, field

from syncer.api.objects import Request

#: Of so many requests of a lane at least one is of low priority, where there are any.
LOW_SHARE = 16


@dataclass(slots=True)
class Lane:
    """What one virtual cluster has ready, and what it has used of the workers' time for its weight."""

    weight: float = 1.0
    ready: deque[Request] = field(default_factory=deque)
    low: OrderedDict[Request, None] = field(default_factory=OrderedDict)
    passed_over: int = 0
    used: float = 0.0
    paused: bool = False
    listed: bool = False

    def put(self, request: Request, *, low: bool) -> None:
        """Let a request wait for its turn."""
        if low:
            self.low[request] = None
        else:
            self.ready.append(request)

    def move_up(self, request: Request) -> None:
        """Let a request that may wait as a low one wait as any other."""
        if request in self.low:
            del self.low[request]
            self.ready.append(request)

    def next(self) -> Request:
        """Return the request whose turn it is."""
        if self.low and (not self.ready or self.passed_over >= LOW_SHARE - 1):
            self.passed_over = 0
            return self.low.popitem(last=False)[0]
        self.passed_over += bool(self.low)
        return self.ready.popleft()
