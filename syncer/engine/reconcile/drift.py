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
from syncer.translate.alike import same
from syncer.translate.three_way import ABSENT

#: Longest value that is shown, in characters.
LONGEST_VALUE = 120
#: Fields of a Secret whose values are shown; of all others only names and sizes.
_OPEN = ("type", "immutable")
_plain = re.compile(r"[A-Za-z0-9_-]+").fullmatch


@dataclass(frozen=True, slots=True)
class Change:
    """A path, its wanted value, and its live value."""

    path: tuple[PathStep, ...]
    wanted: Any
    found: Any


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
    #: True if it is what a copy grants and no longer may: no policy leaves it, and nothing holds its repair.
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
    pairs = [pair for call in needed for pair in _of(call, live or {}, owner)]
    if write.tokens and live is not None and needed:
        pairs.append(("field", None))  # the tokens are only created with the patch
    # Notes are drift only where there is nothing else.
    without_notes = [(kind, change) for kind, change in pairs if change is None or change.path[-1] not in notes]

    found: dict[DriftClass, list[Change]] = {}
    for kind, change in without_notes or pairs:
        of_class = found.setdefault(kind, [])
        if change is not None:
            of_class.append(change)
    key = key_of(write.obj)
    uid = uid_of(live) if live else ""
    return [
        Drift(kind, write.side, resource, key, tuple(changes), uid, write.revokes) for kind, changes in found.items()
    ]


def other_owner(virtual: Obj | None, host: Obj | None, *, uid_mark: str) -> Change | None:
    """Return the difference in uid if the host object is the copy of another virtual object;
    otherwise None.

    ``uid_mark`` is the annotation with the uid.
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
            yield ("wrongOwner" if owner else "orphan"), owner
        case Operation.BIND:
            node = (live.get("spec") or {}).get("nodeName", ABSENT)
            yield "status", Change(("spec", "nodeName"), call.body["target"]["name"], node)
        case Operation.CONDITIONS:
            yield from (("status", change) for change in _of_conditions(call.body, live))
        case Operation.PATCH | Operation.PATCH_STATUS | Operation.MERGE:
            for change in changes(call.body, live):
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
    metadata = {name: part for name, part in body.get("metadata", {}).items() if name in ("labels", "annotations")}
    rest = {name: part for name, part in body.items() if name != "metadata"}
    return {**rest, "metadata": metadata} if metadata else rest


def changes(body: Obj, live: Obj) -> Iterator[Change]:
    """Yield the paths that a merge patch changes; in lists of the same length those of the elements."""
    for name, value in patch_of(body).items():
        yield from _patched(value, live.get(name, ABSENT), (name,))


def _patched(wanted: Any, found: Any, path: tuple[PathStep, ...]) -> Iterator[Change]:
    if wanted is None:
        if found is not ABSENT:
            yield Change(path, ABSENT, found)
    elif isinstance(wanted, dict) and (isinstance(found, dict) or path[0] == "metadata"):
        below = found if isinstance(found, dict) else {}
        for name, value in wanted.items():
            yield from _patched(value, below.get(name, ABSENT), (*path, name))
    elif isinstance(wanted, list) and isinstance(found, list):
        yield from _elements(wanted, found, path)
    elif not same(wanted, found):
        yield Change(path, wanted, found)


def _elements(wanted: list[Any], found: list[Any], path: tuple[PathStep, ...]) -> Iterator[Change]:
    """Yield the changed fields of a list's elements: a list is written whole, but seldom changes as
    a whole.
    """
    pairs = list(zip(wanted, found, strict=False))
    if len(wanted) != len(found) or not all(isinstance(one, dict) and isinstance(two, dict) for one, two in pairs):
        yield Change(path, wanted, found)
        return
    for index, (one, two) in enumerate(pairs):
        for name, value in one.items():
            if value is not None:
                yield from _patched(value, two.get(name, ABSENT), (*path, index, name))


def _of_conditions(body: Obj, live: Obj) -> Iterator[Change]:
    found = {one.get("type"): one for one in (live.get("status") or {}).get("conditions") or ()}
    for one in body["status"]["conditions"]:
        kind = str(one.get("type"))
        yield Change(("status", "conditions", kind), one, found.get(kind, ABSENT))


# -- managers --------------------------------------------------------------------------------------


def changed_by(live: Obj, path: tuple[PathStep, ...]) -> FieldManager | None:
    """Return the last other manager of a path, from the ``managedFields`` of a live object; None if
    not recorded.
    """
    for manager in holders(live, path):
        if manager.name != FIELD_MANAGER:
            return manager
    return None


# -- for people ------------------------------------------------------------------------------------


def path_text(path: tuple[PathStep, ...]) -> str:
    """Format a path as kubectl's JSONPath: ``spec.ports[0].port``, ``metadata.labels["a.b/c"]``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _plain(step):
            text += f".{step}" if text else step
        else:
            text += f"[{codec.encode(step).decode()}]"
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
    """Return True if the values of a path must not be shown: in Secrets all but the type, labels
    and marks.
    """
    if (resource.kind, resource.group) != ("Secret", "") or path[0] in _OPEN:
        return False
    if path[0] != "metadata" or path[1:2] != ("annotations",):
        return path[:2] != ("metadata", "labels")
    return not (len(path) > 2 and str(path[2]).startswith(prefix + "/"))


def _size(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(_size(each) for each in value.values())
    return len(value if isinstance(value, str) else codec.encode(value))
