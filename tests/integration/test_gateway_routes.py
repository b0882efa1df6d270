"""The package `plugins/gateway-api` between real API servers that have the CRDs of the Gateway API itself, in a daemon
that may do what `syncer rbac` prints. The test plays the host's controller of gateways.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from api import RESOURCES, Api, eventually
from definitions import comes, named, public
from go_modules import downloaded
from plugin_packages import python_path
from scene import OWN_ADDRESSES, Scene

from syncer.api import Key, Obj, dig, key_of, uid_of
from syncer.testing.merge import merged
from syncer.testing.objects import build, service

pytestmark = pytest.mark.controlplane

PACKAGE = Path(__file__).parents[2] / "plugins" / "gateway-api"
#: The version that the package's own tests take.
MODULE = "sigs.k8s.io/gateway-api@v1.6.3"
GROUP = "gateway.networking.k8s.io"
PLURALS = ("gatewayclasses", "gateways", "httproutes", "grpcroutes", "tlsroutes", "referencegrants")
CONTROLLER = "example.org/gateway"
ALLOWED = "*.shop.example.org"
TENANTS: Obj = {"labels": {"tenants": "yes"}}
#: What Gateways of the tenant's own may have.
OWN_GATEWAYS: dict[str, Any] = {"enabled": True, "classes": ["envoy"], "allowedHosts": [ALLOWED]}


@pytest.fixture(scope="module")
def platform(apis: tuple[Api, Api], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A host with two Gateways, one of which serves the virtual cluster, and a daemon without a right too many, which
    brings the CRDs and lets tenants create Gateways.
    """
    made = Scene(*apis, tmp_path_factory.mktemp("platform"))
    crds = gateway_definitions()
    made.definitions += [named(each).name for each in crds]
    routes = {section: {"allowedHosts": [ALLOWED]} for section in ("httpRoutes", "grpcRoutes", "tlsRoutes")}
    sync = {
        "toHost": {**OWN_ADDRESSES["toHost"], **routes, "tenantGateways": OWN_GATEWAYS},
        "fromHost": {
            "gateways": {"mappings": {str(shared(made)): str(shown(made))}},
            "gatewayClasses": {"selector": {"matchLabels": TENANTS["labels"]}},
            "customResourceDefinitions": {"enabled": True, "allow": made.definitions},
        },
    }
    try:
        for each in crds:
            made.host.define(each)
        made.host.make_namespace(shared(made).namespace)
        made.namespace("gateways")
        made.host.create(gateway(shared(made), LISTENERS))
        made.host.create(gateway(closed(made), LISTENERS[:1]))
        running = made.daemon(made.config(user="daemon", sync=sync))
        running.command = ("env", f"PYTHONPATH={python_path([PACKAGE], made.folder)}", *running.command)
        made.grant(running, "daemon")
        running.start()
        for each in crds:
            comes(made, each)
        yield made
    finally:
        made.close()


@pytest.fixture
def shop(platform: Scene) -> Iterator[str]:
    """A virtual namespace; the test fails where the daemon was refused something, or wrote what changed nothing."""
    yield platform.namespace()
    platform.must_be_content()


def gateway_definitions() -> list[Obj]:
    """Return the project's CRDs, with the label by which the daemon brings them."""
    folder = downloaded(MODULE) / "config" / "crd" / "standard"
    texts = [(folder / f"{GROUP}_{plural}.yaml").read_text() for plural in PLURALS]
    return [public(yaml.load(text, yaml.CSafeLoader)) for text in texts]


# -- objects ---------------------------------------------------------------------------------------


def shared(scene: Scene) -> Key:
    """Return the host's Gateway that serves the virtual cluster."""
    return Key(f"infra-{scene.name}", "shared")


def closed(scene: Scene) -> Key:
    """Return the host's Gateway beside it, which doesn't."""
    return Key(f"infra-{scene.name}", "closed")


def shown(scene: Scene) -> Key:
    """Return where the virtual cluster has the shared Gateway."""
    return Key(f"{scene.name}-gateways", "web")


