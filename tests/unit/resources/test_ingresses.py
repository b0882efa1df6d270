"""Ingresses: routes go down, addresses come up."""

import pytest

from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import ingress

COPY = "vc-ns/web-x-shop-x-vc"


@pytest.fixture
def on(world: World) -> World:
    return world.configure({"sync": {"toHost": {"ingresses": {"enabled": True}}}})


def test_ingresses_are_off_by_default(world: World) -> None:
    with pytest.raises(ValueError, match="ingresses"):
        world.decide("ingresses", "shop/web")


def test_names_of_services_and_certificates_are_those_of_the_copies(on: World) -> None:
    default = {"defaultBackend": {"service": {"name": "other", "port": {"number": 1}}}, "ingressClassName": "nginx"}
    on.given(virtual=[ingress("web", service="web", tls_secret="cert", spec=default)]).settle("ingresses", "shop/web")
    spec = (on.host("Ingress", COPY) or {})["spec"]
    assert spec["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"] == "web-x-shop-x-vc"
    assert spec["defaultBackend"]["service"]["name"] == "other-x-shop-x-vc"
    assert spec["tls"][0]["secretName"] == "cert-x-shop-x-vc"
    assert spec["ingressClassName"] == "nginx"


def test_hosts_address_flows_up(on: World) -> None:
    on.given(virtual=[ingress("web")]).settle("ingresses", "shop/web")
    status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    on.given(host=[merged(on.host("Ingress", COPY) or {}, {"status": status})]).settle("ingresses", "shop/web")
    assert (on.virtual("Ingress", "shop/web") or {})["status"] == status


def test_host_that_the_tenant_takes_out_of_a_rule_leaves_the_copy(on: World) -> None:
    virtual = ingress("web")
    on.given(virtual=[virtual]).settle("ingresses", "shop/web")
    [rule] = virtual["spec"]["rules"]
    everywhere = merged(virtual, {"spec": {"rules": [{"http": rule["http"]}]}})
    on.given(virtual=[everywhere]).settle("ingresses", "shop/web")
    [rule] = (on.host("Ingress", "vc-ns/web-x-shop-x-vc") or {})["spec"]["rules"]
    assert "host" not in rule
