"""One name out of several parts, so that no two lists of parts share a name.

There are two kinds of results, and they can't be mistaken for each other:

* **Readable**: the n parts joined by ``-x-``, and ``-x-`` occurs in the result exactly n-1 times,
  overlapping occurrences counted. These occurrences are then the joints, so the parts can be read
  back: two different lists give two different names. Whatever would add an occurrence (a part that
  contains ``-x-``, ends in ``-x``, begins with ``x-``, or is ``x``) makes the name a hashed one.
* **Hashed**: some of the text, and 80 bits of SHA-256 of the parts. ``-x-`` never occurs in it,
  while it does in every readable name. The digest is taken of the parts joined by ``/``, which no
  name of an object may contain.

Readable names of different numbers of parts differ in the count of ``-x-``. One part alone is not a
case.
"""

import hashlib
import re

from syncer.api import LONGEST_NAME
from syncer.names.forms import NameForm

SEPARATOR = "-x-"
#: Two overlapping separators, which :meth:`str.count` counts as one.
_OVERLAP = "-x-x-"
#: Hexadecimal digits of the digest, 4 bits each.
_DIGITS = 20

_NEITHER_LETTER_NOR_DIGIT = re.compile(r"[^a-z0-9]+")
_JOINTS = re.compile(r"(?:-x)+(?=-)")


def join(parts: tuple[str, ...], form: NameForm) -> str:
    """Return the name for these parts.

    It is readable if that is unambiguous and fits the form, otherwise hashed.
    """
    text = SEPARATOR.join(parts)
    if text.count(SEPARATOR) == len(parts) - 1 and _OVERLAP not in text and form.fits(text):
        return text
    return _hashed(parts, form)


def split(name: str) -> tuple[str, ...]:
    """Return the parts of a readable name; a name that isn't readable is a single part."""
    return (name,) if _OVERLAP in name else tuple(name.split(SEPARATOR))


def _hashed(parts: tuple[str, ...], form: NameForm) -> str:
    digest = hashlib.sha256("/".join(parts).encode()).hexdigest()[:_DIGITS]
    readable = SEPARATOR.join(part[:LONGEST_NAME] for part in parts)
    text = _NEITHER_LETTER_NOR_DIGIT.sub("-", readable.lower()).strip("-")
    # Two characters less than the digest leaves: a dash, and the letter that a Service name must
    # begin with.
    stem = _JOINTS.sub("", text[: form.limit - _DIGITS - 2].rstrip("-") + "-")
    name = stem + digest
    return name if form.fits(name) else f"n{name}"
