"""The fields that an object may have, listed by kinds with fields that matter on the host."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from syncer.api.errors import Refused
from syncer.api.objects import Json
from syncer.api.paths import EACH, FieldPath, path_steps
from syncer.api.texts import LONGEST_FIELD

#: The allowed fields by name; an empty mapping allows everything below.
_Tree: TypeAlias = Mapping[str, "_Tree"]


class AllowedFields:
    """A list of fields, each with everything below it. All other fields are refused, known or not.

    Without such a list, a field that a later version of the kind adds would cross as soon as the
    host has that version.
    """

    def __init__(self, *paths: FieldPath) -> None:
        """Compile the list.

        Args:
            paths: The fields, from the value that is checked: ``ca.secretName``,
                ``endpoints[].port``.
        """
        tree: dict[str, Any] = {}
        for path in paths:
            node = tree
            for step in path_steps(path):
                node = node.setdefault(step, {})
        self._tree: _Tree = tree

    def refuse_others(self, value: Json, *, at: str, hint: str = "") -> None:
        """Refuse a value with a field that isn't in the list. Fields that are null count as
        missing.

        Args:
            value: The value.
            at: Its path in the object.
            hint: A sentence for the tenant after the reason.

        Raises:
            Refused: There is another field.
        """
        for path in _others(value, self._tree, at):
            raise Refused(f"is not a field that is synced. {hint}".rstrip(), path=path)


def _others(value: Json, tree: _Tree, path: str) -> Iterator[str]:
    """Yield the paths of fields that the tree doesn't have."""
    if not tree or value is None:
        return
    if isinstance(value, list):
        below = tree.get(EACH)
        if below is not None:
            for index, item in enumerate(value):
                yield from _others(item, below, f"{path}[{index}]")
        elif value:
            yield path
    elif isinstance(value, dict):
        for name, field in value.items():
            if name in tree:
                yield from _others(field, tree[name], f"{path}.{name}")
            elif field is not None:
                yield f"{path}.{name[:LONGEST_FIELD]}"
    elif value != "":
        yield path
