"""Three-way merge of two values, leaf by leaf, with hashes of the last state that both sides agreed
on as the base.

A leaf is any value other than a mapping; a list is a single leaf. A change by the virtual side goes
down, even if both sides changed; a change by the host alone goes up.
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
    return int(value) if isinstance(value, float) and value.is_integer() else value


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


def merge(virtual: Any, host: Any, base: Tree | None, *, same: Callable[[Any, Any], bool]) -> Merged:
    """Merge two values.

    Args:
        virtual: The virtual value, or missing.
        host: The host's value, or missing.
        base: The stored base; None if there is none: then the virtual side wins.
        same: Returns True if an API server may have stored the first value as the second.
    """
    if not (_is_deep(virtual) or _is_deep(host)):
        return _leaf(virtual, host, base, same)
    ours, theirs = _names(virtual), _names(host)
    if ours is not None and theirs is not None:
        empty: Any = {} if {} in (virtual, host) else ABSENT
        return _by_name(ours, theirs, base, same=same, empty=empty)
    return _whole(virtual, host, base)


def _leaf(virtual: Any, host: Any, base: Tree | None, same: Callable[[Any, Any], bool]) -> Merged:
    ours, theirs = digest(virtual), digest(host)
    if ours == theirs:
        return Merged(virtual, host, ours)
    if base is None or not _is_unchanged(virtual, base):
        return Merged(virtual, virtual, ours)
    _, known, there = base.partition(" ") if isinstance(base, str) else ("", "", "")
    if theirs == there if known else same(virtual, host):
        return Merged(virtual, host, f"{ours} {theirs}")
    return Merged(host, host, base, theirs)


def _by_name(
    ours: dict[str, Any], theirs: dict[str, Any], base: Tree | None, *, same: Callable[[Any, Any], bool], empty: Any
) -> Merged:
    if isinstance(base, str):
        base = {} if base in ("", EMPTY) else None
    parts = {}
    for name in sorted(ours.keys() | theirs.keys()):
        below = None if base is None else base.get(name, "")
        parts[name] = merge(ours.get(name, ABSENT), theirs.get(name, ABSENT), below, same=same)
    kept: Tree = {name: part.kept for name, part in parts.items() if part.kept}
    risen: Tree = {name: part.risen for name, part in parts.items() if part.risen is not None}
    left = _there({name: part.virtual for name, part in parts.items()})
    if risen and not theirs and not left:
        risen = digest(empty)  # nothing goes down either, so the value is agreed on
    return Merged(
        left or empty,
        _there({name: part.host for name, part in parts.items()}) or empty,
        kept or digest(empty),
        None if risen == {} else risen,
    )


def _whole(virtual: Any, host: Any, base: Tree | None) -> Merged:
    """Merge two values of which only one is a mapping."""
    if base is None or not _is_unchanged(virtual, base):
        return Merged(virtual, virtual, agreed_on(virtual))
    return Merged(host, host, base, agreed_on(host))


def _is_unchanged(virtual: Any, base: Tree) -> bool:
    if isinstance(base, str):
        return not _is_deep(virtual) and digest(virtual) == base.partition(" ")[0]
    names = _names(virtual)
    return names is not None and all(
        _is_unchanged(names.get(name, ABSENT), base.get(name, "")) for name in names.keys() | base.keys()
    )


def _there(parts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parts.items() if value is not ABSENT}


def _is_deep(value: Any) -> bool:
    return isinstance(value, dict) and bool(value)


def _names(value: Any) -> dict[str, Any] | None:
    """Return the value as a mapping, empty if it is missing; None if it is of another type."""
    if value is ABSENT:
        return {}
    return value if isinstance(value, dict) else None
