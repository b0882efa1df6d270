"""Equality of JSON values, and whether a live object has all the values that are wanted of it."""

from typing import Any


def same(one: Any, other: Any) -> bool:
    """Return True if both are the same JSON value (RFC 8785).

    Numbers are equal by value, as 1 and 1.0. Values of different types are never equal, as true, 1
    and "1".
    """
    return bool(one == other) and (type(one) is str or of_same_types(one, other))


def of_same_types(one: Any, other: Any) -> bool:
    """Return True if two values that are equal in Python are of the same JSON types throughout.

    True and 1 are equal in Python.
    """
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

    Null and a missing field are the same in ``want``, and so is an empty list: API servers write
    neither into the fields of their own kinds. With ``verbatim`` each is a value of its own, as API
    servers keep them in custom resources.
    """
    if same(want, live):
        return True

    if isinstance(want, dict):
        if not isinstance(live, dict):
            return False
        for name, value in want.items():
            if verbatim:
                if name not in live:
                    return False
            elif value is None:
                continue
            if not covers(value, live.get(name), verbatim=verbatim):
                return False
        return True

    if isinstance(want, list):
        if not want and live is None:
            return not verbatim
        if not isinstance(live, list) or len(want) != len(live):
            return False
        pairs = zip(want, live, strict=True)
        return all(covers(one, other, verbatim=verbatim) for one, other in pairs)

    return False
