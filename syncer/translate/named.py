"""Find a resource by its kind (``Secret``) or by plural and group (``issuers.cert-manager.io``)."""

from collections.abc import Iterable

from syncer.api import Resource


def named(name: str, among: Iterable[Resource]) -> Resource | None:
    """Return the resource of this kind, or of this plural and group, or None.

    If a kind is in several groups, the core group wins, otherwise the first. A plural with a group
    is unambiguous.
    """
    found = None
    for resource in among:
        if str(resource) == name:
            return resource
        if resource.kind != name:
            continue
        if found is None or (found.group and not resource.group):
            found = resource
    return found
