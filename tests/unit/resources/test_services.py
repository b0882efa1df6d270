"""Services: the virtual side owns the spec, the host the addresses."""

import json
from typing import Any

import pytest

from syncer.api import Obj, Refused, Side, Verb
from syncer.resources.service_addresses import PLACEHOLDER
from syncer.resources.services import MOST_REFUSALS
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import service

COPY = "vc-ns/web-x-shop-x-vc"
ALLOWED = {"externalIPs": True, "externalNames": True, "loadBalancerClass": True, "loadBalancerIP": True}
ALLOWING = {"sync": {"toHost": {"services": {"allow": ALLOWED}}}}
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


def test_empty_selector_of_a_service_stays_empty(world: World) -> None:
    """It selects nothing; a narrowed one would select every Pod of the namespace."""
    virtual = service("web")
    virtual["spec"]["selector"] = {}
    assert settled(world, virtual)["spec"]["selector"] == {}


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
    world.configure(ALLOWING)
    assert settled(world, service("web", spec={field: value}))["spec"][field] == value
    assert field not in settled(world, service("web"))["spec"]


def test_address_is_allocated_by_each_side_unless_both_are_to_be_the_same(world: World) -> None:
    virtual = service("web", spec={"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "ipFamilies": ["IPv4"]})
    world.given(virtual=[virtual])
    [write] = world.decide("services", "shop/web").writes
    assert {"clusterIP", "clusterIPs", "ipFamilies"}.isdisjoint(write.obj["spec"])
    [write] = world.configure(SAME).decide("services", "shop/web").writes
    assert write.obj["spec"]["clusterIP"] == "10.0.0.7"


def test_headless_service_stays_headless(world: World) -> None:
    assert settled(world, service("web", spec={"clusterIP": "None"}))["spec"]["clusterIP"] == "None"


@pytest.mark.parametrize("config", [{}, SAME])
@pytest.mark.parametrize(("virtual", "host"), [("None", "10.1.0.1"), ("10.0.0.1", "None")])
def test_copy_is_replaced_when_headless_changes(world: World, virtual: str, host: str, config: Obj) -> None:
    world.given(virtual=[service("web", spec={"clusterIP": virtual})]).settle("services", "shop/web")
    drawn = {"spec": {"clusterIP": host, "clusterIPs": [host]}}
    world.given(host=[merged(world.host("Service", COPY) or {}, drawn)]).configure(config)
    [write] = world.decide("services", "shop/web").writes
    assert write.verb is Verb.DELETE


DRAWN = {"clusterIP": "10.1.0.1", "clusterIPs": ["10.1.0.1"]}
MARK = "vsyncer.dev/address"


def drawn_otherwise(world: World, **spec: Any) -> World:
    """Return a world in which the host has another address for a Service than the virtual cluster."""
    world.given(virtual=[service("web", spec={"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], **spec})])
    world.settle("services", "shop/web")
    return world.given(host=[merged(world.host("Service", COPY) or {}, {"spec": DRAWN})])


def test_address_is_changed_in_two_resumable_steps(world: World) -> None:
    world = drawn_otherwise(world, sessionAffinity="ClientIP").configure(SAME)
    before = world.virtual("Service", "shop/web") or {}
    first = world.decide("services", "shop/web")
    [write] = [each for each in first.writes if each.side is Side.VIRTUAL and "spec" in each.obj]
    assert write.obj["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    assert (json.loads(write.obj["metadata"]["annotations"][MARK])["was"], first.is_step) == (before["spec"], True)
    world.apply(first)
    named = world.virtual("Service", "shop/web") or {}
    assert (named["spec"]["type"], named["spec"]["externalName"]) == ("ExternalName", PLACEHOLDER)
    [write] = world.decide("services", "shop/web").writes
    assert write.side is Side.VIRTUAL, "nothing of it goes down meanwhile"
    assert world.settle("services", "shop/web")
    after = world.virtual("Service", "shop/web") or {}
    assert after["spec"] == {**before["spec"], **DRAWN}
    assert MARK not in after["metadata"].get("annotations", {})


def test_address_is_given_back_where_the_copy_is_gone(world: World) -> None:
    world = drawn_otherwise(world).configure(SAME)
    before = world.virtual("Service", "shop/web") or {}
    world.apply(world.decide("services", "shop/web"))
    world.gone(host=[world.host("Service", COPY) or {}]).settle("services", "shop/web")
    assert (world.virtual("Service", "shop/web") or {})["spec"] == before["spec"]
    assert (world.host("Service", COPY) or {})["spec"]["clusterIP"] == "10.0.0.1"


def test_change_of_the_tenant_stays_while_the_address_is_changed(world: World) -> None:
    world = drawn_otherwise(world).configure(SAME)
    world.apply(world.decide("services", "shop/web"))
    edited = {"spec": {"selector": {"app": "other"}}}
    world.given(virtual=[merged(world.virtual("Service", "shop/web") or {}, edited)]).settle("services", "shop/web")
    found = world.virtual("Service", "shop/web") or {}
    assert (found["spec"]["selector"], found["spec"]["clusterIP"]) == ({"app": "other"}, "10.1.0.1")


def test_type_that_the_tenant_chooses_while_the_address_is_changed_stays(world: World) -> None:
    world = drawn_otherwise(world).configure(SAME)
    world.apply(world.decide("services", "shop/web"))
    name = {"spec": {"externalName": "db.example.org"}}
    world.given(virtual=[merged(world.virtual("Service", "shop/web") or {}, name)]).settle("services", "shop/web")
    found = world.virtual("Service", "shop/web") or {}
    assert (found["spec"]["externalName"], MARK in found["metadata"]["annotations"]) == ("db.example.org", False)
    assert world.host("Service", COPY) is None


@pytest.mark.reason("NotSelected")
def test_service_deselected_during_an_address_change_is_restored(world: World) -> None:
    world = drawn_otherwise(world).configure(SAME)
    world.apply(world.decide("services", "shop/web"))
    world.configure({"sync": {"toHost": {"services": {"selector": {"matchLabels": {"sync": "yes"}}}}}})
    world.settle("services", "shop/web")
    assert (world.virtual("Service", "shop/web") or {})["spec"]["clusterIP"] == "10.0.0.1"
    assert world.host("Service", COPY) is None


@pytest.mark.parametrize("kind", ["NodePort", "LoadBalancer"])
def test_address_of_a_service_with_node_ports_is_never_changed(world: World, kind: str) -> None:
    world = drawn_otherwise(world, type=kind).configure(SAME)
    world.settle("services", "shop/web")
    assert (world.virtual("Service", "shop/web") or {})["spec"]["clusterIP"] == "10.0.0.1"
    assert (world.host("Service", COPY) or {})["spec"]["clusterIP"] == "10.1.0.1"


@pytest.mark.parametrize(("field", "value"), [("externalIPs", ["192.0.2.1"]), ("loadBalancerIP", "192.0.2.2")])
def test_field_that_reaches_into_the_hosts_network_stays_behind(world: World, field: str, value: Any) -> None:
    virtual = service("web", spec={"type": "LoadBalancer", field: value})
    assert field not in settled(world, virtual)["spec"]
    assert world.left_out("services", "shop/web") == (f"spec.{field}",), "the tenant gets an event"
    world.configure(ALLOWING)
    assert settled(world, virtual)["spec"][field] == value
    assert world.left_out("services", "shop/web") == ()


INTERNAL = "service.beta.kubernetes.io/aws-load-balancer-internal"
POOL = "lbipam.cilium.io/ips"


@pytest.mark.parametrize(
    ("own", "where"),
    [
        ({"spec": {"loadBalancerClass": "example.org/internal"}}, "spec.loadBalancerClass"),
        ({"metadata": {"annotations": {INTERNAL: "true"}}}, f"metadata.annotations[{INTERNAL}]"),
        ({"metadata": {"annotations": {POOL: "10.0.0.1"}}}, f"metadata.annotations[{POOL}]"),
    ],
)
def test_load_balancer_that_would_be_open_to_more_is_refused(world: World, own: Obj, where: str) -> None:
    virtual = merged(service("web", spec={"type": "LoadBalancer"}), own)
    world.given(virtual=[virtual])
    with pytest.raises(Refused) as refused:
        world.decide("services", "shop/web")
    assert refused.value.path == where
    assert ("create the Service again" in refused.value.why) is (where == "spec.loadBalancerClass")
    allow = {"annotations": {"allow": ["*", INTERNAL, POOL]}}
    world.configure(merged(ALLOWING, {"sync": {"toHost": {"services": {"metadata": allow}}}}))
    assert world.decide("services", "shop/web").writes


def test_annotation_of_load_balancers_stays_behind_where_there_is_none(world: World) -> None:
    copy = settled(world, service("web", metadata={"annotations": {INTERNAL: "true"}}))
    assert INTERNAL not in copy["metadata"]["annotations"]


def test_external_name_service_has_no_copy(world: World) -> None:
    settled(world, service("web"))
    world.given(virtual=[service("web", spec={"type": "ExternalName", "externalName": "metadata.google.internal"})])
    [write] = world.decide("services", "shop/web").writes
    assert write.verb is Verb.DELETE
    world.settle("services", "shop/web")
    assert world.host("Service", COPY) is None
    assert world.left_out("services", "shop/web") == ("spec.externalName",)
    assert settled(world, service("web"))["spec"]["type"] == "ClusterIP", "it may become another one again"


def test_service_that_becomes_an_external_name_keeps_its_copy(world: World) -> None:
    world.configure(ALLOWING)
    settled(world, service("web"), {"spec": {"clusterIP": "10.1.0.1"}})
    world.given(virtual=[service("web", spec={"type": "ExternalName", "externalName": "db.example.org"})])
    [write, _] = world.decide("services", "shop/web").writes
    assert write.verb is Verb.APPLY
    assert "clusterIP" not in write.obj["spec"]


def ports_of(obj: Obj | None) -> list[int | None]:
    return [port.get("nodePort") for port in (obj or {})["spec"]["ports"]]


TAKEN = ("spec.ports[0].nodePort", "spec.ports[1].nodePort")


def test_of_two_node_ports_the_free_one_is_used(world: World) -> None:
    ports: list[Obj] = [{"name": each, "port": port, "nodePort": port + 30000} for each, port in (("a", 80), ("b", 81))]
    world.given(virtual=[service("web", spec={"type": "NodePort", "ports": ports})]).settle("services", "shop/web")
    copy = world.host("Service", COPY) or {}
    copy["spec"]["ports"] = [{**port, "nodePort": port["nodePort"] + 1000} for port in ports]
    write, *_ = world.given(host=[copy]).decide("services", "shop/web").writes
    assert write.otherwise is not None
    fewer = write.otherwise(write, TAKEN[:1])
    assert (fewer.side, ports_of(fewer.obj), fewer.warning) == (Side.HOST, [31080, 30081], None)
    assert fewer.otherwise is not None
    none = fewer.otherwise(fewer, TAKEN[1:])
    assert (none.side, ports_of(none.obj)) == (Side.VIRTUAL, [31080, 31081])


def test_number_of_refusals_is_bounded(world: World) -> None:
    ports: list[Obj] = [{"name": f"p{port}", "port": port, "nodePort": port + 30000} for port in range(1, 101)]
    [write] = (
        world.given(virtual=[service("web", spec={"type": "NodePort", "ports": ports})])
        .decide("services", "shop/web")
        .writes
    )
    refused = 0
    while write.otherwise is not None:
        write = write.otherwise(write, [f"spec.ports[{refused}].nodePort"])
        refused += 1
    assert refused == MOST_REFUSALS
    assert set(ports_of(write.obj)) == {None}


def test_event_names_some_of_many_node_ports(world: World) -> None:
    ports: list[Obj] = [{"name": f"p{port}", "port": port, "nodePort": port + 30000} for port in range(1, 101)]
    world.given(virtual=[service("web", spec={"type": "NodePort", "ports": ports})]).settle("services", "shop/web")
    copy = world.host("Service", COPY) or {}
    copy["spec"]["ports"] = [{**port, "nodePort": port["nodePort"] + 1000} for port in ports]
    write, *_ = world.given(host=[copy]).decide("services", "shop/web").writes
    assert write.otherwise is not None
    warning = write.otherwise(write, ["spec.ports"]).warning
    assert warning is not None
    assert warning.message.endswith("30010 of port 10/TCP becomes 31010 and 90 more")


def test_host_is_asked_for_the_node_ports_that_the_virtual_side_has_drawn(world: World) -> None:
    ports = [{"port": 80, "protocol": "TCP", "nodePort": 30001}, {"port": 80, "protocol": "UDP", "nodePort": 30002}]
    virtual = service("web", spec={"type": "NodePort", "ports": ports})
    [write] = world.given(virtual=[virtual]).decide("services", "shop/web").writes
    assert ports_of(write.obj) == [30001, 30002]
    assert write.otherwise is not None
    fewer = write.otherwise(write, TAKEN[:1])
    assert (fewer.side, ports_of(fewer.obj)) == (Side.HOST, [None, 30002]), "the host draws what is taken"
    assert fewer.otherwise is not None
    assert ports_of(fewer.otherwise(fewer, TAKEN[1:]).obj) == [None, None]
    assert ports_of(write.otherwise(write, TAKEN).obj) == [None, None]
    assert ports_of(write.otherwise(write, ["spec.ports"]).obj) == [None, None], "it isn't known which"
    world.settle("services", "shop/web")
    assert world.decide("services", "shop/web").writes[0].otherwise is None, "both have the same"


def test_node_ports_that_are_taken_on_the_host_are_changed_on_the_virtual_side(world: World) -> None:
    ports = [{"port": 80, "protocol": "TCP", "nodePort": 30001}, {"port": 80, "protocol": "UDP", "nodePort": 30002}]
    world.given(virtual=[service("web", spec={"type": "NodePort", "ports": ports})]).settle("services", "shop/web")
    copy = world.host("Service", COPY) or {}
    copy["spec"]["ports"][0]["nodePort"] = 31001
    write, *_ = world.given(host=[copy]).decide("services", "shop/web").writes
    assert (write.side, ports_of(write.obj)) == (Side.HOST, [30001, 30002]), "it is asked first, the port may be free"
    assert write.otherwise is not None
    instead = write.otherwise(write, TAKEN[:1])
    assert instead.warning == (
        "NodePortChanged",
        "node ports that others have on the nodes are changed: 30001 of port 80/TCP becomes 31001",
    )
    assert (instead.side, ports_of(instead.obj)) == (Side.VIRTUAL, [31001, 30002])
    assert instead.obj["metadata"]["resourceVersion"], "a change of the tenant's meanwhile must not be undone"
    assert instead.otherwise is not None
    last = instead.otherwise(instead, TAKEN[:1])
    assert (last.side, ports_of(last.obj)) == (Side.HOST, [31001, 30002])


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


def test_copy_with_drawn_node_port_keeps_configured_patches(world: World) -> None:
    patch = {"op": "add", "path": "/metadata/labels/team", "value": "red"}
    world.configure({"sync": {"toHost": {"services": {"patches": {"down": [patch]}}}}})
    ports = [{"port": 80, "protocol": "TCP", "nodePort": 30001}]
    world.given(virtual=[service("web", spec={"type": "NodePort", "ports": ports})])
    [write] = world.decide("services", "shop/web").writes
    assert write.otherwise is not None
    drawn = write.otherwise(write, TAKEN[:1]).obj
    assert (ports_of(drawn), drawn["metadata"]["labels"]["team"]) == ([None], "red")
