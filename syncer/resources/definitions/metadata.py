"""Labels and annotations of a CRD that must not cross."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from syncer.api import Obj

#: Notes of tools about objects of their own cluster. On the other side they would name missing
#: objects, or make a tool there take the CRD for its own and remove it.
_TOOLS = (
    "*cert-manager.io/inject-*",
    "*cert-manager.io/allow-direct-injection",
    "service.*.openshift.io/*",
    "meta.helm.sh/*",
    "argocd.argoproj.io/*",
    "*.toolkit.fluxcd.io/*",
    "objectset.rio.cattle.io/*",
    "kapp.k14s.io/*",
    "addonmanager.kubernetes.io/*",
    "olm.*",
    "operators.coreos.com/*",
)


def leave_out(copy: Obj, *, also: Iterable[str] = ()) -> Obj:
    """Remove labels and annotations that are only valid beside the original from a new copy (as
    ``Context`` makes it).
    """
    patterns = (*_TOOLS, *also)
    metadata = dict(copy["metadata"])
    for part in ("labels", "annotations"):
        if found := metadata.get(part):
            metadata[part] = {key: value for key, value in found.items() if not _matches(key, patterns)}
    return {**copy, "metadata": metadata}


def _matches(key: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(key, pattern) for pattern in patterns)
