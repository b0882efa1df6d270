"""The ranges of ClusterIPs: from ServiceCIDRs, or from the refusal of an address."""

from collections.abc import Iterator, Sequence
from ipaddress import ip_network
from typing import Any

import pytest

from kube_envtest import virtual_time
from syncer.api import (
    ClusterError,
    Denied,
    Forbidden,
    Invalid,
    Key,
    NotFound,
    Obj,
    QuotaExceeded,
    Resource,
    Side,
    Unreachable,
)
from syncer.clusters.client import SideClient
from syncer.clusters.dry_run import DryRun
from syncer.resources.kinds import SELF_ACCESS_REVIEWS, SERVICES
from syncer.resources.service_ranges import (
    IMPOSSIBLE,
    SERVICE_CIDRS,
    Network,
    are_within,
    outermost,
    service_ranges,
)
from syncer.testing import ApiServer

IPV4, IPV6 = IMPOSSIBLE.values()
NOT_IPV6 = "spec.clusterIPs[0]: Invalid value: IPv6 is not configured on this cluster"


def refusal(address: str, cidr: str) -> Invalid:
    why = f"the provided IP ({address}) is not in the valid range. The range of valid IPs is {cidr}"
    return Invalid(f'Service "x" is invalid: spec.clusterIPs: failed to allocate IP {address}: {why}', status=422)


class Asked:
    """An API server that lists ServiceCIDRs, and answers dry runs in turn for each address."""

    def __init__(self, listed: "Sequence[Obj] | ClusterError", refused: dict[str, Sequence[Any]]) -> None:
        self._listed, self.tried = listed, list[Obj]()
        self._refused = {address: _again(answers) for address, answers in refused.items()}

    async def list(self, resource: Resource, *, namespace: str = "", selector: str = "") -> Sequence[Obj]:
        assert resource == SERVICE_CIDRS
        assert self._listed is not NO_RIGHT, "it isn't asked for what is not allowed"
        if isinstance(self._listed, ClusterError):
            raise self._listed
        return self._listed

    async def try_create(self, resource: Resource, obj: Obj) -> Obj:
        self.tried.append(obj)
        answer = next(self._refused[obj["spec"]["clusterIP"]])
        if isinstance(answer, Exception):
            raise answer
        return obj

    async def get(self, resource: Resource, key: Key) -> Obj:
        raise AssertionError("nothing is read")

    async def create(self, resource: Resource, obj: Obj) -> Obj:
        assert resource == SELF_ACCESS_REVIEWS
        return {**obj, "status": {"allowed": self._listed is not NO_RIGHT}}

    async def patch(self, resource: Resource, key: Key, patch: Obj) -> Obj:
        raise AssertionError("nothing is written")

    async def delete(self, resource: Resource, key: Key, *, uid: str | None = None) -> Obj | None:
        raise AssertionError("nothing is written")

    def kubernetes_client(self) -> Any:
        raise AssertionError("our own client asks")


def _again(answers: Sequence[Any]) -> Iterator[Any]:
    while True:
        yield from answers


def service_cidr(*cidrs: str, ready: str = "True") -> Obj:
    conditions = [{"type": "Ready", "status": ready}]
    return {"metadata": {"name": "x"}, "spec": {"cidrs": list(cidrs)}, "status": {"conditions": conditions}}


def networks(*texts: str) -> tuple[Network, ...]:
    return tuple(map(ip_network, texts))


OLD = NotFound("the server could not find the requested resource", status=404)
NO_RIGHT = Forbidden("servicecidrs is forbidden", status=403)