#: On the host.
LISTENERS: list[Obj] = [
    {"name": "http", "port": 80, "protocol": "HTTP"},
    {
        "name": "https",
        "port": 443,
        "protocol": "HTTPS",
        "hostname": ALLOWED,
        "tls": {"mode": "Terminate", "certificateRefs": [{"name": "internal"}]},
        "allowedRoutes": {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"team": "internal"}}}},
    },
    {"name": "tls", "port": 8443, "protocol": "TLS", "tls": {"mode": "Passthrough"}},
]
#: As tenants see them.
SHOWN: list[Obj] = [
    {**LISTENERS[0], "allowedRoutes": {"namespaces": {"from": "All"}}},
    {
        **LISTENERS[1],
        "tls": {"mode": "Terminate", "options": {"gateway.vsyncer.dev/certificates": "of-the-host"}},
        "allowedRoutes": {"namespaces": {"from": "All"}},
    },
    {**LISTENERS[2], "allowedRoutes": {"namespaces": {"from": "All"}}},
]


def gateway(key: Key, listeners: list[Obj]) -> Obj:
    spec = {"gatewayClassName": "envoy", "listeners": listeners}
    return build(RESOURCES["Gateway"], key.name, namespace=key.namespace, spec=spec)


def own_listener(gateway: Key, **parts: Any) -> Obj:
    """Return a listener of a tenant's Gateway, with all that an API server adds."""
    base = {"name": "http", "port": 80, "protocol": "HTTP", "hostname": f"{gateway.namespace}.shop.example.org"}
    return {**base, "allowedRoutes": {"namespaces": {"from": "Same"}}, **parts}


def gateway_class(name: str, **parts: Any) -> Obj:
    spec = {"spec": {"controllerName": CONTROLLER, "description": "for tenants"}}
    return build(RESOURCES["GatewayClass"], name, **merged(spec, parts))


def parent(gateway: Key, **parts: Any) -> Obj:
    """Return a reference to a Gateway, with all that an API server adds."""
    return {"group": GROUP, "kind": "Gateway", "namespace": gateway.namespace, "name": gateway.name, **parts}


def backend(name: str, **parts: Any) -> Obj:
    """Return a reference to a Service, with all that an API server adds."""
    return {"group": "", "kind": "Service", "name": name, "port": 80, "weight": 1, **parts}


def http_rules(name: str) -> list[Obj]:
    mirrored = {field: value for field, value in backend(name).items() if field != "weight"}
    return [
        {
            "matches": [{"path": {"type": "PathPrefix", "value": "/cart"}}],
            "filters": [
                {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "x-shop", "value": "1"}]}},
                {"type": "RequestMirror", "requestMirror": {"backendRef": mirrored, "percent": 10}},
            ],
            "backendRefs": [backend(name, weight=9), backend(name, port=8080)],
            "timeouts": {"request": "5s"},
        }
    ]


def grpc_rules(name: str) -> list[Obj]:
    method = {"type": "Exact", "service": "shop.Cart", "method": "Add"}
    return [{"matches": [{"method": method}], "backendRefs": [backend(name)]}]


def tls_rules(name: str) -> list[Obj]:
    return [{"backendRefs": [backend(name)]}]


#: The rules of a route to a Service, by the kind of routes, with all that an API server adds.
RULES: dict[str, Callable[[str], list[Obj]]] = {
    "HTTPRoute": http_rules,
    "GRPCRoute": grpc_rules,
    "TLSRoute": tls_rules,
}


def route(scene: Scene, key: Key, kind: str = "HTTPRoute", **spec: Any) -> Obj:
    """Return a route of the tenant's to the Service ``web``."""
    base = {
        "parentRefs": [parent(shown(scene))],
        "hostnames": ["web.shop.example.org"],
        "rules": RULES[kind]("web"),
    }
    return build(RESOURCES[kind], key.name, namespace=key.namespace, spec={**base, **spec})


def grant(namespace: str, source: str) -> Obj:
    """Return a ReferenceGrant: HTTPRoutes of another namespace may have the Services of this one."""
    spec = {
        "from": [{"group": GROUP, "kind": "HTTPRoute", "namespace": source}],
        "to": [{"group": "", "kind": "Service"}],
    }
    return build(RESOURCES["ReferenceGrant"], "routes", namespace=namespace, spec=spec)


