"""The ``networking`` part of the configuration: what pods are told about their virtual cluster."""

from pydantic import Field

from syncer.api.dns_names import ServiceKey, Subdomain
from syncer.api.section import Section


class ApiServer(Section):
    """Where pods find the API server of their virtual cluster."""

    host: str = ""
    """Address or DNS name as a pod on the host reaches it. Empty: pods are pointed at the host's API server instead, as
    the kubelet sets `KUBERNETES_SERVICE_HOST` in every container."""

    port: int = Field(default=443, ge=1, le=65535)
    """Port of that address."""


class Dns(Section):
    """Where pods resolve the names of their virtual cluster."""

    service: ServiceKey = "kube-system/kube-dns"
    """The virtual Service of the DNS server, as namespace/name. Empty: pods use the host's DNS."""


class Networking(Section):
    """What pods are told about the network of their virtual cluster."""

    api_server: ApiServer = ApiServer()
    dns: Dns = Dns()
    cluster_domain: Subdomain = Field(default="cluster.local", min_length=1)
    """The domain under which Services have their names."""
