"""The memory that the objects of a virtual cluster may take, and the share of each namespace."""

from collections.abc import Callable, Sized
from dataclasses import dataclass, field
from typing import Protocol

from syncer.api.objects import Key

#: Bytes of a stored object besides its JSON: its key, version and uid, and its entries in the
#: indexes.
OVERHEAD = 1000
#: Values of an object in an index that the overhead includes.
FREE_VALUES = 8
#: Bytes of each further value: 10,000 to 20,000 names that no other object has took 450 to 500
#: each, and 210 to 230 in a map function.
VALUE = 500
#: A namespace may take so many times the free memory.
TIMES = 3


class NoRoom(Exception):
    """An object doesn't fit into the memory that is left for its namespace."""

    def __init__(self, size: int) -> None:
        super().__init__(
            f"there is no room for its {size} bytes in the daemon's memory (maxMegabytes)",
        )
        #: The bytes that it would take.
        self.size = size


#: Counts so many bytes more that an object takes; less than 0 for fewer. Raises NoRoom.
Charge = Callable[[Key, int], None]


def cost_of(values: Sized) -> int:
    """Return the bytes that the values of an object take in an index, besides its overhead."""
    return max(0, len(values) - FREE_VALUES) * VALUE


def uncharged(_key: Key, _difference: int) -> None:
    """Count nothing."""


def _nothing() -> None:
    return None


class Account(Protocol):
    """Counts the bytes of stores."""

    def take(self, namespace: str, size: int) -> None:
        """Count so many bytes more."""
        ...

    def give(self, namespace: str, size: int) -> None:
        """Count so many bytes less."""
        ...

    def has_room(self, namespace: str, size: int) -> bool:
        """Return True if an object of a namespace may take so many bytes more."""
        ...


@dataclass(slots=True)
class MemoryBudget:
    """The bytes that the stores of a virtual cluster take, and their limit; 0 is no limit.

    A tenant may create any number of objects, and all virtual clusters share the daemon's memory.
    """

    most: int = 0
    used: int = 0
    #: Called when more bytes are used, and they exceed the limit.
    over: Callable[[], None] = _nothing

    def limit(self, most: int) -> None:
        """Allow so many bytes from the next object on; 0 is no limit."""
        self.most = most

    def take(self, namespace: str, size: int) -> None:
        """Count so many bytes more."""
        self.used += size
        if self.used > self.most > 0:
            self.over()

    def give(self, namespace: str, size: int) -> None:
        """Count so many bytes less."""
        self.used -= size

    def has_room(self, namespace: str, size: int) -> bool:
        """Return True: this budget refuses no object; exceeding it ends the virtual cluster."""
        return True


@dataclass(slots=True)
class Shares:
    """The part of a budget that the virtual objects take, divided between namespaces.

    Half of the budget is for the virtual objects, the other half for their copies. A namespace may
    take :data:`TIMES` as much as all namespaces leave free of this half: three quarters if it is
    alone. So the objects of one namespace can't use up the memory that others need: the larger it
    is, the less is free, and a smaller one still has room. Network switches share a buffer between
    ports by such dynamic thresholds.
    """

    budget: MemoryBudget
    used: int = 0
    _by_namespace: dict[str, int] = field(default_factory=dict)

    def take(self, namespace: str, size: int) -> None:
        """Count so many bytes more."""
        self.used += size
        self._by_namespace[namespace] = self._by_namespace.get(namespace, 0) + size
        self.budget.take(namespace, size)

    def give(self, namespace: str, size: int) -> None:
        """Count so many bytes less."""
        self.used -= size
        left = self._by_namespace[namespace] - size
        if left:
            self._by_namespace[namespace] = left
        else:
            del self._by_namespace[namespace]
        self.budget.give(namespace, size)

    def has_room(self, namespace: str, size: int) -> bool:
        """Return True if an object of a namespace may take so many bytes more, or fewer."""
        if size <= 0 or not self.budget.most:
            return True
        free = self.budget.most // 2 - self.used - size
        return self._by_namespace.get(namespace, 0) + size <= TIMES * free
