"""Label selectors: narrow them to a tenant's objects, write label keys out, and match them.

The rules are those of
https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors. A
LabelSelector is the JSON of Kubernetes: ``{"matchLabels": …, "matchExpressions": …}``.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from syncer.api.objects import Json, Obj
from syncer.api.texts import LONGEST_FIELD

Labels = Mapping[str, str]
#: The forms of a selector: a LabelSelector (``matchLabels``, ``matchExpressions``), a mapping of
#: labels, or text such as ``app=web``.
SelectorForm = Literal["selector", "map", "text"]

_SELECTOR = {"matchLabels", "matchExpressions"}
#: The commas between requirements, but those between the values of a set.
_REQUIREMENTS = re.compile(r",(?![^(]*\))")
_REQUIREMENT = re.compile(
    r"(?P<absent>!)?\s*(?P<key>[A-Za-z0-9][\w./-]*)"
    r"(?:\s*(?P<equals>==|=|!=)\s*(?P<value>[\w.-]*)"
    r"|\s+(?P<operator>in|notin)\s*\((?P<set>[^()]*)\))?"
)


def fault(selector: Mapping[str, Json]) -> str:
    """Return why no API server accepts a LabelSelector of known fields; ``""`` if one may.

    What such a selector means isn't known, so it must neither open nor close anything.

    Raises:
        AttributeError, KeyError, TypeError: The selector is malformed.
    """
    if not _are_labels(selector.get("matchLabels") or {}):
        return "has matchLabels that aren't texts"
    for expression in selector.get("matchExpressions") or ():
        values = expression.get("values") or []
        operator = expression["operator"]
        match operator:
            case "In" | "NotIn":
                if not values:
                    return f"has the operator {operator} without values"
                if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
                    return "has values that aren't texts"
            case "Exists" | "DoesNotExist":
                if values:
                    return f"has the operator {operator} with values"
            case _:
                return f"has the operator {str(operator)[:LONGEST_FIELD]!r}, which isn't known here"
    return ""


def narrowed(selector: Obj, labels: Labels) -> Obj:
    """Restrict a LabelSelector to objects that also have these labels."""
    return {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **labels}}


def required(selector: Obj, *expressions: Obj) -> Obj:
    """Add expressions to a LabelSelector; those that it has already are not repeated."""
    present = selector.get("matchExpressions") or []
    known = set(map(repr, present)) if expressions else ()
    added = [expression for expression in expressions if repr(expression) not in known]
    if not added:
        return selector
    return {**selector, "matchExpressions": [*present, *added]}


def one_of(key: str, values: Iterable[str]) -> Obj:
    """Return the expression for a label that has one of the values.

    Without any value, the label must be absent, which holds for none of our objects.
    """
    wanted = sorted(set(values))
    if wanted:
        return {"key": key, "operator": "In", "values": wanted}
    return {"key": key, "operator": "DoesNotExist"}


def folded(
    selector: Obj,
    labels: Labels,
    *,
    match: Iterable[str] = (),
    mismatch: Iterable[str] = (),
) -> Obj:
    """Write ``matchLabelKeys`` and ``mismatchLabelKeys`` of a pod with these labels out as
    expressions.

    An API server does the same when a Pod is created (1.31 for affinity, 1.34 for topology spread)
    and then refuses a Pod that arrives with both. As there, a key that the pod doesn't have is
    ignored.
    """
    expressions: list[Obj] = []
    for operator, keys in (("In", match), ("NotIn", mismatch)):
        known = [key for key in keys if key in labels]
        expressions += [
            {"key": key, "operator": operator, "values": [labels[key]]} for key in known
        ]
    return required(selector, *expressions)


def must_be_selector(selector: Mapping[str, Json] | None, what: str) -> None:
    """Check that a LabelSelector has only fields of one: others would select everything.

    Raises:
        ValueError: It has another field; ``what`` names the selector.
    """
    others = {key: value for key, value in (selector or {}).items() if key not in _SELECTOR}
    if others:
        way_out = f"to select labels, write {{'matchLabels': {others}}}"
        raise ValueError(f"{what} is no LabelSelector: {way_out}")


def matches(selector: Mapping[str, Json] | None, labels: Labels) -> bool:
    """Return True if a LabelSelector selects an object with these labels.

    None selects nothing; an empty selector selects everything.

    Raises:
        AttributeError, KeyError, TypeError: The selector is malformed.
    """
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    expressions = selector.get("matchExpressions") or ()
    return all(_holds(expression, labels) for expression in expressions)


def _holds(expression: Mapping[str, Json], labels: Labels) -> bool:
    key = expression["key"]
    values = expression.get("values") or []
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case str():
            return False
        case other:
            raise TypeError(f"an operator is a text, not a {type(other).__name__}")


def written(selector: Mapping[str, Json]) -> str:
    """Format a LabelSelector as the ``labelSelector`` parameter of a list request.

    An empty one is ``""``.
    """
    labels = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or ()
    parts = [f"{key}={value}" for key, value in sorted(labels.items())]
    parts += [_written(expression) for expression in expressions]
    return ",".join(parts)


def parsed(text: str) -> Obj:
    """Return the LabelSelector of a text as ``kubectl -l`` takes it: ``a=b,c!=d,e in (f,g),!h``.

    Raises:
        ValueError: The text is no selector.
    """
    expressions = []
    for requirement in _REQUIREMENTS.split(text):
        found = _REQUIREMENT.fullmatch(requirement.strip())
        is_odd = found is not None and found["absent"] and (found["equals"] or found["operator"])
        if found is None or is_odd:
            raise ValueError(f"{requirement.strip()!r} is no label selector, such as app=web")
        key = found["key"]
        if found["operator"]:
            values = [value.strip() for value in found["set"].split(",")]
            operator = "In" if found["operator"] == "in" else "NotIn"
            expressions.append({"key": key, "operator": operator, "values": values})
        elif found["equals"]:
            operator = "NotIn" if found["equals"] == "!=" else "In"
            expressions.append({"key": key, "operator": operator, "values": [found["value"]]})
        else:
            operator = "DoesNotExist" if found["absent"] else "Exists"
            expressions.append({"key": key, "operator": operator})
    return {"matchExpressions": expressions}


def _written(expression: Mapping[str, Json]) -> str:
    key = expression["key"]
    values = ",".join(expression.get("values") or ())
    match expression["operator"]:
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "Exists":
            return str(key)
        case _:
            return f"!{key}"


# -- in any form -----------------------------------------------------------------------------------


def fits(form: SelectorForm, value: Json) -> bool:
    """Return True if a value is a selector of this form and has no other fields.

    An API server drops unknown fields, and a selector of which nothing is left may select
    everything.
    """
    match form:
        case "text":
            return isinstance(value, str)
        case "map":
            return _are_labels(value)
        case "selector":
            if not isinstance(value, dict) or not value.keys() <= _SELECTOR:
                return False
            return _are_labels(value.get("matchLabels") or {}) and isinstance(
                value.get("matchExpressions") or [],
                list,
            )


def narrowed_in(form: SelectorForm, value: Json, labels: Labels) -> Json:
    """Restrict a selector of any form to objects that also have these labels."""
    match form:
        case "text":
            terms = [f"{key}={text}" for key, text in labels.items()]
            if value:
                terms.insert(0, value)
            return ",".join(terms)
        case "map":
            return {**value, **labels}
        case "selector":
            return narrowed(value, labels)


def widened_in(form: SelectorForm, value: Json, is_narrowing: Callable[[str], bool]) -> Json:
    """Remove the labels that a selector was narrowed by.

    ``is_narrowing`` returns True for the key of such a label.
    """
    match form:
        case "text":
            terms = [term for term in value.split(",") if not is_narrowing(term.strip())]
            return ",".join(terms)
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
