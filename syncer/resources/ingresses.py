"""Copies of virtual Ingresses on the host; the host's addresses are copied up."""

from typing import ClassVar

from syncer.api import Config, Mirror, References
from syncer.resources.kinds import INGRESSES, SECRETS, SERVICES


class IngressConfig(Config):
    """The options of Ingresses."""

    enabled: bool = False
    """Whether Ingresses are synced.

    Off by default: a tenant's annotations reach the host's ingress controllers.
    """


class IngressSyncer(Mirror[IngressConfig]):
    """Copies Ingresses; the virtual side owns the routes, the host the addresses.

    The class is one of the host's.

    The Secrets of its certificates are synced with it.
    """

    name = "ingresses"
    resource = INGRESSES
    down = ("spec",)
    up = ("status",)
    references: ClassVar[References] = {
        "spec.defaultBackend.service.name": SERVICES,
        "spec.rules[].http.paths[].backend.service.name": SERVICES,
        "spec.tls[].secretName": SECRETS,
    }
