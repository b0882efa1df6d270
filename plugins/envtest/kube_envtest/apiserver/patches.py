"""JSON patch (RFC 6902), merge patch (RFC 7386) and strategic merge patch, with the API server's
messages.

No function changes its arguments; unchanged parts are shared between the input and the result.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from kube_envtest.apiserver.strategic import PatchError, strategic_merge

__all__ = ["PatchError", "json_patch", "merge_patch", "same", "strategic_merge"]


def json_patch(doc: Any, ops: Sequence[Mapping[str, Any]]) -> Any:
    """Return `doc` after the operations of an RFC 6902 patch.

    Messages and the accepted negative indexes are those of `gopkg.in/evanphx/json-patch.v4`, which
    the API server uses.

    Raises:
        PatchError: 422 if an operation doesn't fit the document, 400 if it is malformed.
    """
    if not isinstance(ops, list | tuple):
        raise PatchError(
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp", 400
        )
    for op in ops:
        if not isinstance(op, Mapping):
            raise PatchError("error decoding patch: an operation must be an object", 400)
        doc = _operate(doc, op)
    return doc


def _operate(doc: Any, op: Mapping[str, Any]) -> Any:
    path = op.get("path")
    kind = op.get("op")
    if not isinstance(path, str):
        raise PatchError(f"{kind} operation failed to decode path: missing value")
    match kind:
        case "add":
            return _add(doc, path, op.get("value"), kind)
        case "remove":
            return _at(doc, path, _remove_key, path, kind)
        case "replace":
            return op.get("value") if path == "" else _at(doc, path, _replace_key, path, op.get("value"))
        case "test":
            return _test(doc, path, op.get("value"))
        case "move" | "copy":
            return _transfer(doc, path, op, kind)
        case _:
            raise PatchError(f"Unexpected kind: {kind}")


def _transfer(doc: Any, path: str, op: Mapping[str, Any], kind: str) -> Any:
    source = op.get("from")
    if not isinstance(source, str):
        raise PatchError(f"{kind} operation failed to decode from: missing value")
    value = _lookup(doc, source, kind)
    if kind == "move":
        doc = _at(doc, source, _remove_key, source, kind)
    return _add(doc, path, value, kind)


def _add(doc: Any, path: str, value: Any, kind: str) -> Any:
    if path == "":
        return value
    return _at(doc, path, _add_key, path, value, kind)


def _steps(path: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def _missing(kind: str, path: str) -> NoReturn:
    where = {"copy": "missing from path", "move": "missing from path", "test": "is missing path"}
    what = where.get(kind, "missing path")
    shown = f'"{path}"' if kind in ("add", "remove") else path
    subject = "" if kind == "test" else "doc is "
    raise PatchError(f"{kind} operation does not apply: {subject}{what}: {shown}: missing value")


def _at(doc: Any, path: str, change: Any, *args: Any) -> Any:
    """Return `doc` with `change(container, key, *args)` replacing the container of the path's last step."""
    steps = _steps(path)
    kind = {_add_key: "add", _remove_key: "remove", _replace_key: "replace"}[change]
    if not steps:
        _missing(kind, path)
    return _descend(doc, steps, path, kind, lambda container, key: change(container, key, *args))


def _descend(at: Any, steps: list[str], path: str, kind: str, change: Any) -> Any:
    if not isinstance(at, dict | list):
        _missing(kind, path)
    head, *rest = steps
    if not rest:
        return change(at, head)
    key = _existing(at, head)
    if key is None:
        _missing(kind, path)
    inner = _descend(at[key], rest, path, kind, change)
    if isinstance(at, dict):
        return {**at, head: inner}
    out = list(at)
    out[_index(at, head, path, kind)] = inner
    return out


def _existing(at: Any, step: str) -> Any:
    """Return the key or index of an existing value, otherwise None."""
    if isinstance(at, dict):
        return step if at.get(step) is not None else None
    try:
        index = int(step)
    except ValueError:
        return None
    return index if -len(at) <= index < len(at) else None


def _index(items: list[Any], step: str, path: str, kind: str, *, past: int = 0) -> int:
    """Return a list index; `past` is 1 if the index after the last item is allowed."""
    try:
        index = int(step)
    except ValueError:
        why = f'strconv.Atoi: parsing "{step}": invalid syntax'
        prefix = f"value was not a proper array index: '{step}': " if kind == "add" else ""
        raise PatchError(f"error in {kind} for path: '{path}': {prefix}{why}") from None
    size = len(items) + past
    if not -size <= index < size:
        bad = f"Unable to access invalid index: {index}: invalid index referenced"
        raise PatchError(f"error in {kind} for path: '{path}': {bad}")
    return index + size if index < 0 else index


def _add_key(at: Any, key: str, path: str, value: Any, kind: str) -> Any:
    if isinstance(at, dict):
        return {**at, key: value}
    index = len(at) if key == "-" else _index(at, key, path, kind, past=1)
    return [*at[:index], value, *at[index:]]


def _remove_key(at: Any, key: str, path: str, kind: str) -> Any:
    if isinstance(at, dict):
        if key not in at:
            why = f"Unable to remove nonexistent key: {key}: missing value"
            shown = key if kind == "move" else path
            raise PatchError(f"error in {kind} for path: '{shown}': {why}")
        return {name: value for name, value in at.items() if name != key}
    index = _index(at, key, path, kind)
    return [*at[:index], *at[index + 1 :]]


def _replace_key(at: Any, key: str, path: str, value: Any) -> Any:
    if isinstance(at, dict):
        return {**at, key: value}
    if _existing(at, key) is None:
        raise PatchError(f"replace operation does not apply: doc is missing key: {path}: missing value")
    out = list(at)
    out[_index(at, key, path, "replace")] = value
    return out


def _container(doc: Any, steps: Iterable[str], path: str, kind: str) -> Any:
    at = doc
    for step in steps:
        key = _existing(at, step) if isinstance(at, dict | list) else None
        if key is None:
            _missing(kind, path)
        at = at[key]
    if not isinstance(at, dict | list):
        _missing(kind, path)
    return at


def _lookup(doc: Any, path: str, kind: str) -> Any:
    """Return the value at a path; a missing key of a map is None, as in the library."""
    steps = _steps(path)
    if not steps:
        _missing(kind, path)
    at = _container(doc, steps[:-1], path, kind)
    return at.get(steps[-1]) if isinstance(at, dict) else at[_index(at, steps[-1], path, kind)]


def _test(doc: Any, path: str, expected: Any) -> Any:
    found = doc if path == "" else _lookup(doc, path, "test")
    if not same(found, expected):
        raise PatchError(f"testing value {path} failed: test failed")
    return doc


def same(left: Any, right: Any) -> bool:
    """Return True if two JSON values are equal; in Python, True equals 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def merge_patch(doc: Any, patch: Any) -> Any:
    """Return `doc` after an RFC 7386 merge patch: maps are merged, null removes, anything else replaces.

    As in `gopkg.in/evanphx/json-patch.v4`, a value is stored without the nulls of its maps, also of those in lists,
    unless it replaces a map.
    """
    if not isinstance(patch, dict):
        return patch
    out = dict(doc) if isinstance(doc, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(out.get(key), dict):
            out[key] = merge_patch(out[key], value)
        else:
            out[key] = _without_nulls(value)
    return out


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(below) for key, below in value.items() if below is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
