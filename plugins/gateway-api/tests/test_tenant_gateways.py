"""Gateways of the tenant's own, and routes that have them as parents, without a cluster."""

import re
from typing import Any

import pytest
from vsyncer_gateway_api.gateways import GatewaySyncer, mappings_of
from vsyncer_gateway_api.kinds import GATEWAYS, GROUP, HTTP_ROUTES, REFERENCE_GRANTS
from vsyncer_gateway_api.parents import MOST_PARENTS
from vsyncer_gateway_api.reference_grants import ReferenceGrantSyncer
from vsyncer_gateway_api.routes import HTTPRouteSyncer
from vsyncer_gateway_api.tenant_gateways import (
    MOST_LISTENERS,
    Listeners,
    TenantGatewayConfig,
    TenantGatewaySyncer,
    takes_all_namespaces,
)

from syncer.api import Key, Obj, Outcome, Refused, Side, Verb
from syncer.names import PerNamespace, Unchanged
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import build, namespace

SYNCERS = [GatewaySyncer, TenantGatewaySyncer, HTTPRouteSyncer, ReferenceGrantSyncer]
OPTIONS: dict[str, Any] = {
    "enabled": True,
    "classes": ["envoy"],
    "ports": [80, 8080],
    "allowedHosts": ["*"],
}
CONFIG: dict[str, Any] = {"sync": {"toHost": {"tenantGateways": OPTIONS}}}
ALL = {"namespaces": {"from": "All"}}


def listener(name: str = "http", **parts: Any) -> Obj:
    return {"name": name, "port": 80, "protocol": "HTTP", **parts}


def gateway(name: str = "own", *, namespace: str = "shop", **spec: Any) -> Obj:
    base = {"gatewayClassName": "envoy", "listeners": [listener()]}
    return build(GATEWAYS, name, namespace=namespace, spec={**base, **spec})


def route(*parents: Obj, **spec: Any) -> Obj:
    return build(HTTP_ROUTES, "web", spec={"parentRefs": list(parents), **spec})


OWN = {"name": "own"}
CENTRAL = {"name": "central", "namespace": "infra"}


@pytest.fixture
def world() -> World:
    return World(SYNCERS, config=CONFIG)


def copied(world: World, obj: Obj) -> Obj:
    """Return the copy of a Gateway or of a route."""
    syncer = TenantGatewaySyncer if obj["kind"] == GATEWAYS.kind else HTTPRouteSyncer
    key = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
    world.given(virtual=[obj]).settle(syncer, key)
    copy = world.copy_of(syncer, key)
    assert copy is not None
    return copy


def tightened(world: World, **options: Any) -> Obj | None:
    """Return the copy under other options, once the Gateway itself is refused; None if it went."""
    changed = {"sync": {"toHost": {"tenantGateways": options}}}
    world.configure(changed).given(virtual=[gateway(addresses=[{"value": "192.0.2.1"}])])
    with pytest.raises(Refused):
        world.settle(TenantGatewaySyncer, "shop/own")
    return world.copy_of(TenantGatewaySyncer, "shop/own")


# -- off -------------------------------------------------------------------------------------------


def test_gateways_of_the_tenants_own_stay_in_the_virtual_cluster_by_default() -> None:
    world = World(SYNCERS).given(virtual=[gateway(), route(OWN)])
    assert "tenant-gateways" not in world.pair.controllers
    watched = {(store.side, store.resource) for store in world.pair.informers}
    assert (Side.HOST, GATEWAYS) not in watched
    with pytest.raises(Refused, match="mappings leads no Gateway to shop/own"):
        world.decide(HTTPRouteSyncer, "shop/web")


# -- grants that end -------------------------------------------------------------------------------