def condition(of: str, generation: int, **parts: Any) -> Obj:
    """Return a condition as controllers write it."""
    base = {"type": of, "status": "True", "reason": of, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {**base, "observedGeneration": generation, **parts}


def accepted(parent: Obj, generation: int) -> Obj:
    """Return what a controller reports of a route's parent."""
    conditions = [condition("Accepted", generation), condition("ResolvedRefs", generation)]
    return {"parentRef": parent, "controllerName": CONTROLLER, "conditions": conditions}


# -- what they become ------------------------------------------------------------------------------


def generation_of(obj: Obj) -> int:
    found: int = obj["metadata"]["generation"]
    return found


def warning(scene: Scene, obj: Obj, reason: str) -> str:
    """Return the message of a warning about a virtual object, as soon as it is there."""

    def look() -> list[str]:
        events = scene.virtual.list("Event", namespace=key_of(obj).namespace)
        about = [each for each in events if dig(each, "involvedObject.uid") == uid_of(obj)]
        return [each["message"] for each in about if (each["type"], each["reason"]) == ("Warning", reason)]

    return eventually(look, f"there is a warning {reason} about {key_of(obj)}")[0]


def follows(scene: Scene, kind: str, key: Key, wanted: Obj) -> Obj:
    """Return a virtual object, as soon as its spec is this."""
    scene.reported(kind, key, "spec", wanted)
    found = scene.virtual.get(kind, key)
    assert found
    return found


def written_again(scene: Scene, changed: Obj, hostnames: list[str]) -> Obj:
    """Return a copy, as soon as a later write than this change has set its hosts."""

    def look() -> Obj | None:
        found = scene.host.get(changed["kind"], key_of(changed))
        assert found
        is_later = generation_of(found) > generation_of(changed)
        return found if is_later and dig(found, "spec.hostnames") == hostnames else None

    return eventually(look, f"the hosts of {key_of(changed)} are {hostnames}")


# -- tests -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", RULES)
def test_route_goes_down_and_its_tenant_learns_of_its_own_parent_alone(platform: Scene, shop: str, kind: str) -> None:
    key = Key(shop, "web")
    hostnames = [f"{shop}.shop.example.org"]
    platform.virtual.create(service("web", (80, 8080), namespace=shop))
    own = parent(shown(platform), sectionName="https")
    virtual = platform.virtual.create(route(platform, key, kind, parentRefs=[own], hostnames=hostnames))

    copy = platform.copied(kind, key)
    on_host = parent(shared(platform), sectionName="https")
    backend_name = key_of(platform.copied("Service", key)).name
    rules = RULES[kind](backend_name)
    assert copy["spec"] == {"parentRefs": [on_host], "hostnames": hostnames, "rules": rules}

    # The host's change of the copy is undone, so that the copy has had more changes than the tenant's route.
    changed = platform.host.patch(kind, key_of(copy), {"spec": {"hostnames": ["other.shop.example.org"]}})
    latest = generation_of(written_again(platform, changed, hostnames))
    assert latest > generation_of(changed) > generation_of(virtual)

    parents = [accepted(on_host, latest), accepted(parent(closed(platform)), latest)]
    platform.host.patch(kind, key_of(copy), {"status": {"parents": parents}}, subresource="status")
    platform.reported(kind, key, "status.parents", [accepted(own, generation_of(virtual))])

    # Until the host's controller has observed the tenant's later changes, what it reported is about an earlier route.
    for name in ("a", "b"):
        hostnames = [f"{name}.{shop}.shop.example.org"]
        later = platform.virtual.patch(kind, key, {"spec": {"hostnames": hostnames}})
    observed = written_again(platform, changed, hostnames)
    found = platform.virtual.get(kind, key)
    assert found
    assert found["status"]["parents"] == [accepted(own, generation_of(virtual))]
    assert generation_of(later) == generation_of(virtual) + 2
    parents = [accepted(on_host, generation_of(observed))]
    platform.host.patch(kind, key_of(copy), {"status": {"parents": parents}}, subresource="status")
    platform.reported(kind, key, "status.parents", [accepted(own, generation_of(later))])

    platform.virtual.delete(kind, key)
    platform.gone(kind, key)


def test_refused_route_has_the_reason_and_no_copy(platform: Scene, shop: str) -> None:
    elsewhere = Key(platform.namespace(), "own")
    platform.virtual.create(gateway(elsewhere, [own_listener(elsewhere)]))
    refused: dict[str, tuple[dict[str, Any], str]] = {
        "own": (
            {"parentRefs": [parent(elsewhere)]},
            f"spec.parentRefs[0]: not all listeners that this names of the Gateway {elsewhere} take routes of other",
        ),
        "closed": (
            {"parentRefs": [parent(shown(platform)), parent(closed(platform))]},
            f"spec.parentRefs[1]: not all listeners that this names of the Gateway {closed(platform)} take",
        ),
        "greedy": (
            {"hostnames": ["web.shop.example.org", "bank.example.org"]},
            f"spec.hostnames[1]: only these hosts are allowed: {ALLOWED}",
        ),
    }
    for name, (spec, why) in refused.items():
        virtual = platform.virtual.create(route(platform, Key(shop, name), **spec))
        reason = "NotAllowed" if name == "greedy" else "NotAllowedByListeners"
        assert why in warning(platform, virtual, reason)
        assert platform.copy("HTTPRoute", key_of(virtual)) is None

    key = Key(shop, "greedy")
    platform.virtual.patch("HTTPRoute", key, {"spec": {"hostnames": ["web.shop.example.org"]}})
    platform.copied("HTTPRoute", key, "spec.hostnames", ["web.shop.example.org"])


def test_route_has_a_service_of_another_namespace_while_a_reference_grant_lets_it(platform: Scene, shop: str) -> None:
    bank = platform.namespace()
    platform.virtual.create(service("web", namespace=shop))
    platform.virtual.create(service("ledger", namespace=bank))
    key = Key(shop, "web")
    refs = [backend("web"), backend("ledger", namespace=bank)]
    virtual = platform.virtual.create(route(platform, key, rules=[{"backendRefs": refs}]))
    assert f"no ReferenceGrant in the namespace {bank}" in warning(platform, virtual, "RefNotPermitted")
    assert platform.copy("HTTPRoute", key) is None

    given = platform.virtual.create(grant(bank, shop))
    copy = platform.copied("HTTPRoute", key)
    names = [each["name"] for each in copy["spec"]["rules"][0]["backendRefs"]]
    assert names == [key_of(platform.copied("Service", each)).name for each in (key, Key(bank, "ledger"))]
    namespaces = {each.get("namespace", platform.host_namespace) for each in copy["spec"]["rules"][0]["backendRefs"]}
    assert namespaces == {platform.host_namespace}
    assert not platform.host.list("ReferenceGrant"), "all copies are in one namespace, where none is needed"

    platform.virtual.delete("ReferenceGrant", key_of(given))
    platform.gone("HTTPRoute", key)


def test_own_gateway_goes_down_with_its_certificate_and_its_status_comes_up(platform: Scene, shop: str) -> None:
    key = Key(shop, "own")
    data = {"tls.crt": "YQ==", "tls.key": "YQ=="}
    platform.virtual.create(build(RESOURCES["Secret"], "cert", namespace=shop, type="kubernetes.io/tls", data=data))
    reference = {"group": "", "kind": "Secret", "name": "cert"}
    tls = {"mode": "Terminate", "certificateRefs": [reference]}
    listeners = [own_listener(key), own_listener(key, name="https", port=443, protocol="HTTPS", tls=tls)]
    virtual = platform.virtual.create(gateway(key, listeners))

    copy = platform.copied("Gateway", key)
    certificate = key_of(platform.copied("Secret", Key(shop, "cert"))).name
    on_host = {**tls, "certificateRefs": [{**reference, "name": certificate}]}
    assert copy["spec"] == {"gatewayClassName": "envoy", "listeners": [listeners[0], {**listeners[1], "tls": on_host}]}

    why = condition("ResolvedRefs", generation_of(copy), message=f"no Secret {certificate}")
    reported = {"name": "https", "attachedRoutes": 1, "conditions": [why]}
    addresses = [{"type": "IPAddress", "value": "192.0.2.7"}]
    status = {"addresses": addresses, "listeners": [reported]}
    platform.host.patch("Gateway", key_of(copy), {"status": status}, subresource="status")
    why = condition("ResolvedRefs", generation_of(virtual), message="no Secret cert")
    platform.reported("Gateway", key, "status.listeners", [{**reported, "conditions": [why]}])
    platform.reported("Gateway", key, "status.addresses", addresses)

    later = [own_listener(key, hostname="bank.example.org")]
    changed = platform.virtual.patch("Gateway", key, {"spec": {"listeners": later}})
    only = f"spec.listeners[0].hostname: only these hosts are allowed: {ALLOWED}"
    assert only in warning(platform, changed, "NotAllowed")
    found = platform.copy("Gateway", key)
    assert found
    assert found["spec"] == copy["spec"]

    platform.virtual.delete("Gateway", key)
    platform.gone("Gateway", key)
    platform.gone("Secret", Key(shop, "cert"))


def test_route_has_an_own_gateway_of_another_namespace_while_its_listeners_take_it(platform: Scene, shop: str) -> None:
    own = Key(shop, "own")
    platform.virtual.create(gateway(own, [own_listener(own)]))
    copy = platform.copied("Gateway", own)
    web = Key(shop, "web")
    platform.virtual.create(route(platform, web, parentRefs=[parent(own)]))
    platform.copied("HTTPRoute", web, "spec.parentRefs", [parent(key_of(copy))])

    other = Key(platform.namespace(), "web")
    virtual = platform.virtual.create(route(platform, other, parentRefs=[parent(own)]))
    assert f"of the Gateway {own} take routes of other" in warning(platform, virtual, "NotAllowedByListeners")
    assert platform.copy("HTTPRoute", other) is None

    to_all = [own_listener(own, allowedRoutes={"namespaces": {"from": "All"}})]
    platform.virtual.patch("Gateway", own, {"spec": {"listeners": to_all}})
    platform.copied("HTTPRoute", other, "spec.parentRefs", [parent(key_of(copy))])
    found = platform.copy("Gateway", own)
    assert found
    assert found["spec"] == copy["spec"], "all copies are in one namespace"

    platform.virtual.patch("Gateway", own, {"spec": {"listeners": [own_listener(own)]}})
    platform.gone("HTTPRoute", other)
    assert platform.copy("HTTPRoute", web)


def test_shared_gateway_is_shown_without_what_names_objects_of_the_host_and_follows(platform: Scene, shop: str) -> None:
    key = shown(platform)
    wanted = {"gatewayClassName": "envoy", "listeners": SHOWN}
    follows(platform, "Gateway", key, wanted)
    assert not [each for each in platform.virtual.list("Gateway") if key_of(each).name == closed(platform).name]

    platform.virtual.patch("Gateway", key, {"spec": {"listeners": SHOWN[:1]}})
    follows(platform, "Gateway", key, wanted)

    found = platform.host.get("Gateway", shared(platform))
    assert found
    why = condition("Programmed", generation_of(found), status="False", reason="Invalid", message="no Secret internal")
    listener = {"name": "https", "attachedRoutes": 1, "conditions": [why]}
    status = {"addresses": [{"type": "IPAddress", "value": "192.0.2.1"}], "conditions": [why], "listeners": [listener]}
    platform.host.patch("Gateway", shared(platform), {"status": status}, subresource="status")
    platform.reported("Gateway", key, "status.addresses", status["addresses"])
    virtual = platform.virtual.get("Gateway", key)
    assert virtual
    assert "internal" not in json.dumps(virtual["status"])
    [reported] = virtual["status"]["conditions"]
    assert (reported["reason"], reported["observedGeneration"]) == ("Invalid", generation_of(virtual))

    platform.virtual.delete("Gateway", key)
    again = eventually(lambda: platform.virtual.get("Gateway", key), "the Gateway is shown again")
    assert uid_of(again) != uid_of(virtual)

    moved = [{**LISTENERS[0], "port": 8080}, *LISTENERS[1:]]
    platform.host.patch("Gateway", shared(platform), {"spec": {"listeners": moved}})
    follows(platform, "Gateway", key, {**wanted, "listeners": [{**SHOWN[0], "port": 8080}, *SHOWN[1:]]})


def test_gateway_class_is_shown_without_parameters_and_follows(platform: Scene, shop: str) -> None:
    key = Key("", f"envoy-{platform.name}")
    parameters = {"group": "example.org", "kind": "Params", "name": "internal", "namespace": "infra"}
    hidden = platform.host.create(gateway_class(f"hidden-{platform.name}"))
    platform.host.create(gateway_class(key.name, metadata=TENANTS, spec={"parametersRef": parameters}))
    wanted = {"controllerName": CONTROLLER, "description": "for tenants"}
    virtual = eventually(lambda: platform.virtual.get("GatewayClass", key), "the class is shown")
    assert virtual["spec"] == wanted

    platform.virtual.patch("GatewayClass", key, {"spec": {"description": "mine"}})
    changed = follows(platform, "GatewayClass", key, wanted)
    status = {"conditions": [condition("Accepted", 1)]}
    platform.host.patch("GatewayClass", key, {"status": status}, subresource="status")
    status = {"conditions": [condition("Accepted", generation_of(changed))]}
    platform.reported("GatewayClass", key, "status", status)

    # Its controller can't be changed, so the host has another class of this name.
    platform.host.delete("GatewayClass", key)
    other = {**wanted, "controllerName": "example.org/other"}
    platform.host.create(gateway_class(key.name, metadata=TENANTS, spec=other))
    follows(platform, "GatewayClass", key, other)
    platform.host.patch("GatewayClass", key, {"metadata": {"labels": {"tenants": None}}})
    eventually(partial(_is_hidden, platform, key), "the class is shown no more")
    assert _is_hidden(platform, key_of(hidden))


def _is_hidden(scene: Scene, key: Key) -> bool:
    return scene.virtual.get("GatewayClass", key) is None
