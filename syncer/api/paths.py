"""Paths to fields: their notations, and tables of paths that are walked together."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Generic, TypeAlias, TypeVar

from syncer.api.objects import Json, Obj
from syncer.remembered import REMEMBERED

#: The step of a path that stands for every item of a list.
EACH: Final = "[]"

#: The steps of a path, from the top of the object.
Steps: TypeAlias = tuple[str, ...]
#: A path in any notation: dotted (``spec.ports[].name``), a JSON pointer, which can name a key with
#: dots in it (``/metadata/annotations/example.org~1team``), or its steps.
FieldPath: TypeAlias = str | Steps

_L = TypeVar("_L")

_STEP = re.compile(r"(?P<name>[^.\[\]]+)(?P<items>(?:\[\d*\])*)")
_PLAIN = re.compile(r"[^.\[\]/~]+")
#: The mappings of metadata in which each key is a field of its own.
_MAPS = (("metadata", "labels"), ("metadata", "annotations"))


def pointer_steps(text: str) -> Steps:
    """Parse a JSON pointer (RFC 6901) such as ``/spec/containers/0`` into its steps.

    Raises:
        ValueError: The text is not a JSON pointer.
    """
    if not text.startswith("/"):
        dotted = re.fullmatch(r"[\w.\[\]-]+", text)
        plain = re.sub(r"[.[]", "/", text).replace("]", "")
        guess = f", found {text!r}. Did you mean /{plain}?" if dotted else ""
        raise ValueError(f"expected a JSON pointer such as /spec/replicas{guess}")
    if re.search(r"~(?![01])", text):
        raise ValueError("expected a JSON pointer: ~ is written ~0, and / in a name ~1")
    steps = text[1:].split("/")
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in steps)


def path_steps(path: FieldPath) -> Steps:
    """Return the steps of a path; ``EACH`` stands for every item of a list.

    Raises:
        ValueError: The text is neither a dotted path nor a JSON pointer.
    """
    return _steps_of(path) if isinstance(path, str) else path


@lru_cache(maxsize=REMEMBERED)
def _steps_of(path: str) -> Steps:
    """Return the steps of a written path. Steps of an object's own names aren't cached: tenants
    choose them.
    """
    if path.startswith("/"):
        return pointer_steps(path)
    steps: list[str] = []
    for part in path.split("."):
        found = _STEP.fullmatch(part)
        if found is None:
            raise ValueError("expected a path such as spec.replicas or spec.containers[].image")
        steps += [
            found["name"],
            *(item or EACH for item in re.findall(r"\[(\d*)\]", found["items"])),
        ]
    return tuple(steps)


def path_text(path: FieldPath) -> str:
    """Return the canonical text of a path: dotted if that can be parsed back, otherwise a JSON
    pointer.
    """
    steps = path_steps(path) if isinstance(path, str) else path
    if all(step == EACH or _PLAIN.fullmatch(step) for step in steps):
        return ".".join(steps).replace(f".{EACH}", EACH)
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


def is_within(path: FieldPath, other: FieldPath) -> bool:
    """Return True if ``path`` is ``other`` or leads to a field below it."""
    below = path_steps(path)
    above = path_steps(other)
    return below[: len(above)] == above


def overlaps(path: FieldPath, other: FieldPath) -> bool:
    """Return True if one of two paths leads to the other, or to a field below it."""
    one = path_steps(path)
    two = path_steps(other)
    shared = min(len(one), len(two))
    return one[:shared] == two[:shared]


def metadata_key(path: FieldPath) -> tuple[str, str] | None:
    """Split a path of a single label or annotation into ``labels`` or ``annotations`` and the key.

    None if the path leads elsewhere.
    """
    steps = path_steps(path)
    if len(steps) != 3 or steps[:2] not in _MAPS:
        return None
    return steps[1], steps[2]


def dig(obj: Mapping[str, Json], path: FieldPath, default: Json = None) -> Json:
    """Return the value at a path, or ``default`` if the path ends early: ``dig(pod,
    "spec.nodeName")``.
    """
    found: Json = obj
    for step in path_steps(path):
        if not isinstance(found, dict) or step not in found:
            return default
        found = found[step]
    return found


def copy_fields(source: Obj, target: Obj, paths: Iterable[FieldPath]) -> None:
    """Copy the fields at the paths from ``source`` to ``target``; missing parent mappings are
    created.
    """
    for path in paths:
        steps = path_steps(path)
        value: Json = source
        for step in steps:
            value = value.get(step) if isinstance(value, dict) else None
        if value is None:
            continue
        holder = target
        for step in steps[:-1]:
            holder = holder.setdefault(step, {})
        holder[steps[-1]] = value


# -- tables ----------------------------------------------------------------------------------------

#: A function of a value and a second argument of the caller's choice. It returns the changed value,
#: or the same object if nothing changes.
Walker: TypeAlias = Callable[[Json, Any], Json]


@dataclass(slots=True)
class _Branch:
    """A node of a table of paths: the steps below it, and the walkers of its own value."""

    below: dict[str, "_Branch"] = field(default_factory=dict)
    leaves: list[Walker] = field(default_factory=list)


def compiled(table: Iterable[tuple[Steps, Walker]]) -> Walker:
    """Compile paths, each with a walker for the value that it leads to, into a single walker.

    An object is walked once, however many paths there are. Parts that no path leads into are
    skipped, and values of another shape than the path expects are left alone. Changed parts are
    copied; the rest is shared.
    """
    root = _Branch()
    for steps, leaf in table:
        branch = root
        for step in steps:
            branch = branch.below.setdefault(step, _Branch())
        branch.leaves.append(leaf)
    return _walker(root)


def _walker(branch: _Branch) -> Walker:
    """Compile a node. Closures take half the time of interpreting the table for each object."""
    walkers = list(branch.leaves)
    fields = {step: _walker(below) for step, below in branch.below.items() if step != EACH}
    if fields:
        walkers.insert(0, _in_mapping(fields))
    if EACH in branch.below:
        walkers.insert(0, _in_list(_walker(branch.below[EACH])))
    if len(walkers) == 1:
        return walkers[0]
    return _in_turn(walkers)


def _in_turn(walkers: list[Walker]) -> Walker:
    def walk(value: Json, purpose: Any) -> Json:
        for each in walkers:
            value = each(value, purpose)
        return value

    return walk


def _in_list(below: Walker) -> Walker:
    def walk(value: Json, purpose: Any) -> Json:
        if not isinstance(value, list):
            return value
        result = value
        for number, item in enumerate(value):
            new = below(item, purpose)
            if new is not item:
                if result is value:
                    result = value.copy()
                result[number] = new
        return result

    return walk


def _in_mapping(below: Mapping[str, Walker]) -> Walker:
    pairs = tuple(below.items())
    count = len(below)

    def walk(value: Json, purpose: Any) -> Json:
        if not isinstance(value, dict):
            return value
        result = value
        if count <= len(value):
            for step, each in pairs:
                if step in value:  # most are not
                    old = value[step]
                    if old is not None and (new := each(old, purpose)) is not old:
                        if result is value:
                            result = value.copy()
                        result[step] = new
            return result
        for step, old in value.items():
            found = below.get(step)
            if found is not None and old is not None and (new := found(old, purpose)) is not old:
                if result is value:
                    result = value.copy()
                result[step] = new
        return result

    return walk


class Paths(Generic[_L]):
    """A table of paths, each with a label for the string at that path."""

    def __init__(self, table: Mapping[str, _L]) -> None:
        self._walk = compiled((path_steps(path), _string(label)) for path, label in table.items())

    def found(self, obj: Mapping[str, Json]) -> list[tuple[_L, str]]:
        """Return every non-empty string at the paths, with its label."""
        result: list[tuple[_L, str]] = []

        def note(label: _L, text: str) -> str:
            result.append((label, text))
            return text

        self._walk(obj, note)
        return result

    def rewritten(self, obj: Obj, change: Callable[[_L, str], str]) -> Obj:
        """Return the object with each non-empty string at the paths replaced.

        The new string is ``change(label, string)``. ``obj`` is not changed; parts without a change
        are shared with the result.
        """
        result: Obj = self._walk(obj, change)
        return result


def _string(label: Any) -> Walker:
    def walk(value: Json, change: Callable[[Any, str], str]) -> Json:
        if not value or not isinstance(value, str):
            return value
        return change(label, value)

    return walk
