"""Resource quantities (``k8s.io/apimachinery/pkg/api/resource``)."""

import re
from decimal import ROUND_CEILING, Decimal
from typing import Any

_DECIMAL = ("m", "", "k", "M", "G", "T", "P", "E")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SUFFIXES = {
    **{name: Decimal(1000) ** power for power, name in enumerate(_DECIMAL, -1)},
    **{name: Decimal(1024) ** power for power, name in enumerate(_BINARY)},
    "u": Decimal("0.000001"),
    "n": Decimal("0.000000001"),
}

#: The number, and the suffix.
_form = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"([numkMGTPE]|[KMGTPE]i|)"
).fullmatch

#: Longest text that is parsed as a quantity, in characters; an API server writes at most some 20.
LONGEST_QUANTITY = 64
#: API servers lower larger binary quantities to this one.
_LARGEST = 2**63 - 1
#: API servers garble decimal quantities of a thousand E or more.
_GARBLED = 10**21


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


def canonical(value: Any) -> str:
    """Return a quantity in a form that an API server stores unchanged.

    ``1000m`` becomes ``1``, ``1024Mi`` becomes ``1Gi``. A part below a thousandth is rounded up, as
    the API server does in lists of resources. A value that isn't a quantity comes back as its text,
    and so does a quantity that is too large.
    """
    text = str(value)
    amount = quantity(text)
    if amount is None:
        return text
    is_binary = text.endswith("i")
    if is_binary:
        amount = min(amount, Decimal(_LARGEST))
    if abs(amount) >= _GARBLED:
        return text
    sign = "-" if amount < 0 else ""
    thousandths = int((abs(amount) * 1000).to_integral_value(ROUND_CEILING))
    whole, rest = divmod(thousandths, 1000)
    if is_binary and whole >= 1024 and not rest:
        return sign + _scaled(whole, 1024, _BINARY)
    if not thousandths:
        return "0"
    return sign + _scaled(thousandths, 1000, _DECIMAL)


def _scaled(number: int, base: int, suffixes: tuple[str, ...]) -> str:
    """Return a number in the largest unit that it is a multiple of.

    Each unit is ``base`` times the one before.
    """
    power = 0
    while number % base == 0 and power < len(suffixes) - 1:
        number //= base
        power += 1
    return f"{number}{suffixes[power]}"
