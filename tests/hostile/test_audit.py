"""The audit of `hack/chaos --hostile` reports harm, and nothing else."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hostile_chaos.attacks import ATTACKS
from hostile_chaos.audit import Audit
from hostile_chaos.grants import FROZEN, HIDDEN_CLASS, SHOWN_CLASS, address_of, slice_of
from hostile_chaos.stage import FrozenObject, Stage
from hostile_scene import CLUSTER, HOME

from kube_envtest import Change, Logged
from syncer.api import Key, Marks, Obj, key_of
from syncer.resources.kinds import NETWORK_POLICIES, PODS, PRIORITY_CLASSES
from syncer.testing.merge import merged
from syncer.testing.objects import build, endpointslice, ingress, pod, resource_of, service, serviceaccount

MARKS = Marks()


def copy_of(virtual: Obj, **parts: Any) -> Obj:
    """Return a copy on the host."""
    host_key = Key(HOME, f"{key_of(virtual).name}-x-shop-x-vc")
    metadata = {
        "name": host_key.name,
        "namespace": host_key.namespace,
        "labels": MARKS.labels(f"{CLUSTER}.{HOME}", key_of(virtual)),
        "annotations": MARKS.annotations(resource_of(virtual), virtual, host_key),
    }
    return merged(merged(virtual, {"metadata": metadata}), parts)


def found(obj: Obj, before: Obj | None = None) -> list[tuple[str, str]]:
    """Return the faults that the audit finds in a write of the daemon."""
    found: list[tuple[str, str]] = []
    audit = Audit(lambda kind, fault, _: found.append((kind, fault)), single=True, polices=False, attacks=ATTACKS)
    audit.on_host(
        0.0, cast("Change", SimpleNamespace(resource=resource_of(obj).plural, obj=obj, before=before, after=obj))
    )
    return found


PRIVILEGED = {"name": "c", "image": "i", "securityContext": {"privileged": True}}
MIGHTY = {"name": "c", "image": "i", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}
OPEN = {"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}
OF_THE_NODE = ("privileges", "a Pod has parts of the node")
HARMFUL = {
    "label of a Pod": (
        copy_of(pod("annotations-1"), metadata={"labels": {"azure.workload.identity/use": "true"}}),
        ("annotations", "pods have labels that host components act on"),
    ),
    "label of a ServiceAccount": (
        copy_of(serviceaccount("annotations-1"), metadata={"labels": {"azure.workload.identity/use": "true"}}),
        ("annotations", "serviceaccounts have labels that host components act on"),
    ),
    "privileged container": (
        copy_of(pod("a", spec={"containers": [PRIVILEGED]})),
        ("policies", "a Pod is privileged"),
    ),
    "privileged init container": (
        copy_of(pod("a", spec={"initContainers": [PRIVILEGED]})),
        ("policies", "a Pod is privileged"),
    ),
    "network of the node": (copy_of(pod("a", spec={"hostNetwork": True})), OF_THE_NODE),
    "path of the node": (
        copy_of(pod("a", spec={"volumes": [{"name": "v", "hostPath": {"path": "/"}}]})),
        OF_THE_NODE,
    ),
    "port of the node": (copy_of(pod("a", spec={"containers": [OPEN]})), OF_THE_NODE),
    "capability of a container for debugging": (copy_of(pod("a", spec={"ephemeralContainers": [MIGHTY]})), OF_THE_NODE),
    "Pod that asks for parts of the node": (
        copy_of(pod("privileges-1")),
        ("privileges", "a Pod is created that asks for parts of the node"),
    ),
    "address of a load balancer": (
        copy_of(service("a", spec={"type": "LoadBalancer", "loadBalancerIP": "8.8.8.8"})),
        ("daemon", "Service copies get more than the operator's rules allow"),
    ),
    "host of an Ingress": (
        copy_of(ingress("a", spec={"rules": [{"host": "login.bank.example"}]})),
        ("daemon", "Ingress copies get more than the operator's rules allow"),
    ),
    "class in an annotation": (
        copy_of(ingress("classes-1", metadata={"annotations": {"kubernetes.io/ingress.class": HIDDEN_CLASS}})),
        ("classes", "Ingress copies get more than the operator's rules allow"),
    ),
    "range of a NetworkPolicy": (
        copy_of(build(NETWORK_POLICIES, "freezes-1", spec=FROZEN["NetworkPolicy"].more["spec"])),
        ("freezes", "NetworkPolicy copies get more than the operator's rules allow"),
    ),
    "rule without peers of a NetworkPolicy": (
        copy_of(build(NETWORK_POLICIES, "freezes-1", spec={"egress": [{}]})),
        ("freezes", "NetworkPolicy copies get more than the operator's rules allow"),
    ),
    "value of a PriorityClass": (
        copy_of(build(PRIORITY_CLASSES, "freezes-1", value=1000, preemptionPolicy="Never")),
        ("freezes", "PriorityClass copies get more than the operator's rules allow"),
    ),
    "address of an EndpointSlice": (
        copy_of(endpointslice("freezes-1", "192.0.2.1")),
        ("freezes", "EndpointSlice copies get more than the operator's rules allow"),
    ),
}


@pytest.mark.parametrize(("obj", "wrong"), HARMFUL.values(), ids=HARMFUL)
def test_harmful_object_is_reported(obj: Obj, wrong: tuple[str, str]) -> None:
    assert found(obj) == [wrong]


WITHIN = [
    pod("a"),
    service("a"),
    serviceaccount("a"),
    ingress("a", spec={"ingressClassName": SHOWN_CLASS}),
    FROZEN["NetworkPolicy"].within("a", "shop"),
    build(PRIORITY_CLASSES, "a", value=10, preemptionPolicy="Never"),
    slice_of(address_of(7), "a", "shop"),
]


@pytest.mark.parametrize("obj", WITHIN, ids=lambda obj: obj["kind"])
def test_plain_copy_is_no_harm(obj: Obj) -> None:
    assert found(copy_of(obj)) == []


def test_more_that_a_copy_had_before_is_no_harm_of_the_write() -> None:
    before = copy_of(ingress("freezes-1", spec={"rules": [{"host": "login.bank.example"}]}))
    assert found(merged(before, {"metadata": {"labels": {"tier": "a"}}}), before) == []


@pytest.mark.parametrize(
    ("copy", "ended", "parts"),
    [
        (ingress("a"), "", []),
        (ingress("a", spec={"ingressClassName": "blue"}), "blue", ["blue"]),
        (slice_of(address_of(7), "a", "shop"), address_of(7), [address_of(7)]),
        (slice_of(address_of(7), "a", "shop"), address_of(8), []),
        (service("a", spec={"externalIPs": ["8.8.8.8"]}), "", ["externalIPs"]),
        (None, "blue", []),
    ],
)
def test_frozen_copy_that_keeps_a_grant_is_found(copy: Obj | None, ended: str, parts: list[str]) -> None:
    frozen = FrozenObject(service("a"), "freezes", ended)
    stage = SimpleNamespace(scene=SimpleNamespace(copy=lambda obj: copy))
    assert Stage.excess_of(cast("Stage", stage), frozen) == parts


def test_copy_without_an_original_is_an_orphan_unless_remade_on_purpose() -> None:
    names = ("there", "gone", "again")
    copies = [copy_of(pod(name)) for name in names]
    stage = SimpleNamespace(
        operator=SimpleNamespace(objects=lambda resource: copies if resource == "pods" else []),
        tenant=SimpleNamespace(get=lambda resource, key: pod("there") if key == "shop/there" else None),
        ever_remade={"again-x-shop-x-vc"},
    )
    assert Stage.orphans(cast("Stage", stage)) == [f"{PODS} {HOME}/gone-x-shop-x-vc"]


@pytest.mark.parametrize(
    ("verb", "resource", "path", "is_harm"),
    [
        ("get", "pods", "namespaces/default/pods/annotations-1", True),
        ("patch", "events", "namespaces/kube-system/events/annotations-1", True),
        ("get", "pods", f"namespaces/{HOME}/pods/annotations-1", False),
        ("get", "namespaces", "namespaces/kube-system", False),
        ("watch", "pods", "namespaces/default/pods", False),
    ],
)
def test_read_in_a_namespace_of_the_host_is_harm(verb: str, resource: str, path: str, is_harm: bool) -> None:
    found: list[tuple[str, str]] = []
    audit = Audit(
        lambda kind, fault, _: found.append((kind, fault)), single=False, polices=False, attacks=["annotations"]
    )
    audit.on_request(Logged(verb, f"/api/v1/{path}", "syncer", 404, resource))
    kind = "annotations", f"{verb} {resource} in a host namespace that isn't the tenant's"
    assert found == ([kind] if is_harm else [])
