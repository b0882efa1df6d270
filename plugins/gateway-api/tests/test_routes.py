"""Routes, Gateways and GatewayClasses cross as they should, without a cluster."""

import re
from typing import Any

import pytest
from vsyncer_gateway_api.gateway_classes import GatewayClassSyncer
from vsyncer_gateway_api.gateways import GatewayConfig, GatewaySyncer
from vsyncer_gateway_api.kinds import (
    GATEWAY_CLASSES,
    GATEWAYS,
    GROUP,
    HTTP_ROUTES,
    REFERENCE_GRANTS,
)
from vsyncer_gateway_api.reference_grants import ReferenceGrantSyncer
from vsyncer_gateway_api.routes import GRPCRouteSyncer, HTTPRouteSyncer, TLSRouteSyncer
from vsyncer_gateway_api.tenant_gateways import TenantGatewaySyncer

from syncer.api import Key, Obj, Outcome, Refused, Side, Verb
from syncer.names import PerNamespace
from syncer.testing import World
from syncer.testing.cases import Case, load
from syncer.testing.merge import merged
from syncer.testing.objects import build, namespace, service

SYNCERS = [
    HTTPRouteSyncer,
    GRPCRouteSyncer,
    TLSRouteSyncer,
    ReferenceGrantSyncer,
    GatewaySyncer,
    GatewayClassSyncer,
    TenantGatewaySyncer,
]
CONFIG: dict[str, Any] = {
    "sync": {"fromHost": {"gateways": {"mappings": {"infra/shared": "gateways/web"}}}}
}
PARENT = {"name": "web", "namespace": "gateways"}


def route(**spec: Any) -> Obj:
    return build(HTTP_ROUTES, "web", spec={"parentRefs": [PARENT], **spec})


def grant(
    name: str = "web", kind: str = "HTTPRoute", services: tuple[str, ...] = ("ledger",)
) -> Obj:
    spec = {
        "from": [{"group": GROUP, "kind": kind, "namespace": "shop"}],
        "to": [{"group": "", "kind": "Service", "name": each} for each in services],
    }
    return build(REFERENCE_GRANTS, name, namespace="bank", spec=spec)


LEDGER = [{"backendRefs": [{"name": "ledger", "namespace": "bank", "port": 80}]}]


@pytest.fixture
def world() -> World:
    return World(SYNCERS, config=CONFIG)


def copied(world: World, route: Obj) -> Obj:
    """Return the copy of a route."""
    world.given(virtual=[route]).settle(HTTPRouteSyncer, "shop/web")
    copy = world.copy_of(HTTPRouteSyncer, "shop/web")
    assert copy is not None
    return copy


def tightened(world: World, **sync: Any) -> Obj | None:
    """Return what other options leave of the copy, once its tenant has a route that is refused."""
    refused = route(useDefaultGateways="All")
    world.configure({"sync": sync}).given(virtual=[refused])
    with pytest.raises(Refused):
        world.settle(HTTPRouteSyncer, "shop/web")
    return world.copy_of(HTTPRouteSyncer, "shop/web")


@pytest.mark.parametrize("case", load("tests/cases"), ids=str)
def test_case(case: Case) -> None:
    case.check(SYNCERS)


def test_host_that_is_no_longer_allowed_leaves_the_copy(world: World) -> None:
    copied(world, route(hostnames=["a.example.org", "b.example.org"]))
    left = tightened(world, toHost={"httpRoutes": {"allowedHosts": ["b.example.org"]}})
    assert left is not None
    assert left["spec"]["hostnames"] == ["b.example.org"]


@pytest.mark.parametrize("hosts", [["a.example.org"], []], ids=["of another host", "of any host"])
def test_copy_without_an_allowed_host_is_deleted(world: World, hosts: list[str]) -> None:
    copied(world, route(hostnames=hosts))
    assert tightened(world, toHost={"httpRoutes": {"allowedHosts": ["b.example.org"]}}) is None


