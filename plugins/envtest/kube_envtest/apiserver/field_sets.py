"""Sets of field paths, in the form of `managedFields[].fieldsV1`, and their algebra.

A set is a tree of dicts. A key is a step (`f:name`, `k:{"name":"x"}`, `v:"x"`); its value is `{}`
for a member with nothing below, contains `"."` for a member with more below, and neither for a
step that only leads to a deeper member. Source: `sigs.k8s.io/structured-merge-diff/fieldpath`. No function changes
its arguments.
"""

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from kube_envtest.apiserver.shapes import Shape

#: A set of field paths; see above.
Fields = dict[str, Any]
#: A path: steps in the form of the keys of `Fields`.
Path = tuple[str, ...]

_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def step_of_value(value: Any) -> str:
    """Return the step to an item of a set."""
    return "v:" + _json(value)


def step_of_item(shape: Shape, item: Any) -> str | None:
    """Return the step to an item of a list, or None if the item has no key (such an item can't be owned)."""
    if shape.is_set:
        return step_of_value(item)
    if not isinstance(item, dict):
        return None
    try:
        return _step_of_keys(shape.keys, tuple([item.get(key, default) for key, default in shape.keys]))
    except TypeError:  # a key that isn't a scalar: the item can't be owned
        return None


@lru_cache(4096)
def _step_of_keys(keys: tuple[tuple[str, Any], ...], values: tuple[Any, ...]) -> str | None:
    found = {key: value for (key, _), value in zip(keys, values, strict=True) if value is not None}
    return "k:" + _json({key: found[key] for key in sorted(found)}) if found else None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)


def is_member(node: Fields) -> bool:
    """Return True if the path to `node` is itself in the set."""
    return not node or "." in node


def union(left: Fields, right: Fields) -> Fields:
    """Return the paths in either set."""
    if not right or left is right:
        return left
    if not left:
        return right
    out = dict(left)
    for step, theirs in right.items():
        ours = left.get(step)
        out[step] = theirs if ours is None else _joined(ours, theirs)
    return out


def _joined(ours: Fields, theirs: Fields) -> Fields:
    if ours == theirs:
        return ours
    member = is_member(ours) or is_member(theirs)
    below = union(_below(ours), _below(theirs))
    return _node(below, member=member)


def _below(node: Fields) -> Fields:
    return {step: sub for step, sub in node.items() if step != "."} if "." in node else node


def _node(below: Fields, *, member: bool) -> Fields:
    return {".": {}, **below} if member and below else below


def difference(left: Fields, right: Fields) -> Fields:
    """Return the paths of `left` that are not in `right`; removing a parent keeps its children.

    `left` itself if that is all.
    """
    out: Fields | None = None
    for step in left.keys() & right.keys():
        if step == ".":
            continue
        ours = left[step]
        theirs = right[step]
        rest = _without(ours, theirs)
        if rest is ours:
            continue
        if out is None:
            out = dict(left)
        if rest is None:
            del out[step]
        else:
            out[step] = rest
    return left if out is None else out


def _without(ours: Fields, theirs: Fields) -> Fields | None:
    mine = is_member(ours)
    yours = is_member(theirs)
    below = _below(ours)
    rest = difference(below, theirs)
    if rest is below and not (mine and yours):
        return ours
    if mine and not yours:
        return {".": {}, **rest} if rest else {}
    return rest or None


def without_subtrees(left: Fields, right: Fields) -> Fields:
    """Return the paths of `left` that are neither in `right` nor below a member of it."""
    out = left
    for step in left.keys() & right.keys():
        ours = left[step]
        theirs = right[step]
        rest = {} if is_member(theirs) else without_subtrees(ours, theirs)
        if rest is ours:
            continue
        out = {key: sub for key, sub in out.items() if key != step} if not rest else {**out, step: rest}
    return out


def intersection(left: Fields, right: Fields) -> Fields:
    """Return the paths in both sets."""
    out: Fields = {}
    for step in left.keys() & right.keys():
        if step == ".":
            continue
        ours = left[step]
        theirs = right[step]
        below = intersection(_below(ours), _below(theirs))
        member = is_member(ours) and is_member(theirs)
        if member or below:
            out[step] = _node(below, member=member)
    return out


def paths(fields: Fields) -> Iterator[Path]:
    """Yield every member, in the API server's order: the members of a level before those below them."""
    inner = sorted((step, node) for step, node in fields.items() if step != ".")
    yield from ((step,) for step, node in inner if is_member(node))
    for step, node in inner:
        yield from ((step, *rest) for rest in paths(_below(node)))


def path_text(path: Path) -> str:
    """Format a path as the API server does in a conflict: `.spec.containers[name="web"].image`."""
    return "".join(map(_step_text, path))


def _step_text(step: str) -> str:
    tag, _, rest = step.partition(":")
    match tag:
        case "f":
            return "." + rest
        case "k":
            pairs = json.loads(rest)
            return "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in pairs.items()) + "]"
        case "v":
            return f"[={rest}]"
        case _:
            return f"[{rest}]"
