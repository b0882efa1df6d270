"""The annotations of some kinds that cross by default, and why.

Controllers of the host act on annotations of claims, snapshots, Ingresses and load balancers with
the host's rights. Of thousands of keys only those cross that affect no more than the object's own
traffic, with values of a form that can't break the configuration that the controller shares among
tenants. An operator allows others.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from syncer.api import Context, KeyRules, Obj, Refused, annotations_of

#: The forms of values, as regular expressions of the whole value.
FLAG = "true|false"
SWITCH = "on|off"
NUMBER = "[0-9]{1,9}"
TIME = "[0-9]{1,9}(us|ms|s|m|h|d)?"
WORD = r"[A-Za-z0-9][-A-Za-z0-9._]{0,62}"
WORDS = r"[-A-Za-z0-9_,* ]{1,1024}"
ADDRESSES = r"[0-9A-Fa-f.:/, ]{1,4096}"
ORIGINS = r"[-A-Za-z0-9_.:/,* ]{1,4096}"
URL_PATH = r"/[-A-Za-z0-9._~/]{0,1024}"
CODES = r"[-0-9, ]{1,256}"
ANY = r"(?s:.*)"


class Harmless(NamedTuple):
    """Annotations of a controller that affect only the traffic of the object that has them."""

    controller: str
    #: Why no other tenant is affected.
    why: str
    #: The form of their values, as a regular expression of the whole value.
    form: str
    #: The keys, without wildcards.
    keys: tuple[str, ...]


def _of(prefix: str, *names: str) -> tuple[str, ...]:
    return tuple(prefix + name for name in names)


_NGINX = "nginx.ingress.kubernetes.io/"
_TRAEFIK = "traefik.ingress.kubernetes.io/"
_HAPROXY = "haproxy-ingress.github.io/"
_HAPROXY_TECH = "haproxy.org/"
_ALB = "alb.ingress.kubernetes.io/"
_APP_GATEWAY = "appgw.ingress.kubernetes.io/"
_AWS = "service.beta.kubernetes.io/aws-load-balancer-"
_AZURE = "service.beta.kubernetes.io/azure-load-balancer-"
_DIGITALOCEAN = "service.beta.kubernetes.io/do-loadbalancer-"
_HETZNER = "load-balancer.hetzner.cloud/"
_OPENSTACK = "loadbalancer.openstack.org/"

_PROBES = "it probes the own backends, at the port that the load balancer connects to anyway"
_CONNECTIONS = "it is about connections to the own backends"
_REDIRECTS = "it redirects the own paths to HTTPS"
_NARROWS = "it only narrows who reaches the own paths"
_STICKY = "it is a cookie of the own paths, which the own backends could set, too"
_CORS = "it is a header of the own paths, which the own backends could set, too"

_FOR_PEOPLE = Harmless(
    "any",
    "it is for people",
    ANY,
    ("kubernetes.io/description", "kubernetes.io/change-cause"),
)

CLAIMS = (_FOR_PEOPLE,)

SNAPSHOTS = (_FOR_PEOPLE,)

INGRESSES = (
    _FOR_PEOPLE,
    Harmless(
        "any",
        "it is the class, which `allowedClasses` and the classes that appear limit",
        WORD,
        ("kubernetes.io/ingress.class",),
    ),
    Harmless("GKE", "it only closes the own port 80", FLAG, ("kubernetes.io/ingress.allow-http",)),
    Harmless(
        "ingress-nginx",
        _REDIRECTS,
        FLAG,
        _of(_NGINX, "ssl-redirect", "force-ssl-redirect", "preserve-trailing-slash"),
    ),
    Harmless(
        "ingress-nginx",
        _CONNECTIONS,
        "HTTP|HTTPS|GRPC|GRPCS|AUTO_HTTP|FCGI",
        _of(_NGINX, "backend-protocol"),
    ),
    Harmless(
        "ingress-nginx",
        _CONNECTIONS,
        NUMBER,
        _of(
            _NGINX,
            "proxy-connect-timeout",
            "proxy-read-timeout",
            "proxy-send-timeout",
            "proxy-next-upstream-timeout",
            "proxy-next-upstream-tries",
        ),
    ),
    Harmless("ingress-nginx", _CONNECTIONS, r"1\.[01]", _of(_NGINX, "proxy-http-version")),
    Harmless(
        "ingress-nginx",
        _CONNECTIONS,
        SWITCH,
        _of(_NGINX, "proxy-buffering", "proxy-request-buffering"),
    ),
    Harmless("ingress-nginx", _CONNECTIONS, FLAG, _of(_NGINX, "service-upstream")),
    Harmless("ingress-nginx", _CONNECTIONS, "round_robin|ewma", _of(_NGINX, "load-balance")),
    Harmless(
        "ingress-nginx",
        _NARROWS,
        ADDRESSES,
        _of(
            _NGINX,
            "whitelist-source-range",
            "allowlist-source-range",
            "denylist-source-range",
            "limit-whitelist",
            "limit-allowlist",
        ),
    ),
    Harmless(
        "ingress-nginx",
        _NARROWS,
        NUMBER,
        _of(
            _NGINX,
            "limit-connections",
            "limit-rps",
            "limit-rpm",
            "limit-burst-multiplier",
            "limit-rate",
            "limit-rate-after",
        ),
    ),
    Harmless("ingress-nginx", _STICKY, "cookie", _of(_NGINX, "affinity")),
    Harmless("ingress-nginx", _STICKY, "balanced|persistent", _of(_NGINX, "affinity-mode")),
    Harmless("ingress-nginx", _STICKY, WORD, _of(_NGINX, "session-cookie-name")),
    Harmless("ingress-nginx", _STICKY, URL_PATH, _of(_NGINX, "session-cookie-path")),
    Harmless(
        "ingress-nginx",
        _STICKY,
        NUMBER,
        _of(_NGINX, "session-cookie-max-age", "session-cookie-expires"),
    ),
    Harmless("ingress-nginx", _STICKY, "None|Lax|Strict", _of(_NGINX, "session-cookie-samesite")),
    Harmless(
        "ingress-nginx",
        _STICKY,
        FLAG,
        _of(
            _NGINX,
            "session-cookie-secure",
            "session-cookie-change-on-failure",
            "session-cookie-conditional-samesite-none",
        ),
    ),
    Harmless(
        "ingress-nginx",
        _CORS,
        FLAG,
        _of(_NGINX, "enable-cors", "cors-allow-credentials"),
    ),
    Harmless("ingress-nginx", _CORS, ORIGINS, _of(_NGINX, "cors-allow-origin")),
    Harmless(
        "ingress-nginx",
        _CORS,
        WORDS,
        _of(_NGINX, "cors-allow-methods", "cors-allow-headers", "cors-expose-headers"),
    ),
    Harmless("ingress-nginx", _CORS, NUMBER, _of(_NGINX, "cors-max-age")),
    Harmless(
        "Traefik", "it only closes the own routes to plain HTTP", FLAG, _of(_TRAEFIK, "router.tls")
    ),
    Harmless("Traefik", _CONNECTIONS, "https?|h2c", _of(_TRAEFIK, "service.serversscheme")),
    Harmless(
        "Traefik",
        _CONNECTIONS,
        FLAG,
        _of(_TRAEFIK, "service.passhostheader", "service.nativelb"),
    ),
    Harmless(
        "Traefik",
        _STICKY,
        FLAG,
        _of(
            _TRAEFIK,
            "service.sticky.cookie",
            "service.sticky.cookie.secure",
            "service.sticky.cookie.httponly",
        ),
    ),
    Harmless("Traefik", _STICKY, WORD, _of(_TRAEFIK, "service.sticky.cookie.name")),
    Harmless(
        "Traefik", _STICKY, "none|lax|strict", _of(_TRAEFIK, "service.sticky.cookie.samesite")
    ),
    Harmless("Traefik", _STICKY, NUMBER, _of(_TRAEFIK, "service.sticky.cookie.maxage")),
    Harmless(
        "HAProxy Ingress",
        _NARROWS,
        ADDRESSES,
        _of(
            _HAPROXY,
            "allowlist-source-range",
            "whitelist-source-range",
            "denylist-source-range",
            "limit-whitelist",
        ),
    ),
    Harmless("HAProxy Ingress", _NARROWS, NUMBER, _of(_HAPROXY, "limit-connections", "limit-rps")),
    Harmless("HAProxy Ingress", _REDIRECTS, FLAG, _of(_HAPROXY, "ssl-redirect")),
    Harmless("HAProxy Ingress", _REDIRECTS, "30[12378]", _of(_HAPROXY, "ssl-redirect-code")),
    Harmless(
        "HAProxy Ingress", _CONNECTIONS, "h1|h2|h1-ssl|h2-ssl", _of(_HAPROXY, "backend-protocol")
    ),
    Harmless(
        "HAProxy Ingress",
        _CONNECTIONS,
        "roundrobin|leastconn|source|first",
        _of(_HAPROXY, "balance-algorithm"),
    ),
    Harmless(
        "HAProxy Ingress",
        _CONNECTIONS,
        TIME,
        _of(
            _HAPROXY,
            "timeout-connect",
            "timeout-server",
            "timeout-server-fin",
            "timeout-queue",
            "timeout-tunnel",
        ),
    ),
    Harmless(
        "HAProxy Ingress", _CONNECTIONS, NUMBER, _of(_HAPROXY, "maxconn-server", "maxqueue-server")
    ),
    Harmless("HAProxy Ingress", _STICKY, "cookie", _of(_HAPROXY, "affinity")),
    Harmless("HAProxy Ingress", _STICKY, WORD, _of(_HAPROXY, "session-cookie-name")),
    Harmless(
        "HAProxy Ingress",
        _CORS,
        FLAG,
        _of(_HAPROXY, "cors-enable", "cors-allow-credentials", "hsts"),
    ),
    Harmless("HAProxy Ingress", _CORS, ORIGINS, _of(_HAPROXY, "cors-allow-origin")),
    Harmless(
        "HAProxy Ingress",
        _CORS,
        WORDS,
        _of(_HAPROXY, "cors-allow-methods", "cors-allow-headers", "cors-expose-headers"),
    ),
    Harmless("HAProxy Ingress", _CORS, NUMBER, _of(_HAPROXY, "cors-max-age", "hsts-max-age")),
    Harmless(
        "HAProxy Technologies",
        _NARROWS,
        ADDRESSES,
        _of(
            _HAPROXY_TECH,
            "allow-list",
            "whitelist",
            "deny-list",
            "blacklist",
            "rate-limit-whitelist",
        ),
    ),
    Harmless("HAProxy Technologies", _NARROWS, NUMBER, _of(_HAPROXY_TECH, "rate-limit-requests")),
    Harmless("HAProxy Technologies", _NARROWS, TIME, _of(_HAPROXY_TECH, "rate-limit-period")),
    Harmless("HAProxy Technologies", _REDIRECTS, FLAG, _of(_HAPROXY_TECH, "ssl-redirect")),
    Harmless(
        "HAProxy Technologies", _REDIRECTS, "30[123]", _of(_HAPROXY_TECH, "ssl-redirect-code")
    ),
    Harmless(
        "HAProxy Technologies",
        _CONNECTIONS,
        FLAG,
        _of(_HAPROXY_TECH, "check", "forwarded-for", "server-ssl"),
    ),
    Harmless(
        "HAProxy Technologies",
        _CONNECTIONS,
        TIME,
        _of(_HAPROXY_TECH, "check-interval", "timeout-check", "timeout-server"),
    ),
    Harmless("HAProxy Technologies", _CONNECTIONS, NUMBER, _of(_HAPROXY_TECH, "pod-maxconn")),
    Harmless("HAProxy Technologies", _CONNECTIONS, "h2", _of(_HAPROXY_TECH, "server-proto")),
    Harmless(
        "HAProxy Technologies",
        _CONNECTIONS,
        "roundrobin|leastconn|source|first",
        _of(_HAPROXY_TECH, "load-balance"),
    ),
    Harmless(
        "HAProxy Technologies",
        _CORS,
        FLAG,
        _of(_HAPROXY_TECH, "cors-enable", "cors-allow-credentials"),
    ),
    Harmless("HAProxy Technologies", _CORS, TIME, _of(_HAPROXY_TECH, "cors-max-age")),
    Harmless("AWS ALB", _CONNECTIONS, "HTTPS?", _of(_ALB, "backend-protocol")),
    Harmless("AWS ALB", _CONNECTIONS, "HTTP1|HTTP2|GRPC", _of(_ALB, "backend-protocol-version")),
    Harmless("AWS ALB", _PROBES, "HTTPS?", _of(_ALB, "healthcheck-protocol")),
    Harmless("AWS ALB", _PROBES, URL_PATH, _of(_ALB, "healthcheck-path")),
    Harmless("AWS ALB", _PROBES, CODES, _of(_ALB, "success-codes")),
    Harmless(
        "AWS ALB",
        _PROBES,
        NUMBER,
        _of(
            _ALB,
            "healthcheck-interval-seconds",
            "healthcheck-timeout-seconds",
            "healthy-threshold-count",
            "unhealthy-threshold-count",
        ),
    ),
    Harmless(
        "Azure Application Gateway", _CONNECTIONS, "https?", _of(_APP_GATEWAY, "backend-protocol")
    ),
    Harmless("Azure Application Gateway", _REDIRECTS, FLAG, _of(_APP_GATEWAY, "ssl-redirect")),
    Harmless(
        "Azure Application Gateway",
        _CONNECTIONS,
        FLAG,
        _of(_APP_GATEWAY, "connection-draining", "cookie-based-affinity"),
    ),
    Harmless(
        "Azure Application Gateway",
        _CONNECTIONS,
        NUMBER,
        _of(_APP_GATEWAY, "connection-draining-timeout", "request-timeout"),
    ),
    Harmless(
        "Azure Application Gateway", _PROBES, URL_PATH, _of(_APP_GATEWAY, "health-probe-path")
    ),
    Harmless(
        "Azure Application Gateway", _PROBES, CODES, _of(_APP_GATEWAY, "health-probe-status-codes")
    ),
    Harmless(
        "Azure Application Gateway",
        _PROBES,
        NUMBER,
        _of(
            _APP_GATEWAY,
            "health-probe-interval",
            "health-probe-timeout",
            "health-probe-unhealthy-threshold",
        ),
    ),
)

LOAD_BALANCERS = (
    _FOR_PEOPLE,
    Harmless(
        "Prometheus",
        "it names the own port and path, and the host's own configuration decides whether it is"
        " scraped",
        FLAG,
        ("prometheus.io/scrape", "prometheus.io/probe"),
    ),
    Harmless("Prometheus", "as `prometheus.io/scrape`", NUMBER, ("prometheus.io/port",)),
    Harmless("Prometheus", "as `prometheus.io/scrape`", URL_PATH, ("prometheus.io/path",)),
    Harmless("Prometheus", "as `prometheus.io/scrape`", "https?", ("prometheus.io/scheme",)),
    Harmless(
        "kube-proxy",
        "it prefers the own endpoints of the client's zone",
        "Auto|auto|Disabled|disabled",
        ("service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints"),
    ),
    Harmless("AWS", _PROBES, "TCP|HTTPS?|tcp|https?", _of(_AWS, "healthcheck-protocol")),
    Harmless("AWS", _PROBES, URL_PATH, _of(_AWS, "healthcheck-path")),
    Harmless("AWS", _PROBES, CODES, _of(_AWS, "healthcheck-success-codes")),
    Harmless(
        "AWS",
        _PROBES,
        NUMBER,
        _of(
            _AWS,
            "healthcheck-interval",
            "healthcheck-timeout",
            "healthcheck-healthy-threshold",
            "healthcheck-unhealthy-threshold",
        ),
    ),
    Harmless("AWS", _CONNECTIONS, FLAG, _of(_AWS, "connection-draining-enabled")),
    Harmless(
        "AWS",
        _CONNECTIONS,
        NUMBER,
        _of(_AWS, "connection-draining-timeout", "connection-idle-timeout"),
    ),
    Harmless("AWS", _CONNECTIONS, "tcp|ssl|https?", _of(_AWS, "backend-protocol")),
    Harmless("AWS", _CONNECTIONS, r"\*", _of(_AWS, "proxy-protocol")),
    Harmless("Azure", _CONNECTIONS, NUMBER, _of(_AZURE, "tcp-idle-timeout")),
    Harmless("Azure", _CONNECTIONS, FLAG, _of(_AZURE, "disable-tcp-reset")),
    Harmless("Azure", _PROBES, "[Tt]cp|[Hh]ttps?", _of(_AZURE, "health-probe-protocol")),
    Harmless("Azure", _PROBES, URL_PATH, _of(_AZURE, "health-probe-request-path")),
    Harmless(
        "Azure",
        _PROBES,
        NUMBER,
        _of(_AZURE, "health-probe-interval", "health-probe-num-of-probe"),
    ),
    Harmless("DigitalOcean", _PROBES, "tcp|https?", _of(_DIGITALOCEAN, "healthcheck-protocol")),
    Harmless("DigitalOcean", _PROBES, URL_PATH, _of(_DIGITALOCEAN, "healthcheck-path")),
    Harmless(
        "DigitalOcean",
        _PROBES,
        NUMBER,
        _of(
            _DIGITALOCEAN,
            "healthcheck-check-interval-seconds",
            "healthcheck-response-timeout-seconds",
            "healthcheck-unhealthy-threshold",
            "healthcheck-healthy-threshold",
        ),
    ),
    Harmless("Hetzner", _PROBES, "tcp|https?", _of(_HETZNER, "health-check-protocol")),
    Harmless("Hetzner", _PROBES, URL_PATH, _of(_HETZNER, "health-check-http-path")),
    Harmless("Hetzner", _PROBES, NUMBER, _of(_HETZNER, "health-check-retries")),
    Harmless(
        "Hetzner", _PROBES, TIME, _of(_HETZNER, "health-check-interval", "health-check-timeout")
    ),
    Harmless(
        "Hetzner",
        _CONNECTIONS,
        "round_robin|least_connections",
        _of(_HETZNER, "algorithm-type"),
    ),
    Harmless("OpenStack", _PROBES, FLAG, _of(_OPENSTACK, "enable-health-monitor")),
    Harmless(
        "OpenStack",
        _PROBES,
        NUMBER,
        _of(
            _OPENSTACK,
            "health-monitor-delay",
            "health-monitor-timeout",
            "health-monitor-max-retries",
        ),
    ),
    Harmless(
        "OpenStack",
        _CONNECTIONS,
        NUMBER,
        _of(
            _OPENSTACK,
            "timeout-client-data",
            "timeout-member-connect",
            "timeout-member-data",
            "timeout-tcp-inspect",
        ),
    ),
)


def rules_of(harmless: Iterable[Harmless], *, deny: tuple[str, ...] = ()) -> KeyRules:
    """Return the rules by which only these annotations cross."""
    return KeyRules(allow=tuple(key for each in harmless for key in each.keys), deny=deny)


def refuse_odd_values(ctx: Context, virtual: Obj, harmless: tuple[Harmless, ...]) -> None:
    """Refuse an object one of whose harmless annotations has a value of another form.

    A value of a key that the operator has allowed by its name may have any form.

    Raises:
        Refused: There is such an annotation.
    """
    forms = _forms(harmless)
    for key, value in annotations_of(virtual).items():
        form = forms.get(key)
        if form is None or form.fullmatch(value) or not ctx.metadata.crosses("annotations", key):
            continue
        if not ctx.metadata.is_named("annotations", key):
            why = f"its value isn't of the form {form.pattern}"
            raise Refused(
                f"{why}, with which it can't affect others: change or remove it",
                path=f"metadata.annotations[{key}]",
                reason="NotAllowed",
            )


@lru_cache
def _forms(harmless: tuple[Harmless, ...]) -> dict[str, re.Pattern[str]]:
    """Return the compiled forms of values by key."""
    return {key: re.compile(each.form) for each in harmless for key in each.keys}
