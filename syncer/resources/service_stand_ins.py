"""What stands for a Service elsewhere: one without an address of its own, and an EndpointSlice.

The slice has the ClusterIP of the Service, or of a headless one its endpoints. Names are all that
clients need, as these addresses are routed for them already: connections take no way around.
"""

import ipaddress
from collections.abc import Iterable, Mapping, Sequence

from syncer.api import Context, Key, Obj, Side, key_of, labels_of, uid_of
from syncer.resources.endpointslices import SERVICE_NAME
from syncer.resources.kinds import ENDPOINT_SLICES, SERVICES
from syncer.resources.service_addresses import HEADLESS

#: Most endpoints of a slice (``maxEndpoints`` of the API's validation).
MOST_ENDPOINTS = 1000
#: The type of a Service that is only a DNS name.
NAME = "ExternalName"


def is_name(service: Obj) -> bool:
    """Return True for a Service that is only a DNS name."""
    return bool((service.get("spec") or {}).get("type") == NAME)


def headless(service: Obj) -> Obj:
    """Return the spec of the Service that stands for one with addresses."""
    spec = service.get("spec") or {}
    ports = [_port_of_service(port) for port in spec.get("ports") or ()]
    found: Obj = {"type": "ClusterIP", "clusterIP": HEADLESS, "ports": ports}
    if spec.get("publishNotReadyAddresses"):
        found["publishNotReadyAddresses"] = True
    return found


def contents(service: Obj, slices: Sequence[Obj]) -> Obj:
    """Return the fields of the slice, from a Service of the host and its own slices."""
    spec = service.get("spec") or {}
    address = spec.get("clusterIP") or HEADLESS
    if address == HEADLESS:
        family, endpoints, ports = _endpoints(slices)
    else:
        family = f"IPv{ipaddress.ip_address(address).version}"
        is_ready = any(map(_has_ready, slices))
        endpoints = [{"addresses": [address], "conditions": {"ready": is_ready}}]
        ports = [_port_of_slice(port) for port in spec.get("ports") or ()]
    return {"addressType": family, "endpoints": endpoints, "ports": ports}


def owner(service: Obj) -> Obj:
    """Return the reference by which a cluster removes a slice with its Service."""
    return {
        "apiVersion": SERVICES.api_version,
        "kind": SERVICES.kind,
        "name": key_of(service).name,
        "uid": uid_of(service),
    }


def service_of(of_host: Obj) -> Iterable[str]:
    """Return the key of the Service of a slice, as values of an index."""
    name = labels_of(of_host).get(SERVICE_NAME)
    return [str(Key(key_of(of_host).namespace, name))] if name else ()


def slices_of(ctx: Context, index: str, service: Key) -> Iterable[Obj]:
    """Yield the host's slices of a Service, in the order of their names.

    ``index`` is one of slices by :func:`service_of`.
    """
    keys = ctx.reader.indexed(Side.HOST, ENDPOINT_SLICES, index, str(service))
    for key in sorted(keys):
        found = ctx.host(ENDPOINT_SLICES, key)
        if found is not None:
            yield found


def _endpoints(slices: Sequence[Obj]) -> tuple[str, list[Obj], list[Obj]]:
    """Return the family of a headless Service's addresses, its endpoints, and their ports.

    Of two families it is that of the first slice; the ports are those of the first slice of it.
    """
    family = "IPv4"
    if slices:
        family = slices[0].get("addressType", family)
    endpoints: list[Obj] = []
    ports: list[Obj] | None = None
    for each in slices:
        if each.get("addressType") != family:
            continue
        if ports is None:
            ports = [_port_of_slice(port) for port in each.get("ports") or ()]
        endpoints += [_endpoint(found) for found in each.get("endpoints") or ()]
    return family, endpoints[:MOST_ENDPOINTS], ports or []


def _endpoint(found: Mapping[str, object]) -> Obj:
    """Return an endpoint without what names objects of the host."""
    crossing = ("addresses", "conditions", "hostname")
    return {field: found[field] for field in crossing if found.get(field)}


def _has_ready(of_host: Obj) -> bool:
    """Return True if an endpoint of a slice is ready; one that doesn't say so counts as ready."""
    found = of_host.get("endpoints") or ()
    return any((each.get("conditions") or {}).get("ready", True) for each in found)


def _port_of_service(port: Obj) -> Obj:
    """Return a port of the Service, without the node's and the Pods' own."""
    return {**_port_of_slice(port), "targetPort": port["port"]}


def _port_of_slice(port: Obj) -> Obj:
    shown = {"port": port.get("port"), "protocol": port.get("protocol", "TCP")}
    for field in ("name", "appProtocol"):
        if port.get(field):
            shown[field] = port[field]
    return shown
