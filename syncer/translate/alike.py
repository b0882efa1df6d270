"""Equality of JSON values: whether two are the same, and whether a live object has all that is wanted of it."""

from typing import Any


def same(one: Any, other: Any) -> bool:
    """Return True if both are the same JSON value (RFC 8785): numbers are equal by value, as 1 and 1.0, and values
    of different types never are, as true, 1 and "1".
    """
    return bool(one == other) and (type(one) is str or of_same_types(one, other))


def of_same_types(one: Any, other: Any) -> bool:
    """Return True if two values that are equal in Python, as True and 1, are of the same JSON types throughout."""
    kind = type(one)
    if kind is dict:
        for name, value in one.items():
            if type(value) is not str and not of_same_types(value, other[name]):
                return False
        return True
    if kind is list:
        for value, counterpart in zip(one, other, strict=True):
            if type(value) is not str and not of_same_types(value, counterpart):
                return False
        return True
    return (kind is bool) is (type(other) is bool)


def covers(want: Any, live: Any, *, verbatim: bool = False) -> bool:
    """Return True if ``live`` has all values of ``want``; it may have more fields.

    Null and a missing field are the same in ``want``, and so is an empty list: API servers write neither into the
    fields of their own kinds. With ``verbatim`` each is a value of its own, as API servers keep them in custom
    resources.
    """
    if same(want, live):
        return True
    if isinstance(want, dict):
        if not isinstance(live, dict):
            return False
        return all(
            (name in live or not verbatim) and covers(value, live.get(name), verbatim=verbatim)
            for name, value in want.items()
            if verbatim or value is not None
        )
    if isinstance(want, list):
        if not want and live is None:
            return not verbatim
        return (
            isinstance(live, list)
            and len(want) == len(live)
            and all(covers(one, other, verbatim=verbatim) for one, other in zip(want, live, strict=True))
        )
    return False
