"""What a copy gives is taken out of it when it ends, whatever its tenant has done to the original.

The host's nodes, load balancers and ingress controllers connect to each address of an EndpointSlice, and an
address of a Pod that has ended is soon that of another tenant's.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from custom_scene import there
from harness import HOME, Daemon, Tenant, Two, serving, until, writes
from patrol_scene import in_step, scanned
from test_pause import annotate, pause_cluster

from kube_envtest import Rule
from syncer.api import Key, Obj, SyncRequest
from syncer.cache.parts import MOST_KEYS, MOST_PARTS
from syncer.engine.reconcile.controller import BoundSyncer
from syncer.engine.reconcile.plan import Plan
from syncer.engine.reconcile.reconciler import Reconciler
from syncer.testing.merge import merged
from syncer.testing.objects import endpointslice, namespace, pod, service

#: Everything is here, as the Service that EndpointSlices are excluded for is.
HERE = "default"
SLICES = "endpointslices.discovery.k8s.io"
ORIGINAL, COPY = f"{HERE}/db-1", f"{HOME}/db-1-x-{HERE}-x-vc"
POD, HOST_POD = f"{HERE}/db-0", f"{HOME}/db-0-x-{HERE}-x-vc"
ADDRESS, OTHER = "10.9.0.7", "10.9.0.8"
MANY = {f"note-{number}": "" for number in range(MOST_KEYS + 1)}


def change(two: Two, **parts: Any) -> Obj:
    return two.virtual.put(merged(there(two.virtual, SLICES, ORIGINAL), parts))


def unreadable(body: bytes) -> bytes:
    """Return a response, or a line of a watch, in which the slices have labels of a wrong type."""
    whole = json.loads(body)
    for obj in whole.get("items") or [whole.get("object", whole)]:
        if obj.get("metadata", {}).get("name") == "db-1":
            obj["metadata"]["labels"] = ["a"]
    return json.dumps(whole).encode()


def spoil(two: Two) -> None:
    for verb in ("list", "watch"):
        two.virtual.faults.add(Rule(verb=verb, resource="endpointslices", rewrite=unreadable))
    change(two, metadata={"annotations": {"a": "b"}})


def service_name(name: str) -> Mapping[str, Any]:
    return {"labels": {"kubernetes.io/service-name": name}}


#: What a tenant does to keep the copy as it is.
FREEZES: Mapping[str, Callable[[Two], object]] = {
    "nothing": lambda two: None,
    "pauses the slice": lambda two: annotate(two.virtual, SLICES, ORIGINAL),
    "pauses its namespace": lambda two: annotate(two.virtual, "namespaces", HERE),
    "pauses the syncer": lambda two: pause_cluster(two, "endpointslices"),
    "pauses the virtual cluster": pause_cluster,
    "makes the slice too large": lambda two: change(two, metadata={"annotations": MANY}),
    "makes the slice as large as it may be": lambda two: change(
        two, metadata={"annotations": dict(list(MANY.items())[:MOST_KEYS])}
    ),
    "has the slice excluded": lambda two: change(two, metadata=service_name("kubernetes")),
    "names a Service that is not there": lambda two: change(two, metadata=service_name("nowhere")),
    "lets it be no Service's": lambda two: change(two, metadata=service_name("")),
    "makes the slice unreadable": spoil,
    "pauses it and names other addresses": lambda two: (
        annotate(two.virtual, SLICES, ORIGINAL),
        change(two, endpoints=[{"addresses": ["192.0.2.1"]}]),
    ),
}


def addresses(two: Two) -> list[str]:
    """Return the addresses in the copy; none if there is no copy."""
    copy = two.host.get(SLICES, COPY) or {}
    return [address for endpoint in copy.get("endpoints") or () for address in endpoint["addresses"]]


def run(two: Two, name: str, address: str) -> None:
    """Run a Pod as the host's scheduler and kubelet do."""
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
    key = f"{HOME}/{name}-x-{HERE}-x-vc"
    two.host.put(merged(there(two.host, "pods", key), {"spec": {"nodeName": "n1"}, "status": status}))


