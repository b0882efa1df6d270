"""Compute the API calls that a write really needs, often none. Pure.

Whole objects never compare equal, because the API server defaults and normalises. So only the
fields that we set are compared. Fields that we set before and no longer set are removed: their
names (not their values) are stored on the objects that bear our mark, in an annotation, so that
this survives a restart. Below ``exact`` paths, where a side owns everything, all fields that we
don't set are removed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any
from zlib import crc32

from syncer.api.decision import Verb, Write
from syncer.api.marks import Marks
from syncer.api.objects import Obj, Side, annotations_of, labels_of, uid_of
from syncer.api.paths import FieldPath, is_within, metadata_key, path_steps
from syncer.api.roles import Syncer
from syncer.clusters import codec
from syncer.clusters.bodies import encoded
from syncer.engine.reconcile.nulls import with_nulls
from syncer.translate.alike import covers, of_same_types, same

#: The longest annotation of field names, in characters, of which the parsed form is cached: that of usual objects,
#: as tenants choose it.
LONGEST_NOTE = 2048
#: The most labels and annotations of which the names are cached, for the same reason.
MOST_NAMES = 32
#: The number of cached ones, which with these two bounds each cache to some 5 MB.
REMEMBERED = 256
#: A tree of names: the fields that we set. A leaf is 1.
FieldTree = dict[str, Any]
#: Paths as nested mappings of their steps; None is the end of a path.
Nested = Mapping[str, Any]
NOWHERE: Nested = {}

_IDENTITY = ("apiVersion", "kind", "metadata")


class Operation(StrEnum):
    """The kinds of API call, each with its own path or method."""

    CREATE = "create"
    PATCH = "patch"
    PATCH_STATUS = "patch_status"
    DELETE = "delete"
    BIND = "bind"
    CONDITIONS = "conditions"
    MERGE = "merge"


@dataclass(slots=True)
class Call:
    """An API call, and its body."""

    kind: Operation
    body: Obj
    _json: bytes = field(default=b"", init=False, repr=False, compare=False)

    @property
    def size(self) -> int:
        """The bytes of the body's JSON, which is kept until it is taken.

        Raises:
            TooLarge: No API server accepts them.
        """
        self._json = self._json or encoded(self.body)
        return len(self._json)

    def take(self) -> bytes:
        """Return the body's JSON, and keep it no longer.

        Raises:
            TooLarge: No API server accepts it.
        """
        taken = self._json or encoded(self.body)
        self._json = b""
        return taken


def needed(
    write: Write,
    live: Obj | None,
    *,
    exact: tuple[FieldPath, ...],
    marks: Marks,
    has_status: bool = True,
    create_only: tuple[FieldPath, ...] = (),
    verbatim: bool = False,
) -> list[Call]:
    """Return the calls that bring the live object (None: there is none) to the state of the write.

    ``create_only`` are fields that count only for a new object. ``verbatim`` is True for a kind of which API
    servers store null and empty values as they are given: custom resources. Into the fields of their own kinds
    they write neither null nor an empty list.
    """
    once = _nested(create_only)
    match write.verb:
        case Verb.APPLY if write.obj["metadata"].get("uid") and (live is None or uid_of(live) != uid_of(write.obj)):
            return []  # its object is gone already
        case Verb.APPLY if live is None:
            noted = _with_names(write.obj, _nested(exact), marks, partial=write.partial, once=once, verbatim=verbatim)
            has_version = "resourceVersion" in noted["metadata"]
            return [Call(Operation.CREATE, _without_version(noted) if has_version else noted)]
        case Verb.APPLY if write.create_only:
            return []
        case Verb.APPLY if write.tokens:
            assert live is not None
            changes = _changes(write, live, NOWHERE, marks, has_status=False, verbatim=verbatim)
            return changes or [Call(Operation.PATCH, _guarded({}, live))]
        case Verb.APPLY:
            assert live is not None
            return _changes(write, live, _nested(exact), marks, has_status=has_status, once=once, verbatim=verbatim)
        case Verb.DELETE:
            if live is None or uid_of(live) != uid_of(write.obj):
                return []
            return _deletion(write, live, verbatim=verbatim)
        case Verb.BIND:
            bound = live is None or bool((live.get("spec") or {}).get("nodeName"))
            return [] if bound else [Call(Operation.BIND, _binding(write))]
        case Verb.CONDITIONS:
            return _conditions(write.obj, live)
        case Verb.MERGE:
            return _merge(write, live)
        case Verb.NOTE:
            return _note(write.obj, live)
        case Verb.REVOKE:
            return _revoke(write.obj, live, marks, verbatim=verbatim)


def exact_paths(syncer: Syncer, side: Side) -> tuple[FieldPath, ...]:
    """Return the paths below which the other side keeps no fields of its own, unless a write sets
    others.

    A label or annotation that comes up is such a path: the host determines all of it.
    """
    if side is Side.HOST:
        return _within(syncer.exact, syncer.down)
    return (*_within(syncer.exact, syncer.up), *(path for path in syncer.up if metadata_key(path)))


@lru_cache(maxsize=1024)
def _within(exact: tuple[FieldPath, ...], owned: tuple[FieldPath, ...]) -> tuple[FieldPath, ...]:
    return tuple(path for path in exact if any(is_within(path, own) for own in owned))


@lru_cache(maxsize=1024)
def _nested(paths: tuple[FieldPath, ...]) -> Nested:
    """Return paths as nested mappings; a path within another one adds nothing."""
    tree: dict[str, Any] = {}
    for path in paths:
        *parents, last = path_steps(path)
        node: Any = tree
        for step in parents:
            node = None if node is None else node.setdefault(step, {})
        if node is not None:
            node[last] = None
    return tree


def _changes(
    write: Write,
    live: Obj,
    exact: Nested,
    marks: Marks,
    *,
    has_status: bool,
    verbatim: bool,
    once: Nested = NOWHERE,
) -> list[Call]:
    want = _as_it_is(write.obj, live, once) if once else write.obj
    want = _with_names(want, exact, marks, partial=write.partial, once=once, verbatim=verbatim)
    before = fields_before(live, marks) if _is_marked(want, marks) else {}
    patch: Obj = {}
    for part in want.keys() | ((before.keys() | exact.keys()) & live.keys()):
        if part in _IDENTITY:
            continue
        found = live.get(part, _ABSENT)
        if same(want.get(part, _ABSENT), found):
            continue
        below = exact.get(part, NOWHERE)
        change = _difference(
            _wanted(want, part, verbatim),
            found,
            before.get(part),
            below or NOWHERE,
            whole=below is None,
            verbatim=verbatim,
        )
        if change is not _SAME:
            patch[part] = change
    metadata_before = _metadata_before(before, marks)
    exact_metadata = exact.get("metadata") or NOWHERE
    metadata = _metadata(want["metadata"], live["metadata"], metadata_before, exact_metadata)
    status = {"status": patch.pop("status")} if has_status and "status" in patch else None

    if metadata:
        patch["metadata"] = metadata
    version = want["metadata"].get("resourceVersion")
    if marks.fields in (metadata.get("annotations") or ()):
        # A response of ours may have been lost: then the object has fields of ours that this
        # annotation would not name.
        version = version or live["metadata"].get("resourceVersion")

    calls: list[Call] = []
    if patch:
        calls.append(Call(Operation.PATCH, _guarded(patch, live, version)))
    if status:
        calls.append(Call(Operation.PATCH_STATUS, _guarded(status, live)))
    return calls


class _Same:
    """Stands for no change, since None removes a field in a merge patch."""


class _MissingField:
    """Stands for a missing field, since null may be a value."""


_SAME = _Same()
_ABSENT = _MissingField()


def _as_it_is(want: Obj, live: Obj, once: Nested) -> Obj:
    """Return the wanted object with the live values at some paths, so that these don't change."""
    result = dict(want)
    for step, below in once.items():
        there = live.get(step)
        wanted = want.get(step)
        if below is None:
            result.pop(step, None)
            if there is not None:
                result[step] = there
        elif wanted is None or isinstance(wanted, dict):
            inner = _as_it_is(wanted or {}, there if isinstance(there, dict) else {}, below)
            if inner:
                result[step] = inner
    return result


