"""Annotations of claims, Ingresses and load balancers: harmless ones cross, others if they are allowed."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from syncer.api import Obj, Refused, annotations_of, key_of
from syncer.resources.harmless_annotations import CLAIMS, INGRESSES, LOAD_BALANCERS, Harmless
from syncer.resources.kinds import PERSISTENT_VOLUME_CLAIMS
from syncer.testing import World
from syncer.testing.objects import build, ingress, service


def claim(annotations: Mapping[str, str]) -> Obj:
    return build(PERSISTENT_VOLUME_CLAIMS, "x", metadata={"annotations": dict(annotations)}, spec={})


def route(annotations: Mapping[str, str]) -> Obj:
    return ingress("x", metadata={"annotations": dict(annotations)})


def balancer(annotations: Mapping[str, str]) -> Obj:
    return service("x", metadata={"annotations": dict(annotations)}, spec={"type": "LoadBalancer"})


#: The sections and the objects of the kinds with a list.
KINDS = {
    "persistentVolumeClaims": claim,
    "ingresses": route,
    "services": balancer,
}
NGINX, TRAEFIK, HAPROXY = "nginx.ingress.kubernetes.io/", "traefik.ingress.kubernetes.io/", "haproxy-ingress.github.io/"
ALB, AWS = "alb.ingress.kubernetes.io/", "service.beta.kubernetes.io/aws-load-balancer-"


def crossing(section: str, annotations: Mapping[str, str], **options: Any) -> set[str]:
    """Return the keys on the copy, without our marks.

    Raises:
        Refused: The object is refused.
    """
    given = KINDS[section](annotations)
    config = {"enabled": True, **options}
    world = World(config={"sync": {"toHost": {section: config}}}).given(virtual=[given])
    [write] = world.decide(section.lower(), key_of(given)).writes
    return {key for key in annotations_of(write.obj) if not key.startswith("vsyncer.dev/")}


def allowing(*globs: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {"allow": ["*", *globs]}}}


#: Each harmless key with a value as its controller's documentation has it.
HARMLESS: dict[str, dict[str, str]] = {
    "persistentVolumeClaims": {"kubernetes.io/description": "two\nlines", "kubernetes.io/change-cause": "x"},
    "ingresses": {
        "kubernetes.io/description": "two\nlines",
        "kubernetes.io/change-cause": "x",
        "kubernetes.io/ingress.class": "nginx",
        "kubernetes.io/ingress.allow-http": "false",
        f"{NGINX}ssl-redirect": "true",
        f"{NGINX}force-ssl-redirect": "true",
        f"{NGINX}preserve-trailing-slash": "true",
        f"{NGINX}backend-protocol": "GRPC",
        f"{NGINX}proxy-connect-timeout": "5",
        f"{NGINX}proxy-read-timeout": "3600",
        f"{NGINX}proxy-send-timeout": "3600",
        f"{NGINX}proxy-next-upstream-timeout": "0",
        f"{NGINX}proxy-next-upstream-tries": "3",
        f"{NGINX}proxy-http-version": "1.1",
        f"{NGINX}proxy-buffering": "off",
        f"{NGINX}proxy-request-buffering": "off",
        f"{NGINX}service-upstream": "true",
        f"{NGINX}load-balance": "ewma",
        f"{NGINX}whitelist-source-range": "10.0.0.0/8,2001:db8::/32",
        f"{NGINX}allowlist-source-range": "10.0.0.0/8, 192.0.2.1",
        f"{NGINX}denylist-source-range": "192.0.2.0/24",
        f"{NGINX}limit-whitelist": "192.0.2.0/24",
        f"{NGINX}limit-allowlist": "192.0.2.0/24",
        f"{NGINX}limit-connections": "10",
        f"{NGINX}limit-rps": "10",
        f"{NGINX}limit-rpm": "10",
        f"{NGINX}limit-burst-multiplier": "5",
        f"{NGINX}limit-rate": "100",
        f"{NGINX}limit-rate-after": "100",
        f"{NGINX}affinity": "cookie",
        f"{NGINX}affinity-mode": "persistent",
        f"{NGINX}session-cookie-name": "INGRESSCOOKIE",
        f"{NGINX}session-cookie-path": "/app",
        f"{NGINX}session-cookie-max-age": "172800",
        f"{NGINX}session-cookie-expires": "172800",
        f"{NGINX}session-cookie-samesite": "Lax",
        f"{NGINX}session-cookie-secure": "true",
        f"{NGINX}session-cookie-change-on-failure": "true",
        f"{NGINX}session-cookie-conditional-samesite-none": "true",
        f"{NGINX}enable-cors": "true",
        f"{NGINX}cors-allow-credentials": "true",
        f"{NGINX}cors-allow-origin": "https://*.example.org, http://localhost:8080",
        f"{NGINX}cors-allow-methods": "GET, PUT, POST",
        f"{NGINX}cors-allow-headers": "X-Forwarded-For, Authorization",
        f"{NGINX}cors-expose-headers": "*, X-Custom",
        f"{NGINX}cors-max-age": "600",
        f"{TRAEFIK}router.tls": "true",
        f"{TRAEFIK}service.serversscheme": "h2c",
        f"{TRAEFIK}service.passhostheader": "false",
        f"{TRAEFIK}service.nativelb": "true",
        f"{TRAEFIK}service.sticky.cookie": "true",
        f"{TRAEFIK}service.sticky.cookie.secure": "true",
        f"{TRAEFIK}service.sticky.cookie.httponly": "true",
        f"{TRAEFIK}service.sticky.cookie.name": "session",
        f"{TRAEFIK}service.sticky.cookie.samesite": "lax",
        f"{TRAEFIK}service.sticky.cookie.maxage": "60",
        f"{HAPROXY}allowlist-source-range": "10.0.0.0/8",
        f"{HAPROXY}whitelist-source-range": "10.0.0.0/8",
        f"{HAPROXY}denylist-source-range": "10.0.0.0/8",
        f"{HAPROXY}limit-whitelist": "10.0.0.0/8",
        f"{HAPROXY}limit-connections": "5",
        f"{HAPROXY}limit-rps": "5",
        f"{HAPROXY}ssl-redirect": "true",
        f"{HAPROXY}ssl-redirect-code": "301",
        f"{HAPROXY}backend-protocol": "h2-ssl",
        f"{HAPROXY}balance-algorithm": "leastconn",
        f"{HAPROXY}timeout-connect": "5s",
        f"{HAPROXY}timeout-server": "50s",
        f"{HAPROXY}timeout-server-fin": "50s",
        f"{HAPROXY}timeout-queue": "5s",
        f"{HAPROXY}timeout-tunnel": "1h",
        f"{HAPROXY}maxconn-server": "10",
        f"{HAPROXY}maxqueue-server": "10",
        f"{HAPROXY}affinity": "cookie",
        f"{HAPROXY}session-cookie-name": "session",
        f"{HAPROXY}cors-enable": "true",
        f"{HAPROXY}cors-allow-credentials": "true",
        f"{HAPROXY}hsts": "true",
        f"{HAPROXY}cors-allow-origin": "*",
        f"{HAPROXY}cors-allow-methods": "GET, POST",
        f"{HAPROXY}cors-allow-headers": "Content-Type",
        f"{HAPROXY}cors-expose-headers": "X-Custom",
        f"{HAPROXY}cors-max-age": "600",
        f"{HAPROXY}hsts-max-age": "600",
        "haproxy.org/allow-list": "192.168.1.0/24, 192.168.2.100",
        "haproxy.org/whitelist": "192.168.1.0/24",
        "haproxy.org/deny-list": "192.168.1.0/24",
        "haproxy.org/blacklist": "192.168.1.0/24",
        "haproxy.org/rate-limit-whitelist": "192.168.1.0/24",
        "haproxy.org/rate-limit-requests": "15",
        "haproxy.org/rate-limit-period": "1m",
        "haproxy.org/ssl-redirect": "true",
        "haproxy.org/ssl-redirect-code": "301",
        "haproxy.org/check": "false",
        "haproxy.org/forwarded-for": "true",
        "haproxy.org/server-ssl": "true",
        "haproxy.org/check-interval": "1m",
        "haproxy.org/timeout-check": "5s",
        "haproxy.org/timeout-server": "50s",
        "haproxy.org/pod-maxconn": "30",
        "haproxy.org/server-proto": "h2",
        "haproxy.org/load-balance": "leastconn",
        "haproxy.org/cors-enable": "true",
        "haproxy.org/cors-allow-credentials": "true",
        "haproxy.org/cors-max-age": "1m",
        f"{ALB}backend-protocol": "HTTPS",
        f"{ALB}backend-protocol-version": "GRPC",
        f"{ALB}healthcheck-protocol": "HTTP",
        f"{ALB}healthcheck-path": "/healthz",
        f"{ALB}success-codes": "200-299,404",
        f"{ALB}healthcheck-interval-seconds": "15",
        f"{ALB}healthcheck-timeout-seconds": "5",
        f"{ALB}healthy-threshold-count": "2",
        f"{ALB}unhealthy-threshold-count": "2",
        "appgw.ingress.kubernetes.io/backend-protocol": "https",
        "appgw.ingress.kubernetes.io/ssl-redirect": "true",
        "appgw.ingress.kubernetes.io/connection-draining": "true",
        "appgw.ingress.kubernetes.io/cookie-based-affinity": "true",
        "appgw.ingress.kubernetes.io/connection-draining-timeout": "60",
        "appgw.ingress.kubernetes.io/request-timeout": "20",
        "appgw.ingress.kubernetes.io/health-probe-path": "/healthz",
        "appgw.ingress.kubernetes.io/health-probe-status-codes": "200-399, 401",
        "appgw.ingress.kubernetes.io/health-probe-interval": "20",
        "appgw.ingress.kubernetes.io/health-probe-timeout": "15",
        "appgw.ingress.kubernetes.io/health-probe-unhealthy-threshold": "5",
    },
    "services": {
        "kubernetes.io/description": "two\nlines",
        "kubernetes.io/change-cause": "x",
        "prometheus.io/scrape": "true",
        "prometheus.io/probe": "true",
        "prometheus.io/port": "8080",
        "prometheus.io/path": "/metrics",
        "prometheus.io/scheme": "https",
        "service.kubernetes.io/topology-mode": "Auto",
        "service.kubernetes.io/topology-aware-hints": "auto",
        f"{AWS}healthcheck-protocol": "HTTP",
        f"{AWS}healthcheck-path": "/healthz",
        f"{AWS}healthcheck-success-codes": "200-399",
        f"{AWS}healthcheck-interval": "10",
        f"{AWS}healthcheck-timeout": "6",
        f"{AWS}healthcheck-healthy-threshold": "3",
        f"{AWS}healthcheck-unhealthy-threshold": "3",
        f"{AWS}connection-draining-enabled": "true",
        f"{AWS}connection-draining-timeout": "60",
        f"{AWS}connection-idle-timeout": "60",
        f"{AWS}backend-protocol": "tcp",
        f"{AWS}proxy-protocol": "*",
        "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout": "15",
        "service.beta.kubernetes.io/azure-load-balancer-disable-tcp-reset": "true",
        "service.beta.kubernetes.io/azure-load-balancer-health-probe-protocol": "Http",
        "service.beta.kubernetes.io/azure-load-balancer-health-probe-request-path": "/healthz",
        "service.beta.kubernetes.io/azure-load-balancer-health-probe-interval": "10",
        "service.beta.kubernetes.io/azure-load-balancer-health-probe-num-of-probe": "2",
        "service.beta.kubernetes.io/do-loadbalancer-healthcheck-protocol": "http",
        "service.beta.kubernetes.io/do-loadbalancer-healthcheck-path": "/healthz",
        "service.beta.kubernetes.io/do-loadbalancer-healthcheck-check-interval-seconds": "3",
        "service.beta.kubernetes.io/do-loadbalancer-healthcheck-response-timeout-seconds": "5",
        "service.beta.kubernetes.io/do-loadbalancer-healthcheck-unhealthy-threshold": "3",
        "service.beta.kubernetes.io/do-loadbalancer-healthcheck-healthy-threshold": "5",
        "load-balancer.hetzner.cloud/health-check-protocol": "http",
        "load-balancer.hetzner.cloud/health-check-http-path": "/healthz",
        "load-balancer.hetzner.cloud/health-check-retries": "3",
        "load-balancer.hetzner.cloud/health-check-interval": "15s",
        "load-balancer.hetzner.cloud/health-check-timeout": "10s",
        "load-balancer.hetzner.cloud/algorithm-type": "least_connections",
        "loadbalancer.openstack.org/enable-health-monitor": "true",
        "loadbalancer.openstack.org/health-monitor-delay": "30",
        "loadbalancer.openstack.org/health-monitor-timeout": "5",
        "loadbalancer.openstack.org/health-monitor-max-retries": "1",
        "loadbalancer.openstack.org/timeout-client-data": "50000",
        "loadbalancer.openstack.org/timeout-member-connect": "5000",
        "loadbalancer.openstack.org/timeout-member-data": "50000",
        "loadbalancer.openstack.org/timeout-tcp-inspect": "0",
    },
}
LISTS: dict[str, tuple[Harmless, ...]] = {
    "persistentVolumeClaims": CLAIMS,
    "ingresses": INGRESSES,
    "services": LOAD_BALANCERS,
}


@pytest.mark.parametrize("section", LISTS)
def test_each_harmless_annotation_crosses(section: str) -> None:
    listed = [key for each in LISTS[section] for key in each.keys]
    assert set(HARMLESS[section]) == set(listed), "each has a value here"
    assert len(listed) == len(set(listed)), "none is listed twice"
    assert crossing(section, HARMLESS[section]) == set(listed)


#: What ends a value in the configuration of a controller, and begins something of the tenant's.
ENDINGS = ("1;}\nserver{", "$(id)", "`x`", '"', "{{.}}", "on\n", "a;", "a\\", "#", "\x00")
OF_CONTROLLERS = [each for each in (*INGRESSES, *LOAD_BALANCERS) if each.controller != "any"]


@pytest.mark.parametrize("harmless", OF_CONTROLLERS, ids=lambda each: each.keys[0])
def test_no_form_allows_the_end_of_a_directive(harmless: Harmless) -> None:
    assert [ending for ending in ENDINGS if re.fullmatch(harmless.form, ending)] == []


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("ingresses", f"{NGINX}proxy-read-timeout", "1;}\nserver{"),
        ("ingresses", f"{NGINX}proxy-buffering", "true"),
        ("ingresses", "haproxy.org/allow-list", "patterns/../etc"),
        ("services", f"{AWS}healthcheck-path", "/x y"),
    ],
)
def test_harmless_annotation_of_another_form_is_refused(section: str, key: str, value: str) -> None:
    with pytest.raises(Refused, match=rf"^metadata\.annotations\[{re.escape(key)}\]: its value isn't of the form"):
        crossing(section, {key: value})


def test_value_of_a_key_that_the_operator_names_may_have_any_form() -> None:
    key = f"{NGINX}cors-allow-origin"
    odd = {key: r"~^https://(a|b)\.example\.org$"}
    with pytest.raises(Refused, match="its value isn't of the form"):
        crossing("ingresses", odd)
    assert crossing("ingresses", odd, **allowing(key)) == {key}


#: Keys by which provisioners import, clone or open a volume that the tenant names.
OF_STORAGE = (
    "trident.netapp.io/importOriginalName",
    "trident.netapp.io/importBackendUUID",
    "trident.netapp.io/notManaged",
    "trident.netapp.io/cloneFromPVC",
    "nfs.io/storage-path",
    "cdi.kubevirt.io/storage.import.endpoint",
    "k8s.io/CloneRequest",
    "px/secret-name",
    "volume.beta.kubernetes.io/storage-class",
    "example.org/of-a-provisioner-that-nobody-knows",
)


def test_annotation_of_a_claim_that_isnt_harmless_stays_behind() -> None:
    assert crossing("persistentVolumeClaims", dict.fromkeys(OF_STORAGE, "x")) == set()
    assert crossing("persistentVolumeClaims", dict.fromkeys(OF_STORAGE, "x"), **allowing("nfs.io/*")) == {
        "nfs.io/storage-path"
    }


def test_tenant_hears_which_annotations_of_a_claim_stay_behind() -> None:
    world = World().given(virtual=[claim({"nfs.io/storage-path": "../other", "kubernetes.io/description": "d"})])
    assert world.left_out("persistentvolumeclaims", "shop/x") == ("metadata.annotations[nfs.io/storage-path]",)


#: Keys of ingress controllers that take another's host, path, class, certificate or objects, turn a protection of the
#: host off, or use what all tenants share; and some that are only unknown.
OF_INGRESSES = (
    "kubernetes.io/ingress.regional-static-ip-name",
    "kubernetes.io/ingress.existLbId",
    "kubernetes.azure.com/tls-cert-keyvault-uri",
    "oci-native-ingress.oraclecloud.com/certificate-ocid",
    "zalando.org/aws-load-balancer-ssl-cert",
    "alb.networking.azure.io/alb-name",
    "higress.io/destination",
    "projectcontour.io/response-timeout",
    "route.openshift.io/termination",
    "haproxy.router.openshift.io/rewrite-target",
    f"{NGINX}mirror-host",
    f"{NGINX}rewrite-target",
    f"{NGINX}use-regex",
    f"{NGINX}from-to-www-redirect",
    f"{NGINX}enable-global-auth",
    f"{NGINX}enable-modsecurity",
    f"{NGINX}canary",
    f"{NGINX}proxy-buffer-size",
    f"{NGINX}configuration-snippet",
    f"{TRAEFIK}router.pathmatcher",
    f"{TRAEFIK}router.priority",
    f"{TRAEFIK}router.entrypoints",
    f"{HAPROXY}redirect-from",
    f"{HAPROXY}health-check-addr",
    "haproxy.org/request-redirect",
    f"{ALB}group.name",
    f"{ALB}scheme",
    "appgw.ingress.kubernetes.io/override-frontend-port",
    "unheard-of-ingress.example.org/anything",
)


@pytest.mark.parametrize("key", OF_INGRESSES)
def test_ingress_is_refused_if_settings_of_its_controller_stay_behind(key: str) -> None:
    with pytest.raises(Refused, match=rf"^metadata\.annotations\[{re.escape(key)}\]: the host's policy keeps"):
        crossing("ingresses", {key: "x"})


@pytest.mark.parametrize("key", OF_INGRESSES)
def test_ingress_has_an_annotation_that_the_operator_names(key: str) -> None:
    assert crossing("ingresses", {key: "x"}, **allowing(key)) == {key}


def test_pattern_lets_a_family_of_a_controller_through() -> None:
    given = {f"{ALB}actions.one": "{}", f"{ALB}actions.two": "{}", f"{ALB}healthcheck-path": "/"}
    assert crossing("ingresses", given, **allowing(f"{ALB}actions.*")) == set(given)
    other = {**given, f"{ALB}group.name": "shared"}
    with pytest.raises(Refused, match=r"group\.name"):
        crossing("ingresses", other, **allowing(f"{ALB}actions.*"))


def test_other_annotations_of_an_ingress_stay_behind() -> None:
    given = {"example.org/team": "x", "external-dns.alpha.kubernetes.io/hostname": "bank.example.org"}
    assert crossing("ingresses", given) == set()
    assert crossing("ingresses", given, **allowing()) == set(), "the asterisk keeps the list, and adds nothing"
    assert crossing("ingresses", given, **allowing("example.org/*")) == {"example.org/team"}


#: Keys by which a load balancer takes an address, a network, a certificate or another's balancer.
OF_LOAD_BALANCERS = (
    "service.antrea.io/external-ip-pool",
    "loxilb.io/lbmode",
    "service.citrix.com/frontend-ip",
    "akocrd.ako.vmware.com/l4rule",
    "ncp/ip_pool",
    "metal.equinix.com/network-ipv4",
    "cloudprovider.harvesterhci.io/ipam",
    "vks.vngcloud.vn/load-balancer-id",
    "networking.resources.gardener.cloud/namespace-selectors",
    "multicluster.kubernetes.io/service-imported-from",
    f"{AWS}scheme",
    f"{AWS}ssl-cert",
    "service.beta.kubernetes.io/azure-load-balancer-internal",
    "networking.gke.io/load-balancer-type",
)


@pytest.mark.parametrize("key", OF_LOAD_BALANCERS)
def test_load_balancer_without_its_configuration_is_refused(key: str) -> None:
    with pytest.raises(Refused, match=rf"^metadata\.annotations\[{re.escape(key)}\]: the host's policy keeps"):
        crossing("services", {key: "x"})
    assert crossing("services", {key: "x"}, **allowing(key)) == {key}


def test_other_annotations_stay_behind_on_load_balancers_alone() -> None:
    given = {"example.org/of-an-unknown-controller": "x"}
    assert crossing("services", given) == set()
    assert crossing("services", given, **allowing("example.org/*")) == set(given)
    world = World().given(virtual=[service("x", metadata={"annotations": given})])
    [write] = world.decide("services", "shop/x").writes
    assert given.items() <= annotations_of(write.obj).items(), "a Service of another type keeps it"
