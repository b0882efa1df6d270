"""The fields that an API call changes, with hashes of the old and new values. Pure."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from syncer.api.marks import Marks
from syncer.api.objects import Obj, annotations_of
from syncer.clusters import codec
from syncer.engine.reconcile.calls import Call, Operation
from syncer.engine.reconcile.nulls import with_nulls
from syncer.translate.alike import covers

#: The field names from the top; ``()`` is the whole object.
Path = tuple[str, ...]

#: Maximum number of fields that a change is split into; a larger change is reported by parent
#: fields.
FIELDS = 8
#: Depths to which a change is split, tried in order until there are few enough fields.
DEPTHS = (8, 2, 1)
#: The hash of an unknown value. No other hash is -1.
UNKNOWN = -1
#: The hash of a missing value.
ABSENT = hash(("absent",))
#: The hash of the new value of an object that is deleted.
GONE = hash(("gone",))

_GUARD = frozenset({"uid", "resourceVersion"})
_PATCHES = (Operation.PATCH, Operation.PATCH_STATUS, Operation.CONDITIONS, Operation.MERGE)


class ChangedField(NamedTuple):
    """A field, and the hashes of its new and its old value."""

    path: Path
    ours: int
    theirs: int


def changes(call: Call, live: Obj | None, marks: Marks) -> list[ChangedField]:
    """Return the fields that a call changes in a live object.

    A list is a single value, and so is a new object.
    """
    if call.kind is Operation.CREATE:
        return [ChangedField((), wanted(call, (), marks), ABSENT)]
    if call.kind is Operation.DELETE:
        return [ChangedField((), GONE, ABSENT)]
    if call.kind not in _PATCHES:
        return []
    body = _unguarded(call.body)
    for depth in DEPTHS:
        found = list(_fields(body, live, (), depth))
        if len(found) <= FIELDS:
            break
    return [ChangedField(path, _hashed(ours), _hashed(_alike(_found(theirs), ours))) for path, ours, theirs in found]


def unmet(call: Call, reply: Obj, *, verbatim: bool) -> list[ChangedField]:
    """Return the fields that a create or a merge patch set, and that the object of the reply hasn't got so: the API
    server rewrote or dropped them. ``verbatim`` is as for :func:`~syncer.engine.reconcile.calls.needed`.

    Of a new object only those that were dropped: admission adds to some what a later write may remove, as it taints
    each Node.
    """
    is_new = call.kind is Operation.CREATE
    if is_new:
        body = _contents(with_nulls(call.body) if verbatim else call.body)
    elif call.kind in (Operation.PATCH, Operation.PATCH_STATUS):
        body = _unguarded(call.body)
    else:
        return []
    return [
        ChangedField(path, _hashed(ours), _hashed(_alike(_found(theirs), ours)))
        for path, ours, theirs in _fields(body, reply, (), DEPTHS[0])
        if not _is_met(ours, theirs, verbatim) and (theirs is _NOTHING or not is_new)
    ]


def _is_met(ours: Any, theirs: Any, verbatim: bool) -> bool:
    if theirs is None and verbatim:
        return ours is codec.NULL
    if theirs is _NOTHING or theirs is None:
        return ours is None or (not verbatim and ours in ({}, []))
    return covers(ours, with_nulls(theirs) if verbatim else theirs, verbatim=verbatim)


def _contents(obj: Obj) -> Obj:
    """Return the parts of a new object that an API server doesn't set itself."""
    parts = {name: value for name, value in obj.items() if name not in ("apiVersion", "kind", "metadata", "status")}
    metadata = {name: value for name, value in obj["metadata"].items() if name in ("labels", "annotations")}
    return {**parts, "metadata": metadata}


def wanted(call: Call, path: Path, marks: Marks) -> int:
    """Return the hash of a field's new value; UNKNOWN if the call doesn't set it.

    A new object's hash is that of its original.
    """
    if call.kind is Operation.DELETE and not path:
        return GONE
    if call.kind is Operation.CREATE and not path:
        return hash(annotations_of(call.body).get(marks.uid, ""))
    value = _at(call.body, path) if path and call.kind in _PATCHES else _NOTHING
    return UNKNOWN if value is _NOTHING else _hashed(value)


def without(call: Call, paths: Iterable[Path]) -> Call | None:
    """Return the call without some fields; None if nothing is left."""
    body = call.body
    for path in paths:
        if not path:
            return None
        body = body if _at(body, path) is _NOTHING else _cut(body, path)
    return Call(call.kind, body) if _unguarded(body) else None


class _Nothing:
    """Stands for a missing value, since None removes a field in a merge patch."""


_NOTHING = _Nothing()


def _unguarded(body: Obj) -> Obj:
    """Return the patch without fields that only identify the object."""
    unguarded = dict(body)
    metadata = {name: value for name, value in (unguarded.pop("metadata", None) or {}).items() if name not in _GUARD}
    if metadata:
        unguarded["metadata"] = metadata
    return unguarded


def _fields(patch: Obj, live: Any, above: Path, depth: int) -> Iterator[tuple[Path, Any, Any]]:
    """Yield the fields of a patch down to a depth, each with its new and its live value."""
    there = live if isinstance(live, dict) else {}
    for name, value in patch.items():
        if depth > 1 and value and isinstance(value, dict):
            yield from _fields(value, there.get(name), (*above, name), depth - 1)
        else:
            yield (*above, name), value, there.get(name, _NOTHING)


def _at(value: Any, path: Path) -> Any:
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return _NOTHING
        value = value[name]
    return value


def _alike(theirs: Any, ours: Any) -> Any:
    """Return the live value, restricted to the fields that the patch touches."""
    if isinstance(theirs, dict) and isinstance(ours, dict) and ours:
        return {name: theirs[name] for name in ours if name in theirs}
    return theirs


def _found(value: Any) -> Any:
    """Return a live value; null is one."""
    return codec.NULL if value is None else value


def _hashed(value: Any) -> int:
    if isinstance(value, str):
        return hash(value)
    return ABSENT if value is None or value is _NOTHING else hash((codec.encode_sorted(value),))


def _cut(body: Obj, path: Path) -> Obj:
    name, *below = path
    rest = {key: value for key, value in body.items() if key != name}
    left = _cut(body[name], tuple(below)) if below else {}
    return {**rest, name: left} if left else rest
