"""A stored object: bytes of exact size, compressed if the JSON is large and repetitive."""

import gzip
import zlib
from typing import NamedTuple

#: JSON of at least so many bytes may be compressed.
LARGE = 32 << 10
#: Bytes of the sample that decides whether compression is worth it.
SAMPLE = 4 << 10
#: The fastest level of zlib: 1 ms a MB for repetitive JSON, 20 for other texts.
_FASTEST = 1
#: The beginning of the gzip format, which no JSON has. The format ends with the size of the
#: contents in four bytes (RFC 1952).
_MAGIC = b"\x1f\x8b"
#: The ``wbits`` of zlib for this format.
_GZIP = 31


class Entry(NamedTuple):
    """An object: its resourceVersion, its uid, and its JSON without ``managedFields``.

    ``packed`` is the JSON as :func:`packed` returns it. ``parts`` is an upper bound of the fields
    and items of a large object, and 0 for a small one.
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

    A Pod with the variables of Services in 20 containers shrinks to a twentieth of its 227 kB.
    Compressing it takes 0.3 ms, and reading it 0.6 instead of 0.5 ms.
    """
    if len(raw) < LARGE:
        return raw
    middle = len(raw) // 2
    if 2 * len(zlib.compress(raw[middle : middle + SAMPLE], _FASTEST)) > SAMPLE:
        return raw
    smaller = gzip.compress(raw, _FASTEST, mtime=0)
    if 2 * len(smaller) > len(raw):
        return raw
    return smaller
