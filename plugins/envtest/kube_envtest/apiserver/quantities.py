"""Resource quantities in the API server's canonical form: `1000m` is `1`, `1024Mi` is `1Gi`.

Source: `k8s.io/apimachinery/pkg/api/resource`.
"""

import re
from fractions import Fraction
from functools import lru_cache
from math import ceil

_QUANTITY = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d+))?", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BY_EXPONENT = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


class QuantityError(ValueError):
    """A text that isn't a quantity."""


def canonical(value: str | float, *, milli: bool = True) -> str:
    """Return a quantity in canonical form.

    `milli` rounds up to thousandths, as the API server does in resource lists; otherwise to
    billionths.

    Raises:
        QuantityError: The value isn't a quantity.
    """
    return _canonical(_text(value), milli=milli)


def amount(value: str | float) -> Fraction:
    """Return the amount of a quantity.

    Raises:
        QuantityError: The value isn't a quantity.
    """
    return _parsed(_text(value))[0]


def _text(value: str | float) -> str:
    if isinstance(value, str):
        return value.strip()
    return repr(value)


@lru_cache(8192)
def _canonical(text: str, *, milli: bool) -> str:
    exact, form = _parsed(text)
    digits = 9
    if milli:
        digits = 3
    if exact and _is_reused(text, lowest=-digits):
        return text
    rounded = _rounded(exact, digits)
    if form == "binary" and abs(rounded) >= 1024 and rounded.denominator == 1:
        return _in_binary(int(rounded))
    return _in_decimal(rounded, exponents=form == "exponent")


def _parsed(text: str) -> tuple[Fraction, str]:
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise QuantityError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    sign, number, suffix, exponent = found.groups()
    size = Fraction(number.removesuffix("."))
    if sign == "-":
        size = -size
    if exponent is not None:
        return size * Fraction(10) ** int(exponent), "exponent"
    if suffix in _BINARY[1:]:
        return size * 1024 ** _BINARY.index(suffix), "binary"
    return size * Fraction(10) ** _DECIMAL[suffix or ""], "decimal"


def _is_reused(text: str, *, lowest: int) -> bool:
    """Return True if the API server treats a text as canonical and returns it as it is, including
    odd ones like `1.500`.
    """
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return False
    _, number, suffix, exponent = found.groups()
    whole, _, fraction = number.partition(".")
    digits = (whole.lstrip("0") or "0") + fraction
    if suffix in _BINARY[1:]:
        return not fraction and len(digits) < 9 and int(digits) % 8 != 0
    scale = (int(exponent) if exponent is not None else _DECIMAL[suffix or ""]) - len(fraction)
    return scale % 3 == 0 and scale >= lowest and not digits.endswith("000") and digits[0] != "0" and len(digits) <= 18


def _rounded(exact: Fraction, digits: int) -> Fraction:
    """Round away from zero to this number of decimal digits."""
    scale = 10**digits
    size = ceil(abs(exact) * scale)
    if exact < 0:
        size = -size
    return Fraction(size, scale)


def _in_binary(number: int) -> str:
    power = 0
    while number and number % 1024 == 0 and power < len(_BINARY) - 1:
        number //= 1024
        power += 1
    return f"{number}{_BINARY[power]}"


def _in_decimal(rounded: Fraction, *, exponents: bool) -> str:
    if rounded == 0:
        return "0"
    power = -9
    number = int(rounded * 10**9)
    while number % 1000 == 0 and power < 18:
        number //= 1000
        power += 3
    if exponents:
        return f"{number}e{power}" if power else str(number)
    return f"{number}{_BY_EXPONENT[power]}"
