"""The ranges that an API server allocates the ClusterIPs of Services from.

Nothing in the API of Kubernetes says them to everybody. Since Kubernetes 1.33 they are ServiceCIDRs,
which a role for the whole cluster is needed to list. Without that right, or below 1.33, the API
server is asked for an address that it can't have, in a dry run, which it refuses by naming its range:
"The range of valid IPs is 10.96.0.0/16". An API server with several ranges names one of them at random.

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
    Missing,
    NotConnected,
    Obj,
    Resource,
    Settings,
    TooMany,
    Unreachable,
)
from syncer.resources.kinds import SERVICES

SERVICE_CIDRS = Resource("networking.k8s.io/v1", "ServiceCIDR", "servicecidrs", namespaced=False)

REVIEWS = Resource("authorization.k8s.io/v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False)
_ASKED_RIGHT = {"verb": "list", "group": SERVICE_CIDRS.group, "resource": SERVICE_CIDRS.plural}
_MAY_LIST = {
    "apiVersion": REVIEWS.api_version,
    "kind": REVIEWS.kind,
    "spec": {"resourceAttributes": _ASKED_RIGHT},
}

Network = IPv4Network | IPv6Network

#: Addresses for documentation (RFC 5737, RFC 3849), which no cluster gives to a Service, by family.
IMPOSSIBLE = {"IPv4": "192.0.2.1", "IPv6": "2001:db8::1"}
#: Number of dry runs for a family. One of several ranges may stay unknown; the ServiceCIDRs have all.
ASKED = 8
#: The name of the Service in a dry run.
NAME = "vsyncer-service-range"

_REFUSAL = re.compile(r"The range of valid IPs is ([0-9A-Fa-f.:]+/\d+)")


class Obstacle(NamedTuple):
    """Why both sides can't have the same addresses: a sentence for anybody, and its detail for the operator."""

    sentence: str
    detail: str = ""
    #: False if it only isn't known whether they can.
    is_certain: bool = False


async def obstacle_to_same(live: Live) -> Obstacle | None:
    """Return why the ClusterIPs of both sides can't be the same; None if they can.

    Raises:
        ClusterError: An API server doesn't answer at present.
    """
    settings = live.settings
    host = await host_ranges(live.host, settings)
    if not host:
        how = "set networking.serviceCIDRs, or give the daemon the right to list servicecidrs.networking.k8s.io there"
        return Obstacle(f"the range of the host isn't known: {how}")
    virtual = await service_ranges(live.virtual, "default")
    if not virtual:
        how = "give the daemon the rights that `syncer rbac --side virtual` prints"
        return Obstacle(f"the range of the virtual API server isn't known: {how}")
    if are_within(virtual, host):
        return None
    flag = "--service-cluster-ip-range"
    first = {each.version: str(each) for each in reversed(host)}
    wanted = ",".join(first[version] for version in sorted({each.version for each in virtual} & first.keys()) or first)
    why = f"the virtual API server draws them outside of the host's range: start it with the host's as {flag}"
    return Obstacle(why, f"{flag}={wanted}", is_certain=True)


async def host_ranges(host: LiveClient, settings: Settings) -> tuple[Network, ...]:
    """Return the ranges that the host allocates ClusterIPs from, as configured or found out; empty
    if they can't be.

    Args:
        host: A client of the host.
        settings: The settings of a virtual cluster.

    Raises:
        ClusterError: The host doesn't answer at present.
    """
    if configured := settings.networking.service_cidrs:
        return outermost(map(ip_network, configured))
    if (namespaces := settings.names.host_namespaces()) is None:
        return outermost(await _listed(host))  # the daemon writes nothing to namespaces that aren't its own
    return await service_ranges(host, next(iter(namespaces)), {settings.marks.cluster: settings.identity})


async def service_ranges(
    client: LiveClient, namespace: str, labels: Mapping[str, str] | None = None
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
    return outermost(await _listed(client) or await _refused(client, namespace, labels or {}))


def are_within(ranges: Iterable[Network], others: Iterable[Network]) -> bool:
    """Return True if each of the ranges lies in one of the others."""
    known = tuple(others)
    return all(any(_is_within(each, other) for other in known) for each in ranges)


def outermost(ranges: Iterable[Network]) -> tuple[Network, ...]:
    """Return the ranges without those that lie in another one, IPv4 first."""
    known = set(ranges)
    found = (each for each in known if not any(_is_within(each, other) for other in known - {each}))
    return tuple(sorted(found, key=lambda each: (each.version, each.network_address.packed, each.prefixlen)))


def _is_within(one: Network, other: Network) -> bool:
    if isinstance(one, IPv4Network):
        return isinstance(other, IPv4Network) and one.subnet_of(other)
    return isinstance(other, IPv6Network) and one.subnet_of(other)


async def _listed(client: LiveClient) -> list[Network]:
    """Return the ranges of the ServiceCIDRs; none without the right, or below Kubernetes 1.33."""
    try:
        answer = await client.create(REVIEWS, _MAY_LIST)
        found = await client.list(SERVICE_CIDRS) if (answer.get("status") or {}).get("allowed") else ()
    except (Forbidden, Missing):
        return []
    texts = [text for each in found for text in (each.get("spec") or {}).get("cidrs") or () if _is_ready(each)]
    return [ip_network(text, strict=False) for text in texts]


def _is_ready(service_cidr: Obj) -> bool:
    """Return True if addresses are allocated from it: without a condition they are."""
    conditions = (service_cidr.get("status") or {}).get("conditions") or ()
    is_refused = any(each.get("type") == "Ready" and each.get("status") == "False" for each in conditions)
    return not is_refused and "deletionTimestamp" not in service_cidr["metadata"]


async def _refused(client: LiveClient, namespace: str, labels: Mapping[str, str]) -> list[Network]:
    """Return the ranges that refusals name."""
    found: list[Network] = []
    for address in IMPOSSIBLE.values():
        for _ in range(ASKED):
            text = await _refusal(client, namespace, labels, address)
            named = _REFUSAL.search(text)
            if named is None:
                break  # the family isn't configured, or dry runs aren't allowed
            found.append(ip_network(named[1], strict=False))
    return found


async def _refusal(client: LiveClient, namespace: str, labels: Mapping[str, str], address: str) -> str:
    """Return the message that refuses a Service with an address; ``""`` if it says nothing of ranges."""
    metadata = {"name": NAME, "namespace": namespace, "labels": dict(labels)}
    spec = {"clusterIP": address, "ports": [{"port": 80}]}
    body = {"apiVersion": SERVICES.api_version, "kind": SERVICES.kind, "metadata": metadata, "spec": spec}
    try:
        await client.try_create(SERVICES, body)
    except Invalid as error:
        return str(error)
    except (NotConnected, TooMany):
        raise
    except ClusterError as error:
        if isinstance(error, Unreachable) and error.status == 0:
            raise
    return ""
