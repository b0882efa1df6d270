"""Turn the calls of a plan into drift: its class, its side, and the changed values. Pure."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from syncer.api.decision import Write
from syncer.api.drift import DriftClass
from syncer.api.objects import Key, Obj, Resource, Side, annotations_of, key_of, uid_of
from syncer.clusters import codec
from syncer.clusters.api_requests import FIELD_MANAGER
from syncer.engine.reconcile.calls import Call, Operation
from syncer.engine.reconcile.managed_fields import FieldManager, PathStep, holders
from syncer.engine.reconcile.patch_fields import Change, changes
from syncer.translate.alike import same
from syncer.translate.messages import listed
from syncer.translate.three_way import ABSENT

#: Longest value that is shown, in characters.
LONGEST_VALUE = 120
#: Fields of a Secret whose values are shown; of all others only names and sizes.
_OPEN = ("type", "immutable")
_plain = re.compile(r"[A-Za-z0-9_-]+").fullmatch


@dataclass(frozen=True, slots=True)
class Drift:
    """The drift of an object in one class."""

    kind: DriftClass
    side: Side
    resource: Resource
    key: Key
    changes: tuple[Change, ...] = ()
    #: The uid of the live object; ``""`` if there is none.
    uid: str = ""
    #: True if a copy grants more than it may: no policy leaves it, and nothing holds its repair.
    revokes: bool = False

    @property
    def deletes(self) -> bool:
        """True if the repair deletes the object."""
        return self.kind in ("orphan", "wrongOwner")


def drifts(
    write: Write,
    calls: Iterable[Call],
    live: Obj | None,
    *,
    resource: Resource,
    owner: Change | None,
    notes: Container[str] = (),
) -> list[Drift]:
    """Return the drift that these calls would repair.

    Args:
        write: The write that the calls are for.
        calls: The calls.
        live: The live object, or None.
        resource: Its resource.
        owner: The difference in uid, if the copy is that of an earlier object.
        notes: Annotations that only record the fields that we set; a change of these is no drift.
    """
    needed = list(calls)
    pairs: list[tuple[DriftClass, Change | None]] = []
    for call in needed:
        pairs += _of(call, live or {}, owner)
    if write.tokens and live is not None and needed:
        pairs.append(("field", None))  # the tokens are only created with the patch

    # Notes are drift only where there is nothing else.
    without_notes = []
    for kind, change in pairs:
        if change is None or change.path[-1] not in notes:
            without_notes.append((kind, change))

    found: dict[DriftClass, list[Change]] = {}
    for kind, change in without_notes or pairs:
        of_class = found.setdefault(kind, [])
        if change is not None:
            of_class.append(change)

    key = key_of(write.obj)
    uid = uid_of(live) if live else ""
    all_drift = []
    for kind, of_kind in found.items():
        drift = Drift(kind, write.side, resource, key, tuple(of_kind), uid, write.revokes)
        all_drift.append(drift)
    return all_drift


def other_owner(virtual: Obj | None, host: Obj | None, *, uid_mark: str) -> Change | None:
    """Return the difference in uid if the host object is the copy of another virtual object.

    Otherwise None. ``uid_mark`` is the annotation with the uid.
    """
    if virtual is None or host is None:
        return None
    found = annotations_of(host).get(uid_mark, ABSENT)
    if found == uid_of(virtual):
        return None
    return Change(("metadata", "annotations", uid_mark), uid_of(virtual), found)


def _of(call: Call, live: Obj, owner: Change | None) -> Iterator[tuple[DriftClass, Change | None]]:
    match call.kind:
        case Operation.CREATE:
            yield "missing", None
        case Operation.DELETE:
            if owner:
                yield "wrongOwner", owner
            else:
                yield "orphan", None
        case Operation.BIND:
            node = (live.get("spec") or {}).get("nodeName", ABSENT)
            yield "status", Change(("spec", "nodeName"), call.body["target"]["name"], node)
        case Operation.CONDITIONS:
            for change in _of_conditions(call.body, live):
                yield "status", change
        case Operation.PATCH | Operation.PATCH_STATUS | Operation.MERGE:
            for change in differences(call.body, live):
                yield _class_of(change.path), change


def _class_of(path: tuple[PathStep, ...]) -> DriftClass:
    match path[0]:
        case "metadata":
            return "metadata"
        case "status":
            return "status"
        case _:
            return "field"


def patch_of(body: Obj) -> Obj:
    """Return the fields that a patch changes, without the preconditions in its metadata."""
    fields = dict(body)
    metadata = fields.pop("metadata", {})
    changed = {name: part for name, part in metadata.items() if name in ("labels", "annotations")}
    if changed:
        fields["metadata"] = changed
    return fields


def differences(patch: Obj, live: Obj) -> Iterator[Change]:
    """Yield the fields that a merge patch changes.

    In lists of the same length these are the fields of their elements. A wanted value of ``ABSENT``
    stands for a field that the patch removes.
    """
    for change in changes(patch_of(patch), live):
        wanted = change.wanted
        found = change.found
        # Two lists are only yielded if they differ.
        are_lists = isinstance(wanted, list) and isinstance(found, list)
        if wanted is None:
            if found is not ABSENT:
                yield Change(change.path, ABSENT, found)
        elif are_lists or not same(wanted, found):
            yield change


def _of_conditions(body: Obj, live: Obj) -> Iterator[Change]:
    live_conditions = (live.get("status") or {}).get("conditions") or ()
    found = {condition.get("type"): condition for condition in live_conditions}
    for condition in body["status"]["conditions"]:
        kind = str(condition.get("type"))
        yield Change(("status", "conditions", kind), condition, found.get(kind, ABSENT))


# -- managers --------------------------------------------------------------------------------------


def changed_by(live: Obj, path: tuple[PathStep, ...]) -> FieldManager | None:
    """Return the last other manager of a path, from the ``managedFields`` of a live object.

    None if it is not recorded.
    """
    for manager in holders(live, path):
        if manager.name != FIELD_MANAGER:
            return manager
    return None


# -- text ------------------------------------------------------------------------------------------


def repair_text(drift: Drift) -> str:
    """Return a sentence about repaired drift for the owner of the virtual object."""
    what = "it"
    if drift.side is Side.HOST:
        what = "its copy on the host"
    match drift.kind:
        case "missing":
            return f"{what} was missing, and has been created again"
        case "orphan":
            return f"{what} was there without its original, and has been deleted"
        case "wrongOwner":
            return f"{what} was that of an earlier object, and has been replaced"
        case "field" | "metadata" | "status":
            paths = [path_text(change.path) for change in drift.changes]
            return f"{what} differed, and has been set right: {listed(paths)}"


def path_text(path: tuple[PathStep, ...]) -> str:
    """Format a path as kubectl's JSONPath: ``spec.ports[0].port``, ``metadata.labels["a.b/c"]``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif not _plain(step):
            text += f"[{codec.encode(step).decode()}]"
        elif text:
            text += f".{step}"
        else:
            text = step
    return text


def value_text(value: Any, *, hidden: bool = False) -> str:
    """Format a value in few characters; of a hidden value only the size."""
    if value is ABSENT:
        return "(absent)"
    if hidden:
        return f"({_size(value)} bytes)"
    text = codec.encode(value).decode()
    if len(text) <= LONGEST_VALUE:
        return text
    return f"{text[:LONGEST_VALUE]}… ({len(text)} characters)"


def is_hidden(resource: Resource, path: tuple[PathStep, ...], prefix: str) -> bool:
    """Return True if the values of a path must not be shown.

    In Secrets these are all values but the type, labels and marks.
    """
    is_secret = resource.kind == "Secret" and resource.group == ""
    if not is_secret or path[0] in _OPEN:
        return False
    if path[:2] == ("metadata", "labels"):
        return False
    if path[:2] != ("metadata", "annotations"):
        return True
    is_mark = len(path) > 2 and str(path[2]).startswith(prefix + "/")
    return not is_mark


def _size(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(_size(each) for each in value.values())
    if isinstance(value, str):
        return len(value)
    return len(codec.encode(value))