def given(two: Two) -> None:
    two.virtual.put(namespace(HERE))
    two.virtual.put(service("db", namespace=HERE, spec={"selector": None}))
    target = {"kind": "Pod", "namespace": HERE, "name": "db-0"}
    endpoints = [{"addresses": [ADDRESS], "targetRef": target}, {"addresses": [OTHER]}]
    two.virtual.put(endpointslice("db-1", service="db", namespace=HERE, endpoints=endpoints))
    for name in ("db-0", "other"):
        two.virtual.put(pod(name, namespace=HERE))


async def led(two: Two, daemon: Daemon) -> None:
    """Let the copy of the slice lead to two Pods that run."""
    await until(lambda: two.host.get("pods", HOST_POD) and two.host.get("pods", f"{HOME}/other-x-{HERE}-x-vc"))
    run(two, "db-0", ADDRESS)
    run(two, "other", OTHER)
    await until(lambda: addresses(two) == [ADDRESS, OTHER])
    await daemon.settled()


def end(two: Two) -> None:
    """End a Pod on both sides, as its tenant and the host's kubelet do."""
    two.virtual.delete("pods", POD)
    if two.host.get("pods", HOST_POD):
        two.host.delete("pods", HOST_POD)


@pytest.mark.parametrize("freeze", FREEZES.values(), ids=FREEZES)
async def test_address_of_a_pod_that_ends_leaves_the_copy_within_a_second(
    two: Two, freeze: Callable[[Two], object]
) -> None:
    given(two)
    async with two.daemon() as daemon:
        await led(two, daemon)
        freeze(two)
        await daemon.settled()
        end(two)
        assert await until(lambda: ADDRESS not in addresses(two)) < 1
        await daemon.settled()
        since = len(two.host.requests)
        run(two, "other", "10.9.0.9")
        assert await until(lambda: OTHER not in addresses(two)) < 1
        await daemon.settled()
        assert len(writes(two.host, since)) <= 2, "each change of the facts takes a write"


@pytest.mark.parametrize("freeze", FREEZES.values(), ids=FREEZES)
async def test_address_of_a_pod_that_ended_while_no_daemon_ran_leaves_the_copy(
    two: Two, freeze: Callable[[Two], object]
) -> None:
    given(two)
    async with two.daemon() as daemon:
        await led(two, daemon)
        freeze(two)
        await daemon.settled()
    end(two)
    async with two.daemon() as daemon:
        assert await until(lambda: ADDRESS not in addresses(two)) < 5
        await daemon.settled()
        assert two.host.get(SLICES, COPY) is None or addresses(two) in ([OTHER], [])


@pytest.mark.parametrize("freeze", ["pauses the slice", "makes the slice too large", "has the slice excluded"])
async def test_frozen_slice_follows_its_original_again_once_it_may(two: Two, freeze: str) -> None:
    given(two)
    before = there(two.virtual, SLICES, ORIGINAL)
    async with two.daemon() as daemon:
        await led(two, daemon)
        FREEZES[freeze](two)
        await daemon.settled()
        end(two)
        await until(lambda: ADDRESS not in addresses(two))
        change(two, ports=[])
        await daemon.settled()
        assert there(two.host, SLICES, COPY)["ports"], "it is frozen"
        two.virtual.put({**before, "ports": [], "endpoints": [{"addresses": [OTHER]}]})
        await until(lambda: not there(two.host, SLICES, COPY)["ports"])
        assert addresses(two) == [OTHER]


async def test_range_that_the_operator_allows_no_longer_leaves_a_paused_slice(two: Two) -> None:
    allowed = {"endpointSlices": {"allowAddresses": ["192.0.2.0/24"]}}
    given(two)
    change(two, endpoints=[{"addresses": ["192.0.2.1"]}])
    async with two.daemon(options=allowed) as daemon:
        await until(lambda: addresses(two) == ["192.0.2.1"])
        annotate(two.virtual, SLICES, ORIGINAL)
        await daemon.settled()
    async with two.daemon() as daemon:
        await until(lambda: addresses(two) == [])
        await daemon.settled()
        [event] = [each for each in two.virtual.objects("events") if each["reason"] == "GrantRevoked"]
        assert "in endpoints: it was taken out" in event["message"]


