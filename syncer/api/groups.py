"""The API groups of Kubernetes itself."""

#: The API groups of kube-apiserver that have a dot, and `metrics.k8s.io`. (Kubernetes 1.36;
#: ``kubectl api-versions``.) Groups without a dot are reserved for it, too; others below ``k8s.io``
#: are those of custom resources, such as ``snapshot.storage.k8s.io`` and
#: ``gateway.networking.k8s.io``.
_WITH_A_DOT = frozenset(
    f"{group}.k8s.io"
    for group in (
        "admissionregistration",
        "apiextensions",
        "apiregistration",
        "authentication",
        "authorization",
        "certificates",
        "coordination",
        "discovery",
        "events",
        "flowcontrol.apiserver",
        "internal.apiserver",
        "metrics",
        "networking",
        "node",
        "policy",
        "rbac.authorization",
        "resource",
        "scheduling",
        "storage",
        "storagemigration",
    )
)


def is_built_in(group: str) -> bool:
    """Return True for a group of Kubernetes itself, in which no CRD has kinds.

    ``""`` is the core group.
    """
    return "." not in group or group in _WITH_A_DOT
