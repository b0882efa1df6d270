"""The ranges that an API server allocates the ClusterIPs of Services from.

Since Kubernetes 1.33 these are ServiceCIDRs, and listing them takes a ClusterRole. Without that
right, or below 1.33, a dry run asks the API server for an address outside of its range. The API
server refuses it and names the range: "The range of valid IPs is 10.96.0.0/16". With several
ranges, an API server names one of them at random.

See https://kubernetes.io/docs/reference/networking/virtual-ips/#ip-address-objects.
"""

import re
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import NamedTuple

from syncer.api import (
    ClusterError,
    Forbidden,
    Invalid,
    Live,
    LiveClient,
    NotConnected,
    NotFound,
    Obj,
    Resource,
    Settings,
    TooMany,
    Unreachable,
)
from syncer.resources.kinds import SELF_ACCESS_REVIEWS, SERVICES

SERVICE_CIDRS = Resource("networking.k8s.io/v1", "ServiceCIDR", "servicecidrs", namespaced=False)
_ASKED_RIGHT = {"verb": "list", "group": SERVICE_CIDRS.group, "resource": SERVICE_CIDRS.plural}
_MAY_LIST = {
    "apiVersion": SELF_ACCESS_REVIEWS.api_version,
    "kind": SELF_ACCESS_REVIEWS.kind,
    "spec": {"resourceAttributes": _ASKED_RIGHT},
}

Network = IPv4Network | IPv6Network

#: Addresses for documentation (RFC 5737, RFC 3849), which no cluster gives to a Service, by family.
IMPOSSIBLE = {"IPv4": "192.0.2.1", "IPv6": "2001:db8::1"}
#: Number of dry runs for a family. One of several ranges may stay unknown, unlike in a list of
#: ServiceCIDRs.
ASKED = 8
#: The name of the Service in a dry run.
NAME = "vsyncer-service-range"

_REFUSAL = re.compile(r"The range of valid IPs is ([0-9A-Fa-f.:]+/\d+)")


class Obstacle(NamedTuple):
    """Why both sides can't have the same addresses."""

    #: The reason, for tenants and operators.
    sentence: str
    #: The option to set, for the operator alone.
    detail: str = ""
    #: False if the ranges of a side aren't known.
    is_certain: bool = False


async def obstacle_to_same(live: Live) -> Obstacle | None:
    """Return why the ClusterIPs of both sides can't be the same; None if they can.

    Raises:
        ClusterError: An API server doesn't answer at present.
    """
    settings = live.settings
    host = await host_ranges(live.host, settings)
    if not host:
        why = "the range of the host isn't known: set networking.serviceCIDRs"
        right = f"list {SERVICE_CIDRS.plural}.{SERVICE_CIDRS.group}"
        return Obstacle(f"{why}, or give the daemon the right to {right} there")
    virtual = await service_ranges(live.virtual, "default")
    if not virtual:
        how = "give the daemon the rights that `syncer rbac --side virtual` prints"
        return Obstacle(f"the range of the virtual API server isn't known: {how}")
    if are_within(virtual, host):
        return None

    # A range of each family that both sides have; of all of the host's if they share none.
    first = {each.version: str(each) for each in reversed(host)}
    shared = sorted({each.version for each in virtual} & first.keys())
    wanted = ",".join(first[version] for version in shared or first)
    flag = "--service-cluster-ip-range"
    why = "the virtual API server draws them outside of the host's range"
    how = f"start it with the host's as {flag}"
    return Obstacle(f"{why}: {how}", f"{flag}={wanted}", is_certain=True)


async def host_ranges(host: LiveClient, settings: Settings) -> tuple[Network, ...]:
    """Return the ranges that the host allocates ClusterIPs from.

    They are configured, or else asked of the host; empty if the host doesn't answer with any.

    Args:
        host: A client of the host.
        settings: The settings of a virtual cluster.

    Raises:
        ClusterError: The host doesn't answer at present.
    """
    if configured := settings.networking.service_cidrs:
        return outermost(map(ip_network, configured))
    namespaces = settings.names.host_namespaces()
    if namespaces is None:
        # No dry run: the daemon writes nothing to namespaces that aren't its own.
        return outermost(await _listed(host))
    labels = {settings.marks.cluster: settings.identity}
    return await service_ranges(host, next(iter(namespaces)), labels)


