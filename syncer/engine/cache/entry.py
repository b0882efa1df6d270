"""What a store keeps of an object, and which of two resourceVersions is the later one, where that can be said.

https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
"""

from typing import NamedTuple


class Entry(NamedTuple):
    """One object: its resourceVersion, its uid, and its JSON without managedFields, which are most of its size."""

    version: str
    uid: str
    raw: bytes


def is_later(one: str, other: str) -> bool:
    """Whether one resourceVersion is later than another of the same API server; ``""`` is none."""
    return int(one or 0) > int(other or 0) if (one + other).isdigit() else one != other


def is_older(one: str, other: str) -> bool:
    """Whether one resourceVersion is surely older than another of the same API server."""
    return one.isdigit() and other.isdigit() and int(one) < int(other)
