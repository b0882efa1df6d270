"""The memory that large replies of an API server take while they arrive.

A reply is read up to :data:`LARGE_REPLY` whatever else is read. Beyond that, it takes bytes of a
budget. Without room it isn't read on: the server is slowed down by TCP, and the deadline goes on.
"""

import logging
from collections.abc import Callable

from syncer.byte_budget import ByteBudget

#: The largest body of a response, and the longest line of a watch, that takes nothing of the
#: budget, in bytes; a larger one takes so many at a time. A watch isn't read on while lines of more
#: bytes wait to be taken.
LARGE_REPLY = 1 << 20

log = logging.getLogger(__name__)


class LargeReplies:
    """The large replies of an API server.

    Each is a part of the budget, so one that stalls leaves room to others. One of those that find
    no room goes on nevertheless: so it ends, and never do all wait for each other.
    """

    def __init__(self, budget: ByteBudget, *, server: str = "an API server") -> None:
        """``server`` is a name for the log."""
        self.budget = budget
        self._server = server
        #: The replies that wait, the first one first, each with the bytes that it waits for.
        self.waiting: dict[LargeReply, int] = {}
        #: The one that goes on without room.
        self._exempt: LargeReply | None = None
        #: True once the log has that there was one.
        self._is_logged = False

    def may_take(self, reply: "LargeReply", size: int) -> bool:
        """Return True if a reply may take so many bytes more."""
        if reply.part.has_room(size):
            return True
        if self._exempt is None:
            self._exempt = reply
            self._warn(reply.most + size)
        return self._exempt is reply

    def _warn(self, size: int) -> None:
        """Log the first reply of the server that goes on without room."""
        if self._is_logged:
            return
        self._is_logged = True
        log.warning(
            "a reply of %s has come to %d MiB, and there is no memory for it: it is read all the "
            "same, and its other large replies wait for it; give the daemon more memory, or raise "
            "maxMegabytes",
            self._server,
            size >> 20,
        )

    def ended(self, reply: "LargeReply") -> None:
        """Let others go on that wait for what a reply had."""
        self.waiting.pop(reply, None)
        if self._exempt is reply:
            self._exempt = None
        for other, size in list(self.waiting.items()):
            if self.may_take(other, size):
                del self.waiting[other]
                other.take(size)
                other.read_on()


class LargeReply:
    """A reply that has become large; it takes nothing yet.

    ``read_on`` is called after it has waited.
    """

    __slots__ = ("_replies", "most", "part", "read_on")

    def __init__(self, replies: LargeReplies, read_on: Callable[[], None]) -> None:
        self._replies = replies
        self.read_on = read_on
        self.part = replies.budget.of(str(id(self)))
        #: The bytes that it may have so far.
        self.most = 0

    @property
    def waits(self) -> bool:
        """True while there is no room for it."""
        return self in self._replies.waiting

    def grow(self, size: int) -> None:
        """Take what a reply needs that has come to so many bytes, or wait for it."""
        if self.waits or size <= self.most:
            return
        more = size + LARGE_REPLY - self.most
        if self._replies.may_take(self, more):
            self.take(more)
        else:
            self._replies.waiting[self] = more

    def take(self, size: int) -> None:
        """Take so many bytes more."""
        self.most += size
        self.part.take(size)

    def end(self) -> None:
        """Give all back."""
        self.part.give_back(self.most)
        self.most = 0
        self._replies.ended(self)
