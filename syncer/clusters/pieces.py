"""Split JSON text without decoding it, for objects that no decoder accepts."""

import re
from collections.abc import Iterator

_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_marks = re.compile(_STRING + rb"|[{}\[\],]", re.DOTALL).finditer
_name = re.compile(rb"\s*(" + _STRING + rb")\s*:", re.DOTALL).match


def elements(text: bytes) -> Iterator[bytes]:
    """Yield the elements of an array, or the members of an object with their names, unchanged."""
    depth = start = 0
    for found in _marks(text):
        mark = found[0]
        if mark in (b"{", b"["):
            depth += 1
            start = found.end() if depth == 1 else start
        elif mark in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                last = text[start : found.start()].strip()
                if last:
                    yield last
                return
        elif mark == b"," and depth == 1:
            yield text[start : found.start()].strip()
            start = found.end()


def members(text: bytes) -> dict[bytes, bytes]:
    """Return the members of an object: each name with its quotation marks, and its unchanged value."""
    named = ((_name(piece), piece) for piece in elements(text))
    return {found[1]: piece[found.end() :].strip() for found, piece in named if found}