@pytest.mark.parametrize(
    ("listed", "refused", "expected"),
    [
        ([service_cidr("10.96.0.0/16", "fd00:96::/112")], {}, ("10.96.0.0/16", "fd00:96::/112")),
        ([service_cidr("10.96.0.0/16"), service_cidr("10.99.0.0/24")], {}, ("10.96.0.0/16", "10.99.0.0/24")),
        ([service_cidr("10.96.0.0/16"), service_cidr("10.99.0.0/24", ready="False")], {}, ("10.96.0.0/16",)),
        ([service_cidr("10.96.0.0/16"), service_cidr("10.96.7.0/24")], {}, ("10.96.0.0/16",)),
        (OLD, {IPV4: [refusal(IPV4, "10.96.0.0/12")], IPV6: [Invalid(NOT_IPV6)]}, ("10.96.0.0/12",)),
        (
            NO_RIGHT,
            {IPV4: [refusal(IPV4, "10.96.0.0/12")], IPV6: [refusal(IPV6, "fd00:96::/108")]},
            ("10.96.0.0/12", "fd00:96::/108"),
        ),
        (
            NO_RIGHT,
            {IPV4: [refusal(IPV4, "10.96.0.0/16"), refusal(IPV4, "10.99.0.0/24")], IPV6: [Invalid(NOT_IPV6)]},
            ("10.96.0.0/16", "10.99.0.0/24"),
        ),
        (NO_RIGHT, {IPV4: [NO_RIGHT], IPV6: [NO_RIGHT]}, ()),
        (NO_RIGHT, {IPV4: [QuotaExceeded("full")], IPV6: [QuotaExceeded("full")]}, ()),
        (NO_RIGHT, {IPV4: [Denied("no dry runs")], IPV6: [Denied("no dry runs")]}, ()),
        (NO_RIGHT, {IPV4: [Unreachable("a webhook failed", status=500)], IPV6: [None]}, ()),
    ],
)
def test_ranges_are_listed_or_else_named_by_a_refusal(
    listed: Any, refused: dict[str, Sequence[Any]], expected: tuple[str, ...]
) -> None:
    asked = Asked(listed, refused)
    assert virtual_time.run(service_ranges(asked, "vc-ns", {"mark": "vc"})) == networks(*expected)
    assert {each["metadata"]["namespace"] for each in asked.tried} <= {"vc-ns"}
    assert all(each["metadata"]["labels"] == {"mark": "vc"} for each in asked.tried)


def test_ranges_are_asked_for_again_where_nothing_answers() -> None:
    with pytest.raises(Unreachable):
        virtual_time.run(service_ranges(Asked(NO_RIGHT, {IPV4: [Unreachable("no answer")]}), "vc-ns"))


async def test_ranges_of_an_api_server_are_read_in_a_dry_run_too() -> None:
    recorded = DryRun(ApiServer().transport())
    for transport in (ApiServer().transport(), recorded):
        client = SideClient("host", Side.HOST, transport)
        assert await service_ranges(client, "default") == networks("10.96.0.0/16")
        assert [each["metadata"]["name"] for each in await client.list(SERVICES)] == ["kubernetes"]
    assert not recorded.writes


@pytest.mark.parametrize(
    ("ranges", "others", "expected"),
    [
        (("10.96.0.0/16",), ("10.96.0.0/16",), True),
        (("10.96.1.0/24",), ("10.96.0.0/16",), True),
        (("10.96.0.0/12",), ("10.96.0.0/16",), False),
        (("10.97.0.0/16",), ("10.96.0.0/16",), False),
        (("10.97.0.0/16",), ("10.96.0.0/16", "10.97.0.0/16"), True),
        (("10.96.0.0/16", "fd00::/112"), ("10.96.0.0/16",), False),
        (("10.96.0.0/16", "fd00::/112"), ("10.96.0.0/16", "fd00::/108"), True),
    ],
)
def test_ranges_lie_within_others(ranges: tuple[str, ...], others: tuple[str, ...], expected: bool) -> None:
    assert are_within(networks(*ranges), networks(*others)) is expected


def test_ranges_that_lie_in_another_one_are_left_out() -> None:
    found = outermost(networks("fd00::/112", "10.96.7.0/24", "10.96.0.0/16", "10.96.0.0/16", "10.0.0.0/24"))
    assert found == networks("10.0.0.0/24", "10.96.0.0/16", "fd00::/112")
