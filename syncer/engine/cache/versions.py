"""Which of two resourceVersions is the later one, where that can be said.

Since Kubernetes 1.35 the versions of one resource are decimal numbers that grow (KEP-5504, part of conformance). Of the
resources of an extension API server only those may be compared whose versions have this form. Older servers promise no
order; their versions are equal or not, and so are versions of any other form.
https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
"""


class WentBack(Exception):
    """A list shows an older state than was seen before: etcd was restored, or a server's cache is behind."""


def is_decimal(version: str) -> bool:
    """Return True if a version has the form of those that can be compared: digits, the first of them no zero."""
    return version.isascii() and version.isdigit() and version[0] != "0"


def is_later(one: str, other: str) -> bool:
    """Return True if a version is surely later than another; ``""`` stands for none and is before all.

    Numbers are compared as text: the longer one is the larger one, and they may be of any size.
    """
    if not (one.isascii() and one.isdigit() and one[0] != "0"):
        return False
    if other and not (other.isascii() and other.isdigit() and other[0] != "0"):
        return False
    return one > other if len(one) == len(other) else len(one) > len(other)
