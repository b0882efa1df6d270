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

#: The longest annotation of field names, in characters, that is cached in its parsed form. Usual
#: objects are below it; tenants choose the length.
LONGEST_NOTE = 2048
#: Maximum number of labels and annotations of an object whose names are cached, for the same
#: reason.
MOST_NAMES = 32
#: The number of entries of each cache. With the two bounds above, a cache takes at most 5 MB.
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
    def changes_contents(self) -> bool:
        """True if it changes more than metadata and status of an object with a status subresource.

        Such changes, and no others, are what an API server counts in ``metadata.generation``.
        """
        match self.kind:
            case Operation.PATCH_STATUS | Operation.CONDITIONS:
                return False
            case Operation.PATCH | Operation.MERGE:
                return any(part != "metadata" for part in self.body)
            case _:
                return True

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

    ``create_only`` are fields that count only for a new object. ``verbatim`` is True for custom
    resources: API servers store their null and empty values as given, and write neither null nor an
    empty list into the fields of the built-in kinds.
    """
    match write.verb:
        case Verb.APPLY:
            once = _nested(create_only)
            uid = write.obj["metadata"].get("uid")
            if uid and (live is None or uid_of(live) != uid):
                return []  # the object that was meant is gone already
            if live is None:
                return [_creation(write, _nested(exact), marks, once=once, verbatim=verbatim)]
            if write.create_only:
                return []
            if write.tokens:
                changes = _changes(write, live, NOWHERE, marks, has_status=False, verbatim=verbatim)
                return changes or [Call(Operation.PATCH, _guarded({}, live))]
            return _changes(
                write,
                live,
                _nested(exact),
                marks,
                has_status=has_status,
                once=once,
                verbatim=verbatim,
            )
        case Verb.DELETE:
            if live is None or uid_of(live) != uid_of(write.obj):
                return []
            return _deletion(write, live, verbatim=verbatim)
        case Verb.BIND:
            if live is None or (live.get("spec") or {}).get("nodeName"):
                return []
            return [Call(Operation.BIND, _binding(write))]
        case Verb.CONDITIONS:
            return _conditions(write.obj, live)
        case Verb.MERGE:
            return _merge(write, live)
        case Verb.NOTE:
            return _note(write.obj, live)
        case Verb.REVOKE:
            return _revoke(write.obj, live, marks, verbatim=verbatim)


def exact_paths(syncer: Syncer, side: Side) -> tuple[FieldPath, ...]:
    """Return the paths below which the other side keeps no fields of its own.

    A write may set other ones. A label or annotation that comes up is such a path: the host
    determines all of it.
    """
    if side is Side.HOST:
        return _within(syncer.exact, syncer.down)
    metadata_paths = [path for path in syncer.up if metadata_key(path)]
    return (*_within(syncer.exact, syncer.up), *metadata_paths)


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
            node = node.setdefault(step, {})
            if node is None:
                break
        else:
            node[last] = None
    return tree


def _creation(write: Write, exact: Nested, marks: Marks, *, once: Nested, verbatim: bool) -> Call:
    obj = _with_names(write.obj, exact, marks, partial=write.partial, once=once, verbatim=verbatim)
    metadata = obj["metadata"]
    if "resourceVersion" in metadata:
        metadata = {name: value for name, value in metadata.items() if name != "resourceVersion"}
        obj = {**obj, "metadata": metadata}
    return Call(Operation.CREATE, obj)


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
    before: FieldTree = {}
    if marks.cluster in labels_of(want):
        before = fields_before(live, marks)

    contents = _without_identity(want)
    there = _without_identity(live)
    change = _fields(contents, there, before, exact, whole=False, verbatim=verbatim)
    patch: Obj = {} if change is _SAME else change

    status: Obj = {}
    if has_status and "status" in patch:
        status["status"] = patch.pop("status")

    metadata_before = before.get("metadata") or {}
    if before:
        # The annotation with the names is ours, too: it is removed when it would be empty.
        annotations_before = {**(metadata_before.get("annotations") or {}), marks.fields: 1}
        metadata_before = {**metadata_before, "annotations": annotations_before}
    exact_metadata = exact.get("metadata") or NOWHERE
    metadata = _metadata(want["metadata"], live["metadata"], metadata_before, exact_metadata)
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
            live_below = there if isinstance(there, dict) else {}
            inner = _as_it_is(wanted or {}, live_below, below)
            if inner:
                result[step] = inner
    return result


def _difference(
    want: Any, live: Any, before: Any, exact: Nested, *, whole: bool, verbatim: bool
) -> Any:
    """Return the merge patch from ``live`` to ``want``, or ``_SAME`` if it would change nothing.

    The two aren't the same, unless both are absent. In the patch a null that is a value is
    :data:`~syncer.clusters.codec.NULL`.
    """
    if want is _ABSENT:
        if live is _ABSENT:
            return _SAME
        return _removal(live, before, exact, whole=whole, verbatim=verbatim)
    if isinstance(live, dict) and isinstance(want, dict):
        own = before if isinstance(before, dict) else {}
        return _fields(want, live, own, exact, whole=whole, verbatim=verbatim)
    is_absent = live is None or live is _ABSENT
    if not verbatim and is_absent and not want and isinstance(want, dict | list):
        return _SAME
    if not whole and covers(want, live, verbatim=verbatim):
        # Elements of a list have no names to note. Another checksum of their fields shows that a
        # field may be gone which only we can remove.
        is_list_of_ours = isinstance(want, list) and isinstance(before, str)
        if not is_list_of_ours or before == _checksum(want, verbatim):
            return _SAME
    return with_nulls(want) if verbatim else want


def _removal(live: Any, before: Any, exact: Nested, *, whole: bool, verbatim: bool) -> Any:
    """Return the merge patch that removes our part of a value, or ``_SAME``."""
    is_there = live is not None or verbatim
    if whole:
        return None if is_there else _SAME

    is_ours = isinstance(before, dict)
    if isinstance(live, dict) and (exact or is_ours):
        own = before if is_ours else {}
        patch = _fields({}, live, own, exact, whole=False, verbatim=verbatim)
        if is_ours and not live:
            return None
        removes_all = isinstance(patch, dict) and patch.keys() == live.keys()
        if removes_all and not any(value is not None for value in patch.values()):
            return None  # an empty mapping left behind may have a meaning
        return patch

    return None if before and is_there else _SAME


def _fields(
    want: Obj, live: Obj, before: FieldTree, exact: Nested, *, whole: bool, verbatim: bool
) -> Any:
    patch: Obj = {}
    for name, value in want.items():
        found = live.get(name, _ABSENT)
        if value == found and (type(value) is str or of_same_types(value, found)):
            continue
        if value is None and not verbatim:
            value = _ABSENT
        below = exact.get(name, NOWHERE)
        change = _difference(
            value,
            found,
            before.get(name),
            below or NOWHERE,
            whole=whole or below is None,
            verbatim=verbatim,
        )
        if change is not _SAME:
            patch[name] = change

    removable = live.keys() - want.keys()
    if not whole:
        removable &= before.keys() | exact.keys()
    for name in removable:
        below = exact.get(name, NOWHERE)
        change = _removal(
            live[name],
            before.get(name),
            below or NOWHERE,
            whole=whole or below is None,
            verbatim=verbatim,
        )
        if change is not _SAME:
            patch[name] = change
    return patch or _SAME


def _metadata(want: Obj, live: Obj, before: FieldTree, exact: Nested) -> Obj:
    """Return the changes of labels and annotations; we never change other metadata."""
    patch: Obj = {}
    for part in ("labels", "annotations"):
        ours = want.get(part) or {}
        theirs = live.get(part) or {}
        if ours == theirs:
            continue
        own = before.get(part) or {}
        keys = exact.get(part) or NOWHERE
        change = _fields(ours, theirs, own, keys, whole=False, verbatim=False)
        if change is not _SAME:
            patch[part] = change
    return patch


def _guarded(patch: Obj, live: Obj, version: str | None = None) -> Obj:
    """Return the patch with the uid of the object: it can't change another one of the same name."""
    metadata = {**patch.get("metadata", {}), "uid": uid_of(live)}
    if version:
        metadata["resourceVersion"] = version
    return {**patch, "metadata": metadata}


