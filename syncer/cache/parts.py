"""Refuse objects with so many parts that a decision about one would stop the event loop for long.

Texts cost next to nothing, however long. Each field, item and bracket costs a microsecond or two in
all, and each label and annotation up to twenty, for the rules that it is compared with. Definitions
of custom resources have the most: Argo CD's ApplicationSet some 30,000.
"""

from syncer.api.errors import TooLarge
from syncer.api.objects import Obj
from syncer.clusters import pieces

#: Most fields, items and brackets of an object at all levels, and most labels and annotations.
MOST_PARTS, MOST_KEYS = 40_000, 2_000
#: How many more a copy may have, so that one of a virtual object that is just small enough can be
#: read: its marks, and a field or two for each item that names another object.
MORE_PARTS, MORE_KEYS = 4_000, 100
#: Bytes of JSON that can't have more: a part takes one at least, and a label six (``"a":"",``).
FEW_PARTS_BYTES = min(MOST_PARTS, 6 * MOST_KEYS)


def parts_of(raw: bytes) -> int:
    """Return the number of fields, items and brackets of an object, or an upper bound; 0 for a
    small one.

    Counted once for each version, when it is stored: it takes 2 ms a MB.
    """
    return pieces.count(raw, MOST_PARTS + MORE_PARTS) if len(raw) > FEW_PARTS_BYTES else 0


def most_parts(*, of_copy: bool) -> int:
    """Return the most fields, items and brackets of a virtual object, or of a copy."""
    return MOST_PARTS + MORE_PARTS if of_copy else MOST_PARTS


def refuse_many_parts(number: int, *, of_copy: bool = False) -> None:
    """Check the number of fields and items of an object, before it is decoded.

    Raises:
        TooLarge: It has too many.
    """
    if number > (most := most_parts(of_copy=of_copy)):
        why = f"it has {number} fields, items and brackets, and {most} are accepted"
        raise TooLarge(f"{why}; divide it into several objects")


def refuse_many_keys(metadata: Obj, *, of_copy: bool = False) -> None:
    """Check the number of labels and annotations of an object.

    Raises:
        TooLarge: It has too many.
    """
    most = MOST_KEYS + MORE_KEYS if of_copy else MOST_KEYS
    for part in ("labels", "annotations"):
        if (keys := len(metadata.get(part) or ())) > most:
            raise TooLarge(
                f"it has {keys} of them, and {most} are accepted",
                path=f"metadata.{part}",
            )
