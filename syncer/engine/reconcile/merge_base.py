"""The merge base: hashes of the last wanted state, in an annotation of the host copy.

So it survives a restart. It distinguishes a manual edit on the host from a change that has to go
down, and shows which side has changed a field that both may change. Only kinds that need it have
it. It contains no values, as annotations are shown where values are not.
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
    if obj is None:
        return None
    return _parsed(annotations_of(obj).get(marks.base))


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
    if not isinstance(want, str) or not isinstance(ups, int):
        return None
    both = found.get("both", {})
    earlier = found.get("earlier", {})
    if not _is_tree(both) or not _is_tree(earlier):
        return None
    return Base(want, both, ups, earlier)


def _is_tree(value: Any) -> bool:
    """Return True for a mapping to strings and to such mappings; tenants may write anything."""
    if not isinstance(value, dict):
        return False
    return all(isinstance(below, str) or _is_tree(below) for below in value.values())


def written(obj: Obj, base: Base, marks: Marks) -> Obj:
    """Return the object with a base; ``obj`` is not changed."""
    metadata = obj["metadata"]
    annotations = {**(metadata.get("annotations") or {}), marks.base: _text(base)}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


def _text(base: Base) -> str:
    parts = {"want": base.want, "both": base.both, "ups": base.ups, "earlier": base.earlier}
    used = {name: value for name, value in parts.items() if value}
    return codec.encode_sorted(used)


def without(text: str | None, before: str | None, fields: Iterable[Sequence[str]]) -> str | None:
    """Return the base to store when some fields are not written.

    For these fields it keeps the previous hashes. None if that is impossible; then nothing is
    stored.

    Args:
        text: The base to store if all fields were written.
        before: The stored base.
        fields: The paths of the fields that are not written.
    """
    new = _parsed(text)
    old = _parsed(before)
    if new is None or old is None or new.ups != old.ups:
        return None
    both: Any = new.both
    for field_names in fields:
        names = list(field_names)
        for path in new.both.keys() | old.both.keys():
            try:
                steps = list(path_steps(path))
            except ValueError:
                steps = [path]  # unreadable: someone may have edited it
            is_below_path = names[: len(steps)] == steps
            is_above_path = steps[: len(names)] == names
            if is_below_path:
                rest = names[len(steps) :]
                both = _put_back(both, old.both, [path, *rest])
            elif is_above_path:
                both = _put_back(both, old.both, [path])
    if not _is_tree(both):
        return None
    return _text(replace(new, want=old.want, both=both))


def _put_back(tree: Any, old: Any, steps: Sequence[str]) -> Any:
    """Return the tree with the old value at these steps; None if the two have different shapes."""
    if not steps:
        return old
    if not isinstance(tree, Mapping) or not isinstance(old, Mapping):
        return None
    first, *rest = steps
    if first not in old:
        return {name: below for name, below in tree.items() if name != first}
    below = _put_back(tree.get(first, {}), old[first], rest)
    return {**tree, first: below}


def want_of(write: Write, virtual: Obj | None, marks: Marks) -> str:
    """Return the hash of the state that a write wants on the host.

    If the write is partial, the virtual object's spec stands for the rest.
    """
    metadata = dict(write.obj["metadata"])
    metadata.pop("resourceVersion", None)
    annotations = metadata.get("annotations")
    if annotations:
        wanted = dict(annotations)
        wanted.pop(marks.base, None)
        metadata["annotations"] = wanted
    if write.partial:
        spec = (virtual or {}).get("spec")
        return digest({"metadata": metadata, "spec": spec})
    return digest({**write.obj, "metadata": metadata})