TWO = [listener(hostname="a.example.org"), listener("other", hostname="b.example.org", port=8080)]


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({"allowedHosts": ["a.example.org"]}, ["http"]),
        ({"allowedHosts": ["b.example.org"]}, ["other"]),
        ({"ports": [80]}, ["http"]),
        ({"maxListeners": 1}, ["http"]),
    ],
)
def test_listener_that_is_no_longer_allowed_leaves_the_copy(
    world: World, options: Obj, left: list[str]
) -> None:
    copied(world, gateway(listeners=TWO))
    copy = tightened(world, **options)
    assert copy is not None
    assert [each["name"] for each in copy["spec"]["listeners"]] == left


@pytest.mark.parametrize(
    "options",
    [{"classes": ["other"]}, {"classes": []}, {"allowedHosts": []}, {"protocols": ["HTTPS"]}],
    ids=str,
)
def test_copy_with_no_allowed_listener_or_class_is_deleted(world: World, options: Obj) -> None:
    copied(world, gateway(listeners=TWO))
    assert tightened(world, **options) is None


def test_listener_for_any_host_leaves_the_copy_once_hosts_are_listed(world: World) -> None:
    copied(world, gateway(listeners=[listener(), listener("a", hostname="a.example.org")]))
    copy = tightened(world, allowedHosts=["*.example.org"])
    assert copy is not None
    assert [each["name"] for each in copy["spec"]["listeners"]] == ["a"]


def test_parent_of_the_tenants_own_leaves_a_copy_once_none_is_synced(world: World) -> None:
    world.configure({"sync": {"fromHost": {"gateways": {"mappings": {"infra/shared": "web/web"}}}}})
    mapped = {"name": "web", "namespace": "web"}
    copied(world, route(OWN, mapped))
    world.configure({"sync": {"toHost": {"tenantGateways": {"enabled": False}}}})
    world.given(virtual=[route(OWN, useDefaultGateways="All")])
    with pytest.raises(Refused):
        world.settle(HTTPRouteSyncer, "shop/web")
    copy = world.copy_of(HTTPRouteSyncer, "shop/web")
    assert copy is not None
    assert copy["spec"]["parentRefs"] == [{"name": "shared", "namespace": "infra"}]


def test_mapped_parent_leaves_a_copy_beside_one_of_the_tenants_own(world: World) -> None:
    world.configure({"sync": {"fromHost": {"gateways": {"mappings": {"vc-ns/shared": "web/web"}}}}})
    copied(world, route(OWN, {"name": "web", "namespace": "web"}))
    world.configure({"sync": {"fromHost": {"gateways": {"mappings": {"vc-ns/shared": None}}}}})
    world.given(virtual=[route(OWN, useDefaultGateways="All")])
    with pytest.raises(Refused):
        world.settle(HTTPRouteSyncer, "shop/web")
    copy = world.copy_of(HTTPRouteSyncer, "shop/web")
    assert copy is not None
    assert copy["spec"]["parentRefs"] == [{"name": "own-x-shop-x-vc", "namespace": "vc-ns"}]


# -- which routes may have which Gateway -----------------------------------------------------------


def test_mapping_of_a_whole_namespace_leads_to_no_copies(world: World) -> None:
    """A route would attach to the Gateway of another virtual cluster in the same namespace."""
    mappings = {"vc-ns/*": "edge", "vc-ns/named": "edge/named", "infra/*": "infra"}
    world.configure({"sync": {"fromHost": {"gateways": {"mappings": mappings}}}})
    names = mappings_of(world.settings)
    assert names.host_key(Key("edge", "web-x-shop-x-other")) is None
    assert names.virtual_key(Key("vc-ns", "web-x-shop-x-other")) is None
    assert names.host_key(Key("edge", "named")) == Key("vc-ns", "named")
    assert names.host_key(Key("infra", "web")) == Key("infra", "web")
    world.given(virtual=[route({"name": "web-x-shop-x-other", "namespace": "edge"})])
    with pytest.raises(Refused, match=r"^spec\.parentRefs\[0\]"):
        world.decide(HTTPRouteSyncer, "shop/web")


