"""Which of two resourceVersions is the later one, where that can be said.

Since Kubernetes 1.35 the versions of one resource are decimal numbers that grow (KEP-5504, part of conformance). Of the
resources of an extension API server only those may be compared whose versions have this form. Older servers promise no
order; their versions are equal or not, and so are versions of any other form.
https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
"""

import re

is_decimal = re.compile(r"[1-9][0-9]*").fullmatch


class WentBack(Exception):
    """A list shows an older state than was seen before: etcd was restored, or a server's cache is behind."""


def is_later(one: str, other: str) -> bool:
    """Return True if a version is surely later than another; ``""`` stands for none and is before all.

    Numbers are compared as text: the longer one is the larger one, and they may be of any size.
    """
    if not is_decimal(one):
        return False
    return not other or (is_decimal(other) is not None and (len(one), one) > (len(other), other))
