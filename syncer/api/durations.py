"""Durations in options: ``15s``, ``5m``, ``1h30m``."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$|^0$"
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")


class OptionType(str):
    """The type of an option in its help, if the Python type isn't enough.

    Examples are ``duration`` and ``address``.
    """

    __slots__ = ()


def seconds(value: Any) -> float:
    """Parse a duration such as ``15s``, ``5m``, ``1h30m`` or ``250ms`` into seconds.

    Raises:
        ValueError: The value is not a duration.
    """
    if not isinstance(value, str):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if number and value == 0:
            return 0.0
        unit = f", found {value}. Did you mean {value}s?" if number else ""
        raise ValueError(f"expected a duration such as 15s, 5m or 1h30m{unit}")
    if not re.fullmatch(_DURATION, value):
        raise ValueError("expected a duration such as 15s, 5m or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(value))


def duration_text(value: float) -> str:
    """Format seconds as the shortest duration: ``1h30m``, ``15s``, ``250ms``."""
    left = round(value * 1000)
    parts = []
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


#: Seconds; written as ``15s``, ``5m`` or ``1h30m`` in the configuration.
Duration = Annotated[
    float,
    OptionType("duration"),
    BeforeValidator(seconds),
    PlainSerializer(duration_text, return_type=str),
    WithJsonSchema({"type": "string", "pattern": _DURATION, "examples": ["15s", "1h30m"]}),
]
