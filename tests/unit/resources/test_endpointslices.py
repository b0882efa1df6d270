"""EndpointSlices: which addresses of a tenant's reach the host."""

from typing import Any

import pytest
from pydantic import ValidationError

from syncer.api import Obj, Refused, Resource, Side
from syncer.engine.reconcile.controller import Reads
from syncer.resources.endpointslices import EndpointSliceConfig
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import endpointslice, host_copy, pod

COPY = "vc-ns/db-1-x-shop-x-vc"


def running(name: str, *addresses: str, **parts: Any) -> Obj:
    """Return the host copy of a Pod that runs."""
    status = {"phase": "Running", "podIP": addresses[0], "podIPs": [{"ip": each} for each in addresses]}
    return merged(host_copy(pod(name), spec=pod(name)["spec"], status=status), parts)


def addresses(world: World) -> list[str]:
    """Return the addresses in the copy of the slice ``db-1``."""
    copy = world.host("EndpointSlice", COPY) or {}
    return [address for endpoint in copy["endpoints"] for address in endpoint["addresses"]]


def warning(world: World) -> str:
    decision = world.decide("endpointslices", "shop/db-1")
    return decision.warning.message if decision.warning else ""


@pytest.mark.parametrize(
    ("of_host", "why"),
    [
        (running("db", "10.9.0.4", spec={"hostNetwork": True}), "the address of a node"),
        (running("db", "10.9.0.4", status={"phase": "Failed"}), "a Pod that has ended, whose address others may get"),
        (running("db", "10.9.0.4", metadata={"labels": {"vsyncer.dev/cluster": "vc.other"}}), "another tenant's Pod"),
        (running("db", "10.9.0.4", metadata={"annotations": {"vsyncer.dev/host-name": "x"}}), "a copy of a copy"),
        (running("db", "10.9.0.4", metadata={"labels": None, "annotations": None}), "a Pod of the host"),
        (running("db", "10.9.0.44"), "another address that begins like it"),
    ],
)
def test_address_is_left_out_unless_one_of_the_tenants_pods_has_it(world: World, of_host: Obj, why: str) -> None:
    world.given(virtual=[endpointslice("db-1", "10.9.0.4")], host=[of_host]).settle("endpointslices", "shop/db-1")
    assert addresses(world) == [], why


def test_address_of_a_virtual_pod_alone_counts_for_nothing(world: World) -> None:
    """A tenant may write any address into the status of their Pod."""
    mine = pod("db", status={"phase": "Running", "podIPs": [{"ip": "10.9.0.4"}]})
    world.given(virtual=[endpointslice("db-1", "10.9.0.4"), mine]).settle("endpointslices", "shop/db-1")
    assert addresses(world) == []


def test_address_is_compared_whatever_its_form(world: World) -> None:
    six = endpointslice("db-1", "2001:DB8:0::1", addressType="IPv6")
    world.given(virtual=[six], host=[running("db", "10.9.0.4", "2001:db8::1")]).settle("endpointslices", "shop/db-1")
    assert addresses(world) == ["2001:DB8:0::1"]


def test_address_in_an_allowed_range_is_copied(world: World) -> None:
    world.configure({"sync": {"toHost": {"endpointSlices": {"allowAddresses": ["192.0.2.0/28", "2001:db8::/64"]}}}})
    virtual = endpointslice("db-1", "192.0.2.15", "192.0.2.16", "2001:db8::9", "db.example.org")
    world.given(virtual=[virtual]).settle("endpointslices", "shop/db-1")
    assert addresses(world) == ["192.0.2.15", "2001:db8::9"]


@pytest.mark.parametrize(
    ("ranges", "address", "is_allowed"),
    [
        (["192.0.2.0/25", "192.0.2.128/25"], "192.0.2.0", True),
        (["192.0.2.0/25", "192.0.2.128/25"], "192.0.2.255", True),
        (["192.0.2.0/28", "192.0.2.32/28"], "192.0.2.16", False),
        (["192.0.2.0/28", "192.0.2.32/28"], "192.0.2.47", True),
        (["192.0.2.0/28", "192.0.2.32/28"], "192.0.2.48", False),
        (["192.0.2.0/24", "192.0.2.8/29"], "192.0.2.200", True),
        (["192.0.2.0/24"], "192.0.1.255", False),
        (["192.0.2.0/24"], "192.0.2.256", False),
        (["192.0.2.0/24"], "192.0.2.7\0", False),
        (["192.0.2.0/24"], "::ffff:192.0.2.7", False),
        (["0.0.0.0/0"], "2001:db8::1", False),
        (["::/0"], "192.0.2.7", False),
        (["2001:db8::/64"], "2001:DB8:0::FFFF", True),
        (["2001:db8::/64"], "2001:db8:0:1::", False),
        (["fe80::/10"], "fe80::1%eth0", False),
        (["fe80::/10"], "fe80::1" + "0" * 100, False),
    ],
)
def test_address_is_allowed_if_a_range_has_it(ranges: list[str], address: str, is_allowed: bool) -> None:
    assert (address in EndpointSliceConfig.model_validate({"allowAddresses": ranges}).ranges) == is_allowed


