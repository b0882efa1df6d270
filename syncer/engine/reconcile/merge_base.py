"""The merge base: hashes of the last wanted state, in an annotation of the host copy, so that it
survives a restart.

It tells a manual edit on the host from a change that has to go down, and which side has changed a
field that both may. Only kinds that need it have it. It contains no values, as annotations are
shown where values are not.
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
    """The merge base of an object.

    Two bases with the same ``want`` had no other wanted state in between.
    """

    #: Hash of the wanted object, without this annotation.
    want: str = ""
    #: Hashes of the fields that both sides may change, by path, from the last state that both
    #: agreed on.
    both: Mapping[str, Tree] = field(default_factory=dict)
    #: How often such a field has gone up. The virtual object has the same number until the copy
    #: records it, too.
    ups: int = 0
    #: On a virtual object: the base before the latest value that went up. For copies that don't
    #: have that base yet.
    earlier: Mapping[str, Tree] = field(default_factory=dict)


def read(obj: Obj | None, marks: Marks) -> Base | None:
    """Return the base of an object; None if it has none, or an unreadable one."""
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
    want = found.get("want", "")
    ups = found.get("ups", 0)
    both = found.get("both", {})
    earlier = found.get("earlier", {})
    can_be_read = _is_deep(both) and _is_deep(earlier) and isinstance(want, str) and isinstance(ups, int)
    return Base(want, both, ups, earlier) if can_be_read else None


def _is_deep(value: Any) -> bool:
    """Return True for a mapping to strings and to such mappings; a tenant may have written anything."""
    return isinstance(value, dict) and all(isinstance(below, str) or _is_deep(below) for below in value.values())


def written(obj: Obj, base: Base, marks: Marks) -> Obj:
    """Return the object with a base; ``obj`` is not changed."""
    metadata = obj["metadata"]
    annotations = {**(metadata.get("annotations") or {}), marks.base: _text(base)}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


def _text(base: Base) -> str:
    parts = {"want": base.want, "both": base.both, "ups": base.ups, "earlier": base.earlier}
    return codec.encode_sorted({name: value for name, value in parts.items() if value})


def without(text: str | None, before: str | None, fields: Iterable[Sequence[str]]) -> str | None:
    """Return the base to store when some fields are not written: for these it keeps the previous
    hashes.

    None if that is impossible; then nothing is stored.
    """
    new = _parsed(text)
    old = _parsed(before)
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
    """Return the steps of a path, or the text itself if it is unreadable: someone may have edited it."""
    try:
        return [*path_steps(path)]
    except ValueError:
        return [path]


def _put_back(tree: Any, old: Any, steps: Sequence[str]) -> Any:
    """Return the tree with the old value at these steps; None if the two don't have the same shape."""
    if not steps:
        return old
    if not isinstance(tree, Mapping) or not isinstance(old, Mapping):
        return None
    first, *rest = steps
    if first not in old:
        return {name: below for name, below in tree.items() if name != first}
    return {**tree, first: _put_back(tree.get(first, {}), old[first], rest)}


def want_of(write: Write, virtual: Obj | None, marks: Marks) -> str:
    """Return the hash of the state that a write wants on the host.

    If the write is partial, the virtual object's spec stands for the rest.
    """
    metadata = dict(write.obj["metadata"])
    metadata.pop("resourceVersion", None)
    if annotations := metadata.get("annotations"):
        metadata["annotations"] = {name: text for name, text in annotations.items() if name != marks.base}
    if write.partial:
        return digest({"metadata": metadata, "spec": (virtual or {}).get("spec")})
    return digest({**write.obj, "metadata": metadata})
