"""Types for options of Namespaces and Nodes.

They reject labels, annotations and specs that the host would refuse, or take as empty.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

from syncer.api import LABEL_KEY, LABEL_VALUE
from syncer.translate.messages import LONGEST_LABEL_QUOTE, LONGEST_QUOTE
from syncer.translate.quantities import canonical, quantity

#: The label by which Kubernetes enforces a Pod Security level in a namespace.
ENFORCE = "pod-security.kubernetes.io/enforce"

#: The fields of a ResourceQuota's spec, and of a LimitRange's items with amounts (core/v1).
_QUOTA = ("hard", "scopes", "scopeSelector")
_AMOUNTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def _annotations(given: dict[str, str]) -> dict[str, str]:
    for key in given:
        if not re.fullmatch(LABEL_KEY, key):
            why = "expected a name, such as team or example.org/team"
            raise ValueError(f"{key!r} is not a key: {why}")
    return given


def _pairs(given: dict[str, str]) -> dict[str, str]:
    for key, value in _annotations(given).items():
        if value and not re.fullmatch(LABEL_VALUE, value):
            why = "expected at most 63 letters, digits, '-', '_' and '.'"
            why = f"{why}, beginning and ending with a letter or digit"
            raise ValueError(
                f"{key}: {value[:LONGEST_LABEL_QUOTE]!r} is not the value of a label: {why}"
            )
    return given


def _labels(given: dict[str, str]) -> dict[str, str]:
    if ENFORCE in given:
        raise ValueError(f"{ENFORCE} is set by podSecurity; set the level there")
    return _pairs(given)


def _quota(spec: dict[str, Any]) -> dict[str, Any]:
    if not spec:
        return spec
    _fields("", spec, _QUOTA, "the spec of a ResourceQuota")
    if not spec.get("hard"):
        raise ValueError("hard is required, with the amounts; without them, nothing is limited")
    return {**spec, "hard": _quantities("hard", spec["hard"])}


def _limits(spec: dict[str, Any]) -> dict[str, Any]:
    if not spec:
        return spec
    _fields("", spec, ("limits",), "the spec of a LimitRange")
    items = spec.get("limits")
    if not isinstance(items, list) or not items:
        why = "limits is required, a list with an item for each type"
        raise ValueError(f"{why}; without any, nothing is limited")
    read = []
    for number, item in enumerate(items):
        path = f"limits[{number}]"
        if not isinstance(item, Mapping) or not isinstance(item.get("type"), str):
            raise ValueError(f"{path}: type is required, such as Container")
        _fields(f"{path}.", item, ("type", *_AMOUNTS), "an item of a LimitRange")
        amounts = [name for name in _AMOUNTS if item.get(name)]
        if not amounts:
            raise ValueError(f"{path}: has none of {', '.join(_AMOUNTS)}, so nothing is limited")
        canonical_amounts = {}
        for name in amounts:
            canonical_amounts[name] = _quantities(f"{path}.{name}", item[name])
        read.append({**item, **canonical_amounts})
    return {**spec, "limits": read}


def _fields(path: str, given: Iterable[Any], known: tuple[str, ...], of: str) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"{path}{name}: no such field; {of} has {', '.join(known)}")


def _quantities(path: str, given: Any) -> dict[str, str]:
    """Return amounts by resource as an API server writes them, so that both compare equal."""
    if not isinstance(given, Mapping):
        raise ValueError(f"{path}: expected amounts by resource, such as {{pods: '10'}}")
    for name, value in given.items():
        # To Python, True is the number 1.
        amount = None if isinstance(value, bool) else quantity(value)
        if amount is None or amount < 0:
            why = "expected a quantity, such as 10, 500m or 2Gi"
            raise ValueError(f"{path}.{name}: {why}, found {str(value)[:LONGEST_QUOTE]!r}")
    return {name: canonical(value) for name, value in given.items()}


def _pattern(given: str) -> str:
    if not re.fullmatch(r"[-A-Za-z0-9._/*?]+", given):
        why = "is not the key of a taint, such as example.org/team, or a pattern with * and ?"
        raise ValueError(f"{given[:LONGEST_QUOTE]!r} {why}")
    return given


def _amount(given: str) -> str:
    if not given:
        return ""
    amount = quantity(given)
    if amount is None or amount < 0:
        raise ValueError(
            f"expected a quantity, such as 16, 500m or 32Gi, found {given[:LONGEST_QUOTE]!r}"
        )
    return canonical(given)


TaintPattern = Annotated[str, AfterValidator(_pattern)]
Amount = Annotated[str, AfterValidator(_amount)]
NodeLabels = Annotated[dict[str, str], AfterValidator(_pairs)]
LabelsOption = Annotated[dict[str, str], AfterValidator(_labels)]
Annotations = Annotated[dict[str, str], AfterValidator(_annotations)]
QuotaSpec = Annotated[dict[str, Any], AfterValidator(_quota)]
LimitSpec = Annotated[dict[str, Any], AfterValidator(_limits)]
