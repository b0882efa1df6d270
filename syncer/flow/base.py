"""What we last wanted of a host copy, as hashes in an annotation of it, so that this survives a restart.

It tells an edit by hand on the host from a change that has to go down, and which side has changed a field that both
may. It is kept for kinds only that need it. Never a value, as annotations are shown where values are not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from syncer.api.decision import Write
from syncer.api.marks import Marks
from syncer.api.objects import Obj, annotations_of
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


def read(obj: Obj | None, marks: Marks) -> Base | None:
    """The base on an object; None where there is none, or it can't be read."""
    text = annotations_of(obj).get(marks.base) if obj is not None else None
    if not text:
        return None
    try:
        found: Any = codec.decode(text.encode())
    except codec.DecodeError:
        return None
    if not isinstance(found, dict):
        return None
    want, both, ups = found.get("want", ""), found.get("both", {}), found.get("ups", 0)
    return Base(want, both, ups) if _is_deep(both) and isinstance(want, str) and isinstance(ups, int) else None


def _is_deep(value: Any) -> bool:
    """Whether it is a mapping to texts, and to mappings of that kind; a tenant may have written it."""
    return isinstance(value, dict) and all(isinstance(below, str) or _is_deep(below) for below in value.values())


def written(obj: Obj, base: Base, marks: Marks) -> Obj:
    """The object with a base on it; what was given is not changed."""
    parts = {"want": base.want, "both": base.both, "ups": base.ups}
    text = codec.encode_sorted({name: value for name, value in parts.items() if value})
    metadata = obj["metadata"]
    annotations = {**(metadata.get("annotations") or {}), marks.base: text}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


def want_of(write: Write, virtual: Obj | None, marks: Marks) -> str:
    """The hash of what a write to the host wants; where that is a part only, what it is made of stands for the rest."""
    metadata = dict(write.obj["metadata"])
    metadata.pop("resourceVersion", None)
    if annotations := metadata.get("annotations"):
        metadata["annotations"] = {name: text for name, text in annotations.items() if name != marks.base}
    if write.partial:
        return digest({"metadata": metadata, "spec": (virtual or {}).get("spec")})
    return digest({**write.obj, "metadata": metadata})
