"""The ``networking`` section: the network settings that pods of a virtual cluster are given."""

from pydantic import Field

from syncer.api.dns_names import ServiceKey, Subdomain
from syncer.api.section import Section


class ApiServer(Section):
    """How pods reach the API server of their virtual cluster."""

    host: str = ""
    """Address or DNS name of the virtual API server as pods on the host reach it.

    Empty: pods use the host's API server, as the kubelet sets `KUBERNETES_SERVICE_HOST` in every
    container.
    """

    port: int = Field(default=443, ge=1, le=65535)
    """Port of that address."""


class Dns(Section):
    """How pods resolve the names of their virtual cluster."""

    service: ServiceKey = "kube-system/kube-dns"
    """The virtual Service of the DNS server, as namespace/name. Empty: pods use the host's DNS."""


class Networking(Section):
    """The network settings that pods are given."""

    api_server: ApiServer = ApiServer()
    dns: Dns = Dns()
    cluster_domain: Subdomain = Field(default="cluster.local", min_length=1)
    """The DNS domain of Services in the virtual cluster."""
