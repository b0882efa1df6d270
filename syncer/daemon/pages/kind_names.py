"""The kinds that commands name, also by kubectl's short names, and why one of them isn't synced."""

from collections.abc import Iterable, Iterator

from syncer.api import Syncer
from syncer.plugins import installed

#: Kubernetes' own short names, with the plurals.
SHORT_NAMES = {
    "cj": "cronjobs",
    "cm": "configmaps",
    "crd": "customresourcedefinitions",
    "crds": "customresourcedefinitions",
    "deploy": "deployments",
    "ds": "daemonsets",
    "ep": "endpoints",
    "ev": "events",
    "hpa": "horizontalpodautoscalers",
    "ing": "ingresses",
    "limits": "limitranges",
    "netpol": "networkpolicies",
    "no": "nodes",
    "ns": "namespaces",
    "pc": "priorityclasses",
    "pdb": "poddisruptionbudgets",
    "po": "pods",
    "pv": "persistentvolumes",
    "pvc": "persistentvolumeclaims",
    "quota": "resourcequotas",
    "rc": "replicationcontrollers",
    "rs": "replicasets",
    "sa": "serviceaccounts",
    "sc": "storageclasses",
    "sts": "statefulsets",
    "svc": "services",
}
_PODS = "the virtual cluster's controllers make Pods of them, which go down"
_ENFORCED = "the virtual cluster enforces them itself, so nothing of them is needed on the host"
#: Kinds with no syncer of their own, with what is so instead.
UNSYNCED = {
    "Deployment": _PODS,
    "StatefulSet": _PODS,
    "DaemonSet": _PODS,
    "ReplicaSet": _PODS,
    "ReplicationController": _PODS,
    "Job": _PODS,
    "CronJob": _PODS,
    "Role": _ENFORCED,
    "RoleBinding": _ENFORCED,
    "ClusterRole": _ENFORCED,
    "ClusterRoleBinding": _ENFORCED,
    "ResourceQuota": _ENFORCED,
    "LimitRange": _ENFORCED,
    "Lease": _ENFORCED,
    "HorizontalPodAutoscaler": _ENFORCED,
    "ValidatingWebhookConfiguration": _ENFORCED,
    "MutatingWebhookConfiguration": _ENFORCED,
    "ValidatingAdmissionPolicy": _ENFORCED,
    "MutatingAdmissionPolicy": _ENFORCED,
    "Endpoints": "the virtual cluster's controllers make EndpointSlices from them, which go down",
    "ResourceClaim": (
        "a Pod that needs one waits, and an event on it says so, until a plugin syncs the kind"
    ),
    "VolumeSnapshotContent": (
        "it names a snapshot in the host's storage, by which a tenant could ask for anybody's data;"
        " a VolumeSnapshot that names one is refused, and an event on it says so"
    ),
}


def plural_of(kind: str) -> str:
    """Return the plural for a short name of kubectl, and any other word in small letters."""
    word = kind.lower()
    return SHORT_NAMES.get(word, word)


def is_called(syncer: str, kind: str) -> bool:
    """Return True if a syncer that hasn't begun is meant: by its name, its kind, or a plural.

    The name of an entry of ``sync.custom`` is a plural with its group.
    """
    word = plural_of(kind)
    name = syncer.lower()
    if word in (name, name.partition(".")[0]):
        return True
    return any(each.name == syncer for each in _called(word))


def _called(word: str) -> Iterator[type[Syncer]]:
    """Yield the available syncers of a kind."""
    for each in installed().syncers():
        resource = each.resource
        names = (each.name, resource.kind, resource.plural, str(resource))
        if word in [name.lower() for name in names]:
            yield each


def why_unsynced(kind: str, known: Iterable[str]) -> str:
    """Return why nothing of a kind is synced, with the way out.

    Args:
        kind: The kind as a command names it: a kind or a plural, the latter also with its group.
        known: The names of the syncers at work.
    """
    word = plural_of(kind)
    refusal = f"nothing that is synced is called {kind!r}"
    names = ", ".join(sorted(known))
    if not names:
        return f"{refusal}: no virtual cluster is served here at present; see syncer clusters"
    options = sorted(f"sync.{each.section}.enabled" for each in _called(word))
    if options:
        return f"{refusal}: it is off; set {' or '.join(options)}"
    plural = word.partition(".")[0]
    for unsynced, instead in UNSYNCED.items():
        singular = unsynced.lower()
        if plural in (singular, f"{singular}s", f"{singular.removesuffix('y')}ies"):
            return f"{refusal}: {unsynced} is a kind of the virtual cluster alone: {instead}"
    way_out = "a kind of a CRD is synced by an entry of sync.custom"
    return f"{refusal}; there are {names}; {way_out}"
