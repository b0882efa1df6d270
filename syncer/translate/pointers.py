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


def written(path: ValuePath) -> str:
    """Format a place as a JSON pointer."""
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in path)


def at(value: Any, path: ValuePath) -> Any:
    """Return the value at a place, or ``MISSING``."""
    for step in path:
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


def paths(value: Any, steps: ValuePath, so_far: ValuePath = ()) -> Iterator[ValuePath]:
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
        yield from paths(item, after, (*so_far, *before, str(number)))


def added(obj: Obj, path: ValuePath, value: Any) -> Obj:
    """Apply ``add``: set a field, or insert a list item before the index (``-``: at the end)."""

    def change(container: Any, step: str) -> None:
        if isinstance(container, dict):
            container[step] = value
        else:
            container.insert(_numbered(step, container, path, more=1), value)

    return _changed(obj, path, change)


def replaced(obj: Obj, path: ValuePath, value: Any) -> Obj:
    """Apply ``replace``: change an existing value."""

    def change(container: Any, step: str) -> None:
        if at(container, (step,)) is MISSING:
            raise _nothing_at(path)
        if isinstance(container, dict):
            container[step] = value
        else:
            container[_numbered(step, container, path)] = value

    return _changed(obj, path, change)


def removed(obj: Obj, path: ValuePath) -> Obj:
    """Apply ``remove``: remove an existing value."""

    def change(container: Any, step: str) -> None:
        if at(container, (step,)) is MISSING:
            raise _nothing_at(path)
        if isinstance(container, dict):
            del container[step]
        else:
            del container[_numbered(step, container, path)]

    return _changed(obj, path, change)


def patched(obj: Obj, operations: Iterable[Obj]) -> Obj:
    """Apply a JSON patch of the operations that we send.

    Raises:
        Unfit: It can't be applied, or has other operations than ``add`` and ``remove``.
    """
    for operation in operations:
        path = path_steps(operation["path"])
        match operation["op"]:
            case "add":
                obj = added(obj, path, operation["value"])
            case "remove":
                obj = removed(obj, path)
            case other:
                raise Unfit(f"{other} is never sent")
    return obj


def put(obj: Obj, path: ValuePath, value: Any) -> Obj:
    """Set a field, with missing parent mappings, or replace a list item."""
    for depth in range(1, len(path)):
        if at(obj, path[:depth]) in (MISSING, None):
            obj = _put(obj, path[:depth], {})
    return _put(obj, path, value)


def _put(obj: Obj, path: ValuePath, value: Any) -> Obj:
    if isinstance(at(obj, path[:-1]), list):
        return replaced(obj, path, value)
    return added(obj, path, value)


def found(obj: Any, path: ValuePath) -> Any:
    """Return the value at a place.

    Raises:
        Unfit: There is none.
    """
    value = at(obj, path)
    if value is MISSING:
        raise _nothing_at(path)
    return value


def _changed(obj: Obj, path: ValuePath, change: Callable[[Any, str], None]) -> Obj:
    """Return the object with ``change(copy of the container, last step)`` applied at a place."""
    changed: Obj = _rebuilt(obj, path, 0, change)
    return changed


def _rebuilt(value: Any, path: ValuePath, depth: int, change: Callable[[Any, str], None]) -> Any:
    if not isinstance(value, dict | list):
        where = written(path[:depth]) or "the object"
        raise Unfit(f"{where} is neither a mapping nor a list")
    copied = value.copy()
    step = path[depth]
    if depth == len(path) - 1:
        change(copied, step)
        return copied
    child = at(value, (step,))
    if child is MISSING:
        raise _nothing_at(path[: depth + 1])
    new = _rebuilt(child, path, depth + 1, change)
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


def _numbered(step: str, items: list[Any], path: ValuePath, *, more: int = 0) -> int:
    """Return the index of a list item; with ``more`` the list may get so many further items."""
    if more and step == "-":
        return len(items)
    number = _number(step)
    if number is None:
        raise Unfit(f"{written(path[:-1])} is a list, of which {step!r} is no item")
    if number >= len(items) + more:
        raise _nothing_at(path)
    return number


def _nothing_at(path: ValuePath) -> Unfit:
    return Unfit(f"there is nothing at {written(path)}")
