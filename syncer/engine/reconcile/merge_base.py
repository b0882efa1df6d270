"""What we last wanted of a host copy, as hashes in an annotation of it, so that this survives a restart.

It tells an edit by hand on the host from a change that has to go down, and which side has changed a field that both
may. It is kept for kinds only that need it. Never a value, as annotations are shown where values are not.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from syncer.api.decision import Write
from syncer.api.marks import Marks
from syncer.api.objects import Obj, annotations_of
from syncer.api.paths import path_steps
from syncer.clusters import codec
from syncer.translate.three_way import Tree, digest


@dataclass(frozen=True, slots=True)
class Base:
    """The base of one object. Two of the same ``want`` say that nothing else was wanted in between."""

    #: Hash of what we wanted, without this annotation.
    want: str = ""
    #: Hashes of the fields that both sides may change, by path, as the two sides last agreed on them.
    both: Mapping[str, Tree] = field(default_factory=dict)
    #: How often such a field has gone up. The virtual object has the same while the copy doesn't say so yet.
    ups: int = 0
    #: On a virtual object: what had gone up before the latest. It counts for a copy only that hasn't taken it over.
    earlier: Mapping[str, Tree] = field(default_factory=dict)


def read(obj: Obj | None, marks: Marks) -> Base | None:
    """Return the base on an object; None where there is none, or it can't be read."""
    return _parsed(annotations_of(obj).get(marks.base) if obj is not None else None)


def _parsed(text: str | None) -> Base | None:
    if not text:
        return None
    try:
        found: Any = codec.decode(text.encode())
    except codec.DecodeError:
        return None
    if not isinstance(found, dict):
        return None
    want, ups = found.get("want", ""), found.get("ups", 0)
    both, earlier = found.get("both", {}), found.get("earlier", {})
    can_be_read = _is_deep(both) and _is_deep(earlier) and isinstance(want, str) and isinstance(ups, int)
    return Base(want, both, ups, earlier) if can_be_read else None


def _is_deep(value: Any) -> bool:
    """Return True if it is a mapping to texts, and to mappings of that kind; a tenant may have written it."""
    return isinstance(value, dict) and all(isinstance(below, str) or _is_deep(below) for below in value.values())


def written(obj: Obj, base: Base, marks: Marks) -> Obj:
    """Return the object with a base on it; what was given is not changed."""
    metadata = obj["metadata"]
    annotations = {**(metadata.get("annotations") or {}), marks.base: _text(base)}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


def _text(base: Base) -> str:
    parts = {"want": base.want, "both": base.both, "ups": base.ups, "earlier": base.earlier}
    return codec.encode_sorted({name: value for name, value in parts.items() if value})


def without(text: str | None, before: str | None, fields: Iterable[Sequence[str]]) -> str | None:
    """Return a base as it is to be noted where some fields are not written: of them it says what it said before.

    None where that can't be said, and nothing is to be noted.
    """
    new, old = _parsed(text), _parsed(before)
    if new is None or old is None or new.ups != old.ups:
        return None
    both: Any = new.both
    for names in fields:
        for path in new.both.keys() | old.both.keys():
            steps = _steps(path)
            if list(names[: len(steps)]) == steps:
                both = _put_back(both, old.both, (path, *names[len(steps) :]))
            elif steps[: len(names)] == list(names):
                both = _put_back(both, old.both, (path,))
    return _text(replace(new, want=old.want, both=both)) if _is_deep(both) else None


def _steps(path: str) -> list[str]:
    """Return the steps of a path; of one that cannot be read, itself: somebody may have written it by hand."""
    try:
        return [*path_steps(path)]
    except ValueError:
        return [path]


def _put_back(tree: Any, old: Any, steps: Sequence[str]) -> Any:
    """Return the tree with what the old one has at these steps; None where the two are not of one form."""
    if not steps:
        return old
    if not isinstance(tree, Mapping) or not isinstance(old, Mapping):
        return None
    first, *rest = steps
    if first not in old:
        return {name: below for name, below in tree.items() if name != first}
    return {**tree, first: _put_back(tree.get(first, {}), old[first], rest)}


def want_of(write: Write, virtual: Obj | None, marks: Marks) -> str:
    """Return the hash of what a write to the host wants.

    Where that is a part only, what it is made of stands for the rest.
    """
    metadata = dict(write.obj["metadata"])
    metadata.pop("resourceVersion", None)
    if annotations := metadata.get("annotations"):
        metadata["annotations"] = {name: text for name, text in annotations.items() if name != marks.base}
    if write.partial:
        return digest({"metadata": metadata, "spec": (virtual or {}).get("spec")})
    return digest({**write.obj, "metadata": metadata})