@pytest.mark.parametrize(
    ("parent", "listeners", "wanted"),
    [
        ({}, [listener(allowedRoutes=ALL)], True),
        ({}, [listener(allowedRoutes=ALL), listener("b")], False),
        ({"section": "http"}, [listener(allowedRoutes=ALL), listener("b")], True),
        ({"section": "b"}, [listener(allowedRoutes=ALL), listener("b")], False),
        ({"section": "c"}, [listener(allowedRoutes=ALL)], False),
        ({"port": 80}, [listener(allowedRoutes=ALL), listener("b", port=8080)], True),
        ({"port": 8080}, [listener(allowedRoutes=ALL), listener("b", port=8080)], False),
        ({}, [], False),
        ({}, None, False),
        ({}, {"name": "http"}, False),
        ({}, ["http"], False),
        ({}, [listener(allowedRoutes=[ALL])], False),
        ({}, [listener(allowedRoutes={"namespaces": "All"})], False),
        ({}, [listener(allowedRoutes={"namespaces": {"from": ["All"]}})], False),
        ({}, [listener(str(index), allowedRoutes=ALL) for index in range(65)], False),
    ],
)
def test_listeners_take_routes_of_all_namespaces_only_if_all_that_are_named_do(
    parent: Obj, listeners: Any, wanted: bool
) -> None:
    assert MOST_LISTENERS == 64
    named = Listeners(Key("infra", "own"), parent.get("section"), parent.get("port"))
    assert takes_all_namespaces({"spec": {"listeners": listeners}}, named) is wanted


def test_route_is_woken_when_a_gateway_of_another_namespace_changes(world: World) -> None:
    world.given(virtual=[route(OWN, CENTRAL)])
    central = gateway("central", namespace="infra", listeners=[listener(allowedRoutes=ALL)])
    closed = gateway("central", namespace="infra")
    for change in ({"virtual": [central]}, {"virtual": [closed]}):
        world.woken()
        world.given(**change)
        assert ("httproutes", "shop/web") in {(e.syncer, str(e.key)) for e in world.woken()}
    world.woken()
    world.given(virtual=[gateway()])
    assert "httproutes" not in {each.syncer for each in world.woken()}


def test_copy_of_a_route_stays_as_it_is_until_gateways_can_be_listed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    central = gateway("central", namespace="infra", listeners=[listener(allowedRoutes=ALL)])
    world.given(virtual=[central])
    copied(world, route(CENTRAL))
    store = world.pair.informers.store(Side.VIRTUAL, GATEWAYS)
    store.gone_live(Key("infra", "central"))
    store.synced = False
    with monkeypatch.context() as starting:
        starting.setattr(world, "_show", lambda: None)
        decision = world.decide(HTTPRouteSyncer, "shop/web")
        assert (decision.outcome, decision.writes) == (Outcome.PENDING, ())
    assert world.settle(HTTPRouteSyncer, "shop/web") == []
    world.gone(virtual=[central])
    [write] = world.decide(HTTPRouteSyncer, "shop/web").writes
    assert write.verb is Verb.DELETE


def test_more_parents_than_the_definition_allows_are_not_looked_at(world: World) -> None:
    copied(world, route(*[OWN] * MOST_PARENTS))
    world.given(virtual=[route(*[OWN] * (MOST_PARENTS + 1))])
    with pytest.raises(Refused, match=f"at most {MOST_PARENTS} parents"):
        world.decide(HTTPRouteSyncer, "shop/web")


@pytest.mark.parametrize("name", ["long" * 13, "a-x-b", "a-x"])
def test_gateway_whose_copy_has_a_name_that_cant_be_read_back_is_refused(
    world: World, name: str
) -> None:
    world.given(virtual=[gateway(name), route({"name": name})])
    with pytest.raises(Refused, match=r"^metadata\.name: the name of the Gateway"):
        world.decide(TenantGatewaySyncer, f"shop/{name}")
    with pytest.raises(Refused, match=r"^spec\.parentRefs\[0\]: the name of"):
        world.decide(HTTPRouteSyncer, "shop/web")


