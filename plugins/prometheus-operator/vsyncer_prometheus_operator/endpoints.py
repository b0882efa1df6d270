"""The endpoints of a monitor: the objects that they name, and fields that tenants may not set."""

import re
from collections.abc import Container, Mapping
from typing import Any

from syncer.api import Obj, References, Refused, Resource
from vsyncer_prometheus_operator.kinds import CONFIG_MAPS, SECRETS

_TLS = {
    "ca.secret.name": SECRETS,
    "ca.configMap.name": CONFIG_MAPS,
    "cert.secret.name": SECRETS,
    "cert.configMap.name": CONFIG_MAPS,
    "keySecret.name": SECRETS,
}

#: The references in an endpoint, in the monitor's namespace. (The API reference of
#: prometheus-operator, v1.)
NAMES: Mapping[str, Resource] = {
    "authorization.credentials.name": SECRETS,
    "basicAuth.username.name": SECRETS,
    "basicAuth.password.name": SECRETS,
    "bearerTokenSecret.name": SECRETS,
    "oauth2.clientId.secret.name": SECRETS,
    "oauth2.clientId.configMap.name": CONFIG_MAPS,
    "oauth2.clientSecret.name": SECRETS,
    **{
        f"{part}.{path}": kind
        for part in ("tlsConfig", "oauth2.tlsConfig")
        for path, kind in _TLS.items()
    },
}


def named_in(endpoints: str) -> References:
    """Return the references of all endpoints of a monitor; ``endpoints`` is the field of the spec
    with the endpoints.
    """
    return {f"spec.{endpoints}[].{path}": kind for path, kind in NAMES.items()}


#: The other fields of an endpoint that tenants may set: they are about the target, which is the
#: tenant's own.
FIELDS = (
    *("port", "portNumber", "targetPort", "path", "scheme", "params", "interval", "scrapeTimeout"),
    *("honorLabels", "honorTimestamps", "trackTimestampsStaleness", "filterRunning", "enableHttp2"),
    *("followRedirects", "relabelings", "metricRelabelings", "authorization.type"),
    *("oauth2.scopes", "oauth2.tokenUrl", "oauth2.endpointParams"),
    *(
        f"{part}.{field}"
        for part in ("tlsConfig", "oauth2.tlsConfig")
        for field in ("serverName", "insecureSkipVerify", "minVersion", "maxVersion")
    ),
    *(path.removesuffix("name") + part for path in NAMES for part in ("key", "optional")),
)

#: Fields that a tenant might well ask for, with the reason why they aren't synced.
_FILE = (
    "is a file of the Prometheus that scrapes, which is the host's. Use a Secret of yours instead"
)
_PROXY = "would have the host's Prometheus connect to any address"
REFUSED = dict.fromkeys(("bearerTokenFile", "caFile", "certFile", "keyFile"), _FILE) | {
    "proxyConnectHeader": "has values of Secrets whose names can't be translated",
    "proxyUrl": _PROXY,
    "proxyFromEnvironment": _PROXY,
}


def refuse(endpoint: Any, path: str, *, token_urls: Container[str]) -> None:
    """Refuse the fields of an endpoint that a tenant may not set.

    Args:
        endpoint: The endpoint, or a part of it.
        path: Its path in the monitor.
        token_urls: The addresses that the host's Prometheus may get tokens from.

    Raises:
        Refused: There is such a field.
    """
    for name, value in endpoint.items() if isinstance(endpoint, dict) else ():
        if name in REFUSED and value:
            raise Refused(REFUSED[name], path=f"{path}.{name}")
        if name == "relabelings":
            _refuse_other_targets(value, f"{path}.{name}")
        elif name in ("tlsConfig", "oauth2"):
            refuse(value, f"{path}.{name}", token_urls=token_urls)
        if (
            name == "oauth2"
            and value
            and (not isinstance(value, dict) or value.get("tokenUrl") not in token_urls)
        ):
            raise Refused(
                f"{_PROXY}, unless the option tokenUrls lists it", path=f"{path}.oauth2.tokenUrl"
            )


# -- intervals -------------------------------------------------------------------------------------

#: The units of Prometheus, in seconds, and an interval of them, each unit at most once.
#: (https://prometheus.io/docs/prometheus/latest/configuration/configuration/, "duration")
_UNITS = {
    "y": 31_536_000.0,
    "w": 604_800.0,
    "d": 86_400.0,
    "h": 3600.0,
    "m": 60.0,
    "s": 1.0,
    "ms": 0.001,
}
_INTERVAL = re.compile("".join(f"(?:([0-9]{{1,9}}){unit})?" for unit in _UNITS))


def refuse_short(endpoint: Any, path: str, *, least: float) -> None:
    """Refuse an endpoint that is scraped more often than every ``least`` seconds.

    Without an interval it is scraped as often as the host's Prometheus says.

    Raises:
        Refused: Its interval is shorter, or no interval.
    """
    given = endpoint.get("interval") if isinstance(endpoint, dict) else None
    if not given:
        return
    found = _INTERVAL.fullmatch(str(given))
    if found is None:
        raise Refused("is no interval of Prometheus, such as 30s or 1m30s", path=f"{path}.interval")
    parts = zip(found.groups(), _UNITS.values(), strict=True)
    if sum(float(count or 0) * unit for count, unit in parts) < least:
        raise Refused(f"must be at least {least:g}s (leastInterval)", path=f"{path}.interval")


# -- relabelings -----------------------------------------------------------------------------------

#: Actions that write a label. (https://prometheus.io/docs/prometheus/latest/configuration/configuration/#relabel_config)
_WRITES = ("replace", "lowercase", "uppercase", "hashmod")
#: Names of labels that a relabeling may write: those without special meaning, temporary ones, and
#: those that are fields of an endpoint anyway. ``__address__`` would have any address scraped.
_WRITABLE = re.compile(r"(?:(?!__|_?\$)|__tmp|__param_|__metrics_path__$|__scheme__$).*", re.DOTALL)
#: The only ``labelmap``: labels of objects, whose names begin with a letter or a digit.
_LABELS = re.compile(r"__meta_kubernetes_[a-z]+_label_\(\.[+*]\)")


def _refuse_other_targets(relabelings: Any, path: str) -> None:
    """Refuse a relabeling that writes a label with a meaning for Prometheus.

    Raises:
        Refused: There is one.
    """
    for index, each in enumerate(relabelings if isinstance(relabelings, list) else ()):
        if not isinstance(each, dict):
            continue
        action = str(each.get("action") or "replace").lower()
        if action in _WRITES and not _WRITABLE.match(str(each.get("targetLabel") or "")):
            raise Refused(
                "may not write a label that begins with __, but for __tmp",
                path=f"{path}[{index}].targetLabel",
            )
        if action == "labelmap" and not _maps_safely(each):
            why = (
                "labelmap is only possible from labels, as in __meta_kubernetes_pod_label_(.+),"
                " or to a fixed beginning"
            )
            raise Refused(why, path=f"{path}[{index}].regex")


def _maps_safely(relabeling: Obj) -> bool:
    replacement = str(relabeling.get("replacement") or "$1")
    if replacement in ("$1", "${1}"):
        return _LABELS.fullmatch(str(relabeling.get("regex") or "")) is not None
    return _WRITABLE.match(replacement) is not None
