"""Label selectors: narrow one to a tenant's objects, fold label keys into it, and match it against labels.

The rules are those of https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from syncer.api.objects import Json, Obj

Labels = Mapping[str, str]
#: How a kind selects by labels: a LabelSelector (``matchLabels``, ``matchExpressions``), a mapping of labels alone, or
#: text such as ``app=web``.
Form = Literal["selector", "map", "text"]

_SELECTOR = {"matchLabels", "matchExpressions"}

_OPERATORS: Mapping[str, Callable[[Labels, str, list[str]], bool]] = {
    "In": lambda labels, key, values: labels.get(key) in values,
    "NotIn": lambda labels, key, values: labels.get(key) not in values,
    "Exists": lambda labels, key, values: key in labels,
    "DoesNotExist": lambda labels, key, values: key not in labels,
}


def narrowed(selector: Obj, labels: Labels) -> Obj:
    """Return a label selector that selects, of what it selected before, only objects with these labels too."""
    return {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **labels}}


def required(selector: Obj, *expressions: Obj) -> Obj:
    """Return a label selector with more expressions that must hold; those that it has already are not repeated."""
    present = selector.get("matchExpressions") or []
    added = [expression for expression in expressions if expression not in present]
    return {**selector, "matchExpressions": [*present, *added]} if added else selector


def one_of(key: str, values: Iterable[str]) -> Obj:
    """Return the expression for a label that has one of the values.

    Without any value, it holds for no object of ours.
    """
    if wanted := sorted(set(values)):
        return {"key": key, "operator": "In", "values": wanted}
    return {"key": key, "operator": "DoesNotExist"}


def folded(selector: Obj, labels: Labels, *, match: Iterable[str] = (), mismatch: Iterable[str] = ()) -> Obj:
    """Return a label selector with ``matchLabelKeys`` and ``mismatchLabelKeys`` written out for
    a pod with these labels.

    An API server does the same when a Pod is created (1.31 for affinity, 1.34 for topology spread) and then refuses
    a Pod that arrives with both. A key that the pod doesn't have is ignored, as there.
    """
    matched = [{"key": key, "operator": "In", "values": [labels[key]]} for key in match if key in labels]
    others = [{"key": key, "operator": "NotIn", "values": [labels[key]]} for key in mismatch if key in labels]
    return required(selector, *matched, *others)


def matches(selector: Mapping[str, Json] | None, labels: Labels) -> bool:
    """Return True if a label selector selects an object with these labels: none selects
    nothing, an empty one everything.
    """
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_holds(expression, labels) for expression in selector.get("matchExpressions") or ())


def _holds(expression: Mapping[str, Json], labels: Labels) -> bool:
    operator = _OPERATORS.get(expression["operator"])
    return operator is not None and operator(labels, expression["key"], expression.get("values") or [])


def written(selector: Mapping[str, Json]) -> str:
    """Return a label selector as the ``labelSelector`` of a list request; an empty one is ``""``."""
    labels = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    return ",".join([*labels, *map(_written, selector.get("matchExpressions") or ())])


def _written(expression: Mapping[str, Json]) -> str:
    key, values = expression["key"], ",".join(expression.get("values") or ())
    match expression["operator"]:
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "Exists":
            return str(key)
        case _:
            return f"!{key}"


# -- in the form that a kind has ---------------------------------------------------------------------------------------


def fits(form: Form, value: Json) -> bool:
    """Return True if a value is a selector of this form, and has nothing else in it.

    A host drops the fields that its kind doesn't have, and a mapping of which nothing is left selects all.
    """
    match form:
        case "text":
            return isinstance(value, str)
        case "map":
            return _are_labels(value)
        case "selector":
            if not isinstance(value, dict) or not value.keys() <= _SELECTOR:
                return False
            return _are_labels(value.get("matchLabels") or {}) and isinstance(value.get("matchExpressions") or [], list)


def narrowed_in(form: Form, value: Json, labels: Labels) -> Json:
    """Return a selector of this form that selects, of what it selected before, only objects with these labels too."""
    match form:
        case "text":
            return ",".join([*filter(None, [value]), *(f"{key}={text}" for key, text in labels.items())])
        case "map":
            return {**value, **labels}
        case "selector":
            return narrowed(value, labels)


def widened_in(form: Form, value: Json, is_narrowing: Callable[[str], bool]) -> Json:
    """Return a selector of this form without the labels that it was narrowed by."""
    match form:
        case "text":
            return ",".join(term for term in value.split(",") if not is_narrowing(term.strip()))
        case "map":
            return _without(value, is_narrowing)
        case "selector":
            left = _without(value.get("matchLabels") or {}, is_narrowing)
            rest = {name: part for name, part in value.items() if name != "matchLabels"}
            return {"matchLabels": left, **rest} if left else rest


def _are_labels(value: Json) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _without(labels: Obj, is_narrowing: Callable[[str], bool]) -> Obj:
    return {key: value for key, value in labels.items() if not is_narrowing(key)}
