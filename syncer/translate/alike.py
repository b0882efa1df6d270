"""Compare objects that an API server may have normalised: it adds defaults, and rewrites quantities."""

import re
from decimal import Decimal
from typing import Any

_SUFFIXES = {
    **{name: Decimal(1000) ** power for power, name in enumerate(("", "k", "M", "G", "T", "P", "E"))},
    **{name: Decimal(1024) ** power for power, name in enumerate(("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")) if name},
    "m": Decimal("0.001"),
    "u": Decimal("0.000001"),
    "n": Decimal("0.000000001"),
}

_form = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)([numkMGTPE]|[KMGTPE]i|)").fullmatch

#: Longest text that is parsed as a quantity, in characters; an API server writes at most some 20.
LONGEST_QUANTITY = 64


def covers(want: Any, live: Any) -> bool:
    """Return True if ``live`` has all values of ``want``; it may have more fields, and other
    notations of a number.
    """
    if want == live:
        return True
    if isinstance(want, dict):
        return isinstance(live, dict) and all(
            covers(value, live.get(name)) for name, value in want.items() if value is not None
        )
    if isinstance(want, list):
        return (not want and live is None) or (
            isinstance(live, list)
            and len(want) == len(live)
            and all(covers(one, other) for one, other in zip(want, live, strict=True))
        )
    return _same_quantity(want, live)


def _same_quantity(want: Any, live: Any) -> bool:
    """Return True if both are the same resource quantity: ``"1000m"`` and ``"1"``, ``"1Gi"`` and
    ``"1024Mi"``.

    An API server never writes a quantity with a decimal point, so a string with one is something
    else: the version ``1.1``, for example, which is not ``1.10``
    (``k8s.io/apimachinery/pkg/api/resource``).
    """
    if isinstance(want, bool) or isinstance(live, bool) or "." in str(live):
        return False
    first, second = quantity(want), quantity(live)
    return first is not None and first == second


def quantity(value: Any) -> Decimal | None:
    """Parse a resource quantity; None if the value isn't one."""
    text = str(value)
    if len(text) > LONGEST_QUANTITY:
        return None
    found = _form(text)
    if found is None:
        return None
    try:
        return Decimal(found[1]) * _SUFFIXES[found[2]]
    except ArithmeticError:  # malformed, or of an exponent beyond all numbers
        return None
