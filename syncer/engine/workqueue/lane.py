"""The ready requests of a virtual cluster, those of low priority last."""

from collections import OrderedDict, deque
from dataclasses import dataclass, field

from syncer.api.objects import Request

#: One in this many requests of a lane is of low priority, if there are any.
LOW_SHARE = 16


@dataclass(slots=True)
class Lane:
    """The ready requests of a virtual cluster, and the worker time that it has used for its weight."""

    weight: float = 1.0
    ready: deque[Request] = field(default_factory=deque)
    low: OrderedDict[Request, None] = field(default_factory=OrderedDict)
    passed_over: int = 0
    used: float = 0.0
    paused: bool = False
    listed: bool = False

    def put(self, request: Request, *, low: bool) -> None:
        """Add a request."""
        if low:
            self.low[request] = None
        else:
            self.ready.append(request)

    def move_up(self, request: Request) -> None:
        """Raise a waiting request to normal priority."""
        if request in self.low:
            del self.low[request]
            self.ready.append(request)

    def next(self) -> Request:
        """Return the next request."""
        if self.low and (not self.ready or self.passed_over >= LOW_SHARE - 1):
            self.passed_over = 0
            return self.low.popitem(last=False)[0]
        self.passed_over += bool(self.low)
        return self.ready.popleft()
