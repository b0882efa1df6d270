"""Copies of virtual Services on the host; where the host publishes them flows back."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from syncer.api import (
    Config,
    Context,
    Decision,
    Excludes,
    Key,
    Mirror,
    Obj,
    Pair,
    References,
    Right,
    Selects,
    Side,
    apply,
    delete,
    key_of,
)
from syncer.resources.kinds import PODS, SERVICES

#: The Service of the virtual API server itself. Each API server keeps its own.
KUBERNETES = Key("default", "kubernetes")

#: The ``clusterIP`` of a headless Service.
HEADLESS = "None"

#: The types of Services that have node ports.
_PUBLISHED = ("NodePort", "LoadBalancer")


class ServiceConfig(Config):
    """How virtual Services are published on the host."""

    cluster_ip: Literal["own", "same"] = Field(default="own", alias="clusterIP")
    """Which ClusterIP the host copy has. `own`: each side allocates one. Pods get the host's in the environment and
    as their DNS server; a virtual DNS server that answers with ClusterIPs answers with the virtual ones, which the host
    does not route. `same`: the host is asked for the virtual one, so both are equal; for that the virtual API server
    needs a `--service-cluster-ip-range` inside the host's, in which nobody else allocates."""


class ServiceSyncer(Mirror[ServiceConfig], Excludes[ServiceConfig]):
    """The virtual side owns what a Service is, the host side where it answers.

    IP families and health-check node ports are left to the host's own networking. Node ports are the host's decision
    too, and are written into the virtual Service, as a tenant has no others to connect to.
    """

    name = "services"
    resource = SERVICES
    down = (
        "spec.type",
        "spec.externalName",
        "spec.externalIPs",
        "spec.externalTrafficPolicy",
        "spec.internalTrafficPolicy",
        "spec.trafficDistribution",
        "spec.sessionAffinity",
        "spec.sessionAffinityConfig",
        "spec.publishNotReadyAddresses",
        "spec.loadBalancerClass",
        "spec.loadBalancerIP",
        "spec.loadBalancerSourceRanges",
        "spec.allocateLoadBalancerNodePorts",
        "spec.ports",
        "spec.selector",
    )
    up = ("status",)
    references: ClassVar[References] = {"spec.selector": Selects(PODS, "map")}
    rights = (Right(Side.VIRTUAL, SERVICES, ("patch",)),)

    def excluded(self, ctx: Context[ServiceConfig], side: Side, obj: Obj) -> str | None:
        """Leave the API server's own Service alone."""
        if side is Side.VIRTUAL and key_of(obj) == KUBERNETES:
            return "it is the virtual API server's own Service"
        return None

    def translate(self, ctx: Context[ServiceConfig], virtual: Obj) -> Obj:
        """Return the copy: it selects this tenant's pods of this namespace only."""
        host = super().translate(ctx, virtual)
        given = virtual.get("spec") or {}
        spec = host.setdefault("spec", {})
        if given.get("ports"):
            spec["ports"] = _with_node_ports(given["ports"], {})
        address = given.get("clusterIP")
        if address == HEADLESS or (address and ctx.config.cluster_ip == "same"):
            spec["clusterIP"] = address
        return host

    def reflect(self, ctx: Context[ServiceConfig], pair: Pair) -> Obj | None:
        """Return the host's status, and its node ports in place of those that the virtual
        API server has allocated.
        """
        virtual = super().reflect(ctx, pair)
        given, allocated = pair.virtual.get("spec") or {}, _node_ports(pair.host)
        if virtual is not None and allocated and given.get("type") in _PUBLISHED:
            # The list is written whole: a change that the tenant makes meanwhile must win.
            virtual["metadata"]["resourceVersion"] = pair.virtual["metadata"].get("resourceVersion", "")
            virtual["spec"] = {"ports": _with_node_ports(given.get("ports") or [], allocated, keep=True)}
        return virtual

    def sync(self, ctx: Context[ServiceConfig], pair: Pair) -> Decision:
        """Keep the copy as the virtual Service is, or make it anew where the host can't change it to that."""
        host = self.translate(ctx, pair.virtual)
        if reason := _unchangeable(host, pair.host):
            return delete(host=pair.host, reason=reason)
        if host["spec"].get("type") in _PUBLISHED and "ports" in host["spec"]:
            host["spec"]["ports"] = _with_node_ports(host["spec"]["ports"], _node_ports(pair.host))
        return apply(host=host, virtual=self.reflect(ctx, pair))


def _unchangeable(wanted: Obj, actual: Obj) -> str | None:
    """Why the copy must be made anew: a Service keeps its ClusterIP, or having none, for as long as it has a type."""
    address, has = wanted["spec"].get("clusterIP"), (actual.get("spec") or {}).get("clusterIP")
    if not has or wanted["spec"].get("type") == "ExternalName":
        return None
    if address is None and has == HEADLESS:
        return "the virtual Service is not headless any more, which the host can't change in place"
    if address is not None and address != has:
        return f"the virtual Service has the ClusterIP {address}, which the host can't change in place"
    return None


def _node_ports(service: Obj) -> dict[tuple[str, int], int]:
    """Return the allocated node ports by protocol and port."""
    ports = (service.get("spec") or {}).get("ports") or ()
    return {_port(port): port["nodePort"] for port in ports if port.get("nodePort")}


def _with_node_ports(ports: list[Obj], allocated: Mapping[tuple[str, int], int], *, keep: bool = False) -> list[Obj]:
    """Return the ports with the given node ports; others have none, or what they had with ``keep``."""
    result = []
    for port in ports:
        bare = port if keep else {name: value for name, value in port.items() if name != "nodePort"}
        number = allocated.get(_port(port))
        result.append({**bare, "nodePort": number} if number else bare)
    return result


def _port(port: Obj) -> tuple[str, int]:
    return port.get("protocol", "TCP"), port["port"]
