"""Three-way merge of two values, leaf by leaf.

The base is made of hashes of the last state that both sides agreed on. A leaf is any value other
than a mapping; a list is a single leaf. A change by the virtual side goes down, even if both sides
changed; a change by the host alone goes up.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

#: Hashes by name, nested like the value; ``""`` for a value that both sides agree is missing. A
#: leaf is the hash of the virtual value, followed by a space and the host's hash if the host writes
#: the same value differently.
Tree = str | dict[str, Any]


class _Absent:
    """Stands for a missing field."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Merged:
    """The values that the sides should have, and the base to store."""

    virtual: Any
    host: Any
    #: The base for the host copy, whether or not anything goes up.
    kept: Tree
    #: The changes to that base once a value has gone up; None if there are none.
    risen: Tree | None = None


#: Made once: ``json.dumps`` with these options makes an encoder for each call, half of its time.
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def digest(value: Any) -> str:
    """Return a short hash of a JSON value, the same for equal values; ``""`` for a missing one."""
    if value is ABSENT:
        return ""
    text = _encode(value)
    if ".0" in text or "e+" in text:
        text = _encode(_with_integers(value))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _with_integers(value: Any) -> Any:
    """Return a JSON value with integers for all floats that equal one: 1.0 is the number 1."""
    if isinstance(value, dict):
        return {name: _with_integers(below) for name, below in value.items()}
    if isinstance(value, list):
        return [_with_integers(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


EMPTY: Final = digest({})


def agreed_on(value: Any) -> Tree:
    """Return the base of a value that both sides have."""
    if _is_deep(value):
        return {name: agreed_on(below) for name, below in value.items()}
    return digest(value)


def overlaid(base: Tree, risen: Tree) -> Tree:
    """Return a base with the changes of a value that has gone up."""
    if isinstance(risen, str):
        return risen
    below = {} if isinstance(base, str) else base
    return below | {name: overlaid(below.get(name, ""), tree) for name, tree in risen.items()}


def merge(
    virtual: Any,
    host: Any,
    base: Tree | None,
    *,
    same: Callable[[Any, Any], bool],
) -> Merged:
    """Merge two values.

    Args:
        virtual: The virtual value, or missing.
        host: The host's value, or missing.
        base: The stored base; None if there is none: then the virtual side wins.
        same: Returns True if an API server may have stored the first value as the second.
    """
    if not (_is_deep(virtual) or _is_deep(host)):
        return _leaf(virtual, host, base, same)

    ours = _names(virtual)
    theirs = _names(host)
    if ours is not None and theirs is not None:
        empty: Any = {} if {} in (virtual, host) else ABSENT
        return _by_name(ours, theirs, base, same=same, empty=empty)

    # Only one of them is a mapping, so the whole value is from one side.
    if base is None or not _is_unchanged(virtual, base):
        return Merged(virtual, virtual, agreed_on(virtual))
    return Merged(host, host, base, agreed_on(host))


def _leaf(virtual: Any, host: Any, base: Tree | None, same: Callable[[Any, Any], bool]) -> Merged:
    ours = digest(virtual)
    theirs = digest(host)
    if ours == theirs:
        return Merged(virtual, host, ours)
    if base is None or not _is_unchanged(virtual, base):
        return Merged(virtual, virtual, ours)

    # The host's hash is known if the host wrote this value differently.
    known = ""
    there = ""
    if isinstance(base, str):
        _, known, there = base.partition(" ")
    is_agreed = theirs == there if known else same(virtual, host)
    if is_agreed:
        return Merged(virtual, host, f"{ours} {theirs}")
    return Merged(host, host, base, theirs)


def _by_name(
    ours: dict[str, Any],
    theirs: dict[str, Any],
    base: Tree | None,
    *,
    same: Callable[[Any, Any], bool],
    empty: Any,
) -> Merged:
    """Merge two mappings; ``empty`` stands for one that has nothing left in it."""
    if isinstance(base, str):
        # The hash of a leaf is no base for fields, unless that was missing or an empty mapping.
        base = {} if base in ("", EMPTY) else None

    virtual: dict[str, Any] = {}
    host: dict[str, Any] = {}
    kept: dict[str, Tree] = {}
    risen: dict[str, Tree] = {}
    for name in sorted(ours.keys() | theirs.keys()):
        below = None if base is None else base.get(name, "")
        part = merge(ours.get(name, ABSENT), theirs.get(name, ABSENT), below, same=same)
        if part.virtual is not ABSENT:
            virtual[name] = part.virtual
        if part.host is not ABSENT:
            host[name] = part.host
        if part.kept:
            kept[name] = part.kept
        if part.risen is not None:
            risen[name] = part.risen

    changes: Tree | None = risen or None
    if risen and not theirs and not virtual:
        changes = digest(empty)  # nothing goes down either, so the value is agreed on
    return Merged(virtual or empty, host or empty, kept or digest(empty), changes)


def _is_unchanged(virtual: Any, base: Tree) -> bool:
    """Return True if the virtual value is still the one that both sides agreed on."""
    if isinstance(base, str):
        return not _is_deep(virtual) and digest(virtual) == base.partition(" ")[0]
    names = _names(virtual)
    if names is None:
        return False
    every = names.keys() | base.keys()
    return all(_is_unchanged(names.get(name, ABSENT), base.get(name, "")) for name in every)


def _is_deep(value: Any) -> bool:
    return isinstance(value, dict) and bool(value)


def _names(value: Any) -> dict[str, Any] | None:
    """Return the value as a mapping, empty if it is missing; None if it is of another type."""
    if value is ABSENT:
        return {}
    if isinstance(value, dict):
        return value
    return None
