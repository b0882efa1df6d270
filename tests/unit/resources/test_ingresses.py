"""Ingresses: routes go down, addresses come up."""

import re

import pytest

from syncer.api import Obj, Refused
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


AUTH = "nginx.ingress.kubernetes.io/auth-tls-secret"


def test_ingress_without_its_authentication_is_refused(on: World) -> None:
    on.given(virtual=[ingress("web", metadata={"annotations": {AUTH: "vc-ns/virtual-kubeconfig"}})])
    with pytest.raises(Refused, match=rf"^metadata.annotations\[{AUTH}\]: the host's policy keeps"):
        on.decide("ingresses", "shop/web")
    on.configure({"sync": {"toHost": {"ingresses": {"metadata": {"annotations": {"allow": ["*", AUTH]}}}}}})
    [write] = on.decide("ingresses", "shop/web").writes
    assert write.obj["metadata"]["annotations"][AUTH] == "vc-ns/virtual-kubeconfig-x-vc-ns-x-vc", "none of the host's"


NGINX = "nginx.ingress.kubernetes.io/"


@pytest.mark.parametrize(
    ("ending", "given", "expected"),
    [
        ("auth-secret", "users", "users-x-shop-x-vc"),
        ("auth-tls-secret", "shop/ca", "vc-ns/ca-x-shop-x-vc"),
        ("proxy-ssl-secret", "other/ca", "vc-ns/ca-x-other-x-vc"),
        ("custom-headers", "shop/headers", "vc-ns/headers-x-shop-x-vc"),
        ("default-backend", "sorry", "sorry-x-shop-x-vc"),
    ],
)
def test_annotation_that_is_allowed_names_the_copy(on: World, ending: str, given: str, expected: str) -> None:
    key = NGINX + ending
    on.configure({"sync": {"toHost": {"ingresses": {"metadata": {"annotations": {"allow": ["*", key]}}}}}})
    on.given(virtual=[ingress("web", metadata={"annotations": {key: given}})]).settle("ingresses", "shop/web")
    assert (on.host("Ingress", COPY) or {})["metadata"]["annotations"][key] == expected


def test_annotation_with_names_in_a_text_is_refused(on: World) -> None:
    key = "alb.ingress.kubernetes.io/actions.forward"
    on.configure({"sync": {"toHost": {"ingresses": {"metadata": {"annotations": {"allow": ["*", key]}}}}}})
    text = '{"type":"forward","forwardConfig":{"targetGroups":[{"serviceName":"kube-dns"}]}}'
    on.given(virtual=[ingress("web", metadata={"annotations": {key: text}})])
    with pytest.raises(Refused, match="names a Service, but the copy of the Service has another name"):
        on.decide("ingresses", "shop/web")


def routes(host: str | None = None, *, tls: str = "", default: bool = False, class_: str | None = None) -> Obj:
    """Return a spec whose only rule serves a host, or all."""
    rule = {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web"}}}]}}
    spec: Obj = {"rules": [rule if host is None else {"host": host, **rule}]}
    spec |= {"tls": [{"hosts": [tls]}]} if tls else {}
    spec |= {"defaultBackend": {"service": {"name": "web"}}} if default else {}
    return spec | ({"ingressClassName": class_} if class_ else {})


HOSTS = ["shop.example.org", "*.shop.example.org"]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        (routes("shop.example.org", tls="a.b.shop.example.org"), ""),
        (routes("*.shop.example.org"), ""),
        (routes("bank.example.org"), "spec.rules[0].host"),
        (routes("ashop.example.org"), "spec.rules[0].host"),
        (routes("*.example.org"), "spec.rules[0].host"),
        (routes(), "spec.rules[0].host"),
        (routes("shop.example.org", tls="bank.example.org"), "spec.tls[0].hosts[0]"),
        (routes("shop.example.org", default=True), "spec.defaultBackend"),
    ],
)
def test_hosts_may_be_limited(on: World, spec: Obj, path: str) -> None:
    on.configure({"sync": {"toHost": {"ingresses": {"allowedHosts": HOSTS}}}})
    on.given(virtual=[ingress("web", metadata={}) | {"spec": spec}])
    if not path:
        assert on.decide("ingresses", "shop/web").writes
        return
    with pytest.raises(Refused, match=rf"^{re.escape(path)}: .*only these hosts are allowed: shop.example.org"):
        on.decide("ingresses", "shop/web")


@pytest.mark.parametrize(
    ("class_", "annotation", "path"),
    [
        ("public", None, ""),
        (None, "public", ""),
        ("internal", None, "spec.ingressClassName"),
        ("public", "internal", "metadata.annotations[kubernetes.io/ingress.class]"),
        (None, None, "spec.ingressClassName"),
    ],
)
def test_classes_may_be_limited(on: World, class_: str | None, annotation: str | None, path: str) -> None:
    on.configure({"sync": {"toHost": {"ingresses": {"allowedClasses": ["public"]}}}})
    annotations = {"kubernetes.io/ingress.class": annotation} if annotation else {}
    on.given(virtual=[ingress("web", metadata={"annotations": annotations}) | {"spec": routes(class_=class_)}])
    if not path:
        assert on.decide("ingresses", "shop/web").writes
        return
    with pytest.raises(Refused, match=rf"^{re.escape(path)}: .*use public"):
        on.decide("ingresses", "shop/web")


