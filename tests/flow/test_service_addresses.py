"""ClusterIPs that are the same on both sides: the host is asked for the virtual ones, and a collision is put right."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from harness import HOME, NAMESPACE, Tenant, Two, admin, built_in, host_path, namespace, serving, until, writes

from kube_envtest import Rule
from syncer.api import Key, Obj, Side
from syncer.api.reasons import RequestState
from syncer.daemon.pages.status import degraded, hindered, waiting
from syncer.resources.kinds import SERVICES
from syncer.resources.service_addresses import MOST_DRAWS, PLACEHOLDER
from syncer.resources.services import LOOK_SECONDS
from syncer.testing import ApiServer
from syncer.testing.objects import service

NOTE = "vsyncer.dev/address"
TAKEN = "10.96.7.7"
#: The daemon has no right to list the ranges, or there are none below Kubernetes 1.33.
NOT_LISTED = Rule(verb="list", resource="servicecidrs", status=403)
SAME: Mapping[str, Any] = {"services": {"clusterIP": "same"}}


async def given(two: Two, side: Side, name: str = "web", **spec: Any) -> Obj:
    """Create a Service as people do, so that it gets its addresses."""
    server, home = (two.virtual, NAMESPACE) if side is Side.VIRTUAL else (two.host, HOME)
    made = service(name, namespace=home, spec=spec)
    made["metadata"].pop("uid", None)
    return await admin(server, side).create(SERVICES, made)


def addresses(two: Two, name: str = "web") -> tuple[str | None, str | None]:
    """Return the addresses of a Service and of its copy."""
    found = (two.original("services", name), two.copy("services", name))
    own, there = ((each or {}).get("spec", {}).get("clusterIP") for each in found)
    return own, there


def note(two: Two, name: str = "web") -> str | None:
    original = two.original("services", name) or {}
    found = original.get("metadata", {}).get("annotations", {}).get(NOTE)
    return str(found) if found else None


def daemon_of(two: Two, options: Mapping[str, Any] | None = None) -> Any:
    return two.daemon(built_in("services"), options=options or {})


@pytest.mark.parametrize("options", [{}, SAME])
async def test_address_of_the_virtual_service_is_that_of_its_copy(two: Two, options: Mapping[str, Any]) -> None:
    await given(two, Side.VIRTUAL)
    own = await given(two, Side.VIRTUAL, "db", clusterIP="10.96.44.44")
    async with daemon_of(two, options) as daemon:
        await daemon.settled()
        assert addresses(two, "db") == ("10.96.44.44", "10.96.44.44")
        web, copy = addresses(two)
        assert web == copy
        assert two.original("services", "db") == own | {"metadata": own["metadata"]}, "nothing is written to it"
        assert not degraded(daemon.process)


async def test_address_that_is_taken_on_the_host_is_changed_and_the_uid_stays(two: Two) -> None:
    await given(two, Side.HOST, "theirs", clusterIP=TAKEN)
    more = {"internalTrafficPolicy": "Local", "sessionAffinity": "ClientIP"}
    before = await given(two, Side.VIRTUAL, clusterIP=TAKEN, **more)
    async with daemon_of(two) as daemon:
        await daemon.settled()
        own, there = addresses(two)
        assert own == there != TAKEN
        after = two.original("services", "web") or {}
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["spec"] == {**before["spec"], "clusterIP": own, "clusterIPs": [own]}
        assert note(two) is None
        since = len(two.virtual.requests), len(two.host.requests)
        await daemon.settled()
        assert (writes(two.virtual, since[0]), writes(two.host, since[1])) == ([], [])


async def test_service_with_node_ports_keeps_its_address_and_waits(two: Two) -> None:
    theirs = await given(two, Side.HOST, "theirs", clusterIP=TAKEN)
    before = await given(two, Side.VIRTUAL, clusterIP=TAKEN, type="NodePort")
    async with daemon_of(two) as daemon:
        await daemon.settled()
        assert (two.original("services", "web"), two.copy("services", "web")) == (before, None)
        status = daemon.status("web", "services")
        assert status is not None
        assert "already allocated" in status.reason
        await admin(two.host, Side.HOST).delete(SERVICES, Key(HOME, "theirs"), uid=theirs["metadata"]["uid"])
        assert await until(lambda: two.copy("services", "web"), within=400) < 400
        await daemon.settled()
        assert addresses(two) == (TAKEN, TAKEN)


@pytest.mark.parametrize("kind", ["ClusterIP", "NodePort"])
async def test_copy_with_an_address_of_its_own_is_never_replaced(two: Two, kind: str) -> None:
    await given(two, Side.HOST, "theirs", clusterIP=TAKEN)
    before = await given(two, Side.VIRTUAL, clusterIP=TAKEN, type=kind)
    async with daemon_of(two, {"services": {"clusterIP": "own"}}) as daemon:
        await daemon.settled()
    own, there = addresses(two)
    assert own == TAKEN != there
    copy = two.copy("services", "web") or {}
    async with daemon_of(two) as daemon:
        await daemon.settled()
        later = two.copy("services", "web") or {}
        assert (later["metadata"]["uid"], later["spec"]) == (copy["metadata"]["uid"], copy["spec"])
        assert addresses(two) == ((there if kind == "ClusterIP" else TAKEN), there)
        assert (two.original("services", "web") or {})["metadata"]["uid"] == before["metadata"]["uid"]
        assert not daemon.requests("services")


async def test_headless_and_external_name_services_have_no_address_to_agree_on(two: Two) -> None:
    await given(two, Side.VIRTUAL, "less", clusterIP="None")
    await given(two, Side.VIRTUAL, "name", type="ExternalName", externalName="db.example.org")
    async with daemon_of(two, {"services": {"allow": {"externalNames": True}}}) as daemon:
        await daemon.settled()
        assert addresses(two, "less") == ("None", "None")
        assert (two.copy("services", "name") or {})["spec"]["externalName"] == "db.example.org"


async def test_address_of_another_virtual_service_is_drawn_again(two: Two) -> None:
    small = "10.96.7.0/29"
    two.virtual, two.host = (ApiServer(seed=f"small {side}", service_range=small) for side in Side)
    two.virtual.put(namespace(NAMESPACE))
    two.host.put(namespace(HOME))
    await given(two, Side.HOST, "theirs", clusterIP="10.96.7.2")
    paused = service("paused", namespace=NAMESPACE, spec={"clusterIP": "10.96.7.3"})
    paused["metadata"]["annotations"] = {"vsyncer.dev/paused": "true"}
    await admin(two.virtual, Side.VIRTUAL).create(SERVICES, paused)
    before = await given(two, Side.VIRTUAL, clusterIP="10.96.7.2")
    async with daemon_of(two) as daemon:
        await until(lambda: addresses(two)[0] == addresses(two)[1])
        assert addresses(two)[0] in {"10.96.7.4", "10.96.7.5", "10.96.7.6"}
        tried = [one for one in two.host.requests if (one.verb, one.resource) == ("delete", "services")]
        assert tried, "the host has drawn the address of the paused Service first"
        await daemon.settled()
        after = two.original("services", "web") or {}
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert note(two) is None


async def test_address_that_two_virtual_clusters_draw_is_changed_in_one_of_them(two: Two) -> None:
    other = Two()
    for each in (two, other):
        await given(each, Side.VIRTUAL, clusterIP=TAKEN)
    two.host.put(namespace("vc-other"))
    config: Mapping[str, Any] = {"services": {}}
    tenants = [Tenant(two.virtual, options=config), Tenant(other.virtual, "other", "vc-other", options=config)]
    async with serving(two.host, tenants, built_in("services")) as daemon:
        await daemon.settled()
        found = [each.original("services", "web") or {} for each in (two, other)]
        copies = [two.host.get("services", host_path("web", *where)) or {} for where in ((), ("other", "vc-other"))]
        own, there = ([each["spec"]["clusterIP"] for each in side] for side in (found, copies))
        assert own == there
        assert TAKEN in own
        assert own[0] != own[1]


@pytest.mark.reason("NoFreeAddress")
async def test_addresses_differ_once_the_host_has_drawn_a_few_in_vain(two: Two) -> None:
    """The host draws none that the virtual API server may give: its range was extended, for one."""
    two.virtual = ApiServer(seed="small", service_range="10.96.7.0/28")
    two.virtual.put(namespace(NAMESPACE))
    await given(two, Side.HOST, "theirs", clusterIP=TAKEN)
    before = await given(two, Side.VIRTUAL, clusterIP=TAKEN)
    async with daemon_of(two) as daemon:
        await daemon.settled(patience=60)
        own, there = addresses(two)
        assert (own, there is not None) == (TAKEN, True)
        assert own != there
        after = two.original("services", "web") or {}
        assert (after["metadata"]["uid"], after["spec"]) == (before["metadata"]["uid"], before["spec"])
        status = daemon.status("web", "services")
        assert status is not None
        assert status.state is RequestState.PENDING
        [event] = [each for each in two.virtual.objects("events") if each["reason"] == "AddressDiffers"]
        assert event["involvedObject"]["name"] == "web"
        tried = [one for one in two.host.requests if (one.verb, one.resource) == ("delete", "services")]
        assert len(tried) == MOST_DRAWS - 1
        since = len(two.virtual.requests), len(two.host.requests)
        await asyncio.sleep(700)
        assert (writes(two.virtual, since[0]), writes(two.host, since[1])) == ([], [])


@pytest.mark.parametrize("mode", ["auto", "same"])
async def test_range_outside_of_the_hosts_is_reported_with_the_flag(two: Two, mode: str) -> None:
    two.virtual = ApiServer(seed="other", service_range="10.97.0.0/16")
    two.virtual.put(namespace(NAMESPACE))
    await given(two, Side.VIRTUAL)
    async with daemon_of(two, {"services": {"clusterIP": mode}}) as daemon:
        await daemon.settled(patience=1)
        if mode == "same":
            [why] = waiting(daemon.process).values()
            assert two.copy("services", "web") is None
            assert "10.96" not in degraded(daemon.process, details=False)["vc", "services"]
        else:
            [why] = degraded(daemon.process).values()
            own, there = addresses(two)
            assert str(own).startswith("10.97.")
            assert str(there).startswith("10.96.")
            assert not hindered(daemon.process)
            [shown] = degraded(daemon.process, details=False).values()
            assert "--service-cluster-ip-range" in shown
            assert "10.96" not in shown
        assert "--service-cluster-ip-range=10.96.0.0/16" in why


async def test_unknown_range_is_reported_and_each_side_has_its_own(two: Two) -> None:
    await given(two, Side.VIRTUAL)
    two.host.faults.add(NOT_LISTED)
    two.host.faults.add(Rule(verb="create", resource="services", status=500, count=1))
    async with daemon_of(two) as daemon:
        await daemon.settled()
        [why] = degraded(daemon.process).values()
        assert "networking.serviceCIDRs" in why
        assert two.copy("services", "web") is not None


async def test_range_that_becomes_known_ends_the_condition_and_addresses_become_the_same(two: Two) -> None:
    before = await given(two, Side.VIRTUAL)
    rule = Rule(verb="create", resource="services", status=500, count=3)
    two.host.faults.add(NOT_LISTED)
    two.host.faults.add(rule)
    async with daemon_of(two) as daemon:
        await daemon.settled()
        own, there = addresses(two)
        assert own != there
        assert degraded(daemon.process)
        [event] = [each for each in two.virtual.objects("events") if each["reason"] == "SyncerDegraded"]
        assert event["involvedObject"]["name"] == "default"
        await asyncio.sleep(3 * LOOK_SECONDS)
        assert not degraded(daemon.process)
        await daemon.settled()
        own, there = addresses(two)
        assert own == there
        assert (two.original("services", "web") or {})["metadata"]["uid"] == before["metadata"]["uid"]


def node_ports(found: Obj | None) -> list[int]:
    return [int(port["nodePort"]) for port in (found or {})["spec"]["ports"]]


def node_port(found: Obj | None) -> int:
    return node_ports(found)[0]


@pytest.mark.parametrize("kind", ["NodePort", "LoadBalancer"])
async def test_node_port_of_the_virtual_service_is_that_of_its_copy(two: Two, kind: str) -> None:
    before = await given(two, Side.VIRTUAL, type=kind)
    async with daemon_of(two) as daemon:
        await daemon.settled()
        assert node_port(two.copy("services", "web")) == node_port(before)
        ports = [{"port": 80, "nodePort": 32001}]
        key = Key(NAMESPACE, "web")
        await admin(two.virtual, Side.VIRTUAL).patch(SERVICES, key, {"spec": {"ports": ports}})
        await daemon.settled()
        assert node_port(two.copy("services", "web")) == node_port(two.original("services", "web")) == 32001


@pytest.mark.parametrize("kind", ["NodePort", "ClusterIP"])
async def test_node_port_that_is_taken_on_the_host_is_drawn_there_and_comes_up(two: Two, kind: str) -> None:
    """One that is created so, or becomes one with a node port later."""
    ports = [{"port": 80, "nodePort": 32001}]
    await given(two, Side.HOST, "theirs", type="NodePort", ports=ports)
    later: Mapping[str, Any] = {"type": "NodePort", "ports": ports}
    before = await given(two, Side.VIRTUAL, **(later if kind == "NodePort" else dict[str, Any]()))
    async with daemon_of(two) as daemon:
        await daemon.settled()
        client = admin(two.virtual, Side.VIRTUAL)
        await client.patch(SERVICES, Key(NAMESPACE, "web"), {"spec": later})
        await daemon.settled()
        found = two.original("services", "web") or {}
        assert node_port(found) == node_port(two.copy("services", "web")) != 32001
        assert found["metadata"]["uid"] == before["metadata"]["uid"]
        since = len(two.virtual.requests), len(two.host.requests)
        await daemon.settled()
        assert (writes(two.virtual, since[0]), writes(two.host, since[1])) == ([], [])


async def test_of_two_node_ports_the_free_one_is_used_and_an_event_names_the_other(two: Two) -> None:
    def changed() -> list[str]:
        return [each["message"] for each in two.virtual.objects("events") if each["reason"] == "NodePortChanged"]

    await given(two, Side.HOST, "theirs", type="NodePort", ports=[{"port": 80, "nodePort": 30080}])
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    await given(two, Side.VIRTUAL, type="LoadBalancer", ports=ports)
    async with daemon_of(two) as daemon:
        await daemon.settled()
        former, _ = node_ports(two.copy("services", "web"))
        wanted = [{**port, "nodePort": 30080 + number} for number, port in enumerate(ports)]
        later = {"spec": {"type": "NodePort", "ports": wanted}}
        await admin(two.virtual, Side.VIRTUAL).patch(SERVICES, Key(NAMESPACE, "web"), later)
        await daemon.settled()
        assert node_ports(two.original("services", "web")) == [former, 30081]
        assert node_ports(two.copy("services", "web")) == [former, 30081]
        assert changed() == [
            f"node ports that others have on the nodes are changed: 30080 of port 80/TCP becomes {former}"
        ]
        since = len(two.virtual.requests), len(two.host.requests)
        await daemon.settled()
        assert (writes(two.virtual, since[0]), writes(two.host, since[1])) == ([], [])


@pytest.mark.parametrize("taken", [30080, 30081])
async def test_new_service_gets_the_node_port_that_is_free(two: Two, taken: int) -> None:
    await given(two, Side.HOST, "theirs", type="NodePort", ports=[{"port": 80, "nodePort": taken}])
    ports = [{"name": f"p{number}", "port": number, "nodePort": 30000 + number} for number in (80, 81)]
    await given(two, Side.VIRTUAL, type="NodePort", ports=ports)
    async with daemon_of(two) as daemon:
        await daemon.settled()
        own = node_ports(two.original("services", "web"))
        assert own == node_ports(two.copy("services", "web"))
        assert {*own} & {30080, 30081} == {30080, 30081} - {taken}
        assert any(each["reason"] == "NodePortChanged" for each in two.virtual.objects("events"))


async def test_node_port_that_the_virtual_side_cannot_have_parks_the_service_and_the_rest_goes_on(two: Two) -> None:
    ports = [{"port": 80, "nodePort": 32001}]
    await given(two, Side.HOST, "theirs", type="NodePort", ports=ports)
    await given(two, Side.VIRTUAL, type="NodePort", ports=ports)
    drawn = service("paused", namespace=NAMESPACE, spec={"type": "NodePort", "ports": [{"port": 1}]})
    drawn["spec"]["ports"][0]["nodePort"] = 30000
    drawn["metadata"]["annotations"] = {"vsyncer.dev/paused": "true"}
    client = admin(two.virtual, Side.VIRTUAL)
    await client.create(SERVICES, drawn)
    async with daemon_of(two) as daemon:
        await daemon.settled()
        assert node_port(two.copy("services", "web")) == 30000, "the host draws the first one that is free"
        status = daemon.status("web", "services")
        assert status is not None
        assert (status.state, "nodePort" in status.reason) == (RequestState.PARKED, True)
        await client.patch(SERVICES, Key(NAMESPACE, "web"), {"spec": {"selector": {"tier": "back"}}})
        await daemon.settled()
        assert (two.copy("services", "web") or {})["spec"]["selector"]["tier"] == "back"
        await client.delete(SERVICES, Key(NAMESPACE, "paused"))
        await until(lambda: node_port(two.original("services", "web")) == 30000, within=400)


async def test_tenant_who_writes_the_note_reaches_only_their_own_service(two: Two) -> None:
    forged = '{"was": {"clusterIP": "10.96.9.9", "externalIPs": ["192.0.2.7"], "type": 7}, "draws": -5}'
    for name, text in (("forged", forged), ("broken", "{"), ("deep", "[" * 100_000), ("list", "[]")):
        made = service(name, namespace=NAMESPACE, metadata={"annotations": {NOTE: text}})
        made["spec"] |= {"type": "ExternalName", "externalName": PLACEHOLDER}
        await admin(two.virtual, Side.VIRTUAL).create(SERVICES, made)
    plain = service("plain", namespace=NAMESPACE, metadata={"annotations": {NOTE: forged}})
    await admin(two.virtual, Side.VIRTUAL).create(SERVICES, plain)
    async with daemon_of(two) as daemon:
        await daemon.settled()
        for name in ("forged", "plain"):
            own, there = addresses(two, name)
            assert own == there
            assert own is not None
            assert "externalIPs" not in (two.copy("services", name) or {})["spec"]
        assert note(two, "plain") is None
        assert {two.copy("services", name) is None for name in ("broken", "deep", "list")} == {True}
