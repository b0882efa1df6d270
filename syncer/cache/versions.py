"""Compare resourceVersions, if they can be compared.

Since Kubernetes 1.35 the versions of a resource are increasing decimal numbers (KEP-5504, part of
conformance). Resources of an extension API server can be compared only if their versions have this
form. Older servers guarantee no order; their versions are equal or not, and so are versions of any
other form. https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
"""


class WentBack(Exception):
    """A list is older than an earlier one: etcd was restored, or a server's cache is behind."""


def is_decimal(version: str) -> bool:
    """Return True if a version has a comparable form: digits, without a leading zero."""
    return version.isascii() and version.isdigit() and version[0] != "0"


def is_later(one: str, other: str) -> bool:
    """Return True if a version is certainly later than another; ``""`` is before all.

    Numbers are compared as text: the longer one is the larger one, and they may be of any size.
    """
    if not (one.isascii() and one.isdigit() and one[0] != "0"):
        return False
    if other and not (other.isascii() and other.isdigit() and other[0] != "0"):
        return False
    if len(one) != len(other):
        return len(one) > len(other)
    return one > other
