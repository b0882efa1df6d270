"""Addresses and node ports of Services."""

import ipaddress
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

from kube_envtest.apiserver.errors import ApiError, cause, invalid
from kube_envtest.apiserver.resources import CORE, ResourceType

Obj = dict[str, Any]

SERVICES: ResourceType = next(rt for rt in CORE if rt.plural == "services")

#: Ports of NodePort Services. Source: ``--service-node-port-range``.
NODE_PORTS = range(30000, 32768)


#: The range of ClusterIPs. Source: ``--service-cluster-ip-range``.
SERVICE_RANGE = "10.96.0.0/16"


class Allocator:
    """Allocates and releases the ClusterIPs and node ports of Services."""

    def __init__(self, cidr: str, chance: Random) -> None:
        self._network = ipaddress.ip_network(cidr)
        self._chance = chance
        self._addresses: set[str] = set()
        self._ports: set[int] = set()

    def _drawn(self) -> Iterator[str]:
        """Yield all addresses of the range, from one drawn by lot on, as the real server does."""
        first = int(self._network.network_address) + 1
        usable = self._network.num_addresses - 2
        start = self._chance.randrange(usable)
        for offset in range(usable):
            yield str(ipaddress.ip_address(first + (start + offset) % usable))

    def allocate(self, service: Obj, old: Obj | None = None) -> Obj:
        """Return the Service with the addresses and ports that it lacks.

        Raises:
            ApiError: Invalid: a requested one is taken. Nothing is allocated.
        """
        before = set(self._addresses), set(self._ports)
        try:
            return self._allocated(service, old)
        except ApiError:
            self._addresses, self._ports = before
            raise

    def _allocated(self, service: Obj, old: Obj | None) -> Obj:
        spec = dict(service.get("spec") or {})
        before = (old or {}).get("spec") or {}
        if _has_address(spec):
            if spec.get("clusterIP") != before.get("clusterIP") or not spec.get("clusterIP"):
                self._address(service, spec)
        elif _has_address(before):
            self._addresses.discard(before.get("clusterIP", ""))
        self._ports -= set(_ports(before)) - set(_ports(spec))
        if _has_ports(spec) and spec.get("allocateLoadBalancerNodePorts") is not False:
            mine = set(_ports(before))
            ports = enumerate(_list(spec))
            spec["ports"] = [self._node_port(service, number, port, mine) for number, port in ports]
        return {**service, "spec": spec}

    def would_allocate(self, service: Obj) -> Obj:
        """Return the Service as a dry run shows it: with any address in the range, be it taken or
        not, and the range's first one if it asks for none.

        Raises:
            ApiError: Invalid: a requested address is not in the range, or a requested port is taken.
        """
        trial = Trial(str(self._network), self._chance)
        trial._ports = set(self._ports)
        return trial.allocate(service)

    def restore(self, services: Iterable[Obj]) -> None:
        """Replace all allocations by those of these Services."""
        specs = [service.get("spec") or {} for service in services]
        self._addresses = {spec["clusterIP"] for spec in specs if spec.get("clusterIP")}
        self._ports = set().union(*map(_ports, specs))

    def release(self, service: Obj) -> None:
        """Release the addresses and ports of a deleted Service."""
        spec = service.get("spec") or {}
        self._addresses.discard(spec.get("clusterIP", ""))
        self._ports -= set(_ports(spec))

    def _address(self, service: Obj, spec: Obj) -> None:
        address = spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or ()), "")
        if address != "None":
            address = self._take(service, address) if address else self._free()
        spec |= {"clusterIP": address, "clusterIPs": [address]}
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")

    def _free(self) -> str:
        address = next(found for found in self._drawn() if found not in self._addresses)
        self._addresses.add(address)
        return address

    def _take(self, service: Obj, address: str) -> str:
        try:
            number = ipaddress.ip_address(address)
        except ValueError:
            text = f'Invalid value: "{address}": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'
            raise invalid(SERVICES, service["metadata"]["name"], [cause("spec.clusterIPs[0]", text)]) from None
        if number.version != self._network.version:
            text = f'Invalid value: ["{address}"]: IPv{number.version} is not configured on this cluster'
            raise invalid(SERVICES, service["metadata"]["name"], [cause("spec.clusterIPs[0]", text)])
        if number not in self._network or number in (self._network[0], self._network[-1]):
            why = f"failed to allocate IP {address}: the provided IP ({address}) is not in the valid range. "
            raise _refused(service, address, f"{why}The range of valid IPs is {self._network}")
        if address in self._addresses:
            raise _refused(service, address, f"failed to allocate IP {address}: provided IP is already allocated")
        self._addresses.add(address)
        return address

    def _node_port(self, service: Obj, number: int, port: Obj, mine: set[int]) -> Obj:
        wanted = port.get("nodePort")
        why = ""
        if wanted and wanted not in NODE_PORTS:
            span = f"{NODE_PORTS[0]}-{NODE_PORTS[-1]}"
            why = f"provided port is not in the valid range. The range of valid ports is {span}"
        elif wanted in self._ports and wanted not in mine:
            why = "provided port is already allocated"
        if why:
            causes = [cause(f"spec.ports[{number}].nodePort", f"Invalid value: {wanted}: {why}")]
            raise invalid(SERVICES, service["metadata"]["name"], causes)
        if not wanted:
            wanted = next(number for number in NODE_PORTS if number not in self._ports)
        self._ports.add(wanted)
        return {**port, "nodePort": wanted}


