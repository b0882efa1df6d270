"""Strategic merge patch: a merge patch that merges the lists of a kind by their keys.

Source: `k8s.io/apimachinery/pkg/util/strategicpatch`, and the "Strategic Merge Patch" document of
sig-api-machinery.
"""

from collections.abc import Callable
from typing import Any

from kube_envtest.apiserver.shapes import Shape, builtin

_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_DELETE = "$deleteFromPrimitiveList"
_ORDER = "$setElementOrder"


#: The API server's message about a patch that it could decode but not apply.
REJECTED = "the server rejected our request due to an error in our request"


class PatchError(ValueError):
    """A patch that can't be applied.

    `code` is the API server's HTTP status, `message` its message: for 422 a general sentence
    without the reason, which is this exception's text.
    """

    def __init__(self, why: str, code: int = 422) -> None:
        super().__init__(why)
        self.code = code
        self.message = REJECTED if code == 422 else why


def strategic_merge(doc: Any, patch: Any, *, resource: str) -> Any:
    """Return `doc`, an object of the built-in kind `resource`, after a strategic merge patch.

    The arguments are not changed.

    Raises:
        PatchError: The patch can't be applied.
    """
    if not isinstance(patch, dict):
        raise PatchError("error decoding patch: json: cannot unmarshal array into Go value of a map", 400)
    return _merge_maps(doc, patch, builtin(resource))


def _go(value: Any) -> str:
    """Format a value like Go's `%v`."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_go(sub)}" for key, sub in sorted(value.items())) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(_go, value)) + "]"
    return {None: "<nil>", True: "true", False: "false"}.get(value, str(value))


def _merge_maps(doc: Any, patch: dict[str, Any], shape: Shape) -> Any:
    directive = patch.get(_DIRECTIVE)
    if directive is not None:
        return _directed(patch, directive)
    before = {}
    if isinstance(doc, dict):
        before = dict(doc)
    out = _retained(before, patch)
    ordered = _ordered_lists(out, patch, shape)
    for key, value in patch.items():
        if key == _RETAIN or key.startswith(_ORDER) or key in ordered:
            continue
        if key.startswith(_DELETE):
            _delete_scalars(out, _target(key, "primitive list"), value)
        else:
            _merge_key(out, key, value, shape)
    return out


def _directed(patch: dict[str, Any], directive: Any) -> dict[str, Any]:
    match directive:
        case "replace":
            return {key: value for key, value in patch.items() if key != _DIRECTIVE}
        case "delete":
            return {}
        case _:
            raise PatchError(f"unknown patch type: {directive} in map: {_go(patch)}", 500)


def _target(key: str, what: str) -> str:
    """Return the field that a directive's key is about."""
    _, slash, name = key.partition("/")
    if not slash:
        raise PatchError(f"invalid patch format of {what}", 400)
    return name


