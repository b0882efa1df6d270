"""Counts that tenants, or the namespaces of a tenant, share: who asks for all leaves some to the others."""

from collections.abc import Callable
from typing import Any

import pytest
from hostile_chaos.fleet import Fleet, listed
from hostile_scene import NAMESPACE, OTHERS, HostileScene, eventually
from kubelet_client import KubeletClient

from syncer.api import Marks, Obj, annotations_of, dig, labels_of
from syncer.resources.kinds import ENDPOINT_SLICES, NETWORK_POLICIES
from syncer.testing.objects import build, endpointslice, namespace, pod, serviceaccount

#: The most copies of a kind, host namespaces, or kubelet ports, of which one may have three quarters beside others.
MOST = 8
SHARE = MOST * 3 // 4


def _policy(name: str, home: str) -> Obj:
    return build(NETWORK_POLICIES, name, namespace=home, spec={"podSelector": {}, "policyTypes": ["Ingress"]})


def _slice(name: str, home: str) -> Obj:
    return endpointslice(name, "192.0.2.9", namespace=home)


#: A kind of which a virtual cluster may have so many: its resource, an object, and the options.
KINDS: dict[str, tuple[Any, Callable[[str, str], Obj], dict[str, Any]]] = {
    "networkPolicies": (NETWORK_POLICIES, _policy, {"enabled": True}),
    "endpointSlices": (ENDPOINT_SLICES, _slice, {"allowAddresses": ["192.0.2.0/24"]}),
}


@pytest.mark.translators("single-namespace", reason="a share is counted alike with any of them")
def test_namespace_takes_no_copies_that_others_may_have(hostile: HostileScene) -> None:
    """Before, the policy of the other namespace was refused, and its Pods were closed to all."""
    options = {kind: {"most": MOST, **given} for kind, (_, _, given) in KINDS.items()}
    hostile.start(sync={"toHost": options})
    for _, made, _ in KINDS.values():
        for number in range(2 * MOST):
            hostile.tenant.put(made(f"greedy-{number}", NAMESPACE))
    hostile.serves_others()
    hostile.quiet()
    for resource, made, _ in KINDS.values():
        copies = [each for each in hostile.operator.objects(resource) if Marks().name in annotations_of(each)]
        assert len(copies) == SHARE
        hostile.copied(hostile.tenant.put(made("only", OTHERS)))


@pytest.mark.translators("per-namespace", reason="no other makes host namespaces for a tenant")
def test_tenant_has_no_more_host_namespaces_than_the_operator_allows(hostile: HostileScene) -> None:
    """Before, each further namespace brought the whole quota once more."""
    hostile.start(sync={"toHost": {"namespaces": {"most": MOST, "quota": {"hard": {"pods": "5"}}}}})
    hostile.serves_others()
    names = [f"greedy-{number}" for number in range(2 * MOST)]
    for name in names:
        hostile.tenant.put(namespace(name))
        hostile.tenant.put(serviceaccount("default", namespace=name))
        hostile.tenant.put(pod("web", namespace=name))
    reason = "TooManyNamespaces"
    eventually(lambda: any(each["reason"] == reason for each in hostile.tenant.objects("events")), reason)
    hostile.serves_others()
    hostile.quiet()
    made = [each for each in hostile.operator.objects("namespaces") if Marks().cluster in labels_of(each)]
    assert len(made) == MOST
    assert len(hostile.operator.objects("resourcequotas")) == MOST


@pytest.mark.translators("single-namespace", reason="ports are the same with any of them")
def test_virtual_cluster_takes_no_kubelet_ports_that_others_may_have(hostile: HostileScene) -> None:
    """Before, the Node of the other tenant had no port: no logs and no exec."""
    fleet = Fleet(hostile.folder / "fleet", hostile.operator, lambda *fault: None)
    with fleet.closing():
        kubelet = KubeletClient().section(MOST)
        hostile.start(**fleet.sections(listed(hostile)), kubelet=kubelet)
        greedy = [hostile.tenant.put(pod(f"greedy-{number}")) for number in range(2 * MOST)]
        for each in greedy:
            copy = hostile.copied(each)
            hostile.operator.change(copy, {"spec": {"nodeName": each["metadata"]["name"]}})
        path = "status.daemonEndpoints.kubeletEndpoint.Port"

        def ports() -> set[int]:
            return {port for node in hostile.tenant.objects("nodes") if (port := dig(node, path))}

        eventually(
            lambda: len(hostile.tenant.objects("nodes")) == 2 * MOST and len(ports()) >= SHARE, "there are Nodes"
        )
        hostile.quiet()
        assert len(ports()) == SHARE
        fleet.settle()
        eventually(fleet.has_port, "the Node of another tenant has a port")
        assert len(ports()) == SHARE
