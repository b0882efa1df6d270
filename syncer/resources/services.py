"""Copies of virtual Services on the host; the host's addresses are copied up."""

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

#: The Service of the virtual API server itself. Each API server manages its own.
KUBERNETES = Key("default", "kubernetes")

#: The ``clusterIP`` of a headless Service.
HEADLESS = "None"

#: The types of Services with node ports.
_PUBLISHED = ("NodePort", "LoadBalancer")


class ServiceConfig(Config):
    """The options of Services."""

    cluster_ip: Literal["own", "same"] = Field(default="own", alias="clusterIP")
    """The ClusterIP of the host copy.

    `own`: each side allocates its own. Pods get the host's in the environment and as their DNS
    server; a virtual DNS server that answers with ClusterIPs answers with the virtual ones, which
    the host does not route. `same`: the host is asked for the virtual one, so both are equal. That
    needs a `--service-cluster-ip-range` of the virtual API server inside the host's, in which
    nothing else allocates addresses.
    """


class ServiceSyncer(Mirror[ServiceConfig], Excludes[ServiceConfig]):
    """Copies Services; the virtual side owns the spec, the host the addresses.

    IP families and health-check node ports are left to the host's networking. Node ports are the
    host's decision too, and are copied up, since tenants can only connect to the host's.
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
        """Return the copy; it selects only this tenant's pods of this namespace."""
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
        """Return the host's status, and its node ports in place of those that the virtual API
        server allocated.
        """
        virtual = super().reflect(ctx, pair)
        given, allocated = pair.virtual.get("spec") or {}, _node_ports(pair.host)
        if virtual is not None and allocated and given.get("type") in _PUBLISHED:
            # The list is written whole: a concurrent change by the tenant must win.
            virtual["metadata"]["resourceVersion"] = pair.virtual["metadata"].get("resourceVersion", "")
            virtual["spec"] = {"ports": _with_node_ports(given.get("ports") or [], allocated, keep=True)}
        return virtual

    def sync(self, ctx: Context[ServiceConfig], pair: Pair) -> Decision:
        """Update the copy, or replace it if the host can't change it in place."""
        host = self.translate(ctx, pair.virtual)
        if reason := _unchangeable(host, pair.host):
            return delete(host=pair.host, reason=reason)
        if host["spec"].get("type") in _PUBLISHED and "ports" in host["spec"]:
            host["spec"]["ports"] = _with_node_ports(host["spec"]["ports"], _node_ports(pair.host))
        return apply(host=host, virtual=self.reflect(ctx, pair))


def _unchangeable(wanted: Obj, actual: Obj) -> str | None:
    """Return why the copy must be replaced: a Service keeps its ClusterIP, or having none, while
    its type has one.
    """
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
    """Return the ports with the given node ports. Others have none, or with ``keep`` what they had."""
    result = []
    for port in ports:
        bare = port if keep else {name: value for name, value in port.items() if name != "nodePort"}
        number = allocated.get(_port(port))
        result.append({**bare, "nodePort": number} if number else bare)
    return result


def _port(port: Obj) -> tuple[str, int]:
    return port.get("protocol", "TCP"), port["port"]
