"""Compare, merge and prune objects by their shape, like `sigs.k8s.io/structured-merge-diff/typed`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kube_envtest.apiserver.field_sets import Fields, is_member, path_text, step_of_item, union
from kube_envtest.apiserver.shapes import Shape


class KeylessItemError(ValueError):
    """A list that is merged by keys has an item without a key, or two items with the same key."""

    def __init__(self, why: str, path: str = "") -> None:
        text = why
        if path:
            text = f"{path}: {why}"
        super().__init__(text)
        self.why = why
        self.path = path

    def under(self, step: str) -> "KeylessItemError":
        """Return the error with the path from a parent level."""
        return KeylessItemError(self.why, path_text((step,)) + self.path)


@dataclass(slots=True)
class Change:
    """The differences between an old and a new object, as sets of field paths."""

    removed: Fields = field(default_factory=dict)
    modified: Fields = field(default_factory=dict)
    added: Fields = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.removed or self.modified or self.added)

    def adopt(self, step: str, inner: "Change") -> None:
        """Add the changes below `step`."""
        if inner.removed:
            self.removed[step] = inner.removed
        if inner.modified:
            self.modified[step] = inner.modified
        if inner.added:
            self.added[step] = inner.added

    def gained(self) -> Fields:
        """Return the fields that the author of the change gets to own."""
        return union(self.modified, self.added)

    def lost(self) -> Fields:
        """Return the fields that all others cease to own."""
        return union(self.removed, union(self.modified, self.added))


def compare(shape: Shape, old: Mapping[str, Any], new: Mapping[str, Any], *, skip: Iterable[str] = ()) -> Change:
    """Return the changes from `old` to `new`, both maps; keys in `skip` are ignored."""
    change = Change()
    for key, value in new.items():
        if key in skip:
            continue
        if key not in old:
            change.added["f:" + key] = whole(shape.of(key), value)
            continue
        before = old[key]
        if before is not value and before != value:
            _compare_at(change, "f:" + key, shape.of(key), before, value)
    for key, value in old.items():
        if key not in new and key not in skip:
            change.removed["f:" + key] = whole(shape.of(key), value)
    return change


def _compare_at(change: Change, step: str, shape: Shape, old: Any, new: Any) -> None:
    """Add the differences of two unequal values under `step` to `change`."""
    if shape.atomic:
        change.modified[step] = {}
        return
    kind: type | None = None
    if isinstance(old, dict) or isinstance(new, dict):
        kind = dict
    elif shape.granular:
        kind = list
    if kind is None or not (_is(kind, old) and _is(kind, new)) or not (old or new):
        _compare_leaves(change, step, shape, old, new)
    elif kind is dict:
        change.adopt(step, compare(shape, old or {}, new or {}))
    else:
        change.adopt(step, _compare_lists(shape, old or [], new or []))


def _is(kind: type, value: Any) -> bool:
    return value is None or isinstance(value, kind)


def _compare_leaves(change: Change, step: str, shape: Shape, old: Any, new: Any) -> None:
    """Treat both as leaves; everything below them is removed or added with them."""
    change.modified[step] = {}
    for value, into in ((old, change.removed), (new, change.added)):
        below = {key: sub for key, sub in whole(shape, value).items() if key != "."}
        if below:
            into[step] = below


def _compare_lists(shape: Shape, old: list[Any], new: list[Any]) -> Change:
    before = _grouped(shape, old)
    after = _grouped(shape, new)
    change = Change()
    for step in before.keys() | after.keys():
        left = before.get(step, [])
        right = after.get(step, [])
        if left == right:
            continue
        if len(left) == 1 and len(right) == 1:
            _compare_at(change, step, shape.element or shape, left[0], right[0])
        elif len(left) > 1 and len(right) > 1:
            change.modified[step] = {}
        else:
            if left:
                change.removed[step] = _items(shape, left)
            if right:
                change.added[step] = _items(shape, right)
    return change


def _items(shape: Shape, items: list[Any]) -> Fields:
    return whole(shape.element or shape, items[0]) if len(items) == 1 else {}


def _grouped(shape: Shape, items: list[Any]) -> dict[str, list[Any]]:
    out: dict[str, list[Any]] = {}
    for item in items:
        step = step_of_item(shape, item)
        if step is not None:
            out.setdefault(step, []).append(item)
    return out


def whole(shape: Shape, value: Any) -> Fields:
    """Return the node of a value that exists on one side only: itself and everything below are members."""
    if not value or shape.atomic:
        return {}
    if isinstance(value, dict):
        out: Fields = {".": {}}
        for key, sub in value.items():
            out["f:" + key] = whole(shape.of(key), sub) if type(sub) is dict or type(sub) is list else {}
        return out
    if isinstance(value, list) and shape.granular:
        groups = _grouped(shape, value)
        return {".": {}} | {step: _items(shape, items) for step, items in groups.items()}
    return {}


def owned(shape: Shape, value: Mapping[str, Any]) -> Fields:
    """Return the fields that applying a map makes its manager own: leaves, list items and map
    entries, but no structs.
    """
    out: Fields = {}
    for key, sub in value.items():
        try:
            node = _owned_at(shape.of(key), sub, member=not shape.has_field(key))
        except KeylessItemError as error:
            raise error.under("f:" + key) from None
        if node is not None:
            out["f:" + key] = node
    return out


def _owned_at(shape: Shape, value: Any, *, member: bool) -> Fields | None:
    """Return the node for `value`, or None if nothing of it is owned."""
    if shape.atomic:
        return {}
    if isinstance(value, dict) and value:
        below = owned(shape, value)
    elif isinstance(value, list) and shape.granular:
        below = {step: _owned_item(shape, step, item) for step, item in keyed(shape, value)}
        if not below and not member:
            return None
    else:
        return {}
    if member:
        return {".": {}, **below} if below else {}
    return below or None


def _owned_item(shape: Shape, step: str, item: Any) -> Fields:
    try:
        return _owned_at(shape.element or shape, item, member=True) or {}
    except KeylessItemError as error:
        raise error.under(step) from None


def keyed(shape: Shape, items: list[Any]) -> list[tuple[str, Any]]:
    """Return a list's items with their steps.

    Raises:
        KeylessItemError: An item has no key, or two items share it.
    """
    out: dict[str, Any] = {}
    for index, item in enumerate(items):
        step = step_of_item(shape, item)
        if step is None:
            keys = " ".join(f'"{key}"' for key, _ in shape.keys)
            why = f"associative list with keys has an element that omits all key fields [{keys}]"
            raise KeylessItemError(f"element {index}: {why} (and doesn't have default values for any key fields)")
        if step in out:
            raise KeylessItemError(f"duplicate entries for key {path_text((step,))}")
        out[step] = item
    return list(out.items())


def merge(shape: Shape, live: Any, applied: Any) -> Any:
    """Return `live` with `applied` laid over it: maps by key, lists by their kind, other values replaced."""
    if shape.atomic or live is None:
        return applied
    if isinstance(live, dict) and isinstance(applied, dict):
        if not live and not applied:
            return applied
        out = dict(live)
        for key, value in applied.items():
            out[key] = merge(shape.of(key), live[key], value) if key in live else value
        return out
    if shape.granular and isinstance(live, list) and isinstance(applied, list) and (live or applied):
        return _merge_lists(shape, live, applied)
    return applied


def _merge_lists(shape: Shape, live: list[Any], applied: list[Any]) -> list[Any]:
    """Merge two lists by key: applied items in their own order, live ones between them as before."""
    ours = [(step_of_item(shape, item), item) for item in live]
    known = {step: item for step, item in ours if step is not None}
    element = shape.element or shape
    waiting = [(step, merge(element, known.get(step), item)) for step, item in keyed(shape, applied)]
    theirs = {step for step, _ in waiting}
    out: list[Any] = []
    for step, item in ours:
        if step not in theirs:
            out.append(item)
            continue
        next_shared = next((index for index, (other, _) in enumerate(waiting) if other in known), None)
        if next_shared is not None and waiting[next_shared][0] == step:
            out += [merged for _, merged in waiting[: next_shared + 1]]
            del waiting[: next_shared + 1]
    return out + [merged for _, merged in waiting]


def remove(shape: Shape, value: Any, gone: Fields) -> Any:
    """Return `value` without the paths in `gone`; None if nothing is left."""
    if not gone or not value:
        return value
    if shape.atomic:
        return None
    if isinstance(value, dict):
        out = _kept(((key, "f:" + key, sub) for key, sub in value.items()), shape.of, gone)
        return dict(out) or None
    if isinstance(value, list) and shape.granular:
        named = (("", step_of_item(shape, item) or "", item) for item in value)
        return [item for _, item in _kept(named, lambda _: shape.element or shape, gone)] or None
    return None if isinstance(value, list) else value


def _kept(
    entries: Iterable[tuple[str, str, Any]], shape_of: Callable[[str], Shape], gone: Fields
) -> list[tuple[str, Any]]:
    out = []
    for key, step, sub in entries:
        node = gone.get(step)
        if node is None:
            out.append((key, sub))
        elif not is_member(node) and (rest := remove(shape_of(key), sub, node)) is not None:
            out.append((key, rest))
    return out


def with_structs(shape: Shape, fields: Fields) -> Fields:
    """Return a set with the structs on the way to its members, so that an emptied struct is removed
    with its last field.
    """
    out: Fields = {}
    for step, node in fields.items():
        if step == ".":
            continue
        named = step.startswith("f:")
        inner = shape.of(step[2:]) if named else (shape.element or shape)
        below = with_structs(inner, node)
        member = is_member(node) or (named and shape.has_field(step[2:]))
        out[step] = {".": {}, **below} if member and below else below
    return out
