"""The memory that the objects of a virtual cluster may take."""

from collections.abc import Callable
from dataclasses import dataclass

#: Bytes of a stored object besides its JSON: its key, version and uid, and its places in the indexes.
OVERHEAD = 1000


def _nothing() -> None:
    return None


@dataclass(slots=True)
class Budget:
    """The bytes that the stores of a virtual cluster take, and the most that they may; 0 is no limit.

    A virtual cluster has as many objects as its tenant likes, and the memory of a daemon is everybody's.
    """

    most: int = 0
    used: int = 0
    #: Called when more is used, and that is too much.
    over: Callable[[], None] = _nothing

    def take(self, size: int) -> None:
        """Count so many bytes more."""
        self.used += size
        if self.used > self.most > 0:
            self.over()

    def give(self, size: int) -> None:
        """Count so many bytes less."""
        self.used -= size