def test_gateway_that_no_longer_serves_leaves_the_copy(world: World) -> None:
    world.configure({"sync": {"fromHost": {"gateways": {"mappings": {"edge/*": "edge"}}}}})
    copied(world, route(parentRefs=[PARENT, {"name": "outer", "namespace": "edge"}]))
    left = tightened(world, fromHost={"gateways": {"mappings": {"infra/shared": None}}})
    assert left is not None
    assert left["spec"]["parentRefs"] == [{"name": "outer", "namespace": "edge"}]


def test_copy_without_a_gateway_that_serves_is_deleted(world: World) -> None:
    copied(world, route())
    assert tightened(world, fromHost={"gateways": {"mappings": {"infra/shared": None}}}) is None


def test_copy_of_a_route_without_parents_stays(world: World) -> None:
    copied(world, route(parentRefs=[]))
    assert tightened(world, fromHost={"gateways": {"mappings": {"infra/shared": None}}})


def test_gateway_that_is_no_longer_mapped_disappears(world: World) -> None:
    gateway = build(GATEWAYS, "shared", namespace="infra", spec={"listeners": []})
    world.given(virtual=[namespace("gateways")], host=[gateway])
    world.settle(GatewaySyncer, "gateways/web")
    assert world.virtual("Gateway", "gateways/web")
    world.configure({"sync": {"fromHost": {"gateways": {"mappings": {"infra/shared": None}}}}})
    world.settle(GatewaySyncer, "gateways/web")
    assert world.virtual("Gateway", "gateways/web") is None


def test_gateway_waits_while_its_namespace_is_being_deleted(world: World) -> None:
    ending = {"deletionTimestamp": "2026-01-01T12:00:00Z", "finalizers": ["kubernetes"]}
    gateway = build(GATEWAYS, "shared", namespace="infra", spec={"listeners": []})
    home = merged(namespace("gateways"), {"metadata": ending})
    world.given(virtual=[home], host=[gateway])
    decision = world.decide(GatewaySyncer, "gateways/web")
    assert (decision.outcome, decision.writes) == (Outcome.PENDING, ())
    assert decision.reason == "the virtual namespace gateways is being deleted"


def test_gateways_of_the_host_without_a_mapping_are_not_watched() -> None:
    watched = {(store.side, store.resource) for store in World(SYNCERS).pair.informers}
    assert (Side.HOST, GATEWAYS) not in watched
    assert (Side.VIRTUAL, GATEWAYS) in watched


@pytest.mark.parametrize(
    ("given", "wakes"),
    [
        (grant(), True),
        (grant(services=("",)), True),
        (grant(services=("other",)), False),
        (grant(kind="TLSRoute"), False),
    ],
    ids=["this Service", "all Services", "another Service", "another kind of routes"],
)
def test_grant_that_begins_and_ends_wakes_the_route(world: World, given: Obj, wakes: bool) -> None:
    world.given(virtual=[route(rules=LEDGER)])
    for change in (world.given, world.gone):
        world.woken()
        change(virtual=[given])
        found = {(each.syncer, str(each.key)) for each in world.woken()}
        assert (("httproutes", "shop/web") in found) is wakes


@pytest.mark.parametrize(
    ("observed", "hosts", "shown"),
    [
        (7, ["a.example.org"], 3),
        (6, ["a.example.org"], 2),
        (7, ["b.example.org"], 2),
    ],
    ids=["the latest", "an earlier copy", "before the tenant's change is observed"],
)
def test_condition_is_about_a_generation_of_the_tenants_route(
    world: World, observed: int, hosts: list[str], shown: int
) -> None:
    copy = copied(world, route(hostnames=["a.example.org"]))
    conditions: list[dict[str, object]] = [
        {"type": "Accepted", "observedGeneration": observed},
        {"type": "Other"},
    ]
    status = {"parents": [{"parentRef": copy["spec"]["parentRefs"][0], "conditions": conditions}]}
    latest = {"metadata": {"generation": 7}, "status": status}
    generation = {"metadata": {"generation": 3}}
    world.given(host=[merged(copy, latest)], virtual=[merged(route(hostnames=hosts), generation)])
    world.settle(HTTPRouteSyncer, "shop/web")
    written = world.virtual("HTTPRoute", "shop/web")
    assert written
    [parent] = written["status"]["parents"]
    assert parent["conditions"] == [{**conditions[0], "observedGeneration": shown}, conditions[1]]


