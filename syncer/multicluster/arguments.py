"""Checks of arguments, where a mistake would show only later, and elsewhere."""


def must_be(value: object, *kinds: type, what: str) -> None:
    """Refuse an argument of another type; ``what`` says which argument it is.

    Raises:
        TypeError: It is of none of these types.
    """
    if not isinstance(value, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"{what} must be a {wanted}, not {value!r}")
