"""The ``networking`` section: the network settings that pods of a virtual cluster are given."""

import ipaddress
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from syncer.api.dns_names import ServiceKey, Subdomain
from syncer.api.durations import OptionType
from syncer.api.section import Section
from syncer.remembered import REMEMBERED


def _cidr(value: Any) -> Any:
    if isinstance(value, str):
        try:
            ipaddress.ip_network(value)
        except ValueError as error:
            raise ValueError(
                f"expected a range of addresses such as 10.96.0.0/16: {error}",
            ) from error
    return value


#: A range of addresses.
Cidr = Annotated[
    str,
    OptionType("CIDR"),
    BeforeValidator(_cidr),
    WithJsonSchema({"type": "string", "examples": ["10.96.0.0/16"]}),
]


class ApiServerAccess(Section):
    """How pods reach the API server of their virtual cluster.

    By default it is the address in the virtual kubeconfig. If pods can't reach that one, such as a
    loopback address, either `host` or `service` is required while pods are synced: the kubelet
    would set `KUBERNETES_SERVICE_HOST` to the host's API server in every container. The certificate
    of the virtual API server must name the address.
    """

    host: str = ""
    """Address or DNS name of the virtual API server as pods on the host reach it.

    Empty: that of `service`, or in the virtual kubeconfig.
    """

    port: int = Field(default=443, ge=1, le=65535)
    """Port of `host`; not used without it."""

    service: ServiceKey = ""
    """The Service in front of the virtual API server on the host, as namespace/name. Pods get its
    ClusterIP, and its port named `https`, or else its first. The virtual Service
    `default/kubernetes` gets the same address, if the virtual API server allocates addresses from
    the host's range.
    """

    @model_validator(mode="after")
    def _has_one_address(self) -> "ApiServerAccess":
        if self.host and self.service:
            raise ValueError("give either host or service")
        return self


class Dns(Section):
    """How pods resolve the names of their virtual cluster."""

    service: ServiceKey = "kube-system/kube-dns"
    """The virtual Service of the DNS server, as namespace/name. Empty: pods use the host's DNS."""


class Networking(Section):
    """The network settings that pods are given."""

    service_cidrs: tuple[Cidr, ...] = Field(default=(), alias="serviceCIDRs")
    """The ranges from which the host allocates ClusterIPs: its `--service-cluster-ip-range` and its
    ServiceCIDRs. Empty: the daemon finds them out at the start.
    """

    api_server: ApiServerAccess = ApiServerAccess()
    dns: Dns = Dns()
    cluster_domain: Subdomain = Field(default="cluster.local", min_length=1)
    """The DNS domain of Services in the virtual cluster."""


@dataclass(slots=True)
class ApiServerAddress:
    """The address at which pods reach the API server of their virtual cluster.

    Found at the start of the daemon, before the first decision. ``host`` is ``""`` before that, and
    if no pods are synced.
    """

    host: str = ""
    port: int = 443

    def put(self, host: str, port: int) -> None:
        """Set the address that was found."""
        self.host = host
        self.port = port

    @property
    def is_ip(self) -> bool:
        """True if ``host`` is an IP address, rather than a name."""
        return _is_ip(self.host)


@lru_cache(maxsize=REMEMBERED)
def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