@pytest.mark.parametrize(
    ("observed", "port", "shown"),
    [(7, 80, 3), (6, 80, 2), (7, 81, 4)],
    ids=["the latest", "an earlier one", "with a change that goes up"],
)
def test_condition_is_about_a_generation_of_the_gateway_that_appears(
    world: World, observed: int, port: int, shown: int
) -> None:
    def gateway(port: int) -> Obj:
        listener = {"name": "http", "port": port, "protocol": "HTTP"}
        return build(GATEWAYS, "shared", namespace="infra", spec={"listeners": [listener]})

    world.given(virtual=[namespace("gateways")], host=[gateway(80)])
    world.settle(GatewaySyncer, "gateways/web")
    appears = world.virtual("Gateway", "gateways/web")
    assert appears
    conditions = [{"type": "Programmed", "observedGeneration": observed}]
    listeners = [{"name": "http", "attachedRoutes": 0, "conditions": conditions}]
    status = {"conditions": conditions, "listeners": listeners}
    latest = {"metadata": {"generation": 7}, "status": status}
    generation = {"metadata": {"generation": 3}}
    world.given(host=[merged(gateway(port), latest)], virtual=[merged(appears, generation)])
    [write] = world.decide(GatewaySyncer, "gateways/web").writes
    found = write.obj["status"]
    assert found["conditions"][0]["observedGeneration"] == shown
    assert found["listeners"][0]["conditions"][0]["observedGeneration"] == shown


def test_class_that_appears_has_its_own_generation(world: World) -> None:
    status = {"conditions": [{"type": "Accepted", "observedGeneration": 7}]}
    spec = {"controllerName": "example.org/gateway"}
    latest = {"generation": 7}
    host = build(GATEWAY_CLASSES, "envoy", metadata=latest, spec=spec, status=status)
    world.given(host=[host])
    [write] = world.decide(GatewayClassSyncer, "envoy").writes
    assert write.obj["status"]["conditions"][0]["observedGeneration"] == 1


def test_second_grant_keeps_the_copy_when_the_first_ends(world: World) -> None:
    world.given(virtual=[grant("one"), grant("two")])
    copied(world, route(rules=LEDGER))
    world.gone(virtual=[grant("one")])
    assert world.settle(HTTPRouteSyncer, "shop/web") == []


def test_copy_stays_as_it_is_until_grants_can_be_listed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.given(virtual=[grant()])
    copied(world, route(rules=LEDGER))
    store = world.pair.informers.store(Side.VIRTUAL, REFERENCE_GRANTS)
    store.gone_live(Key("bank", "web"))
    store.synced = False
    with monkeypatch.context() as starting:
        starting.setattr(world, "_show", lambda: None)
        decision = world.decide(HTTPRouteSyncer, "shop/web")
        assert (decision.outcome, decision.writes) == (Outcome.PENDING, ())
    assert world.settle(HTTPRouteSyncer, "shop/web") == []
    world.gone(virtual=[grant()])
    [write] = world.decide(HTTPRouteSyncer, "shop/web").writes
    assert write.verb is Verb.DELETE


def test_grant_with_more_entries_than_its_definition_allows_gives_the_first(world: World) -> None:
    names = tuple(f"service-{number}" for number in range(40))
    world.given(virtual=[grant(services=names)])
    for name, granted in ((names[15], True), (names[16], False)):
        backend = {"name": name, "namespace": "bank", "port": 80}
        world.given(virtual=[route(rules=[{"backendRefs": [backend]}])])
        if granted:
            assert world.decide(HTTPRouteSyncer, "shop/web").writes
            continue
        with pytest.raises(Refused, match="no ReferenceGrant"):
            world.decide(HTTPRouteSyncer, "shop/web")


