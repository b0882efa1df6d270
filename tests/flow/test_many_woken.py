"""One change that concerns many objects: what they have in common is worked out once."""

from collections.abc import Mapping
from typing import Any

import pytest
from harness import NAMESPACE, Two, built_in, host_path, namespace, until

from syncer.api import Context, Json, Obj, Resource, Side, labels_of, selectors
from syncer.engine.reconcile.controller import Reads
from syncer.resources.endpointslices import EndpointSliceSyncer
from syncer.resources.kinds import NETWORK_POLICIES, PODS
from syncer.testing.merge import merged
from syncer.testing.objects import build, endpointslice, pod, service

ISOLATED = "vsyncer.dev/isolated-ingress"
SLICES = "endpointslices.discovery.k8s.io"
ADDRESS = "10.9.0.7"


async def test_changed_policy_is_compared_once_for_pods_with_equal_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    selected = {"matchLabels": {"app": "once"}}
    compared: list[Json] = []
    matches = selectors.matches

    def count(selector: Mapping[str, Json] | None, labels: selectors.Labels) -> bool:
        if selector == selected:
            compared.append(selector)
        return matches(selector, labels)

    names = [f"web-{number}" for number in range(50)]
    two = Two()
    for name in names:
        two.virtual.put(pod(name, metadata={"labels": {"app": "once", "pod-name": name}}))

    def is_isolated(name: str) -> bool:
        return ISOLATED in labels_of(two.copy("pods", name) or {"metadata": {}})

    options = {"networkPolicies": {"enabled": True}}
    async with two.daemon(built_in("pods", "serviceaccounts", "networkpolicies"), options=options) as daemon:
        await until(lambda: all(two.copy("pods", name) for name in names))
        monkeypatch.setattr(selectors, "matches", count)
        spec = {"podSelector": selected, "policyTypes": ["Ingress"]}
        two.virtual.put(build(NETWORK_POLICIES, "walls", namespace=NAMESPACE, spec=spec))
        await until(lambda: all(map(is_isolated, names)))
        await daemon.settled()
    assert len(compared) <= 1


async def test_address_that_many_slices_have_is_looked_up_once_in_each_and_in_its_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = [f"192.0.2.{number}" for number in range(20)]
    names = [f"db-{number}" for number in range(20)]
    looked_up: list[str] = []
    decided: list[Obj] = []
    indexed = Reads.indexed
    translate = EndpointSliceSyncer.translate

    def count(reads: Reads, side: Side, resource: Resource, index: str, value: str) -> Any:
        if (resource, index) == (PODS, "address"):
            looked_up.append(value)
        return indexed(reads, side, resource, index, value)

    def decide(syncer: EndpointSliceSyncer, ctx: Context[Any], virtual: Obj) -> Obj:
        decided.append(virtual)
        return translate(syncer, ctx, virtual)

    two = Two()
    two.virtual.put(namespace(NAMESPACE))
    two.virtual.put(service("db", spec={"selector": None}))
    two.virtual.put(pod("db"))
    for name in names:
        two.virtual.put(endpointslice(name, ADDRESS, *others, service="db"))

    def has_address(name: str) -> bool:
        endpoints = (two.copy(SLICES, name) or {"endpoints": []})["endpoints"]
        return [ADDRESS] in [endpoint["addresses"] for endpoint in endpoints]

    options = {"endpointSlices": {"allowAddresses": ["192.0.2.0/24"]}}
    async with two.daemon(built_in("pods", "serviceaccounts", "services", "endpointslices"), options=options) as daemon:
        await until(lambda: two.copy("pods", "db") and all(two.copy(SLICES, name) for name in names))
        await daemon.settled()
        monkeypatch.setattr(Reads, "indexed", count)
        monkeypatch.setattr(EndpointSliceSyncer, "translate", decide)
        status = {"phase": "Running", "podIP": ADDRESS, "podIPs": [{"ip": ADDRESS}]}
        two.host.put(merged(two.host.get("pods", host_path("db")) or {}, {"status": status}))
        await until(lambda: all(map(has_address, names)))
        await daemon.settled()
    assert len(decided) >= len(names)
    assert len(looked_up) <= len(decided) * 2 * (1 + len(others))
