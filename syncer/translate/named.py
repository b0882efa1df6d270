"""What a configuration means by a kind (``Secret``) or a plural with its group (``issuers.cert-manager.io``)."""

from collections.abc import Iterable

from syncer.api import Resource


def named(name: str, among: Iterable[Resource]) -> Resource | None:
    """Return the resource of this kind, or of this plural and group; None where it isn't among them.

    A kind that two groups have is the core group's, else the first one's; a plural with a group is never ambiguous.
    """
    found = [resource for resource in among if name in (str(resource), resource.kind)]
    return min(found, key=lambda resource: (str(resource) != name, resource.group != ""), default=None)