CONTOUR = "projectcontour.io/ingress.class"


@pytest.mark.parametrize("allow", [[], ["*", CONTOUR]])
def test_class_in_any_annotation_that_a_controller_reads_is_judged(on: World, allow: list[str]) -> None:
    section = {"allowedClasses": ["public"], "metadata": {"annotations": {"allow": allow}}}
    on.configure({"sync": {"toHost": {"ingresses": section}}})
    on.given(
        virtual=[ingress("web", metadata={"annotations": {CONTOUR: "internal"}}) | {"spec": routes(class_="public")}]
    )
    with pytest.raises(Refused, match=r"projectcontour\.io/ingress\.class"):
        on.decide("ingresses", "shop/web")


def test_class_that_stays_behind_is_no_class(on: World) -> None:
    key = "any.example.org/ingress.class"
    on.configure({"sync": {"toHost": {"ingresses": {"allowedClasses": ["public"]}}}})
    on.given(virtual=[ingress("web", metadata={"annotations": {key: "public"}}) | {"spec": routes()}])
    with pytest.raises(Refused, match=r"^spec\.ingressClassName: a class is required"):
        on.decide("ingresses", "shop/web")


LIMITS: dict[str, Obj] = {"hosts": {"allowedHosts": ["shop.example.org"]}, "classes": {"allowedClasses": ["public"]}}


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize(
    "odd", ["`) || HostRegexp(`.+", "{", "}", " ", "\t", "\n", ";", "'", '"', "\\", "#", "<", "\u2028"]
)
def test_path_that_could_end_a_rule_is_refused_where_hosts_or_classes_are_limited(
    on: World, limit: str, odd: str
) -> None:
    spec = routes("shop.example.org", class_="public")
    spec["rules"][0]["http"]["paths"][0]["path"] = f"/x{odd}"
    on.given(virtual=[ingress("web", metadata={}) | {"spec": spec}])
    assert on.decide("ingresses", "shop/web").writes, "without a limit the tenant may serve anything"
    on.configure({"sync": {"toHost": {"ingresses": LIMITS[limit]}}})
    with pytest.raises(Refused, match=r"^spec\.rules\[0\]\.http\.paths\[0\]\.path: where hosts or classes are limited"):
        on.decide("ingresses", "shop/web")


@pytest.mark.parametrize(
    "path", ["/", "/a.b-c_d/~e", "/%7Bid%7D", "/api(/|$)(.*)", "/a/[^/]+/b?", "/v1/users:list@now,x=1"]
)
def test_path_of_a_url_or_an_expression_is_kept(on: World, path: str) -> None:
    on.configure({"sync": {"toHost": {"ingresses": {**LIMITS["hosts"], **LIMITS["classes"]}}}})
    spec = routes("shop.example.org", class_="public")
    spec["rules"][0]["http"]["paths"][0]["path"] = path
    on.given(virtual=[ingress("web", metadata={}) | {"spec": spec}])
    [write] = on.decide("ingresses", "shop/web").writes
    assert write.obj["spec"]["rules"][0]["http"]["paths"][0]["path"] == path


@pytest.mark.parametrize("host", ["*", "Shop.example.org", "a*.example.org", "https://shop.example.org"])
def test_pattern_that_is_no_host_is_refused(on: World, host: str) -> None:
    with pytest.raises(ValueError, match="is no host"):
        on.configure({"sync": {"toHost": {"ingresses": {"allowedHosts": [host]}}}})


def test_certificate_that_the_hosts_authorities_would_sign_is_not_asked_for(on: World) -> None:
    issuer, class_ = "cert-manager.io/cluster-issuer", "kubernetes.io/ingress.class"
    on.given(virtual=[ingress("web", tls_secret="cert", metadata={"annotations": {issuer: "corp", class_: "nginx"}})])
    [write] = on.decide("ingresses", "shop/web").writes
    assert issuer not in write.obj["metadata"]["annotations"], "cert-manager of the tenant acts on it"
    assert write.obj["metadata"]["annotations"][class_] == "nginx"


RESOURCE = {"resource": {"apiGroup": "k8s.example.com", "kind": "Bucket", "name": "the-hosts-own"}}
PATHS = [{"path": "/", "pathType": "Prefix", "backend": each} for each in ({"service": {"name": "web"}}, RESOURCE)]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"defaultBackend": RESOURCE}, "spec.defaultBackend.resource"),
        ({"rules": [{"host": "a"}, {"http": {"paths": PATHS}}]}, "spec.rules[1].http.paths[1].backend.resource"),
    ],
)
def test_backend_that_is_another_object_than_a_service_is_refused(on: World, spec: Obj, path: str) -> None:
    on.given(virtual=[ingress("web", spec=spec)])
    with pytest.raises(Refused, match=rf"^{re.escape(path)}: its name would refer to an object of the host"):
        on.decide("ingresses", "shop/web")


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