def test_gateway_with_the_same_name_on_both_sides_is_refused() -> None:
    """Otherwise a route could have a Gateway of the host's own as a parent by its name."""
    world = World(SYNCERS, config=CONFIG, translator=Unchanged)
    world.given(virtual=[gateway(), route(OWN)])
    with pytest.raises(Refused, match=r"^metadata\.name: the name of the Gateway"):
        world.decide(TenantGatewaySyncer, "shop/own")
    with pytest.raises(Refused, match=r"^spec\.parentRefs\[0\]: the name of"):
        world.decide(HTTPRouteSyncer, "shop/web")


# -- a host namespace for each virtual one ---------------------------------------------------------


def test_listeners_take_copies_alone_where_each_virtual_namespace_has_one_on_the_host() -> None:
    world = World(SYNCERS, config=CONFIG, translator=PerNamespace)
    world.given(host=[_home("infra"), _home("shop")])
    both = [listener(allowedRoutes=ALL), listener("b", port=8080)]
    central = gateway("central", namespace="infra", listeners=both)
    found = copied(world, central)["spec"]["listeners"]
    selector = {"matchLabels": {"vsyncer.dev/cluster": "vc.vc-ns"}}
    assert found[0]["allowedRoutes"] == {"namespaces": {"from": "Selector", "selector": selector}}
    assert found[1]["allowedRoutes"] == {"namespaces": {"from": "Same"}}
    [parent] = copied(world, route({**CENTRAL, "sectionName": "http"}))["spec"]["parentRefs"]
    assert (parent["namespace"], parent["name"]) == ("infra-x-vc-x-vc-ns", "central")


def _home(virtual: str) -> Obj:
    """Return the host namespace of a virtual one."""
    name = f"{virtual}-x-vc-x-vc-ns"
    marks = {
        "vsyncer.dev/virtual-name": virtual,
        "vsyncer.dev/virtual-kind": "Namespace",
        "vsyncer.dev/host-name": name,
    }
    metadata = {"labels": {"vsyncer.dev/cluster": "vc.vc-ns"}, "annotations": marks}
    return merged(namespace(name), {"metadata": metadata})


# -- hostile inputs --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"listeners": None}, "spec.listeners"),
        ({"listeners": []}, "spec.listeners"),
        ({"listeners": {}}, "spec.listeners"),
        ({"listeners": "http"}, "spec.listeners"),
        ({"listeners": [None]}, "spec.listeners[0]"),
        ({"listeners": ["http"]}, "spec.listeners[0]"),
        ({"listeners": [[]]}, "spec.listeners[0]"),
        ({"listeners": [listener(port="80")]}, "spec.listeners[0].port"),
        ({"listeners": [listener(port=True)]}, "spec.listeners[0].port"),
        ({"listeners": [listener(port=[80])]}, "spec.listeners[0].port"),
        ({"listeners": [listener(protocol="http")]}, "spec.listeners[0].protocol"),
        ({"listeners": [listener(protocol="example.org/HTTP")]}, "spec.listeners[0].protocol"),
        ({"listeners": [listener(protocol=["HTTP"])]}, "spec.listeners[0].protocol"),
        ({"listeners": [listener(hostname=["a.example.org"])]}, "spec.listeners[0].hostname"),
        ({"listeners": [listener(hostname="a.example.org\n")]}, "spec.listeners[0].hostname"),
        ({"listeners": [listener(hostname="*")]}, "spec.listeners[0].hostname"),
        ({"listeners": [listener(hostname="*.*.example.org")]}, "spec.listeners[0].hostname"),
        ({"listeners": [listener(allowedRoutes=ALL | {"a": 1})]}, "spec.listeners[0]"),
        ({"listeners": [listener(allowedRoutes="All")]}, "spec.listeners[0].allowedRoutes"),
        ({"listeners": [listener(allowedRoutes={"kinds": ["HTTPRoute"]})]}, "spec.listeners[0]"),
        ({"listeners": [listener(allowedRoutes={"kinds": [{}]})]}, "spec.listeners[0]"),
        ({"listeners": [listener(tls={"certificateRefs": [{"name": {}}]})]}, "spec.listeners[]"),
        ({"listeners": [listener(tls={"certificateRefs": [{"name": 1}]})]}, "spec.listeners[]"),
        ({"gatewayClassName": ["envoy"]}, "spec.gatewayClassName"),
        ({"gatewayClassName": None}, "spec.gatewayClassName"),
    ],
    ids=str,
)
def test_gateway_of_an_odd_shape_is_refused(world: World, spec: Obj, path: str) -> None:
    world.given(virtual=[gateway(**spec)])
    with pytest.raises(Refused, match=f"^{re.escape(path)}"):
        world.decide(TenantGatewaySyncer, "shop/own")