def _deletion(write: Write, live: Obj, *, verbatim: bool) -> list[Call]:
    calls: list[Call] = []
    status = live.get("status")
    if write.final_status is not None and not same(write.final_status, status):
        change = _difference(
            write.final_status, status, None, NOWHERE, whole=True, verbatim=verbatim
        )
        if change is not _SAME:
            version = write.obj["metadata"].get("resourceVersion")
            body = _guarded({"status": change}, live, version)
            calls.append(Call(Operation.PATCH_STATUS, body))

    metadata = live["metadata"]
    has_no_grace = write.grace == 0 and metadata.get("deletionGracePeriodSeconds") == 0
    only_waits_for_finalizers = has_no_grace and bool(metadata.get("finalizers"))
    if not only_waits_for_finalizers:
        calls.append(Call(Operation.DELETE, write.obj))
    return calls


def _conditions(want: Obj, live: Obj | None) -> list[Call]:
    if live is None:
        return []
    live_conditions = (live.get("status") or {}).get("conditions") or ()
    found = {condition.get("type"): condition for condition in live_conditions}
    wanted = (want.get("status") or {}).get("conditions") or ()
    new = [one for one in wanted if not covers(one, found.get(one.get("type")))]
    if not new:
        return []
    body = {"metadata": {"uid": uid_of(live)}, "status": {"conditions": new}}
    return [Call(Operation.CONDITIONS, body)]


def _merge(write: Write, live: Obj | None) -> list[Call]:
    want = write.obj
    if live is None or uid_of(live) != uid_of(want):
        return []
    patch: Obj = {}
    for part, value in want.items():
        if part in _IDENTITY:
            continue
        missing = _lacking(value, live.get(part))
        if missing is not _SAME:
            patch[part] = missing
    if not patch:
        return []
    version = None
    if write.afterwards:
        version = live["metadata"].get("resourceVersion")
    return [Call(Operation.MERGE, _guarded(patch, live, version))]


