"""Selectors of the host's own objects: which of them a tenant's Pod can be selected by."""

from typing import Any

import pytest

from syncer.api import Marks, Obj, Resource
from syncer.resources.kinds import NETWORK_POLICIES, SERVICES
from syncer.resources.pods.neighbours import FURTHER, may_select_tenants

DEPLOYMENTS = next(each for each in FURTHER if each.plural == "deployments")
BUDGETS = next(each for each in FURTHER if each.plural == "poddisruptionbudgets")
CONTROLLERS = next(each for each in FURTHER if each.plural == "replicationcontrollers")
JOBS = next(each for each in FURTHER if each.plural == "jobs")
NAME = "kubernetes.io/metadata.name"
PLAIN, OURS = {"app": "vsyncer"}, {"app": "vsyncer", "vsyncer.dev/role": "daemon"}


def where(operator: str, key: str = "vsyncer.dev/role") -> Obj:
    return {"matchLabels": PLAIN, "matchExpressions": [{"key": key, "operator": operator, "values": ["x"]}]}


def policy(**spec: Any) -> Obj:
    return {"podSelector": {}, **spec}


def peer(**namespaces: Any) -> Obj:
    """Return the spec of a policy with a peer by labels of pods and of namespaces."""
    return policy(egress=[{"to": [{"podSelector": {"matchLabels": PLAIN}, "namespaceSelector": namespaces}]}])


def named(operator: str, *names: str) -> list[Obj]:
    return [{"key": NAME, "operator": operator, "values": [*names]}]


OPEN: list[tuple[Resource, Obj]] = [
    (SERVICES, {"selector": PLAIN}),
    (DEPLOYMENTS, {"selector": {"matchLabels": PLAIN}}),
    (CONTROLLERS, {"selector": PLAIN}),
    (JOBS, {"manualSelector": True, "selector": {"matchLabels": PLAIN}}),
    (BUDGETS, {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}),
    (BUDGETS, {"selector": where("NotIn")}),
    (NETWORK_POLICIES, policy(podSelector={"matchLabels": PLAIN})),
    (NETWORK_POLICIES, policy(ingress=[{"from": [{"ipBlock": {}}, {"podSelector": {"matchLabels": PLAIN}}]}])),
    (NETWORK_POLICIES, policy(egress=[{"to": [{"podSelector": {"matchLabels": PLAIN}}]}])),
    (NETWORK_POLICIES, peer()),
    (NETWORK_POLICIES, peer(matchLabels={"team": "a"})),
    (NETWORK_POLICIES, peer(matchLabels={NAME: "vc-ns"})),
    (NETWORK_POLICIES, peer(matchExpressions=named("In", "other", "vc-ns"))),
    (NETWORK_POLICIES, peer(matchExpressions=named("NotIn", "other"))),
]
CLOSED: list[tuple[Resource, Obj]] = [
    (SERVICES, {"selector": OURS}),
    (SERVICES, {}),
    (SERVICES, {"selector": None}),
    (DEPLOYMENTS, {"selector": {"matchLabels": OURS}}),
    (CONTROLLERS, {"selector": OURS}),
    (JOBS, {"selector": {"matchLabels": PLAIN}}),
    (BUDGETS, {"selector": {}}),
    (BUDGETS, {"selector": where("In")}),
    (BUDGETS, {"selector": where("Exists")}),
    (BUDGETS, {"selector": where("DoesNotExist", "vsyncer.dev/cluster")}),
    (NETWORK_POLICIES, policy()),
    (NETWORK_POLICIES, peer(matchLabels={NAME: "kube-system"})),
    (NETWORK_POLICIES, peer(matchExpressions=named("In", "kube-system", "monitoring"))),
    (NETWORK_POLICIES, policy(podSelector={"matchLabels": OURS}, ingress=[{}, {"from": None}])),
]


@pytest.mark.parametrize(("resource", "spec"), OPEN)
def test_selector_of_plain_labels_finds_a_tenants_pod(resource: Resource, spec: Obj) -> None:
    assert may_select_tenants(resource, {"metadata": {"name": "x", "namespace": "vc-ns"}, "spec": spec}, Marks())


@pytest.mark.parametrize(("resource", "spec"), CLOSED)
def test_selector_with_a_label_of_ours_or_of_the_whole_namespace_is_right(resource: Resource, spec: Obj) -> None:
    assert not may_select_tenants(resource, {"metadata": {"name": "x", "namespace": "vc-ns"}, "spec": spec}, Marks())
