"""Describe the differences of two JSON values for the author of the expected one."""

from collections.abc import Iterator
from typing import Any


def differences(expected: Any, found: Any, path: str, *, whole: bool) -> Iterator[str]:
    """Yield a line for each difference. With ``whole`` False, mappings may have further keys, but
    none that is expected to be None.
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted(expected.keys() | (found.keys() if whole else set())):
            yield from _at(expected, found, key, f"{path}.{key}", whole=whole)
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for index, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from differences(one, other, f"{path}[{index}]", whole=whole)
    elif expected != found:
        yield f"{path}: expected {expected!r}, found {found!r}"


def _at(
    expected: dict[str, Any],
    found: dict[str, Any],
    key: str,
    path: str,
    *,
    whole: bool,
) -> Iterator[str]:
    if key not in found:
        if expected[key] is None and not whole:
            return
        yield f"{path}: expected {expected[key]!r}, found nothing"
    elif key not in expected:
        yield f"{path}: expected nothing, found {found[key]!r}"
    else:
        yield from differences(expected[key], found[key], path, whole=whole)