def _lacking(want: Any, live: Any) -> Any:
    """Return the part of a value that the live one lacks, or ``_SAME``.

    An item of a list that lacks anything is returned whole.
    """
    if covers(want, live):
        return _SAME
    if isinstance(want, dict) and isinstance(live, dict):
        fields = {}
        for name, value in want.items():
            missing = _lacking(value, live.get(name))
            if missing is not _SAME:
                fields[name] = missing
        return fields or _SAME
    if isinstance(want, list) and isinstance(live, list):
        live_items = {item.get("name"): item for item in live}
        items = [item for item in want if not covers(item, live_items.get(item.get("name")))]
        return items or _SAME
    return want


def _note(want: Obj, live: Obj | None) -> list[Call]:
    if live is None or uid_of(live) != uid_of(want):
        return []
    found = annotations_of(live)
    wanted = annotations_of(want)
    change = {name: value for name, value in wanted.items() if found.get(name) != value}
    if not change:
        return []
    patch = {"metadata": {"annotations": change}}
    return [Call(Operation.PATCH, _guarded(patch, live))]


def _revoke(want: Obj, live: Obj | None, marks: Marks, *, verbatim: bool) -> list[Call]:
    """Return the call that removes from the live object the fields that the wanted one lacks.

    It holds only for the version from which that was decided. Added labels and annotations are
    noted as ours.
    """
    if live is None or uid_of(live) != uid_of(want):
        return []
    patch = _fields(
        _without_identity(want), _without_identity(live), {}, NOWHERE, whole=True, verbatim=verbatim
    )
    body = {} if patch is _SAME else patch

    metadata: Obj = {}
    before = fields_before(live, marks)
    noted = dict(before.get("metadata") or {})
    for part in ("labels", "annotations"):
        left = want["metadata"].get(part) or {}
        there = live["metadata"].get(part) or {}
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
    version = want["metadata"]["resourceVersion"]
    revoking = _guarded({**body, "metadata": metadata}, live, version)
    return [Call(Operation.PATCH, revoking)]


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


def _with_names(
    want: Obj, exact: Nested, marks: Marks, *, partial: bool, once: Nested, verbatim: bool
) -> Obj:
    """Return the object with the annotation that names the fields that it sets, if it sets any."""
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


def _names_of(
    want: Obj, exact: Nested, marks: Marks, *, partial: bool, verbatim: bool
) -> FieldTree:
    tree: FieldTree = {}
    metadata = want["metadata"]
    labels = tuple(metadata.get("labels") or ())
    annotations = tuple(metadata.get("annotations") or ())
    if len(labels) + len(annotations) <= MOST_NAMES:
        own = _metadata_names(labels, annotations, marks.prefix)
    else:
        own = _metadata_names.__wrapped__(labels, annotations, marks.prefix)
    if own:
        tree["metadata"] = own
    if partial:
        return tree

    for part, value in want.items():
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
            left = found
            if isinstance(found, dict):
                left = _without(found, below)
            if left:
                result[step] = left
    return result


@lru_cache(maxsize=REMEMBERED)
def _metadata_names(
    labels: tuple[str, ...], annotations: tuple[str, ...], prefix: str
) -> FieldTree:
    """Return the names that aren't marks, and those of marks that are removed again.

    Cached, as many objects have the same, so the result must not be changed.
    """
    found = {}
    marks = Marks(prefix)
    removable = (marks.isolated_ingress, marks.isolated_egress)
    for part, names in (("labels", labels), ("annotations", annotations)):
        own = {name: 1 for name in names if not name.startswith(prefix + "/") or name in removable}
        if own:
            found[part] = own
    return found


def _tree(value: Any, verbatim: bool) -> Any:
    if isinstance(value, Mapping):
        return {name: _tree(below, verbatim) for name, below in value.items()}
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        return _checksum(value, verbatim)
    return 1


def _checksum(items: list[Any], verbatim: bool) -> str:
    """Return a checksum of the fields of a list's elements.

    A cryptographic hash would take a tenth of the time of a Service's decision, and tenants who
    make two lists collide mislead only their own copy.
    """
    fields = codec.encode_sorted(_fields_of(items, verbatim))
    return f"{crc32(fields.encode()):08x}"


def _fields_of(value: Any, verbatim: bool) -> Any:
    """Return the names of all fields with a value.

    Without ``verbatim``, empty fields equal missing ones.
    """
    if isinstance(value, list):
        return [_fields_of(item, verbatim) for item in value]
    if not isinstance(value, dict):
        return 1
    fields = {}
    for name, below in value.items():
        is_container = isinstance(below, dict | list)
        if not verbatim and not below and (below is None or is_container):
            continue
        fields[name] = _fields_of(below, verbatim) if is_container else 1
    return fields
