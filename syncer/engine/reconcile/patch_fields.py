"""The fields of a merge patch, beside those of the live object. Pure."""

from typing import Any

from syncer.api.objects import Obj
from syncer.api.values import value_class
from syncer.engine.reconcile.managed_fields import PathStep
from syncer.translate.three_way import ABSENT


@value_class
class Change:
    """A path, its wanted value, and its live value; ``ABSENT`` stands for a missing one."""

    path: tuple[PathStep, ...]
    wanted: Any
    found: Any


def changes(
    patch: Obj, live: Any, *, depth: int | None = None, above: tuple[PathStep, ...] = ()
) -> list[Change]:
    """Return the fields of a merge patch, each with its wanted and its live value.

    A wanted value of None removes the field. Fields that are equal on both sides are among them.

    Args:
        patch: The merge patch.
        live: The live object.
        depth: Maximum number of names in a path; a list is then one value, and a mapping is split
            whether or not the live object has it. Without a depth a field is split as far as both
            sides have it, lists of equally many mappings into the fields of their elements.
        above: The path of ``patch`` in the object.
    """
    fields: list[Change] = []
    _add(fields, patch, live, depth, above)
    return fields


def _add(
    fields: list[Change], patch: Obj, live: Any, depth: int | None, above: tuple[PathStep, ...]
) -> None:
    """Add the fields of a merge patch; a generator would pass each on through all levels."""
    live_fields = live if isinstance(live, dict) else {}
    for name, wanted in patch.items():
        path = (*above, name)
        found = live_fields.get(name, ABSENT)
        if depth is None:
            _add_split(fields, Change(path, wanted, found))
        elif depth > 1 and wanted and isinstance(wanted, dict):
            _add(fields, wanted, found, depth - 1, path)
        else:
            fields.append(Change(path, wanted, found))


def _add_split(fields: list[Change], change: Change) -> None:
    wanted = change.wanted
    found = change.found
    if isinstance(wanted, dict):
        if isinstance(found, dict) or change.path[0] == "metadata":
            _add(fields, wanted, found, None, change.path)
            return
    elif (
        isinstance(wanted, list) and isinstance(found, list) and _have_like_elements(wanted, found)
    ):
        # A list is written whole, but seldom changes as a whole.
        for index, (wanted_element, element) in enumerate(zip(wanted, found, strict=True)):
            written = {name: value for name, value in wanted_element.items() if value is not None}
            _add(fields, written, element, None, (*change.path, index))
        return
    fields.append(change)


def _have_like_elements(one: list[Any], other: list[Any]) -> bool:
    """Return True for two lists of equally many mappings."""
    if len(one) != len(other):
        return False
    return all(isinstance(element, dict) for element in (*one, *other))
