"""The buffer into which the connections of an event loop read, one after the other.

For a protocol without one, uvloop and asyncio allocate 256 KiB for each read of a TLS connection.
That costs more than the read, and leaves holes in the heap.
"""

import asyncio
from weakref import WeakKeyDictionary

#: Bytes of the buffer: more than event loops decrypt at once, which is 256 KiB and a record of TLS
#: that was not yet complete. What doesn't fit would be lost if the other side has closed the
#: connection.
SIZE = 320 << 10

_buffers: WeakKeyDictionary[asyncio.AbstractEventLoop, memoryview] = WeakKeyDictionary()


def read_buffer(loop: asyncio.AbstractEventLoop) -> memoryview:
    """Return the buffer of an event loop.

    Bytes in it must be processed before anything else is read.
    """
    return _buffers.get(loop) or _buffers.setdefault(loop, memoryview(bytearray(SIZE)))
