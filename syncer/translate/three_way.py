"""A three-way merge of two values: leaf by leaf, from hashes of what both were when they last agreed.

A leaf is whatever is no mapping with names in it: a list is one leaf. What the virtual side has changed since goes
down, also where both have changed it; what only the host side has changed goes up.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

#: Hashes by name, as deep as the value goes; ``""`` for a value that both sides agree not to have. A leaf is the hash
#: of the virtual value, and behind a blank that of the host's where the host writes the same otherwise.
Tree = str | dict[str, Any]


class _Absent:
    """Says that there is no such field."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Merged:
    """What each side should have, and what to remember of it."""

    virtual: Any
    host: Any
    #: To be remembered by the host, whether or not anything goes up.
    kept: Tree
    #: To be laid over that once it has gone up; None where nothing has to.
    risen: Tree | None = None


def digest(value: Any) -> str:
    """Return a short hash of a JSON value, equal for equal values; ``""`` for none."""
    if value is ABSENT or value is None:
        return ""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


EMPTY: Final = digest({})


def agreed_on(value: Any) -> Tree:
    """Return the hashes of a value that both sides have."""
    if _is_deep(value):
        return {name: agreed_on(below) for name, below in value.items() if below is not None}
    return digest(value)


def overlaid(base: Tree, risen: Tree) -> Tree:
    """Return what is remembered, with what has gone up since."""
    if isinstance(risen, str):
        return risen
    below = {} if isinstance(base, str) else base
    return below | {name: overlaid(below.get(name, ""), tree) for name, tree in risen.items()}


def merge(virtual: Any, host: Any, base: Tree | None, *, same: Callable[[Any, Any], bool]) -> Merged:
    """Merge two values; ``base`` None stands for an older copy, of which nothing is known: the virtual side wins.

    ``same`` says whether the second value is what a server may have made of the first.
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
        risen = digest(empty)  # nothing goes down, either, so all of it is agreed upon
    return Merged(
        left or empty,
        _there({name: part.host for name, part in parts.items()}) or empty,
        kept or digest(empty),
        None if risen == {} else risen,
    )


def _whole(virtual: Any, host: Any, base: Tree | None) -> Merged:
    """One side has a mapping where the other has something else."""
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
    """Return the value as a mapping, where it is one or is not there; None where it is something else."""
    if value is ABSENT or value is None:
        return {}
    return value if isinstance(value, dict) else None