def test_each_address_is_looked_up_once_in_the_slice_and_once_in_its_copy(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = range(50)
    slice_ = endpointslice(
        "db-1",
        endpoints=[
            {"addresses": [f"10.9.0.{number}"], "targetRef": {"kind": "Pod", "name": f"db-{number}"}}
            for number in numbers
        ],
    )
    world.given(virtual=[slice_], host=[running(f"db-{number}", f"10.9.0.{number}") for number in numbers])
    world.settle("endpointslices", "shop/db-1")
    looked_up: list[str] = []
    indexed = Reads.indexed

    def count(reads: Reads, side: Side, resource: Resource, index: str, value: str) -> Any:
        if index == "address":
            looked_up.append(value)
        return indexed(reads, side, resource, index, value)

    monkeypatch.setattr(Reads, "indexed", count)
    assert world.settle("endpointslices", "shop/db-1") == []
    assert len(looked_up) <= 2 * len(numbers)


def test_only_the_first_address_of_an_endpoint_counts(world: World) -> None:
    virtual = endpointslice("db-1", endpoints=[{"addresses": ["10.9.0.5", "10.9.0.4"]}])
    world.given(virtual=[virtual], host=[running("db", "10.9.0.4")]).settle("endpointslices", "shop/db-1")
    assert addresses(world) == []


def test_tenant_reads_which_addresses_are_left_out(world: World) -> None:
    world.given(virtual=[endpointslice("db-1", *(f"10.9.0.{n}" for n in range(6)))], host=[running("db", "10.9.0.4")])
    assert warning(world).startswith("nothing reaches 10.9.0.0, 10.9.0.1, 10.9.0.2 and 2 more through the Service")


def test_tenant_reads_nothing_while_all_are_copied(world: World) -> None:
    world.given(virtual=[endpointslice("db-1", "10.9.0.4")], host=[running("db", "10.9.0.4")])
    assert warning(world) == ""


def test_target_of_an_endpoint_stays_behind(world: World) -> None:
    """It would name an object of the host."""
    target = {"kind": "Pod", "namespace": "kube-system", "name": "dns"}
    virtual = endpointslice("db-1", endpoints=[{"addresses": ["10.9.0.4"], "targetRef": target}])
    world.given(virtual=[virtual], host=[running("db", "10.9.0.4")]).settle("endpointslices", "shop/db-1")
    assert (world.host("EndpointSlice", COPY) or {})["endpoints"] == [{"addresses": ["10.9.0.4"]}]


@pytest.mark.reason("NoServiceNamed")
def test_slice_of_no_service_has_no_copy(world: World) -> None:
    virtual = endpointslice("db-1", metadata={"labels": {"kubernetes.io/service-name": None}})
    decision = world.given(virtual=[virtual]).decide("endpointslices", "shop/db-1")
    assert (decision.writes, decision.reason) == ((), "no label kubernetes.io/service-name names its Service")


@pytest.mark.reason("TooManySlices")
def test_slices_beyond_the_bound_are_refused(world: World) -> None:
    world.configure({"sync": {"toHost": {"endpointSlices": {"most": 1}}}})
    world.given(virtual=[endpointslice("db-1"), endpointslice("db-2")]).settle("endpointslices", "shop/db-1")
    with pytest.raises(Refused, match="its share of the 1 EndpointSlices for Services without selector"):
        world.decide("endpointslices", "shop/db-2")
    world.given(virtual=[endpointslice("db-1", ports=[])]).settle("endpointslices", "shop/db-1")
    assert (world.host("EndpointSlice", COPY) or {})["ports"] == []


def test_slices_that_the_host_makes_for_copied_services_do_not_count(world: World) -> None:
    """They have the labels of the Service, and so our mark."""
    world.configure({"sync": {"toHost": {"endpointSlices": {"most": 1}}}})
    labels = {"labels": {"vsyncer.dev/cluster": "vc.vc-ns"}}
    made = endpointslice("web-x-shop-x-vc-7b2qk", namespace="vc-ns", metadata=labels)
    world.given(virtual=[endpointslice("db-1")], host=[made]).settle("endpointslices", "shop/db-1")
    assert world.host("EndpointSlice", COPY)


@pytest.mark.parametrize("given", ["10.0.0.0/33", "10.0.0.1/8", "nodes", ""])
def test_range_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(ValidationError, match=r"expected a range of addresses, such as 192\.0\.2\.0/24"):
        EndpointSliceConfig.model_validate({"allowAddresses": [given]})