def _wanted(want: Obj, name: str, verbatim: bool) -> Any:
    """Return the wanted value of a field, or ``_ABSENT``: without ``verbatim``, None says nothing about it."""
    value = want.get(name, _ABSENT)
    return _ABSENT if value is None and not verbatim else value


def _difference(want: Any, live: Any, before: Any, exact: Nested, *, whole: bool, verbatim: bool) -> Any:
    """Return the merge patch from ``live`` to ``want``, or ``_SAME``; a null that is a value is :data:`NULL` in it."""
    if same(want, live):
        return _SAME
    if want is _ABSENT:
        return _removal(live, before, exact, whole=whole, verbatim=verbatim)
    if isinstance(live, dict) and isinstance(want, dict):
        own = before if isinstance(before, dict) else {}
        return _fields(want, live, own, exact, whole=whole, verbatim=verbatim)
    if not verbatim and (live is None or live is _ABSENT) and not want and isinstance(want, dict | list):
        return _SAME
    if not whole and covers(want, live, verbatim=verbatim) and not _is_another_list(want, before, verbatim):
        return _SAME
    return with_nulls(want) if verbatim else want


def _removal(live: Any, before: Any, exact: Nested, *, whole: bool, verbatim: bool) -> Any:
    """Return the merge patch that removes what is ours of a value, or ``_SAME``."""
    if whole:
        return None if live is not None or verbatim else _SAME
    is_ours = isinstance(before, dict)
    if isinstance(live, dict) and (exact or is_ours):
        patch = _fields({}, live, before if is_ours else {}, exact, whole=False, verbatim=verbatim)
        return None if _empties(patch, live) or (is_ours and not live) else patch
    return None if before and (live is not None or verbatim) else _SAME


