"""JSON patches (RFC 6902) on plain JSON that copy only the containers on the way to a change.

The input must not change and may share parts with other objects. The jsonpatch package makes a
deep copy for that, which takes a Pod seventy times as long as copying the few containers on the
way; its messages repeat values, and those of a Secret must not get into an event. A place is a
tuple of steps; a step is the name of a field, or the index of a list item.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, Final

from syncer.api import EACH, Obj, path_steps

ValuePath = tuple[str, ...]


class Unfit(Exception):
    """A patch can't be applied to an object. The message never contains the object's contents."""


class _Missing(Enum):
    MISSING = "nothing is there"


#: Stands for a missing value, unlike ``null`` in an object.
MISSING: Final = _Missing.MISSING


def written(place: ValuePath) -> str:
    """Format a place as a JSON pointer."""
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in place)


def at(value: Any, place: ValuePath) -> Any:
    """Return the value at a place, or ``MISSING``."""
    for step in place:
        if isinstance(value, dict):
            value = value.get(step, MISSING)
        elif isinstance(value, list):
            number = _number(step)
            if number is None or number >= len(value):
                return MISSING
            value = value[number]
        else:
            return MISSING
    return value


def places(value: Any, steps: ValuePath, so_far: ValuePath = ()) -> Iterator[ValuePath]:
    """Yield the places that a path leads to; its steps may be ``EACH``.

    Without ``EACH``, that is a single place, which need not exist.

    Raises:
        Unfit: There is no list where the path has ``EACH``.
    """
    if EACH not in steps:
        yield (*so_far, *steps)
        return
    split = steps.index(EACH)
    before = steps[:split]
    after = steps[split + 1 :]
    items = at(value, before)
    if items is MISSING or items is None:
        return
    if not isinstance(items, list):
        raise Unfit(f"there is no list at {written((*so_far, *before))}")
    for number, item in enumerate(items):
        yield from places(item, after, (*so_far, *before, str(number)))


def added(obj: Obj, place: ValuePath, value: Any) -> Obj:
    """Apply ``add``: set a field, or insert a list item before the index (``-``: at the end)."""

    def change(container: Any, step: str) -> None:
        if isinstance(container, dict):
            container[step] = value
        else:
            container.insert(_numbered(step, container, place, more=1), value)

    return _changed(obj, place, change)


def replaced(obj: Obj, place: ValuePath, value: Any) -> Obj:
    """Apply ``replace``: change an existing value."""

    def change(container: Any, step: str) -> None:
        if at(container, (step,)) is MISSING:
            raise _nothing_at(place)
        if isinstance(container, dict):
            container[step] = value
        else:
            container[_numbered(step, container, place)] = value

    return _changed(obj, place, change)


def removed(obj: Obj, place: ValuePath) -> Obj:
    """Apply ``remove``: remove an existing value."""

    def change(container: Any, step: str) -> None:
        if at(container, (step,)) is MISSING:
            raise _nothing_at(place)
        if isinstance(container, dict):
            del container[step]
        else:
            del container[_numbered(step, container, place)]

    return _changed(obj, place, change)


def patched(obj: Obj, operations: Iterable[Obj]) -> Obj:
    """Apply a JSON patch of the operations that we send.

    Raises:
        Unfit: It can't be applied, or has other operations than ``add`` and ``remove``.
    """
    for operation in operations:
        place = path_steps(operation["path"])
        match operation["op"]:
            case "add":
                obj = added(obj, place, operation["value"])
            case "remove":
                obj = removed(obj, place)
            case other:
                raise Unfit(f"{other} is never sent")
    return obj


def put(obj: Obj, place: ValuePath, value: Any) -> Obj:
    """Set a field, with missing parent mappings, or replace a list item."""
    for depth in range(1, len(place)):
        if at(obj, place[:depth]) in (MISSING, None):
            obj = _put(obj, place[:depth], {})
    return _put(obj, place, value)


def _put(obj: Obj, place: ValuePath, value: Any) -> Obj:
    if isinstance(at(obj, place[:-1]), list):
        return replaced(obj, place, value)
    return added(obj, place, value)


def found(obj: Any, place: ValuePath) -> Any:
    """Return the value at a place.

    Raises:
        Unfit: There is none.
    """
    value = at(obj, place)
    if value is MISSING:
        raise _nothing_at(place)
    return value


def _changed(obj: Obj, place: ValuePath, change: Callable[[Any, str], None]) -> Obj:
    """Return the object with ``change(copy of the container, last step)`` applied at a place."""
    changed: Obj = _rebuilt(obj, place, 0, change)
    return changed


def _rebuilt(value: Any, place: ValuePath, depth: int, change: Callable[[Any, str], None]) -> Any:
    if not isinstance(value, dict | list):
        where = written(place[:depth]) or "the object"
        raise Unfit(f"{where} is neither a mapping nor a list")
    copied = value.copy()
    step = place[depth]
    if depth == len(place) - 1:
        change(copied, step)
        return copied
    child = at(value, (step,))
    if child is MISSING:
        raise _nothing_at(place[: depth + 1])
    new = _rebuilt(child, place, depth + 1, change)
    if isinstance(copied, dict):
        copied[step] = new
    else:
        copied[int(step)] = new
    return copied


def _number(step: str) -> int | None:
    """Parse a list index: decimal, without leading zeros (RFC 6901 §4)."""
    if not (step.isascii() and step.isdigit()):
        return None
    if step[0] == "0" and step != "0":
        return None
    return int(step)


def _numbered(step: str, items: list[Any], place: ValuePath, *, more: int = 0) -> int:
    """Return the index of a list item; with ``more`` the list may get so many further items."""
    if more and step == "-":
        return len(items)
    number = _number(step)
    if number is None:
        raise Unfit(f"{written(place[:-1])} is a list, of which {step!r} is no item")
    if number >= len(items) + more:
        raise _nothing_at(place)
    return number


def _nothing_at(place: ValuePath) -> Unfit:
    return Unfit(f"there is nothing at {written(place)}")
