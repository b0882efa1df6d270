"""Services: the virtual side owns the spec, the host the addresses."""

from typing import Any

import pytest

from syncer.api import Obj, Verb
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import service

COPY = "vc-ns/web-x-shop-x-vc"
SAME = {"sync": {"toHost": {"services": {"clusterIP": "same"}}}}


def settled(world: World, virtual: Obj, host: Obj | None = None) -> Obj:
    """Return the copy after the virtual Service, and what the host has made of it."""
    world.given(virtual=[virtual]).settle("services", "shop/web")
    if host is not None:
        world.given(host=[merged(world.host("Service", COPY) or {}, host)]).settle("services", "shop/web")
    return world.host("Service", COPY) or {}


def test_service_selects_only_pods_of_this_tenant_and_namespace(world: World) -> None:
    copy = settled(world, service("web", selector={"app": "web", "vsyncer.dev/namespace": "other"}))
    assert copy["spec"]["selector"] == {
        "app": "web",
        "vsyncer.dev/cluster": "vc.vc-ns",
        "vsyncer.dev/namespace": "shop",
    }


def test_service_without_a_selector_has_none_on_the_host(world: World) -> None:
    virtual = service("web")
    del virtual["spec"]["selector"]
    assert "selector" not in settled(world, virtual)["spec"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("externalName", "db.example.org"),
        ("externalIPs", ["192.0.2.1"]),
        ("externalTrafficPolicy", "Local"),
        ("internalTrafficPolicy", "Local"),
        ("trafficDistribution", "PreferClose"),
        ("sessionAffinity", "ClientIP"),
        ("sessionAffinityConfig", {"clientIP": {"timeoutSeconds": 10}}),
        ("publishNotReadyAddresses", True),
        ("loadBalancerClass", "example.org/lb"),
        ("loadBalancerIP", "192.0.2.2"),
        ("loadBalancerSourceRanges", ["192.0.2.0/24"]),
        ("allocateLoadBalancerNodePorts", False),
    ],
)
def test_fields_of_the_tenant_go_down_and_are_removed_again(world: World, field: str, value: Any) -> None:
    assert settled(world, service("web", spec={field: value}))["spec"][field] == value
    assert field not in settled(world, service("web"))["spec"]


def test_address_is_allocated_by_each_side_unless_both_are_to_be_the_same(world: World) -> None:
    virtual = service("web", spec={"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "ipFamilies": ["IPv4"]})
    world.given(virtual=[virtual])
    [write] = world.decide("services", "shop/web").writes
    assert {"clusterIP", "clusterIPs", "ipFamilies"}.isdisjoint(write.obj["spec"])
    [write] = world.configure(SAME).decide("services", "shop/web").writes
    assert write.obj["spec"]["clusterIP"] == "10.0.0.7"


def test_headless_one_stays_headless(world: World) -> None:
    assert settled(world, service("web", spec={"clusterIP": "None"}))["spec"]["clusterIP"] == "None"


@pytest.mark.parametrize(
    ("virtual", "host", "config"),
    [
        ({"clusterIP": "None"}, {"clusterIP": "10.1.0.1"}, {}),
        ({"clusterIP": "10.0.0.1"}, {"clusterIP": "None"}, {}),
        ({"clusterIP": "10.0.0.1"}, {"clusterIP": "10.1.0.1"}, SAME),
    ],
)
def test_copy_whose_address_cannot_be_changed_is_made_anew(world: World, virtual: Obj, host: Obj, config: Obj) -> None:
    world.given(virtual=[service("web", spec=virtual)]).settle("services", "shop/web")
    world.given(host=[merged(world.host("Service", COPY) or {}, {"spec": host})]).configure(config)
    [write] = world.decide("services", "shop/web").writes
    assert write.verb is Verb.DELETE


def test_service_that_becomes_a_mere_name_is_changed_in_place(world: World) -> None:
    settled(world, service("web"), {"spec": {"clusterIP": "10.1.0.1"}})
    world.given(virtual=[service("web", spec={"type": "ExternalName", "externalName": "db.example.org"})])
    [write, _] = world.decide("services", "shop/web").writes
    assert write.verb is Verb.APPLY
    assert "clusterIP" not in write.obj["spec"]


def test_node_ports_are_the_hosts_and_reach_the_tenant(world: World) -> None:
    ports = [{"port": 80, "protocol": "TCP", "nodePort": 30001}, {"port": 80, "protocol": "UDP", "nodePort": 30002}]
    virtual = service("web", spec={"type": "NodePort", "ports": ports})
    [write] = world.given(virtual=[virtual]).decide("services", "shop/web").writes
    assert [port.get("nodePort") for port in write.obj["spec"]["ports"]] == [None, None]
    world.settle("services", "shop/web")
    copy = world.host("Service", COPY) or {}
    copy["spec"]["ports"][0]["nodePort"], copy["spec"]["ports"][1]["nodePort"] = 31001, 31002
    calls = world.given(host=[copy]).settle("services", "shop/web")
    own, note = calls
    assert [str(own), str(note)] == ["patch virtual services shop/web", f"patch host services {COPY}"]
    assert note.body.keys() == {"metadata"}, "the copy's ports have a field of ours more, which is noted"
    assert calls[0].body["metadata"]["resourceVersion"], "a change of the tenant's meanwhile must not be undone"
    found = world.virtual("Service", "shop/web") or {}
    assert [port["nodePort"] for port in found["spec"]["ports"]] == [31001, 31002]


def test_edit_of_the_ports_keeps_the_hosts_node_ports(world: World) -> None:
    virtual = service("web", spec={"type": "NodePort"})
    settled(world, virtual, {"spec": {"ports": [{"name": "p80", "port": 80, "targetPort": 80, "nodePort": 31001}]}})
    world.given(virtual=[merged(virtual, {"spec": {"ports": [{"name": "p80", "port": 80, "targetPort": 8080}]}})])
    world.settle("services", "shop/web")
    [port] = (world.host("Service", COPY) or {})["spec"]["ports"]
    assert (port["targetPort"], port["nodePort"]) == (8080, 31001)


def test_address_of_a_load_balancer_flows_up_and_is_taken_back(world: World) -> None:
    address = {"loadBalancer": {"ingress": [{"ip": "192.0.2.9"}]}}
    settled(world, service("web", spec={"type": "LoadBalancer"}), {"status": address})
    assert (world.virtual("Service", "shop/web") or {})["status"] == address
    settled(world, service("web", spec={"type": "LoadBalancer"}), {"status": {"loadBalancer": {"ingress": None}}})
    assert (world.virtual("Service", "shop/web") or {})["status"] == {"loadBalancer": {}}


def test_api_servers_own_service_is_left_alone(world: World) -> None:
    world.given(virtual=[service("kubernetes", (443,), namespace="default")])
    decision = world.decide("services", "default/kubernetes")
    assert not decision.writes
    assert "API server" in decision.reason
