"""Find and rewrite the strings at many paths of an object in one pass, without changing what was given."""

import operator
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

L = TypeVar("L")


class _End(dict[str, Any]):
    """Where a path ends, with the label that its table gave it. As a tree it is empty: nothing leads further."""

    __slots__ = ("label",)

    def __init__(self, label: Any) -> None:
        super().__init__()
        self.label = label


class Paths(Generic[L]):
    """A table of dotted paths, each with a label that says what the string there is.

    ``[]`` after a step means every item of a list: ``spec.volumes[].configMap.name``. The table becomes one tree, so
    an object is walked once however many paths there are, and parts that no path leads into are not looked at.
    """

    def __init__(self, table: Mapping[str, L]) -> None:
        self._tree: dict[str, Any] = {}
        for path, label in table.items():
            *parents, last = path.replace("[]", ".[]").split(".")
            node = self._tree
            for step in parents:
                node = node.setdefault(step, {})
            node[last] = _End(label)

    def found(self, obj: Mapping[str, Any]) -> list[tuple[L, str]]:
        """Every non-empty string at one of the paths, with its label."""
        result: list[tuple[L, str]] = []
        _collect(obj, self._tree, result)
        return result

    def rewritten(self, obj: dict[str, Any], change: Callable[[L, str], str]) -> dict[str, Any]:
        """The object with each non-empty string replaced by ``change(label, string)``; unchanged parts are shared."""
        result: dict[str, Any] = _rewritten(obj, self._tree, change)
        return result


def _collect(value: Any, tree: Any, result: list[Any]) -> None:
    if isinstance(value, dict):
        for step in value.keys() & tree.keys():
            _collect(value[step], tree[step], result)
    elif isinstance(value, list):
        if (below := tree.get("[]")) is not None:
            for item in value:
                _collect(item, below, result)
    elif type(tree) is _End and value and isinstance(value, str):
        result.append((tree.label, value))


def _rewritten(value: Any, tree: Any, change: Callable[[Any, str], str]) -> Any:
    if isinstance(value, dict):
        return _rewritten_fields(value, tree, change)
    if isinstance(value, list):
        return _rewritten_items(value, tree.get("[]"), change)
    if type(tree) is _End and value and isinstance(value, str):
        return change(tree.label, value)
    return value


def _rewritten_fields(fields: dict[str, Any], tree: Any, change: Callable[[Any, str], str]) -> dict[str, Any]:
    result = fields
    for step in fields.keys() & tree.keys():
        child = fields[step]
        new = _rewritten(child, tree[step], change)
        if new is not child:
            if result is fields:
                result = fields.copy()
            result[step] = new
    return result


def _rewritten_items(items: list[Any], tree: Any, change: Callable[[Any, str], str]) -> list[Any]:
    if tree is None:
        return items
    new = [_rewritten(item, tree, change) for item in items]
    return items if all(map(operator.is_, new, items)) else new
