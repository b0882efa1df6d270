"""The endpoints of a monitor: the objects that they name, and the fields that a tenant may not set."""

from collections.abc import Iterator, Mapping
from typing import Any

from syncer.api import References, Resource
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
    **{f"{part}.{path}": kind for part in ("tlsConfig", "oauth2.tlsConfig") for path, kind in _TLS.items()},
}


def named_in(endpoints: str) -> References:
    """Return the references of all endpoints of a monitor; ``endpoints`` is the field of the spec
    with the endpoints.
    """
    return {f"spec.{endpoints}[].{path}": kind for path, kind in NAMES.items()}


#: Files that Prometheus would read for the tenant, including its own token; and headers whose
#: values would come from the host's Secrets.
_FORBIDDEN = ("bearerTokenFile", "caFile", "certFile", "keyFile", "proxyConnectHeader")


def forbidden(endpoint: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of fields in an endpoint that a tenant may not set."""
    for name, value in endpoint.items() if isinstance(endpoint, dict) else ():
        if name in _FORBIDDEN and value:
            yield path + name
        yield from forbidden(value, f"{path}{name}.")
