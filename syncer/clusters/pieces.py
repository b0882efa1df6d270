"""Split JSON text without decoding it, for objects that no decoder accepts."""

import asyncio
import re
from collections.abc import Iterable, Iterator

#: A string, or the rest of the text if its end is missing: no later quotation mark begins another.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_marks = re.compile(_STRING + rb"|[{}\[\],]", re.DOTALL).finditer
_name = re.compile(rb"\s*(" + _STRING + rb")\s*:", re.DOTALL).match


#: Brackets, commas and strings after which a step of the event loop ends; reading them takes some 5
#: ms.
BREATH = 10_000


def elements(text: bytes) -> Iterator[bytes]:
    """Yield the elements of an array, or the members of an object with their names, unchanged."""
    return (piece for piece in cut(text) if piece is not None)


async def elements_in_steps(text: bytes) -> list[bytes]:
    """Return the pieces of :func:`elements`, and let other tasks run in between."""
    found = []
    for piece in cut(text):
        if piece is None:
            await asyncio.sleep(0)
        else:
            found.append(piece)
    return found


def cut(text: bytes) -> Iterator[bytes | None]:
    """Yield the elements of an array, or the members of an object, and None from time to time."""
    depth = 0
    start = 0
    for number, found in enumerate(_marks(text), 1):
        if number % BREATH == 0:
            yield None
        mark = found[0]
        if mark in (b"{", b"["):
            depth += 1
            if depth == 1:
                start = found.end()
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


def count(text: bytes, most: int) -> int:
    """Return about the number of fields, items and opening brackets at all levels.

    It is an upper bound if that is not more than ``most``. No regular expression is used: it would
    take as long as decoding the whole several times. Nor is a text divided that has more strings
    than so many fields, which have two each: it has too many in any case.
    """
    number = _commas_and_brackets(text)
    if number <= most or text.count(b'"') - text.count(rb"\"") > 4 * (most + 1):
        return number
    outside_of_strings = text.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')[::2]
    return _commas_and_brackets(b"".join(outside_of_strings))


def _commas_and_brackets(text: bytes) -> int:
    return text.count(b",") + text.count(b"{") + text.count(b"[")


def members(text: bytes) -> dict[bytes, bytes]:
    """Return the members of an object: names with quotation marks, and unchanged values."""
    return named(elements(text))


def first_members(text: bytes) -> dict[bytes, bytes]:
    """Return the members that end before so much of an object has been read that it takes 5 ms."""
    found: list[bytes] = []
    for piece in cut(text):
        if piece is None:
            break
        found.append(piece)
    return named(found)


def named(members: Iterable[bytes]) -> dict[bytes, bytes]:
    """Return the members of an object by their names, as :func:`members`."""
    found = ((_name(piece), piece) for piece in members)
    return {name[1]: piece[name.end() :].strip() for name, piece in found if name}