@pytest.mark.parametrize(
    "spec",
    [
        {"from": "x", "to": 1},
        {"from": [1, None], "to": [{}]},
        {"from": [{"group": GROUP, "kind": "HTTPRoute", "namespace": {}}], "to": [{"group": ""}]},
        None,
    ],
)
def test_grant_of_an_odd_shape_gives_nothing(world: World, spec: Any) -> None:
    world.given(virtual=[grant() | {"spec": spec}, route(rules=LEDGER)])
    with pytest.raises(Refused, match="no ReferenceGrant"):
        world.decide(HTTPRouteSyncer, "shop/web")


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"parentRefs": [{"name": {}}]}, "spec.parentRefs[0]"),
        ({"parentRefs": [{"name": "web", "namespace": []}]}, "spec.parentRefs[0]"),
        ({"parentRefs": {"name": "web"}}, "spec.parentRefs"),
        ({"parentRefs": ["web"]}, "spec.parentRefs[0]"),
        ({"rules": [{"backendRefs": [{"name": 1}]}]}, "spec.rules[].backendRefs[].name"),
    ],
)
def test_route_of_an_odd_shape_is_refused(world: World, spec: Obj, path: str) -> None:
    world.given(virtual=[route(**spec)])
    with pytest.raises(Refused, match=f"^{re.escape(path)}"):
        world.decide(HTTPRouteSyncer, "shop/web")


@pytest.mark.parametrize(
    "host",
    [
        *("Shop.example.org", "shop.example.org.", "shop.example.org:80", "shop_a.example.org"),
        *(
            "evil.org\n.example.org",
            "evil.org/.example.org",
            "*",
            "*.*.example.org",
            ".example.org",
        ),
        *("a..example.org", "*example.org", "xn--\u00e4.example.org", "", "example.org", 1, None),
    ],
)
def test_host_of_another_spelling_is_refused(world: World, host: Any) -> None:
    world.configure({"sync": {"toHost": {"httpRoutes": {"allowedHosts": ["*.example.org"]}}}})
    world.given(virtual=[route(hostnames=["shop.example.org", host])])
    with pytest.raises(Refused, match=r"^spec\.hostnames\[1\]: only these hosts are allowed"):
        world.decide(HTTPRouteSyncer, "shop/web")


@pytest.mark.parametrize(
    ("mappings", "message"),
    [
        ({"shared": "gateways/web"}, "'shared' is no Gateway of the host"),
        ({"*/shared": "gateways/web"}, "is no Gateway of the host"),
        ({"infra/shared": "gateways"}, "expected namespace/name"),
        ({"infra/shared": "gateways/*"}, "expected namespace/name"),
        ({"infra/*": "gateways/web"}, "expected a namespace"),
        ({"infra/a": "gateways/web", "infra/b": "gateways/web"}, "lead to gateways/web"),
        ({"infra/*": "gateways", "edge/*": "gateways"}, "lead to gateways"),
    ],
)
def test_mapping_that_cant_be_is_refused(mappings: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        GatewayConfig(mappings=mappings)


def test_gateway_with_a_taken_name_does_not_serve() -> None:
    names = GatewayConfig(mappings={"infra/shared": "edge/outer", "edge/*": "edge"}).names
    assert names.host_key(Key("edge", "outer")) == Key("infra", "shared")
    assert names.virtual_key(Key("edge", "outer")) is None


def test_gateway_with_a_mapping_of_its_own_has_no_second_name() -> None:
    names = GatewayConfig(mappings={"infra/shared": "gateways/web", "infra/*": "infra"}).names
    assert names.virtual_key(Key("infra", "shared")) == Key("gateways", "web")
    assert names.host_key(Key("infra", "shared")) is None
    assert names.host_key(Key("infra", "other")) == Key("infra", "other")


def test_backend_elsewhere_is_in_its_own_namespace_where_each_has_one() -> None:
    world = World(translator=PerNamespace)
    for syncer in SYNCERS:
        if syncer is not TenantGatewaySyncer:  # it is off
            world.syncer(syncer)
    world.configure(CONFIG)
    world.given(virtual=[grant(), service("ledger", namespace="bank")])
    for each in ("bank", "shop"):
        world.given(virtual=[namespace(each)]).settle("namespaces", each)
    world.settle("services", "bank/ledger")
    [backend] = copied(world, route(rules=LEDGER))["spec"]["rules"][0]["backendRefs"]
    assert backend["namespace"] == "bank-x-vc-x-vc-ns"
