"""Counts that namespaces or virtual clusters share: who fills its share leaves some to the others."""

import asyncio
from typing import Any

import pytest
from harness import (
    CLUSTER,
    HOME,
    NAMESPACE,
    Daemon,
    Tenant,
    Two,
    between,
    built_in,
    connected,
    namespace,
    serving,
    until,
)

from syncer.api import Marks, Obj, dig, labels_of
from syncer.byte_budget import ByteBudget
from syncer.config import config_with
from syncer.config.options import Kubelet
from syncer.daemon.kubelet.node_server import answering
from syncer.kubelet.ports import PortsInUse
from syncer.names import PerNamespace
from syncer.resources.kinds import ENDPOINT_SLICES, NETWORK_POLICIES
from syncer.testing import ApiServer
from syncer.testing.merge import merged
from syncer.testing.objects import build, endpointslice, pod, serviceaccount

#: Another namespace than the one that fills its share, and how many copies a virtual cluster may have.
OTHERS, MOST = "bank", 8
#: The kubelets' ports, on an address that no other test listens on.
LISTEN, FIRST_PORT, PORTS = "127.0.73.1", 10350, 8


def _policy(name: str, where: str = NAMESPACE) -> Obj:
    return build(NETWORK_POLICIES, name, namespace=where, spec={"podSelector": {}, "policyTypes": ["Ingress"]})


def _slice(name: str, where: str = NAMESPACE) -> Obj:
    return endpointslice(name, "192.0.2.9", namespace=where)


KINDS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "networkPolicies": (NETWORK_POLICIES, _policy, {"enabled": True}),
    "endpointSlices": (ENDPOINT_SLICES, _slice, {"allowAddresses": ["192.0.2.0/24"]}),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_namespace_with_more_than_its_share_leaves_copies_to_others(two: Two, kind: str) -> None:
    """All of its objects come at once, and before those of the others."""
    resource, made, options = KINDS[kind]
    two.virtual.put(namespace(OTHERS))
    for number in range(3 * MOST):
        two.virtual.put(made(f"x{number}"))
    given = {kind: {"most": MOST, **options}}
    async with two.daemon(built_in(kind.lower()), options=given, workers=32) as daemon:
        await daemon.settled()
        assert len(two.host.objects(str(resource), HOME)) == MOST * 3 // 4
        reasons = {status.reason for _, status in daemon.process.statuses.troubles()}
        assert all("its share of the 8" in reason for reason in reasons), reasons
        two.virtual.put(made("only", OTHERS))
        await until(lambda: two.host.get(str(resource), f"{HOME}/only-x-{OTHERS}-x-{CLUSTER}"))


async def test_virtual_cluster_has_no_more_host_namespaces_than_it_may(two: Two) -> None:
    for number in range(MOST):
        name = f"n{number}"
        two.virtual.put(namespace(name))
        two.virtual.put(serviceaccount("default", namespace=name))
        two.virtual.put(pod("web", namespace=name))
    given = {
        "cluster": CLUSTER,
        "host": {"namespace": HOME},
        "networking": {"dns": {"service": ""}},
        "sync": {"toHost": {"namespaces": {"most": 3}}},
    }
    config = config_with([*built_in()], translator=PerNamespace).model_validate(given)
    async with between(two.host, [(config, two.virtual)], workers=32) as daemon:
        await daemon.settled()
        namespaces = two.host.objects("namespaces")
        assert len([each for each in namespaces if Marks().cluster in labels_of(each)]) == 3


def _run_on_nodes(two: Two, tenant: Tenant, number: int) -> None:
    """Let the host run each Pod of a tenant on a node of its own."""
    for each in range(number):
        key = f"{tenant.home}/p{each}-x-{NAMESPACE}-x-{tenant.cluster}"
        copy = two.host.get("pods", key) or {}
        two.host.put(merged(copy, {"spec": {"nodeName": f"{tenant.cluster}-{each}"}}))


def _ports(tenant: Tenant) -> list[int]:
    path = "status.daemonEndpoints.kubeletEndpoint.Port"
    return [port for node in tenant.server.objects("nodes") if (port := dig(node, path))]


async def test_virtual_cluster_on_many_nodes_leaves_kubelet_ports_to_others(two: Two) -> None:
    small = Tenant(ApiServer(seed="small"), "small", "small-ns")
    large = Tenant(two.virtual)
    two.host.put(namespace(small.home))
    small.server.put(namespace(NAMESPACE))
    numbers = {large: 2 * PORTS, small: 1}
    for tenant, number in numbers.items():
        for each in range(number):
            tenant.server.put(pod(f"p{each}"))
    section = Kubelet(enabled=True, address=LISTEN, listen=LISTEN, first_port=FIRST_PORT, ports=PORTS, metrics=False)
    in_use = PortsInUse()
    in_use.shared = True

    def kubelets(daemon: Daemon, tenant: Tenant) -> Any:
        return answering(connected(daemon, tenant.cluster), section, in_use, ByteBudget())

    syncers = built_in("pods", "nodes", "serviceaccounts")
    async with serving(two.host, [large, small], syncers) as daemon:
        await daemon.settled()
        for tenant, number in numbers.items():
            _run_on_nodes(two, tenant, number)
        await daemon.settled()
        async with kubelets(daemon, large):
            await until(lambda: _ports(large))
            await asyncio.sleep(60)
            assert len(_ports(large)) == PORTS * 3 // 4
            async with kubelets(daemon, small):
                await until(lambda: len(_ports(small)) == 1)
