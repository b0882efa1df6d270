"""Copies of virtual Ingresses on the host; the host's addresses flow back."""

from typing import ClassVar

from syncer.api import Config, Mirror, References
from syncer.resources.kinds import INGRESSES, SECRETS, SERVICES


class IngressConfig(Config):
    """Whether tenants may publish Services through the host's ingress controllers."""

    enabled: bool = False
    """Whether the kind is synced. Off at first: a tenant's annotations reach the host's ingress controllers."""


class IngressSyncer(Mirror[IngressConfig]):
    """The virtual side owns the routes, the host side the addresses; the class is one of the host's.

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