def _retained(out: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    keys = patch.get(_RETAIN)
    if keys is None:
        return out
    plain = [key for key, value in patch.items() if value is not None and not key.startswith("$")]
    if not isinstance(keys, list) or not set(plain) <= set(keys):
        raise PatchError("invalid patch format of retainKeys", 400)
    return {key: value for key, value in out.items() if key in keys}


def _delete_scalars(out: dict[str, Any], key: str, gone: Any) -> None:
    if isinstance(out.get(key), list) and isinstance(gone, list):
        out[key] = [item for item in out[key] if item not in gone]


def _merge_key(out: dict[str, Any], key: str, value: Any, shape: Shape) -> None:
    """Merge a field of a patch into `out`."""
    before = out.get(key)
    inner = shape.of(key)
    if value is None:
        out.pop(key, None)
    elif isinstance(before, dict) and isinstance(value, dict):
        out[key] = value if inner.replace else _merge_maps(before, value, inner)
    elif isinstance(before, list) and isinstance(value, list):
        out[key] = _merge_lists(before, value, inner) if inner.merge_key or inner.merge_scalars else value
    elif isinstance(value, dict) and _DIRECTIVE in value:
        out.pop(key, None)
    else:
        out[key] = _clean(value)


def _clean(value: Any) -> Any:
    """Return a value that replaces nothing: without nulls, directives and items with directives."""
    if isinstance(value, dict):
        kept = {key: sub for key, sub in value.items() if sub is not None and not key.startswith("$")}
        return {key: _clean(sub) for key, sub in kept.items() if not _is_directive(sub)}
    if isinstance(value, list):
        return [_clean(item) for item in value if not _is_directive(item)]
    return value


def _is_directive(value: Any) -> bool:
    return isinstance(value, dict) and _DIRECTIVE in value


def _merge_lists(before: list[Any], patch: list[Any], shape: Shape) -> list[Any]:
    if not before and not patch:
        return before
    if not any(isinstance(item, dict) for item in (*before, *patch)):
        merged = list(dict.fromkeys((*before, *patch)))
        return _arranged(merged, patch, before, lambda item: item)
    name = shape.merge_key
    key = _key_of(name)
    kept, rest = _without_specials(before, patch, name, key)
    merged = _merged_items(kept, rest, shape, key)
    return _arranged(merged, rest, kept, key)


def _key_of(name: str) -> Callable[[Any], Any]:
    def key(item: Any) -> Any:
        if not isinstance(item, dict):
            raise PatchError(f"expected a map[string]interface {{}}, but received a {type(item).__name__}", 500)
        if name not in item:
            raise PatchError(f"map: {_go(item)} does not contain declared merge key: {name}", 500)
        return item[name]

    return key


def _without_specials(
    before: list[Any], patch: list[Any], name: str, key: Callable[[Any], Any]
) -> tuple[list[Any], list[Any]]:
    """Apply the items that delete or replace; return the remaining list and the plain items of the patch."""
    plain = []
    replace = False
    for item in patch:
        if not _is_directive(item):
            plain.append(item)
            continue
        match item[_DIRECTIVE]:
            case "delete":
                gone = key(item)
                before = [other for other in before if other.get(name) != gone]
            case "replace":
                replace = True
            case "merge":
                raise PatchError("merging lists cannot yet be specified in the patch", 500)
            case other:
                raise PatchError(f"unknown patch type: {other} in map: {_go(item)}", 500)
    return (plain, []) if replace else (before, plain)


def _merged_items(before: list[Any], patch: list[Any], shape: Shape, key: Callable[[Any], Any]) -> list[Any]:
    out = list(before)
    indexes = {key(item): index for index, item in enumerate(out)}
    element = shape.element or shape
    for item in patch:
        index = indexes.get(key(item))
        if index is None:
            indexes[key(item)] = len(out)
            out.append(_clean(item))
        else:
            out[index] = _merge_maps(out[index], item, element)
    return out


def _ordered_lists(out: dict[str, Any], patch: dict[str, Any], shape: Shape) -> set[str]:
    """Apply `$setElementOrder/…`; return the fields that are done."""
    done = set()
    for directive, order in patch.items():
        if not directive.startswith(_ORDER):
            continue
        name = _target(directive, "setElementOrder list")
        inner = shape.of(name)
        if not isinstance(order, list):
            raise PatchError("invalid patch format of setElementOrder list", 400)
        before = out.get(name)
        items = patch.get(name)
        if before is None and items is None:
            continue
        key = _key_of(inner.merge_key) if inner.merge_key else lambda item: item
        _check_order(items or [], order, key)
        merged = _merge_lists(before or [], items or [], inner) if inner.merge_key or inner.merge_scalars else items
        out[name] = _arranged(merged or [], order, before or [], key)
        done.add(name)
    return done


def _check_order(items: list[Any], order: list[Any], key: Callable[[Any], Any]) -> None:
    """Refuse a patch whose items aren't in its own order list, in that order."""
    keys = iter([key(item) for item in order])
    wanted = [key(item) for item in items if not _is_directive(item)]
    if order and not all(one in keys for one in wanted):
        text = f"The order in patch list:\n{_go(items)}\n doesn't match {_ORDER} list:\n{_go(order)}\n"
        raise PatchError(text, 500)


def _arranged(merged: list[Any], order: list[Any], before: list[Any], key: Callable[[Any], Any]) -> list[Any]:
    """Return the items in the patch's order, with items that it doesn't list at their old positions."""
    rank = {key(item): index for index, item in reversed(list(enumerate(order)))}
    indexes = {key(item): index for index, item in reversed(list(enumerate(before)))}
    named = sorted((item for item in merged if key(item) in rank), key=lambda item: rank[key(item)])
    others = sorted((item for item in merged if key(item) not in rank), key=lambda item: indexes.get(key(item), 0))
    out: list[Any] = []
    while named and others:
        left = indexes.get(key(others[0]))
        right = indexes.get(key(named[0]))
        first = left is not None and right is not None and left < right
        out.append((others if first else named).pop(0))
    return out + named + others