def _fields(want: Obj, live: Obj, before: FieldTree, exact: Nested, *, whole: bool, verbatim: bool) -> Any:
    names = set()
    for name, value in want.items():
        found = live.get(name, _ABSENT)
        if value != found or (type(value) is not str and not of_same_types(value, found)):
            names.add(name)
    names |= (live.keys() if whole else (before.keys() | exact.keys()) & live.keys()) - want.keys()
    patch: Obj = {}
    for name in names:
        below = exact.get(name, NOWHERE)
        change = _difference(
            _wanted(want, name, verbatim),
            live.get(name, _ABSENT),
            before.get(name),
            below or NOWHERE,
            whole=whole or below is None,
            verbatim=verbatim,
        )
        if change is not _SAME:
            patch[name] = change
    return patch or _SAME


def _empties(patch: Any, live: Obj) -> bool:
    """Return True if a patch removes every field; an empty mapping left behind may have a meaning."""
    return isinstance(patch, dict) and patch.keys() == live.keys() and all(value is None for value in patch.values())


def _metadata(want: Obj, live: Obj, before: FieldTree, exact: Nested) -> Obj:
    """Return the changes of labels and annotations; we never change other metadata."""
    patch: Obj = {}
    for part in ("labels", "annotations"):
        ours = want.get(part) or {}
        theirs = live.get(part) or {}
        keys = exact.get(part) or NOWHERE
        change = (
            _SAME
            if ours == theirs
            else _fields(ours, theirs, before.get(part) or {}, keys, whole=False, verbatim=False)
        )
        if change is not _SAME:
            patch[part] = change
    return patch


def _metadata_before(before: FieldTree, marks: Marks) -> FieldTree:
    """Return the labels and annotations that we set; the annotation with the names is removed when
    it would be empty.
    """
    metadata = before.get("metadata") or {}
    if not before:
        return metadata
    return {**metadata, "annotations": {**(metadata.get("annotations") or {}), marks.fields: 1}}


def _guarded(patch: Obj, live: Obj, version: str | None = None) -> Obj:
    """Return the patch with the uid of the object, so that it can't change another one of the same name."""
    guard = {"uid": uid_of(live), "resourceVersion": version} if version else {"uid": uid_of(live)}
    return {**patch, "metadata": {**patch.get("metadata", {}), **guard}}


def _deletion(write: Write, live: Obj, *, verbatim: bool) -> list[Call]:
    calls: list[Call] = []
    if write.final_status is not None:
        change = _difference(write.final_status, live.get("status"), None, NOWHERE, whole=True, verbatim=verbatim)
        if change is not _SAME:
            version = write.obj["metadata"].get("resourceVersion")
            calls.append(Call(Operation.PATCH_STATUS, _guarded({"status": change}, live, version)))
    if not _only_waits_for_finalizers(write, live):
        calls.append(Call(Operation.DELETE, write.obj))
    return calls