async def service_ranges(
    client: LiveClient,
    namespace: str,
    labels: Mapping[str, str] | None = None,
) -> tuple[Network, ...]:
    """Return the ranges that an API server allocates ClusterIPs from, in order.

    Args:
        client: A client of the API server.
        namespace: A namespace in which the client may create Services; nothing is created.
        labels: Labels that admission wants on a Service.

    Returns:
        The ranges, without those that lie in another one. Empty if they can't be found out: the
        ServiceCIDRs can't be listed, and the dry run isn't allowed or isn't answered with a range.

    Raises:
        ClusterError: The API server doesn't answer at present.
    """
    found = await _listed(client)
    if not found:
        found = await _refused(client, namespace, labels or {})
    return outermost(found)


def are_within(ranges: Iterable[Network], others: Iterable[Network]) -> bool:
    """Return True if each of the ranges lies in one of the others."""
    known = tuple(others)
    return all(any(_is_within(each, other) for other in known) for each in ranges)


def outermost(ranges: Iterable[Network]) -> tuple[Network, ...]:
    """Return the ranges without those that lie in another one, IPv4 first."""
    known = set(ranges)
    found = []
    for each in known:
        others = known - {each}
        if not any(_is_within(each, other) for other in others):
            found.append(each)
    return tuple(sorted(found, key=_order))


def _order(network: Network) -> tuple[int, bytes, int]:
    # Networks of two versions can't be compared with each other.
    return network.version, network.network_address.packed, network.prefixlen


def _is_within(one: Network, other: Network) -> bool:
    if isinstance(one, IPv4Network):
        return isinstance(other, IPv4Network) and one.subnet_of(other)
    return isinstance(other, IPv6Network) and one.subnet_of(other)


async def _listed(client: LiveClient) -> list[Network]:
    """Return the ranges of the ServiceCIDRs; none without the right, or below Kubernetes 1.33."""
    try:
        answer = await client.create(SELF_ACCESS_REVIEWS, _MAY_LIST)
        if not (answer.get("status") or {}).get("allowed"):
            return []
        service_cidrs = await client.list(SERVICE_CIDRS)
    except (Forbidden, NotFound):
        return []

    found: list[Network] = []
    for each in service_cidrs:
        if _is_ready(each):
            texts = (each.get("spec") or {}).get("cidrs") or ()
            found.extend(ip_network(text, strict=False) for text in texts)
    return found


def _is_ready(service_cidr: Obj) -> bool:
    """Return True if addresses are allocated from a ServiceCIDR: without a condition they are."""
    if "deletionTimestamp" in service_cidr["metadata"]:
        return False
    conditions = (service_cidr.get("status") or {}).get("conditions") or ()
    ready = [each.get("status") for each in conditions if each.get("type") == "Ready"]
    return "False" not in ready


async def _refused(client: LiveClient, namespace: str, labels: Mapping[str, str]) -> list[Network]:
    """Return the ranges that refusals name."""
    found: list[Network] = []
    for address in IMPOSSIBLE.values():
        for _ in range(ASKED):
            text = await _refusal(client, namespace, labels, address)
            named = _REFUSAL.search(text)
            if named is None:
                # The family isn't configured, or dry runs aren't allowed.
                break
            found.append(ip_network(named[1], strict=False))
    return found


async def _refusal(
    client: LiveClient,
    namespace: str,
    labels: Mapping[str, str],
    address: str,
) -> str:
    """Return the message that refuses a Service with an address; ``""`` if there is none."""
    metadata = {"name": NAME, "namespace": namespace, "labels": dict(labels)}
    spec = {"clusterIP": address, "ports": [{"port": 80}]}
    body = {
        "apiVersion": SERVICES.api_version,
        "kind": SERVICES.kind,
        "metadata": metadata,
        "spec": spec,
    }
    try:
        await client.try_create(SERVICES, body)
    except Invalid as error:
        return str(error)
    except (NotConnected, TooMany):
        raise
    except ClusterError as error:
        # A status of 0 means that the API server gave no answer at all.
        if isinstance(error, Unreachable) and error.status == 0:
            raise
    return ""