class Trial(Allocator):
    """Allocates for a dry run."""

    def _drawn(self) -> Iterator[str]:
        yield str(self._network.network_address)


def carried(new: Obj, old: Obj) -> Obj:
    """Return a changed Service with its old allocations, as far as its type still has them.

    Source: ``patchAllocatedValues`` and ``dropTypeDependentFields`` of
    kubernetes/pkg/registry/core/service.
    """
    spec = dict(new.get("spec") or {})
    before = old.get("spec") or {}
    if _has_address(before) and _has_address(spec):
        if spec.get("clusterIPs") == before.get("clusterIPs") and spec.get("clusterIP") != before.get("clusterIP"):
            spec["clusterIPs"] = [spec["clusterIP"]] if spec.get("clusterIP") else []
        if not spec.get("clusterIP") and not spec.get("clusterIPs"):
            spec |= {key: before[key] for key in ("clusterIP", "clusterIPs") if key in before}
        spec |= {key: before[key] for key in FAMILIES if key in before and key not in spec}
    elif _has_address(before) and spec.get("clusterIP") == before.get("clusterIP"):
        spec = {key: value for key, value in spec.items() if key not in ADDRESSES}
    if _has_ports(before) and _has_ports(spec):
        known = {_port_key(port): port.get("nodePort") for port in _list(before)}
        spec["ports"] = [_with_port(port, known) for port in _list(spec)]
    elif _has_ports(before) and _ports(spec) == _ports(before) and _list(spec):
        spec["ports"] = [{key: value for key, value in port.items() if key != "nodePort"} for port in _list(spec)]
    return {**new, "spec": _without_balancer(spec, before)}


FAMILIES = ("ipFamilies", "ipFamilyPolicy")
ADDRESSES = ("clusterIP", "clusterIPs", *FAMILIES, "internalTrafficPolicy")
BALANCER = ("allocateLoadBalancerNodePorts", "loadBalancerClass")


def _without_balancer(spec: Obj, before: Obj) -> Obj:
    dropped: set[str] = set()
    if before.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        dropped |= {key for key in BALANCER if spec.get(key) == before.get(key)}
    if _has_ports(before) and not _has_ports(spec):
        dropped |= {key for key in ("externalTrafficPolicy",) if spec.get(key) == before.get(key)}
    return {key: value for key, value in spec.items() if key not in dropped}


def _has_address(spec: Obj) -> bool:
    return bool(spec) and spec.get("type") != "ExternalName"


def _has_ports(spec: Obj) -> bool:
    return spec.get("type") in ("NodePort", "LoadBalancer")


def _list(spec: Obj) -> list[Obj]:
    return spec.get("ports") or []


def _ports(spec: Obj) -> list[int]:
    return [port["nodePort"] for port in _list(spec) if port.get("nodePort")]


def _port_key(port: Obj) -> tuple[Any, str]:
    return port.get("port"), port.get("protocol") or "TCP"


def _with_port(port: Obj, known: dict[Any, Any]) -> Obj:
    before = known.get(_port_key(port))
    return port if port.get("nodePort") or not before else {**port, "nodePort": before}


def _refused(service: Obj, address: str, why: str) -> ApiError:
    causes = [cause("spec.clusterIPs", f'Invalid value: ["{address}"]: {why}')]
    return invalid(SERVICES, service["metadata"]["name"], causes)