def _only_waits_for_finalizers(write: Write, live: Obj) -> bool:
    """Return True if the API server has no more to do for this deletion until the finalizers are gone."""
    metadata = live["metadata"]
    return write.grace == 0 and metadata.get("deletionGracePeriodSeconds") == 0 and bool(metadata.get("finalizers"))


def _conditions(want: Obj, live: Obj | None) -> list[Call]:
    if live is None:
        return []
    found = {one.get("type"): one for one in (live.get("status") or {}).get("conditions") or ()}
    new = [
        condition
        for condition in (want.get("status") or {}).get("conditions") or ()
        if not covers(condition, found.get(condition.get("type")))
    ]
    body = {"metadata": {"uid": uid_of(live)}, "status": {"conditions": new}}
    return [Call(Operation.CONDITIONS, body)] if new else []


def _merge(write: Write, live: Obj | None) -> list[Call]:
    want = write.obj
    if live is None or uid_of(live) != uid_of(want):
        return []
    missing = {part: _lacking(value, live.get(part)) for part, value in want.items() if part not in _IDENTITY}
    patch = {part: value for part, value in missing.items() if value is not _SAME}
    version = live["metadata"].get("resourceVersion") if write.afterwards else None
    return [Call(Operation.MERGE, _guarded(patch, live, version))] if patch else []


def _lacking(want: Any, live: Any) -> Any:
    """Return the part of a value that the live one lacks, or ``_SAME``.

    An item of a list that lacks anything is returned whole.
    """
    if covers(want, live):
        return _SAME
    if isinstance(want, dict) and isinstance(live, dict):
        found = {name: _lacking(value, live.get(name)) for name, value in want.items()}
        return {name: value for name, value in found.items() if value is not _SAME} or _SAME
    if isinstance(want, list) and isinstance(live, list):
        there = {item.get("name"): item for item in live}
        return [item for item in want if not covers(item, there.get(item.get("name")))] or _SAME
    return want


def _note(want: Obj, live: Obj | None) -> list[Call]:
    if live is None or uid_of(live) != uid_of(want):
        return []
    found = annotations_of(live)
    change = {name: value for name, value in annotations_of(want).items() if found.get(name) != value}
    return [Call(Operation.PATCH, _guarded({"metadata": {"annotations": change}}, live))] if change else []


def _revoke(want: Obj, live: Obj | None, marks: Marks, *, verbatim: bool) -> list[Call]:
    """Return the call that takes out of the live object what the wanted one lacks, as it was when that was decided.

    Labels and annotations that are put in are noted as ours.
    """
    if live is None or uid_of(live) != uid_of(want):
        return []
    patch = _fields(_without_identity(want), _without_identity(live), {}, NOWHERE, whole=True, verbatim=verbatim)
    body = {} if patch is _SAME else patch
    metadata: Obj = {}
    before = fields_before(live, marks)
    noted = dict(before.get("metadata") or {})
    for part in ("labels", "annotations"):
        left, there = (obj["metadata"].get(part) or {} for obj in (want, live))
        change = _fields(left, there, {}, NOWHERE, whole=True, verbatim=False)
        if change is not _SAME:
            metadata[part] = change
            put_in = dict.fromkeys(left.keys() - there.keys(), 1)
            if put_in:
                noted[part] = {**(noted.get(part) or {}), **put_in}
    if noted != (before.get("metadata") or {}):
        note = codec.encode_sorted({**before, "metadata": noted})
        metadata["annotations"] = {**(metadata.get("annotations") or {}), marks.fields: note}
    if not body and not metadata:
        return []
    return [Call(Operation.PATCH, _guarded({**body, "metadata": metadata}, live, want["metadata"]["resourceVersion"]))]


def _without_identity(obj: Obj) -> Obj:
    return {part: value for part, value in obj.items() if part not in _IDENTITY}


def _binding(write: Write) -> Obj:
    metadata = write.obj["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {key: metadata[key] for key in ("name", "namespace", "uid") if key in metadata},
        "target": {"apiVersion": "v1", "kind": "Node", "name": write.node},
    }


# -- the names of our fields, stored on the object -------------------------------------------------


def _is_marked(obj: Obj, marks: Marks) -> bool:
    return marks.cluster in labels_of(obj)


def _without_version(want: Obj) -> Obj:
    metadata = want["metadata"]
    return {**want, "metadata": {name: value for name, value in metadata.items() if name != "resourceVersion"}}


