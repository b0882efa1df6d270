"""The fields that an API call changes, with hashes of the old and new values. Pure."""

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

from syncer.api.marks import Marks
from syncer.api.objects import Obj, annotations_of
from syncer.clusters import codec
from syncer.engine.reconcile import patch_fields
from syncer.engine.reconcile.calls import Call, Operation
from syncer.engine.reconcile.nulls import with_nulls
from syncer.engine.reconcile.patch_fields import Change
from syncer.translate import three_way
from syncer.translate.alike import covers, same

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
    found: list[Change] = []
    for depth in DEPTHS:
        found = patch_fields.changes(body, live, depth=depth)
        if len(found) <= FIELDS:
            break
    return [_hashes(change) for change in found]


def unmet(call: Call, reply: Obj, *, verbatim: bool) -> list[ChangedField]:
    """Return the fields that a create or a merge patch set and the reply's object doesn't have so.

    The API server rewrote or dropped them. Of a new object only the dropped ones are returned:
    admission adds to some fields values that a later write may remove, as it taints each Node.
    ``verbatim`` is as for :func:`~syncer.engine.reconcile.calls.needed`.
    """
    is_new = call.kind is Operation.CREATE
    if is_new:
        if _has_all(call.body, reply, DEPTHS[0]):
            return []
        body = _contents(call.body)
        body = with_nulls(body) if verbatim else body
    elif call.kind in (Operation.PATCH, Operation.PATCH_STATUS):
        if _is_applied(call.body, reply, DEPTHS[0]):
            return []
        body = _unguarded(call.body)
    else:
        return []

    fields: list[ChangedField] = []
    for change in patch_fields.changes(body, reply, depth=DEPTHS[0]):
        if is_new and change.found is not three_way.ABSENT:
            continue
        if not _is_met(change.wanted, change.found, verbatim):
            fields.append(_hashes(change))
    return fields


def is_stored_as_sent(call: Call, reply: Obj, *, verbatim: bool) -> bool:
    """Return True if a new object has all values that were sent; it may have more fields.

    ``verbatim`` is as for :func:`~syncer.engine.reconcile.calls.needed`.
    """
    return covers(_contents(call.body), reply, verbatim=verbatim)


def _has_all(wanted: Obj, found: Any, depth: int) -> bool:
    """Return True if a mapping has all fields that are wanted, whatever their values.

    It says so of most new objects, in a tenth of the time that it takes to list their fields.
    """
    if not isinstance(found, dict):
        return False
    for name, value in wanted.items():
        if name not in found:
            return False
        there = found[name]
        # Most parts come back as they were sent, and comparing them takes no calls.
        is_split = depth > 1 and value and isinstance(value, dict) and value != there
        if is_split and not _has_all(value, there, depth - 1):
            return False
    return True


def _is_applied(patch: Obj, found: Any, depth: int) -> bool:
    """Return True if a mapping is surely as a merge patch wants it, which most replies show.

    False for the few nulls that are values, which depend on the kind of the object.
    """
    if not isinstance(found, dict):
        return False
    for name, wanted in patch.items():
        value = found.get(name, three_way.ABSENT)
        if depth > 1 and wanted and isinstance(wanted, dict):
            if not _is_applied(wanted, value, depth - 1):
                return False
        elif wanted is None:
            if value is not three_way.ABSENT:
                return False
        elif not same(wanted, value):
            return False
    return True


def _is_met(ours: Any, theirs: Any, verbatim: bool) -> bool:
    if theirs is None and verbatim:
        return ours is codec.NULL
    if theirs is three_way.ABSENT or theirs is None:
        if ours is None:
            return True
        return not verbatim and ours in ({}, [])
    found = with_nulls(theirs) if verbatim else theirs
    return covers(ours, found, verbatim=verbatim)


def _contents(obj: Obj) -> Obj:
    """Return the parts of a new object that an API server doesn't set itself."""
    contents = dict(obj)
    for name in ("apiVersion", "kind", "status"):
        contents.pop(name, None)
    metadata = contents.pop("metadata")
    contents["metadata"] = {
        name: value for name, value in metadata.items() if name in ("labels", "annotations")
    }
    return contents


def wanted(call: Call, path: Path, marks: Marks) -> int:
    """Return the hash of a field's new value; UNKNOWN if the call doesn't set it.

    A new object's hash is that of its original.
    """
    if call.kind is Operation.DELETE and not path:
        return GONE
    if call.kind is Operation.CREATE and not path:
        return hash(annotations_of(call.body).get(marks.uid, ""))
    if not path or call.kind not in _PATCHES:
        return UNKNOWN
    value = _at(call.body, path)
    return UNKNOWN if value is three_way.ABSENT else _hashed(value)


def without(call: Call, paths: Iterable[Path]) -> Call | None:
    """Return the call without some fields; None if nothing is left."""
    body = call.body
    for path in paths:
        if not path:
            return None
        if _at(body, path) is not three_way.ABSENT:
            body = _cut(body, path)
    return Call(call.kind, body) if _unguarded(body) else None


def _unguarded(body: Obj) -> Obj:
    """Return the patch without fields that only identify the object."""
    unguarded = dict(body)
    metadata = unguarded.pop("metadata", None) or {}
    changed = {name: value for name, value in metadata.items() if name not in _GUARD}
    if changed:
        unguarded["metadata"] = changed
    return unguarded


def _at(value: Any, path: Path) -> Any:
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return three_way.ABSENT
        value = value[name]
    return value


def _cut(body: Obj, path: Path) -> Obj:
    """Return the patch without a field that it has, and without mappings that are then empty."""
    name, *below = path
    rest = {key: value for key, value in body.items() if key != name}
    if below:
        left = _cut(body[name], tuple(below))
        if left:
            rest[name] = left
    return rest


def _hashes(change: Change) -> ChangedField:
    path = cast("Path", change.path)  # no index is in it: with a depth, a list is one value
    ours = change.wanted
    theirs = change.found
    if theirs is None:
        theirs = codec.NULL  # a null of a live object is a value
    elif isinstance(theirs, dict) and isinstance(ours, dict) and ours:
        # only the fields that the patch touches
        theirs = {name: theirs[name] for name in ours if name in theirs}
    return ChangedField(path, _hashed(ours), _hashed(theirs))


def _hashed(value: Any) -> int:
    if isinstance(value, str):
        return hash(value)
    if value is None or value is three_way.ABSENT:
        return ABSENT
    return hash((codec.encode_sorted(value),))
