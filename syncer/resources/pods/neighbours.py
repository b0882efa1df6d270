"""Objects of the host's own in a host namespace that select pods there, and could select a tenant's."""

from collections.abc import Iterable, Iterator

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
    return any(not _is_safe(selector, marks) for selector in _selectors(resource, obj) if selector)


def _selectors(resource: Resource, obj: Obj) -> Iterator[Obj]:
    """Yield the label selectors for pods of the same namespace."""
    spec, home = obj.get("spec") or {}, obj["metadata"]["namespace"]
    if resource in (SERVICES, _CONTROLLERS):
        yield {"matchLabels": labels} if (labels := spec.get("selector")) else {}
    elif resource == NETWORK_POLICIES:
        yield spec.get("podSelector") or {}
        for direction, peers in (("ingress", "from"), ("egress", "to")):
            for rule in spec.get(direction) or ():
                found = [peer for peer in rule.get(peers) or () if _may_be_in(home, peer.get("namespaceSelector"))]
                yield from (peer.get("podSelector") or {} for peer in found)
    elif resource != _JOBS or spec.get("manualSelector"):  # a Job's own selector is a uid that no tenant knows
        yield spec.get("selector") or {}


def _may_be_in(home: str, namespaces: Obj | None) -> bool:
    """Return False if a peer's namespaces are others by name: the control plane labels each with its own.

    Other labels of the namespace aren't known here, so a selector by them may match it.
    """
    selector = namespaces or {}
    if (selector.get("matchLabels") or {}).get(_NAME, home) != home:
        return False
    names = [each for each in selector.get("matchExpressions") or () if each["key"] == _NAME]
    return all(each.get("operator") != "In" or home in (each.get("values") or ()) for each in names)


def _is_safe(selector: Obj, marks: Marks) -> bool:
    """Return True if a selector needs a label that no tenant can set, or leaves out all copies."""
    if not _keys(selector):
        return True
    if any(marks.is_mark(key) for key in selector.get("matchLabels") or ()):
        return True
    return any(
        marks.is_mark(each["key"]) and (each.get("operator") in ("In", "Exists") or each["key"] == marks.cluster)
        for each in selector.get("matchExpressions") or ()
    )


def _keys(selector: Obj) -> Iterable[str]:
    return [*(selector.get("matchLabels") or ()), *(each["key"] for each in selector.get("matchExpressions") or ())]
