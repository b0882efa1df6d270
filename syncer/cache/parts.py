"""Refuse objects with so many parts that a decision about one would stop the event loop for long.

Texts cost next to nothing, however long. Each field, item and bracket costs a microsecond or two in all,
and each label and annotation up to twenty, for the rules that it is compared with. Definitions of custom
resources have the most: Argo CD's ApplicationSet some 30,000.
"""

from syncer.api.errors import TooLarge
from syncer.api.objects import Obj
from syncer.clusters import pieces

#: Most fields, items and brackets of an object at all levels, and most labels and annotations.
MOST_PARTS, MOST_KEYS = 40_000, 2_000
#: Bytes of JSON that can't have more: a part takes one at least, and a label six (``"a":"",``).
FEW_PARTS_BYTES = min(MOST_PARTS, 6 * MOST_KEYS)


def parts_of(raw: bytes) -> int:
    """Return the number of fields, items and brackets of an object, or an upper bound; 0 for a small one.

    Counted once for each version, when it is stored: it takes 2 ms a MB.
    """
    return pieces.count(raw, MOST_PARTS) if len(raw) > FEW_PARTS_BYTES else 0


def refuse_many_parts(number: int) -> None:
    """Check the number of fields and items of an object, before it is decoded.

    Raises:
        TooLarge: It has too many.
    """
    if number > MOST_PARTS:
        why = f"it has {number} fields, items and brackets, and {MOST_PARTS} are accepted"
        raise TooLarge(f"{why}; divide it into several objects")


def refuse_many_keys(metadata: Obj) -> None:
    """Check the number of labels and annotations of an object.

    Raises:
        TooLarge: It has too many.
    """
    for part in ("labels", "annotations"):
        if (keys := len(metadata.get(part) or ())) > MOST_KEYS:
            raise TooLarge(f"it has {keys} of them, and {MOST_KEYS} are accepted", path=f"metadata.{part}")
