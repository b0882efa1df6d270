"""Label selectors: narrow one to a tenant's objects, fold label keys into it, and match it against labels.

The rules are those of https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from syncer.api import Obj

Labels = Mapping[str, str]

_OPERATORS: Mapping[str, Callable[[Labels, str, list[str]], bool]] = {
    "In": lambda labels, key, values: labels.get(key) in values,
    "NotIn": lambda labels, key, values: labels.get(key) not in values,
    "Exists": lambda labels, key, values: key in labels,
    "DoesNotExist": lambda labels, key, values: key not in labels,
}


def narrowed(selector: Obj, labels: Labels) -> Obj:
    """A label selector that selects, of what it selected before, only objects with these labels too."""
    return {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **labels}}


def required(selector: Obj, *expressions: Obj) -> Obj:
    """A label selector with more expressions that must hold; those that it has already are not repeated."""
    present = selector.get("matchExpressions") or []
    added = [expression for expression in expressions if expression not in present]
    return {**selector, "matchExpressions": [*present, *added]} if added else selector


def one_of(key: str, values: Iterable[str]) -> Obj:
    """The expression for a label that has one of the values; without any value, it holds for no object of ours."""
    if wanted := sorted(set(values)):
        return {"key": key, "operator": "In", "values": wanted}
    return {"key": key, "operator": "DoesNotExist"}


def folded(selector: Obj, labels: Labels, *, match: Iterable[str] = (), mismatch: Iterable[str] = ()) -> Obj:
    """A label selector with ``matchLabelKeys`` and ``mismatchLabelKeys`` written out for a pod with these labels.

    An API server does the same when a Pod is created (1.31 for affinity, 1.34 for topology spread) and then refuses
    a Pod that arrives with both. A key that the pod doesn't have is ignored, as there.
    """
    matched = [{"key": key, "operator": "In", "values": [labels[key]]} for key in match if key in labels]
    others = [{"key": key, "operator": "NotIn", "values": [labels[key]]} for key in mismatch if key in labels]
    return required(selector, *matched, *others)


def matches(selector: Mapping[str, Any] | None, labels: Labels) -> bool:
    """Whether a label selector selects an object with these labels: none selects nothing, an empty one everything."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_holds(expression, labels) for expression in selector.get("matchExpressions") or ())


def _holds(expression: Mapping[str, Any], labels: Labels) -> bool:
    operator = _OPERATORS.get(expression["operator"])
    return operator is not None and operator(labels, expression["key"], expression.get("values") or [])


def written(selector: Mapping[str, Any]) -> str:
    """A label selector as the ``labelSelector`` of a list request; an empty one is ``""``."""
    labels = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    return ",".join([*labels, *map(_written, selector.get("matchExpressions") or ())])


def _written(expression: Mapping[str, Any]) -> str:
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
