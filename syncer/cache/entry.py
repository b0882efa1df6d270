"""An object as a store keeps it: bytes of exact size, fewer than its JSON if it is large and
repeats itself.
"""

import gzip
import zlib
from typing import NamedTuple

#: Bytes of JSON from which on it is compressed, and of the sample that tells whether that is worth
#: it.
LARGE, SAMPLE = 32 << 10, 4 << 10
#: The fastest level of zlib: 1 ms a MB for JSON that repeats itself, 20 for a text that doesn't.
_FASTEST = 1
#: The beginning of the gzip format, which no JSON has. It ends with the size of the contents in
#: four bytes (RFC 1952).
_MAGIC, _GZIP = b"\x1f\x8b", 31


class Entry(NamedTuple):
    """An object: its resourceVersion, its uid, and its JSON without managedFields, which are most
    of its size, as :func:`packed` returns it; and for a large one about how many fields and items
    it has, otherwise 0.
    """

    version: str
    uid: str
    packed: bytes
    parts: int = 0

    @property
    def raw(self) -> bytes:
        """Return the JSON."""
        if not self.packed.startswith(_MAGIC):
            return self.packed
        return zlib.decompress(self.packed, _GZIP, self.size)

    @property
    def size(self) -> int:
        """Return the bytes of the JSON."""
        if not self.packed.startswith(_MAGIC):
            return len(self.packed)
        return int.from_bytes(self.packed[-4:], "little")


def packed(raw: bytes) -> bytes:
    """Compress the JSON of a large object if that at least halves it.

    A Pod with the variables of Services in 20 containers takes a twentieth of its 227 kB. To
    compress it takes 0.3 ms, and to read it 0.6 instead of 0.5.
    """
    if len(raw) < LARGE:
        return raw
    middle = len(raw) // 2
    if 2 * len(zlib.compress(raw[middle : middle + SAMPLE], _FASTEST)) > SAMPLE:
        return raw
    smaller = gzip.compress(raw, _FASTEST, mtime=0)
    return smaller if 2 * len(smaller) <= len(raw) else raw
