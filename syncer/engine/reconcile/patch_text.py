"""The difference between two states of an object, for people: a unified diff of YAML. Pure."""

import difflib
from typing import Any

from syncer.api.objects import Obj
from syncer.engine.reconcile.drift import is_hidden, value_text
from syncer.engine.reconcile.managed_fields import PathStep
from syncer.resources.kinds import SECRETS
from syncer.translate.three_way import ABSENT

#: Lines of an object that are compared. The time for it grows with the square, and a tenant chooses
#: how many there are.
MOST_LINES = 2000
#: Fields of the metadata that only an API server sets.
_OF_SERVER = (
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)


def patch_text(before: Obj | None, after: Obj | None, *, secret: bool, prefix: str) -> list[str]:
    """Return the lines of a unified diff; without any, the two are the same but for metadata that
    only an API server sets.

    Args:
        before: The object as it is; None if there is none.
        after: The object as it would be; None if it would be deleted.
        secret: True for a Secret, whose values are hidden.
        prefix: The prefix of marks.
    """
    try:
        if secret:
            old = _yaml(_hidden(before, after, prefix, "before"))
            new = _yaml(_hidden(after, before, prefix, "after"))
        else:
            old = _yaml(before)
            new = _yaml(after)
    except RecursionError:
        return _fields(before or {}, after or {}, "too many levels")
    if max(len(old), len(new)) > MOST_LINES:
        return _fields(before or {}, after or {}, f"more than {MOST_LINES} lines")
    sides = ("live" if before is not None else "none", "wanted" if after is not None else "none")
    return list(difflib.unified_diff(old, new, *sides, lineterm=""))


def _yaml(obj: Obj | None) -> list[str]:
    import yaml

    if obj is None:
        return []
    if isinstance(obj.get("metadata"), dict):
        metadata = {name: each for name, each in obj["metadata"].items() if name not in _OF_SERVER}
        obj = {**obj, "metadata": metadata}
    text = yaml.safe_dump(obj, sort_keys=True, allow_unicode=True, width=120)
    return text.splitlines()


def _fields(before: Obj, after: Obj, why: str) -> list[str]:
    """Return the names of the fields that differ, and why no more of them is shown."""
    names = sorted(before.keys() | after.keys())
    differing = [name for name in names if before.get(name) != after.get(name)]
    if not differing:
        return []
    return [f"{why}; these fields differ: {', '.join(differing)}"]


def _hidden(obj: Obj | None, other: Obj | None, prefix: str, state: str) -> Obj | None:
    """Return a Secret with the sizes of its values, and which one it is if ``other`` differs."""
    if obj is None:
        return None
    hidden: Obj = _hide(obj, ABSENT if other is None else other, (), prefix, state)
    return hidden


def _hide(value: Any, other: Any, path: tuple[PathStep, ...], prefix: str, state: str) -> Any:
    if isinstance(value, dict):
        fields = {}
        for name, below in value.items():
            beside = other.get(name, ABSENT) if isinstance(other, dict) else ABSENT
            fields[name] = _hide(below, beside, (*path, name), prefix, state)
        return fields
    if not _is_hidden(path, prefix):
        return value
    size = value_text(value, hidden=True)
    if other is ABSENT or other == value:
        return size
    return f"{size}, {state}"


def _is_hidden(path: tuple[PathStep, ...], prefix: str) -> bool:
    if path[0] in ("apiVersion", "kind"):
        return False
    if path[0] == "metadata" and path[1:2] != ("annotations",):
        return False
    return is_hidden(SECRETS, path, prefix)
