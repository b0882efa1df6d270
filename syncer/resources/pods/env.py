"""Environment variables with the addresses of the API server and the namespace's Services.

Service links are disabled on the host, as the kubelet would name the host namespace's Services. The
variables are written out instead, once, when the Pod is created, as the kubelet does when it starts
a container. The kubelet always sets those of the API server, to the host's, unless a container has
its own, so these are never left out. See
https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables.

The variables of Services are repeated in each container, so their size is a product of two numbers
that a tenant chooses. It is bounded before anything is built: beyond :data:`MOST_BYTES`, Services
are left out, whole, and an event says so. A container that needs one of them finds it by DNS, which
Kubernetes recommends over variables. The alternative, a generated ConfigMap with ``envFrom``, would
not grow with the containers. But it is another host object for each namespace, with a life of its
own, and rewritten at each change of a Service, for Pods that few programs can use: the kernel
refuses to start a process with more than some MiB of variables.

A Pod gets the variables of all Services that were there before it. A kubelet knows them by the time
that it starts a container; here the copy of a Service that was created just before may be on its
way, so the Pod waits for it. A Service that never gets a copy delays the Pods of its first seconds
alone.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from syncer.api import Context, Decision, Key, Obj, ObjectRef, Side, reasons, wait
from syncer.resources.kinds import SERVICES
from syncer.resources.pods.fields import CONTAINERS
from syncer.resources.services import KUBERNETES
from syncer.translate import times

#: The index of virtual Services by namespace, and what follows the namespace in the value for
#: Services with too many ports, and in the one that ends with the time of creation. So no Pod's
#: decision reads Services that have no copy.
BY_NAMESPACE = "namespace"
TOO_MANY_PORTS = "/too-many-ports"
CREATED = "/created="
#: Most bytes of Services' variables in a Pod, in all containers together. 50 Services with three
#: ports take 50 KiB in a container.
MOST_BYTES = 256 << 10
#: Most Services whose variables are considered, and most ports of one of them, so that each Pod is
#: decided in a short time. The kubelet's own variables prevent containers from starting at some
#: thousand Services.
MOST_SERVICES = 500
MOST_PORTS = 100
#: Seconds from the creation of a Service in which a Pod waits for its copy.
COPY_SECONDS = 5.0
#: Bytes of a variable besides its name and value.
_OVERHEAD = len('{"name":"","value":""},')


def index_values(service: Obj) -> Iterable[str]:
    """Return the values of the index for a virtual Service; none for one without variables."""
    namespace = service["metadata"].get("namespace", "")
    spec = service.get("spec") or {}
    ports = spec.get("ports")
    if not ports or spec.get("clusterIP") == "None":
        return ()
    if len(ports) > MOST_PORTS:
        return (namespace + TOO_MANY_PORTS,)
    created = service["metadata"].get("creationTimestamp") or ""
    return (namespace, namespace + CREATED + created)


class PodVariables(NamedTuple):
    """The environment variables that the containers of a Pod get."""

    #: As in a container's ``env``.
    env: list[Obj]
    #: A sentence about Services that are left out; ``""`` if there are none.
    warning: str
    #: A wait for the copy of a Service that is to be among them; None if none is on its way.
    missing: Decision | None


def pod_variables(ctx: Context, virtual: Obj) -> PodVariables:
    """Return the variables for a virtual Pod.

    These are the variables of the API server, and of the namespace's Services unless the Pod
    disables them.
    """
    variables: dict[str, str] = {}
    server = ctx.settings.api_server
    if server.host:
        ports = [{"name": "https", "port": server.port}]
        variables |= _variables("kubernetes", server.host, ports)

    services = _Services({}, 0, [])
    spec = virtual.get("spec") or {}
    if spec.get("enableServiceLinks", True) and ctx.enabled("services"):
        namespace = virtual["metadata"].get("namespace", "")
        containers = sum(len(spec.get(part) or ()) for part in CONTAINERS)
        services = _of_services(ctx, namespace, MOST_BYTES // (containers or 1))
        variables |= services.variables
    env = [{"name": name, "value": value} for name, value in variables.items()]
    return PodVariables(env, _warning(services.left_out), _missing(ctx, virtual, services.uncopied))


def _warning(left_out: int) -> str:
    """Return the sentence about a number of Services that are left out."""
    if not left_out:
        return ""
    why = f"its containers get no environment variables of {left_out} Services of this namespace"
    limit = f"in all, these may take {MOST_BYTES >> 10} KiB in a Pod"
    limit = f"{limit}, for at most {MOST_SERVICES} Services of at most {MOST_PORTS} ports"
    return f"{why}: {limit}. Use DNS, or set enableServiceLinks: false"


class _Services(NamedTuple):
    """The Services of a namespace, as far as they concern a Pod."""

    variables: dict[str, str]
    #: The number of those that are left out for their size.
    left_out: int
    #: Those without a copy.
    uncopied: list[Key]


def _of_services(ctx: Context, namespace: str, room: int) -> _Services:
    """Return the variables of those Services that fit into a number of bytes.

    Services are taken in the order of their names.
    """
    found: dict[str, str] = {}
    uncopied = []
    excessive = namespace + TOO_MANY_PORTS
    left_out = len(ctx.reader.indexed(Side.VIRTUAL, SERVICES, BY_NAMESPACE, excessive))
    keys = sorted(ctx.reader.indexed(Side.VIRTUAL, SERVICES, BY_NAMESPACE, namespace))
    left_out += len(keys[MOST_SERVICES:])
    for key in keys[:MOST_SERVICES]:
        copy = ctx.host_of(SERVICES, key)
        if copy is None:
            uncopied.append(key)
            continue
        own = _fitting(_of_service(key.name, copy.get("spec") or {}), room)
        if own is None:
            left_out += 1
            continue
        found |= own
        room -= sum(map(_size, own.items()))
    return _Services(found, left_out, uncopied)


def _missing(ctx: Context, virtual: Obj, uncopied: Iterable[Key]) -> Decision | None:
    """Return a wait for the first Service whose copy may be on its way; None if there is none."""
    for key in uncopied:
        left = _seconds_to_wait(ctx, key, virtual)
        if left > 0 and key != KUBERNETES:
            there = ObjectRef(Side.HOST, SERVICES, ctx.names.to_host(SERVICES, key))
            return wait(reasons.SERVICE_NOT_ON_HOST(key), after=left, on=(there,))
    return None


def _seconds_to_wait(ctx: Context, service: Key, pod: Obj) -> float:
    """Return how long a Pod still waits for the copy of a Service.

    0 if the Service came after the Pod, or its age is unknown.
    """
    created = ""
    for value in ctx.reader.values(Side.VIRTUAL, SERVICES, BY_NAMESPACE, service):
        _, _, created = value.partition(CREATED)
        if created:
            break
    try:
        begun = times.read(created)
        if begun > times.read(pod["metadata"]["creationTimestamp"]):
            return 0.0
    except (KeyError, TypeError, ValueError):
        return 0.0
    age = (ctx.now - begun).total_seconds()
    return COPY_SECONDS - age if age >= 0 else 0.0


def _fitting(variables: Iterable[tuple[str, str]], room: int) -> dict[str, str] | None:
    """Return the variables; None as soon as they don't fit into a number of bytes."""
    found = {}
    for name, value in variables:
        room -= _size((name, value))
        if room < 0:
            return None
        found[name] = value
    return found


def _size(variable: tuple[str, str]) -> int:
    return _OVERHEAD + len(variable[0]) + len(variable[1])


def with_env(container: Obj, variables: list[Obj]) -> Obj:
    """Return the container with the variables before its own.

    The container's own variables may refer to them, and override them.
    """
    own = container.get("env") or []
    names = {variable["name"] for variable in own}
    further = [one for one in variables if one["name"] not in names]
    return {**container, "env": [*further, *own]}


def _of_service(name: str, spec: Obj) -> Iterable[tuple[str, str]]:
    """Yield the variables of a Service; none for a headless one."""
    address = spec.get("clusterIP")
    ports = spec.get("ports")
    if not address or address == "None" or not ports:
        return ()
    return _variables(name, address, ports)


def _variables(service: str, address: str, ports: list[Obj]) -> Iterator[tuple[str, str]]:
    """Yield the variables of a Service, each with its value, as a kubelet sets them."""
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
    protocol = port.get("protocol", "TCP")
    number = str(port["port"])
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
