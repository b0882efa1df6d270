"""The memory that an object takes in its store."""

from collections.abc import Callable, Sized

from syncer.api.objects import Key

#: Bytes of a stored object besides its JSON: its key, version and uid, and its entries in the
#: indexes.
OVERHEAD = 1000
#: Values of an object in an index that the overhead includes.
FREE_VALUES = 8
#: Bytes of each further value: 10,000 to 20,000 names that no other object has took 450 to 500
#: each, and 210 to 230 in a map function.
VALUE = 500


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
