"""Equality of JSON values: whether two are the same, and whether a live object has all that is wanted of it."""

from typing import Any


def same(one: Any, other: Any) -> bool:
    """Return True if both are the same JSON value (RFC 8785): numbers are equal by value, as 1 and 1.0, and values
    of different types never are, as true, 1 and "1".
    """
    return bool(one == other) and (type(one) is str or _of_same_types(one, other))


def _of_same_types(one: Any, other: Any) -> bool:
    """Return True if two values are of the same JSON types throughout that Python takes to be equal, as it does
    True and 1.
    """
    kind = type(one)
    if kind is dict:
        for name, value in one.items():
            if type(value) is not str and not _of_same_types(value, other[name]):
                return False
        return True
    if kind is list:
        for value, counterpart in zip(one, other, strict=True):
            if type(value) is not str and not _of_same_types(value, counterpart):
                return False
        return True
    return (kind is bool) is (type(other) is bool)


def covers(want: Any, live: Any) -> bool:
    """Return True if ``live`` has all values of ``want``; it may have more fields.

    An API server writes neither null nor an empty list into the fields of its own kinds.
    """
    if same(want, live):
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
    return False
