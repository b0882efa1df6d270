"""Objects of the host's own that select pods of a host namespace, and could select a tenant's."""

from collections.abc import Iterator

from syncer.api import Marks, Obj, Resource
from syncer.resources.kinds import NETWORK_POLICIES, SERVICES

_CONTROLLERS = Resource("v1", "ReplicationController", "replicationcontrollers")
_JOBS = Resource("batch/v1", "Job", "jobs")

#: The kinds that may only be read with ``sync.toHost.pods.checkSelectors``.
FURTHER = (
    NETWORK_POLICIES,
    Resource("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    Resource("apps/v1", "Deployment", "deployments"),
    Resource("apps/v1", "ReplicaSet", "replicasets"),
    Resource("apps/v1", "StatefulSet", "statefulsets"),
    Resource("apps/v1", "DaemonSet", "daemonsets"),
    _CONTROLLERS,
    _JOBS,
)
#: The label of each namespace with its name (kubernetes.io, "Well-Known Labels").
_NAME = "kubernetes.io/metadata.name"


def may_select_tenants(resource: Resource, obj: Obj, marks: Marks) -> bool:
    """Return True if a tenant's Pod is selected as soon as it has the right labels.

    An empty selector finds all pods, whatever their labels: a NetworkPolicy for the whole
    namespace, for example.
    """
    given = [selector for selector in _selectors(resource, obj) if selector]
    return not all(_is_safe(selector, marks) for selector in given)


def _selectors(resource: Resource, obj: Obj) -> Iterator[Obj]:
    """Yield the label selectors for pods of the same namespace."""
    spec = obj.get("spec") or {}
    home = obj["metadata"]["namespace"]
    if resource in (SERVICES, _CONTROLLERS):
        if labels := spec.get("selector"):
            yield {"matchLabels": labels}
    elif resource == NETWORK_POLICIES:
        yield spec.get("podSelector") or {}
        for direction, peers in (("ingress", "from"), ("egress", "to")):
            for rule in spec.get(direction) or ():
                for peer in rule.get(peers) or ():
                    if _may_be_in(home, peer.get("namespaceSelector")):
                        yield peer.get("podSelector") or {}
    elif resource != _JOBS or spec.get("manualSelector"):
        # The selector that a Job gets by itself is a uid that no tenant knows.
        yield spec.get("selector") or {}


def _may_be_in(home: str, namespaces: Obj | None) -> bool:
    """Return False if a peer's namespaces are others by name.

    The control plane labels each namespace with its name. Other labels aren't known here, so a
    selector by them may match the namespace.
    """
    selector = namespaces or {}
    if (selector.get("matchLabels") or {}).get(_NAME, home) != home:
        return False
    for each in selector.get("matchExpressions") or ():
        if each["key"] != _NAME or each.get("operator") != "In":
            continue
        if home not in (each.get("values") or ()):
            return False
    return True


def _is_safe(selector: Obj, marks: Marks) -> bool:
    """Return True if a selector needs a label that no tenant can set, or leaves out all copies."""
    labels = selector.get("matchLabels") or ()
    expressions = selector.get("matchExpressions") or ()
    if not labels and not expressions:
        return True
    if any(marks.is_mark(key) for key in labels):
        return True
    for each in expressions:
        if not marks.is_mark(each["key"]):
            continue
        # All copies have the mark of the cluster, so any condition on it is about them.
        if each.get("operator") in ("In", "Exists") or each["key"] == marks.cluster:
            return True
    return False
