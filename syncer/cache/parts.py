"""Refuse objects with so many parts that a decision about one would stop the event loop for long.

Texts cost next to nothing, however long. Each field, item and bracket costs a microsecond or two in
all, and each label and annotation up to twenty, for the rules that it is compared with. Definitions
of custom resources have the most: Argo CD's ApplicationSet some 30,000.
"""

from syncer.api.errors import TooLarge
from syncer.api.objects import Obj
from syncer.clusters import pieces

#: Most fields, items and brackets of an object at all levels.
MOST_PARTS = 40_000
#: Most labels, and most annotations, of an object.
MOST_KEYS = 2_000
#: How many more parts a copy may have, so that the copy of a virtual object within the limit can be
#: read: its marks, and a field or two for each item that names another object.
MORE_PARTS = 4_000
#: How many more labels and annotations it may have.
MORE_KEYS = 100
#: JSON of so many bytes can't have more: a part takes one byte at least, and a label six
#: (``"a":"",``).
FEW_PARTS_BYTES = min(MOST_PARTS, 6 * MOST_KEYS)


def parts_of(raw: bytes) -> int:
    """Return the number of fields, items and brackets of an object, or an upper bound.

    Counting takes 2 ms a MB, so it is done once for each version, when the object is stored, and
    not for one of up to ``FEW_PARTS_BYTES``.
    """
    return pieces.count(raw, MOST_PARTS + MORE_PARTS)


def most_parts(*, of_copy: bool) -> int:
    """Return the most fields, items and brackets of a virtual object, or of a copy."""
    if of_copy:
        return MOST_PARTS + MORE_PARTS
    return MOST_PARTS


def refuse_many_parts(number: int, *, of_copy: bool = False) -> None:
    """Check the number of fields and items of an object, before it is decoded.

    Raises:
        TooLarge: The object has too many.
    """
    most = most_parts(of_copy=of_copy)
    if number > most:
        limit = f"{most} are accepted; divide it into several objects"
        raise TooLarge(f"it has {number} fields, items and brackets, and {limit}")


def refuse_many_keys(metadata: Obj, *, of_copy: bool = False) -> None:
    """Check the number of labels and annotations of an object.

    Raises:
        TooLarge: The object has too many.
    """
    most = MOST_KEYS
    if of_copy:
        most += MORE_KEYS
    for part in ("labels", "annotations"):
        keys = len(metadata.get(part) or ())
        if keys > most:
            raise TooLarge(
                f"it has {keys} of them, and {most} are accepted",
                path=f"metadata.{part}",
            )