def test_gateway_without_a_spec_is_refused(world: World) -> None:
    world.given(virtual=[build(GATEWAYS, "own")])
    with pytest.raises(Refused, match=r"^spec\.gatewayClassName"):
        world.decide(TenantGatewaySyncer, "shop/own")


def test_forged_mark_makes_no_parent_of_another_tenants_gateway(world: World) -> None:
    forged = {"labels": {"vsyncer.dev/cluster": "vc.vc-ns"}}
    world.given(virtual=[merged(gateway(namespace="vc-ns"), {"metadata": forged})])
    copy = copied(world, route({"name": "own"}))
    assert copy["spec"]["parentRefs"] == [{"name": "own-x-shop-x-vc", "namespace": "vc-ns"}]


def test_grant_for_certificates_wakes_the_gateway(world: World) -> None:
    named = [{"name": "wildcard", "namespace": "certs"}]
    tls = listener(protocol="HTTPS", tls={"certificateRefs": named})
    world.given(virtual=[gateway(listeners=[tls])])
    spec = {
        "from": [{"group": GROUP, "kind": "Gateway", "namespace": "shop"}],
        "to": [{"group": "", "kind": "Secret", "name": "wildcard"}],
    }
    grant = build(REFERENCE_GRANTS, "shop", namespace="certs", spec=spec)
    for change in (world.given, world.gone):
        world.woken()
        change(virtual=[grant])
        assert ("tenant-gateways", "shop/own") in {(e.syncer, str(e.key)) for e in world.woken()}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ports": [0]}, "greater than or equal to 1"),
        ({"ports": [65536]}, "less than or equal to 65535"),
        ({"protocols": ["TCP"]}, "'HTTP', 'HTTPS' or 'TLS'"),
        ({"maxListeners": 0}, "greater than or equal to 1"),
        ({"maxListeners": MOST_LISTENERS + 1}, "less than or equal to 64"),
        ({"allowedHosts": ["*.*"]}, "is no host"),
    ],
    ids=str,
)
def test_option_that_cant_be_is_refused(options: Obj, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        TenantGatewayConfig.model_validate(options)


def test_gateway_of_the_host_appears_beside_those_of_the_tenant_and_has_no_copy(
    world: World,
) -> None:
    mappings = {"infra/shared": "web/shared", "vc-ns/own-x-shop-x-vc": "web/own"}
    world.configure({"sync": {"fromHost": {"gateways": {"mappings": mappings}}}})
    copied(world, gateway())
    world.given(virtual=[namespace("web")], host=[gateway("shared", namespace="infra")])
    world.settle(GatewaySyncer, "web/shared")
    assert world.virtual("Gateway", "web/shared")
    assert world.decide(TenantGatewaySyncer, "web/shared").outcome is Outcome.SKIPPED
    assert world.settle(GatewaySyncer, "web/own") == []
    assert world.virtual("Gateway", "web/own") is None
