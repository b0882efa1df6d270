"""From the calls that a look needs to what has drifted: of which class, on which side, from what to what. Pure."""

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
from syncer.engine.reconcile.managed_fields import Manager, Step, holders
from syncer.translate.three_way import ABSENT

#: How much of a value is shown.
LONGEST_VALUE = 120
#: What is shown of a Secret beside the names and sizes of all else.
_OPEN = ("type", "immutable")
_plain = re.compile(r"[A-Za-z0-9_-]+").fullmatch


@dataclass(frozen=True, slots=True)
class Change:
    """One path, what it should be, and what it is."""

    path: tuple[Step, ...]
    wanted: Any
    found: Any


@dataclass(frozen=True, slots=True)
class Drift:
    """What one object is not as it should be in, of one class."""

    kind: DriftClass
    side: Side
    resource: Resource
    key: Key
    changes: tuple[Change, ...] = ()
    #: The uid of the object that there is; ``""`` where there is none.
    uid: str = ""

    @property
    def deletes(self) -> bool:
        """True if to repair it is to delete the object."""
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
    """Return what has drifted where these calls are needed; ``owner``: the copy is that of another object.

    ``notes`` are the annotations that only say what we have set: that they change with it is nothing of its own.
    """
    needed = list(calls)
    pairs = [pair for call in needed for pair in _of(call, live or {}, owner)]
    if write.tokens and live is not None and needed:
        pairs.append(("field", None))  # the tokens are only made when the patch is
    told = [(kind, change) for kind, change in pairs if change is None or change.path[-1] not in notes]
    found: dict[DriftClass, list[Change]] = {}
    for kind, change in told or pairs:
        found.setdefault(kind, []).extend(() if change is None else (change,))
    key, uid = key_of(write.obj), uid_of(live) if live else ""
    return [Drift(kind, write.side, resource, key, tuple(changes), uid) for kind, changes in found.items()]


def other_owner(virtual: Obj | None, host: Obj | None, *, uid_mark: str) -> Change | None:
    """Return what says that the host object is the copy of another object than the virtual one of today.

    None: it isn't.
    """
    if virtual is None or host is None:
        return None
    found = annotations_of(host).get(uid_mark, ABSENT)
    return None if found == uid_of(virtual) else Change(("metadata", "annotations", uid_mark), uid_of(virtual), found)


def _of(call: Call, live: Obj, owner: Change | None) -> Iterator[tuple[DriftClass, Change | None]]:
    match call.kind:
        case Operation.CREATE:
            yield "missing", None
        case Operation.DELETE:
            yield ("wrongOwner" if owner else "orphan"), owner
        case Operation.BIND:
            path = ("spec", "nodeName")
            yield "status", Change(path, call.body["target"]["name"], (live.get("spec") or {}).get("nodeName", ABSENT))
        case Operation.CONDITIONS:
            yield from (("status", change) for change in _of_conditions(call.body, live))
        case Operation.PATCH | Operation.PATCH_STATUS:
            for change in changes(call.body, live):
                yield _class_of(change.path), change


def _class_of(path: tuple[Step, ...]) -> DriftClass:
    match path[0]:
        case "metadata":
            return "metadata"
        case "status":
            return "status"
        case _:
            return "field"


def patch_of(body: Obj) -> Obj:
    """Return what a patch changes, without the guards in its metadata."""
    metadata = {name: part for name, part in body.get("metadata", {}).items() if name in ("labels", "annotations")}
    rest = {name: part for name, part in body.items() if name != "metadata"}
    return {**rest, "metadata": metadata} if metadata else rest


def changes(body: Obj, live: Obj) -> Iterator[Change]:
    """Yield the paths that a merge patch changes; in lists of the same length those of the elements."""
    for name, value in patch_of(body).items():
        yield from _patched(value, live.get(name, ABSENT), (name,))


def _patched(wanted: Any, found: Any, path: tuple[Step, ...]) -> Iterator[Change]:
    if wanted is None:
        if found is not ABSENT:
            yield Change(path, ABSENT, found)
    elif isinstance(wanted, dict) and (isinstance(found, dict) or path[0] == "metadata"):
        below = found if isinstance(found, dict) else {}
        for name, value in wanted.items():
            yield from _patched(value, below.get(name, ABSENT), (*path, name))
    elif isinstance(wanted, list) and isinstance(found, list):
        yield from _elements(wanted, found, path)
    elif wanted != found:
        yield Change(path, wanted, found)


def _elements(wanted: list[Any], found: list[Any], path: tuple[Step, ...]) -> Iterator[Change]:
    """Yield the changed fields of a list's elements: a list is written whole, but seldom differs as a whole."""
    pairs = list(zip(wanted, found, strict=False))
    if len(wanted) != len(found) or not all(isinstance(one, dict) and isinstance(two, dict) for one, two in pairs):
        yield Change(path, wanted, found)
        return
    for place, (one, two) in enumerate(pairs):
        for name, value in one.items():
            if value is not None:
                yield from _patched(value, two.get(name, ABSENT), (*path, place, name))


def _of_conditions(body: Obj, live: Obj) -> Iterator[Change]:
    found = {one.get("type"): one for one in (live.get("status") or {}).get("conditions") or ()}
    for one in body["status"]["conditions"]:
        kind = str(one.get("type"))
        yield Change(("status", "conditions", kind), one, found.get(kind, ABSENT))


# -- who ---------------------------------------------------------------------------------------------------------------


def changed_by(live: Obj, path: tuple[Step, ...]) -> Manager | None:
    """Who of the others wrote a path last, as the ``managedFields`` of a live object have it; None: not recorded."""
    return next((manager for manager in holders(live, path) if manager.name != FIELD_MANAGER), None)


# -- for people --------------------------------------------------------------------------------------------------------


def path_text(path: tuple[Step, ...]) -> str:
    """Return the path as kubectl's JSONPath has it: ``spec.ports[0].port``, ``metadata.labels["a.b/c"]``."""
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
    """Return a value in few characters; of one that must not be shown the size."""
    if value is ABSENT:
        return "(absent)"
    if hidden:
        return f"({_size(value)} bytes)"
    text = codec.encode(value).decode()
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}… ({len(text)} characters)"


def is_hidden(resource: Resource, path: tuple[Step, ...], prefix: str) -> bool:
    """Return True if the values of a path must not be shown: of Secrets all but the type, the labels, and marks."""
    if (resource.kind, resource.group) != ("Secret", "") or path[0] in _OPEN:
        return False
    if path[0] != "metadata" or path[1:2] != ("annotations",):
        return path[:2] != ("metadata", "labels")
    return not (len(path) > 2 and str(path[2]).startswith(prefix + "/"))


def _size(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(_size(each) for each in value.values())
    return len(value if isinstance(value, str) else codec.encode(value))
