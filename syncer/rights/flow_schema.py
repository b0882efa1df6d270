"""Limits for the daemon's requests at the API server of the host: API Priority and Fairness.

https://kubernetes.io/docs/concepts/cluster-administration/flow-control/
"""

from syncer.api import Obj
from syncer.rights.rbac import LEASES, Subject

_API = "flowcontrol.apiserver.k8s.io/v1"
#: The level's share of the server's concurrency, beside the built-in ``workload-low`` with 100 and
#: ``workload-high`` with 40.
_SHARES = 10
#: Which schema of several takes a request: the lowest number. Those of Kubernetes for service
#: accounts have 9000, those for leader election 100 to 200.
_LEASES_FIRST = 500
_THEN_ALL = 1000


def flow_schemas(subject: Subject, *, name: str) -> list[Obj]:
    """Return a PriorityLevelConfiguration that bounds the daemon's requests, and the FlowSchemas.

    Requests for Leases have a schema of their own, in the built-in level ``leader-election``: a
    daemon that can't renew its Lease stops working.

    Args:
        subject: The daemon's user on the host.
        name: The name of the objects; that of the daemon's Lease, which is unique in its namespace.
    """
    level = {
        "type": "Limited",
        "limited": {
            "nominalConcurrencyShares": _SHARES,
            "lendablePercent": 50,
            "limitResponse": {
                "type": "Queue",
                "queuing": {"queues": 16, "handSize": 4, "queueLengthLimit": 100},
            },
        },
    }
    leases = {
        "verbs": ["*"],
        "apiGroups": [LEASES.group],
        "resources": [LEASES.plural],
        "namespaces": ["*"],
    }
    resources = {
        "verbs": ["*"],
        "apiGroups": ["*"],
        "resources": ["*"],
        "namespaces": ["*"],
        "clusterScope": True,
    }
    paths = [{"verbs": ["*"], "nonResourceURLs": ["*"]}]
    return [
        _object("PriorityLevelConfiguration", name, level),
        _schema(
            f"{name}.lease",
            subject,
            "leader-election",
            _LEASES_FIRST,
            {"resourceRules": [leases]},
        ),
        _schema(
            name,
            subject,
            name,
            _THEN_ALL,
            {"resourceRules": [resources], "nonResourceRules": paths},
        ),
    ]


def _schema(name: str, subject: Subject, level: str, precedence: int, rules: Obj) -> Obj:
    spec = {
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": precedence,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [{"subjects": [_subject(subject)], **rules}],
    }
    return _object("FlowSchema", name, spec)


def _subject(subject: Subject) -> Obj:
    if subject.namespace:
        account = {"namespace": subject.namespace, "name": subject.name}
        return {"kind": "ServiceAccount", "serviceAccount": account}
    return {"kind": "User", "user": {"name": subject.name}}


def _object(kind: str, name: str, spec: Obj) -> Obj:
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": name}, "spec": spec}
