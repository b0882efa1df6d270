"""Environment variables by which a container finds its API server and the Services of its namespace.

Service links are disabled on the host, as the kubelet would name the host namespace's Services. The
variables are written out instead, once, when the Pod is created, as the kubelet does when it starts
a container. The kubelet always sets those of the API server, to the host's: only
``networking.apiServer.host`` overrides them. See
https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables.
"""

from collections.abc import Iterable, Iterator

from syncer.api import Context, Obj, Side
from syncer.resources.kinds import SERVICES

#: The index of virtual Services by namespace.
BY_NAMESPACE = "namespace"


def service_env(ctx: Context, virtual: Obj) -> list[Obj]:
    """Return the variables for a virtual Pod: of its API server, and of its namespace's Services
    unless it disables them.
    """
    variables = dict(_api_server(ctx))
    if (virtual.get("spec") or {}).get("enableServiceLinks", True) and ctx.enabled("services"):
        for name, copy in _services(ctx, virtual["metadata"].get("namespace", "")):
            variables |= _of_service(name, copy)
    return [{"name": name, "value": value} for name, value in variables.items()]


def with_env(container: Obj, variables: list[Obj]) -> Obj:
    """Return the container with the variables before its own, which may refer to them and override them."""
    own = container.get("env") or []
    names = {variable["name"] for variable in own}
    return {**container, "env": [*(one for one in variables if one["name"] not in names), *own]}


def _services(ctx: Context, namespace: str) -> Iterator[tuple[str, Obj]]:
    for key in sorted(ctx.reader.indexed(Side.VIRTUAL, SERVICES, BY_NAMESPACE, namespace)):
        copy = ctx.host_of(SERVICES, key)
        if copy is not None:
            yield key.name, copy.get("spec") or {}


def _of_service(name: str, spec: Obj) -> Iterable[tuple[str, str]]:
    """Yield the variables of a Service; none for a headless one."""
    address, ports = spec.get("clusterIP"), spec.get("ports")
    if not address or address == "None" or not ports:
        return ()
    return _variables(name, address, ports)


def _api_server(ctx: Context) -> Iterable[tuple[str, str]]:
    networking = ctx.settings.networking
    if not networking.api_server.host:
        return ()
    return _variables("kubernetes", networking.api_server.host, [{"name": "https", "port": networking.api_server.port}])


def _variables(service: str, address: str, ports: list[Obj]) -> Iterator[tuple[str, str]]:
    prefix = _upper(service)
    yield f"{prefix}_SERVICE_HOST", address
    yield f"{prefix}_SERVICE_PORT", str(ports[0]["port"])
    for port in ports:
        if port.get("name"):
            yield f"{prefix}_SERVICE_PORT_{_upper(port['name'])}", str(port["port"])
    for position, port in enumerate(ports):
        yield from _link(prefix, address, port, first=position == 0)


def _link(prefix: str, address: str, port: Obj, *, first: bool) -> Iterator[tuple[str, str]]:
    """Yield variables in the form of Docker links, which some programs still read."""
    protocol, number = port.get("protocol", "TCP"), str(port["port"])
    host = f"[{address}]" if ":" in address else address
    url = f"{protocol.lower()}://{host}:{number}"
    if first:
        yield f"{prefix}_PORT", url
    link = f"{prefix}_PORT_{number}_{protocol}"
    yield link, url
    yield f"{link}_PROTO", protocol.lower()
    yield f"{link}_PORT", number
    yield f"{link}_ADDR", address


def _upper(name: str) -> str:
    return name.upper().replace("-", "_")
