"""Encode the bodies of requests, and refuse those that no API server accepts.

An API server reads 3 MiB of a body (``MaxRequestBodyBytes`` in
k8s.io/apiserver/pkg/server/config.go) and etcd stores 1.5 MiB of an object
(``--max-request-bytes``). The first is twice the second because JSON takes more space than the
stored form: a Secret with 1 MiB of data is 1.4 MiB of JSON. So the bound here is the API server's.
An object between the two is refused by etcd, and this answer is handled in the same way
(:mod:`syncer.clusters.errors`).

The check compares a known length. Contents that grow with a product, such as variables times
containers, are limited by their kind before they are built.
"""

from typing import Any

from syncer.api.errors import TooLarge
from syncer.api.texts import LONGEST_FIELD
from syncer.clusters import codec

#: Largest body of a request, in bytes.
LARGEST = 3 << 20
#: A part is the largest one if it has at least this share of its parent.
_SHARE = 0.5


def encoded(value: Any) -> bytes:
    """Encode the body of a request.

    Raises:
        TooLarge: No API server accepts a body of this size.
    """
    data = codec.encode(value)
    if len(data) > LARGEST:
        path, size = _largest_part(value, len(data))
        of_part = ""
        if path:
            of_part = f", {size >> 10} KiB of it in this field"
        raise TooLarge(
            f"it would be sent as {len(data) >> 10} KiB{of_part}, "
            f"and an API server accepts {LARGEST >> 10} KiB; "
            "make it smaller, or divide it into several objects",
            path=path,
        )
    return data


def _largest_part(value: Any, size: int) -> tuple[str, int]:
    """Return the path and the encoded size of the deepest part with most bytes of its parent.

    Lists are not searched, as their items have no names.
    """
    path: list[str] = []
    while isinstance(value, dict) and value:
        sizes = {name: len(codec.encode(below)) for name, below in value.items()}
        name = max(sizes, key=lambda each: sizes[each])
        if sizes[name] < size * _SHARE or len(name) > LONGEST_FIELD:
            break
        path.append(name)
        value = value[name]
        size = sizes[name]
    return ".".join(path), size