def _with_names(want: Obj, exact: Nested, marks: Marks, *, partial: bool, once: Nested, verbatim: bool) -> Obj:
    """Return the object with the annotation that names the fields that it sets, if there are any."""
    if marks.cluster not in (want["metadata"].get("labels") or ()):
        return want
    tree = _names_of(want, exact, marks, partial=partial, verbatim=verbatim)
    if once:
        tree = _without(tree, once)
    if not tree:
        return want
    text = codec.encode_sorted(tree)
    metadata = want["metadata"]
    annotations = {**(metadata.get("annotations") or {}), marks.fields: text}
    return {**want, "metadata": {**metadata, "annotations": annotations}}


def fields_before(live: Obj, marks: Marks) -> FieldTree:
    """Return the names of the fields that we set on a live object.

    Empty if there is no annotation, or an unreadable one.
    """
    text = annotations_of(live).get(marks.fields)
    if not text:
        return {}
    return _read(text) if len(text) <= LONGEST_NOTE else _read.__wrapped__(text)


@lru_cache(maxsize=REMEMBERED)
def _read(text: str) -> FieldTree:
    """Parse the annotation.

    Cached, as many objects have the same, so the result must not be changed.
    """
    try:
        tree: Any = codec.decode(text.encode())
    except codec.DecodeError:
        return {}
    return tree if isinstance(tree, dict) else {}


def _names_of(want: Obj, exact: Nested, marks: Marks, *, partial: bool, verbatim: bool) -> FieldTree:
    tree: FieldTree = {}
    metadata = want["metadata"]
    labels = tuple(metadata.get("labels") or ())
    annotations = tuple(metadata.get("annotations") or ())
    are_few = len(labels) + len(annotations) <= MOST_NAMES
    own = (_metadata_names if are_few else _metadata_names.__wrapped__)(labels, annotations, marks.prefix)
    if own:
        tree["metadata"] = own
    for part, value in () if partial else want.items():
        if part not in _IDENTITY and exact.get(part, NOWHERE) is not None:
            names = _tree(value, verbatim)
            if names or verbatim:
                tree[part] = names
    return tree


def _without(names: FieldTree, paths: Nested) -> FieldTree:
    """Return a tree of names without those at some paths."""
    result = dict(names)
    for step, below in paths.items():
        found = result.pop(step, None)
        if below is not None and found is not None:
            left = _without(found, below) if isinstance(found, dict) else found
            if left:
                result[step] = left
    return result


@lru_cache(maxsize=REMEMBERED)
def _metadata_names(labels: tuple[str, ...], annotations: tuple[str, ...], prefix: str) -> FieldTree:
    """Return the names that aren't marks, and those of marks that go again.

    Cached, as many objects have the same, so the result must not be changed.
    """
    found = {}
    marks = Marks(prefix)
    going = (marks.isolated_ingress, marks.isolated_egress)
    for part, names in (("labels", labels), ("annotations", annotations)):
        if own := {name: 1 for name in names if not name.startswith(prefix + "/") or name in going}:
            found[part] = own
    return found


def _tree(value: Any, verbatim: bool) -> Any:
    if isinstance(value, Mapping):
        return {name: _tree(below, verbatim) for name, below in value.items()}
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        return _checksum(value, verbatim)
    return 1


def _is_another_list(want: Any, before: Any, verbatim: bool) -> bool:
    """Return True if the elements of a list have other fields than those that we set before.

    Elements have no names to note. A checksum of their fields shows that a field may be gone which only we can remove.
    """
    return isinstance(want, list) and isinstance(before, str) and before != _checksum(want, verbatim)


def _checksum(items: list[Any], verbatim: bool) -> str:
    """Return a checksum of the fields of a list's elements; a cryptographic hash would take a tenth
    of the decision about a Service, and who makes two lists collide only misleads their own copy.
    """
    return f"{crc32(codec.encode_sorted(_fields_of(items, verbatim)).encode()):08x}"


def _fields_of(value: Any, verbatim: bool) -> Any:
    """Return the names of all fields with a value; without ``verbatim``, empty fields equal missing ones."""
    if isinstance(value, dict):
        return {
            name: _fields_of(below, verbatim) if isinstance(below, dict | list) else 1
            for name, below in value.items()
            if verbatim or below or not (below is None or isinstance(below, dict | list))
        }
    return [_fields_of(item, verbatim) for item in value] if isinstance(value, list) else 1