async def test_pod_that_is_too_large_to_be_read_gives_no_address(two: Two) -> None:
    """Its tenant may make it so by conditions of readiness gates; its end is then unknown."""
    many = [{"type": f"example.org/c{number}", "status": "True"} for number in range(MOST_PARTS // 4)]
    given(two)
    async with two.daemon() as daemon:
        await led(two, daemon)
        copy = there(two.host, "pods", HOST_POD)
        two.host.put(merged(copy, {"status": {"conditions": many}}))
        assert await until(lambda: addresses(two) == [OTHER]) < 1
        two.host.put(merged(there(two.host, "pods", HOST_POD), {"status": {"conditions": many[:1]}}))
        assert await until(lambda: addresses(two) == [ADDRESS, OTHER]) < 1


async def test_ignored_drift_does_not_let_a_copy_keep_an_address(two: Two) -> None:
    """Such a policy leaves alone what the host has changed in a copy; here the facts have changed."""
    drift = dict.fromkeys(("missing", "orphan", "wrongOwner", "field", "metadata", "status"), "ignore")
    tenant = Tenant(two.virtual, options={"endpointSlices": {"drift": drift}})
    given(two)
    async with serving(two.host, [tenant]) as daemon:
        await led(two, daemon)
        annotate(two.virtual, SLICES, ORIGINAL)
        await daemon.settled()
        end(two)
        assert await until(lambda: addresses(two) == [OTHER]) < 1


async def test_scan_decides_once_about_a_grant_whose_request_fails(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    decided: list[Key] = []
    scan = Reconciler.scan

    def counted(reconciler: Reconciler, controller: BoundSyncer, request: SyncRequest) -> Plan:
        decided.append(request.key)
        return scan(reconciler, controller, request)

    given(two)
    async with in_step(two) as daemon:
        await led(two, daemon)
        refused = two.host.faults.add(Rule(verb="patch", resource="endpointslices", status=500))
        end(two)
        await until(lambda: daemon.requests("endpointslices"))
        with monkeypatch.context() as patch:
            patch.setattr(Reconciler, "scan", counted)
            found = await scanned(daemon, "endpointslices", fresh=False)
        assert [finding.drift.revokes for finding in found.findings] == [True]
        assert decided == [Key(HERE, "db-1")] * 3, "for the scan, after the grace period, and after the repair"
        two.host.faults.remove(refused)
        assert await until(lambda: addresses(two) == [OTHER]) < 200


async def test_copy_paused_by_the_operator_keeps_its_addresses(two: Two) -> None:
    given(two)
    async with two.daemon() as daemon:
        await led(two, daemon)
        annotate(two.host, SLICES, COPY)
        end(two)
        await daemon.settled()
        assert addresses(two) == [ADDRESS, OTHER]
        annotate(two.host, SLICES, COPY, None)
        assert await until(lambda: addresses(two) == [OTHER]) < 1


async def test_address_that_a_patch_of_the_operator_adds_stays(two: Two) -> None:
    added = {"op": "add", "path": "/endpoints/-", "value": {"addresses": ["198.51.100.1"]}}
    patched = {"endpointSlices": {"patches": {"down": [added]}}}
    given(two)
    async with two.daemon(options=patched) as daemon:
        await until(lambda: "198.51.100.1" in addresses(two))
        await daemon.settled()
        since = len(two.host.requests)
        run(two, "other", OTHER)
        await until(lambda: sorted(addresses(two)) == sorted([OTHER, "198.51.100.1"]))
        await daemon.settled()
        annotate(two.virtual, SLICES, ORIGINAL)
        two.host.put(merged(there(two.host, "pods", f"{HOME}/other-x-{HERE}-x-vc"), {"status": {"phase": "Failed"}}))
        await until(lambda: addresses(two) == ["198.51.100.1"])
        await daemon.settled()
        assert len(writes(two.host, since)) < 10


async def test_unreadable_copy_is_deleted_and_recreated(two: Two) -> None:
    """Only the host's operator makes it so large."""
    given(two)
    async with two.daemon() as daemon:
        await led(two, daemon)
        first = there(two.host, SLICES, COPY)["metadata"]["uid"]
        two.host.put(merged(there(two.host, SLICES, COPY), {"metadata": {"annotations": MANY | _more()}}))
        await until(lambda: addresses(two) and there(two.host, SLICES, COPY)["metadata"]["uid"] != first)
        await daemon.settled()
        assert addresses(two) == [ADDRESS, OTHER]


def _more() -> Obj:
    return {f"further-{number}": "" for number in range(200)}
