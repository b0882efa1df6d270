"""Copies of the EndpointSlices that tenants write for Services without a selector.

The host's own controllers fill the Services that have one. For Endpoints, a controller in the
virtual cluster makes EndpointSlices, which are copied as well. See
https://kubernetes.io/docs/concepts/services-networking/service/#services-without-selectors.
"""

import socket
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network
from operator import itemgetter
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from syncer.api import (
    Config,
    Context,
    Decision,
    Excludes,
    Grants,
    Index,
    Indexes,
    Key,
    Mirror,
    Obj,
    Pair,
    Reference,
    References,
    Refused,
    Side,
    Source,
    delete,
    key_of,
    labels_of,
    reasons,
    skip,
)
from syncer.resources import shares
from syncer.resources.kinds import ENDPOINT_SLICES, PODS, SERVICES
from syncer.resources.pods import lifecycle
from syncer.resources.services import KUBERNETES
from syncer.translate.messages import LONGEST_QUOTE, MOST_NAMED

#: The label with the name of the Service.
SERVICE_NAME = "kubernetes.io/service-name"
#: The label with the controller that maintains a slice, and the one that does for Services with a
#: selector.
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
CONTROLLER = "endpointslice-controller.k8s.io"

#: The fields of an endpoint that are copied besides its address, and a ``targetRef`` to the Pod
#: that has it.
_FIELDS = ("conditions", "hostname", "nodeName", "zone", "hints")
#: The longest text that is looked at as an address, in characters: an IPv6 address has 45.
_LONGEST = 64

_HOST_PODS, _COPIES = (Source(Side.HOST, each, marked=True) for each in (PODS, ENDPOINT_SLICES))
_BY_ADDRESS = "address"
#: The index of the copies, under one value. The host's own slices of a copied Service have its
#: labels, and so our mark.
_COUNTED = "endpointslices/copies"


def _range(given: str) -> str:
    try:
        ip_network(given)
    except ValueError as error:
        why = "expected a range of addresses, such as 192.0.2.0/24 or 2001:db8::/64"
        raise ValueError(f"{why}, found {given[:LONGEST_QUOTE]!r} ({error})") from error
    return given


AddressRange = Annotated[str, AfterValidator(_range)]


class AddressRanges:
    """Ranges of addresses; whether one of them has an address is found by bisection."""

    def __init__(self, ranges: Iterable[str]) -> None:
        networks = [ip_network(each) for each in ranges]
        four = [each for each in networks if isinstance(each, IPv4Network)]
        six = [each for each in networks if isinstance(each, IPv6Network)]
        disjoint: list[IPv4Network | IPv6Network] = [*collapse_addresses(four)]
        disjoint += collapse_addresses(six)
        #: The first and the last address of each range, in order, by the length of an address.
        self._ranges: dict[int, list[tuple[bytes, bytes]]] = {}
        for network in disjoint:
            first = network.network_address.packed
            last = network.broadcast_address.packed
            self._ranges.setdefault(len(first), []).append((first, last))

    def __contains__(self, address: str) -> bool:
        packed = _packed(address)
        if packed is None:
            return False
        ranges = self._ranges.get(len(packed), ())
        number = bisect_right(ranges, packed, key=itemgetter(0))
        return number > 0 and packed <= ranges[number - 1][1]


class EndpointSliceConfig(Config):
    """The options of EndpointSlices."""

    allow_addresses: tuple[AddressRange, ...] = ()
    """Ranges of addresses that tenants may lead their Services to, besides those of their own
    running Pods, such as `192.0.2.0/24`.

    The host's nodes, load balancers and ingress controllers connect to these addresses for any
    tenant (CVE-2021-25740): leave out nodes, Pods of others and everything that trusts the host.
    """

    most: int = Field(default=1000, ge=0)
    """The most copies; further slices are parked. Every node of the host holds all of them.

    A namespace may have one, and up to three times as many as are left, so that it takes none from
    the others.
    """

    @cached_property
    def ranges(self) -> AddressRanges:
        """The ranges, parsed."""
        return AddressRanges(self.allow_addresses)


class EndpointSliceSyncer(
    Mirror[EndpointSliceConfig], Excludes[EndpointSliceConfig], Grants[EndpointSliceConfig], Indexes
):
    """Copies EndpointSlices that no controller of Services maintains, with the addresses of the
    tenant's own running Pods.

    An address counts as a Pod's if the host's status says so, since tenants can write that of the
    virtual Pod. Those of a node, which a Pod in the node's network has, never do. The copy's
    ``managed-by`` label keeps the host's controllers from deleting it.
    """

    name = "endpointslices"
    counts_copies = True
    section = "toHost.endpointSlices"
    resource = ENDPOINT_SLICES
    has_templates = False
    down = ("addressType", "endpoints", "ports")
    translates = ("endpoints",)
    references: ClassVar[References] = {
        f"/metadata/labels/{SERVICE_NAME.replace('/', '~1')}": Reference(SERVICES, use="named")
    }
    virtual_selector = f"{MANAGED_BY}!={CONTROLLER}"
    grants = ("endpoints",)

    def indexes(self) -> Sequence[Index]:
        """Return indexes by address: of the slices, of their copies, and of the host's Pods.

        A change of a Pod requeues the slices and the copies that have its address.
        """
        slices = Source(Side.VIRTUAL, ENDPOINT_SLICES, selector=self.virtual_selector)
        return [
            Index(slices, _BY_ADDRESS, _addresses),
            Index(_COPIES, _BY_ADDRESS, _addresses, copies_only=True),
            Index(_COPIES, _COUNTED, _counted, copies_only=True),
            Index(
                _HOST_PODS,
                _BY_ADDRESS,
                _pod_addresses,
                copies_only=True,
                requeues=_BY_ADDRESS,
                keeps=False,
            ),
        ]

    def excluded(self, ctx: Context[EndpointSliceConfig], side: Side, obj: Obj) -> str | None:
        """Leave the slice of the API server's own Service alone."""
        if side is Side.HOST:
            return None
        service = Key(key_of(obj).namespace, labels_of(obj).get(SERVICE_NAME, ""))
        if service == KUBERNETES:
            return reasons.API_SERVERS_OWN("of ")
        return None

    def still_granted(self, ctx: Context[EndpointSliceConfig], host: Obj) -> Obj:
        """Return the copy without the addresses that the tenant may not lead to any more.

        The others name the Pods that have them now.
        """
        if labels_of(host).get(MANAGED_BY) != ctx.marks.prefix:
            labels = {**labels_of(host), MANAGED_BY: ctx.marks.prefix}
            host = {**host, "metadata": {**host["metadata"], "labels": labels}}
        endpoints = host.get("endpoints") or []
        left = []
        for endpoint in endpoints:
            found = [(each, _pods_with(ctx, each)) for each in endpoint.get("addresses") or ()]
            if all(pods or address in ctx.config.ranges for address, pods in found):
                left.append(_with_own_target(endpoint, [pods for _, pods in found]))
        if left == endpoints:
            return host
        return {**host, "endpoints": left}

    def translate(self, ctx: Context[EndpointSliceConfig], virtual: Obj) -> Obj:
        """Return the copy, without the addresses that the tenant may not lead to."""
        host = super().translate(ctx, virtual)
        host["metadata"]["labels"][MANAGED_BY] = ctx.marks.prefix
        namespace = key_of(virtual).namespace
        host["endpoints"] = []
        for endpoint, address in _endpoints(virtual):
            pods = _pods_with(ctx, address)
            if not pods and address not in ctx.config.ranges:
                continue
            copy: Obj = {"addresses": [address]}
            for field in _FIELDS:
                if endpoint.get(field) is not None:
                    copy[field] = endpoint[field]
            copy |= _target(ctx, namespace, endpoint, pods)
            host["endpoints"].append(copy)
        return host

    def sync_down(self, ctx: Context[EndpointSliceConfig], virtual: Obj) -> Decision:
        """Create the copy.

        Raises:
            Refused: There are too many.
        """
        if reason := _of_host(virtual):
            return skip(reason)
        most = ctx.config.most
        copies = ctx.reader.indexed(Side.HOST, ENDPOINT_SLICES, _COUNTED, "")
        if not shares.may_add(ctx, virtual, ENDPOINT_SLICES, most, copies):
            why = f"this namespace has its share of the {most} EndpointSlices"
            why = f"{why} for Services without selector that a virtual cluster may have"
            how = "put more endpoints into a slice, or delete others"
            raise Refused(f"{why}; {how}", reason="TooManySlices")
        return _warned(virtual, super().sync_down(ctx, virtual))

    def sync(self, ctx: Context[EndpointSliceConfig], pair: Pair) -> Decision:
        """Update the copy; delete it if the host's controllers fill the Service now."""
        if reason := _of_host(pair.virtual):
            return delete(host=pair.host, reason=reason)
        return _warned(pair.virtual, super().sync(ctx, pair))


def _of_host(virtual: Obj) -> str:
    """Return why the host needs no copy; ``""`` if it does."""
    labels = labels_of(virtual)
    if labels.get(MANAGED_BY) == CONTROLLER:
        return reasons.HOST_MAKES_SLICE()
    if labels.get(SERVICE_NAME):
        return ""
    return reasons.NO_SERVICE_NAMED(SERVICE_NAME)


def _endpoints(virtual: Obj) -> Iterator[tuple[Obj, str]]:
    """Yield each endpoint with its address.

    Of several, only the first one counts: the API defines no use for the others.
    """
    for endpoint in virtual.get("endpoints") or ():
        if found := endpoint.get("addresses"):
            yield endpoint, found[0]


def _counted(copy: Obj) -> Iterable[str]:
    return [""]


def _addresses(virtual: Obj) -> Iterable[str]:
    return {_plain(address) for _, address in _endpoints(virtual)}


def _pod_addresses(pod: Obj) -> Iterable[str]:
    """Return the addresses that a Pod has to itself, as long as it has them."""
    found = (pod.get("status") or {}).get("podIPs")
    if not found or lifecycle.is_finished(pod) or pod["spec"].get("hostNetwork"):
        return ()
    return [_plain(each.get("ip", "")) for each in found]


def _plain(address: str) -> str:
    """Return an address in the form in which it can be compared; a text that is none as it is."""
    if ":" not in address:
        return address
    packed = _packed(address)
    return address if packed is None else socket.inet_ntop(socket.AF_INET6, packed)


def _packed(address: str) -> bytes | None:
    """Return the bytes of an address; None for a text that is none, or that names a zone."""
    if len(address) > _LONGEST:
        return None
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.inet_pton(family, address)
    except (OSError, ValueError):
        return None


def _pods_with(ctx: Context[EndpointSliceConfig], address: str) -> Collection[Key]:
    """Return the host keys of the tenant's running Pods that have an address."""
    return ctx.reader.indexed(Side.HOST, PODS, _BY_ADDRESS, _plain(address))


def _target(
    ctx: Context[EndpointSliceConfig],
    namespace: str,
    endpoint: Obj,
    pods: Collection[Key],
) -> Obj:
    """Return the field that names an endpoint's Pod, if it is one of those with the address."""
    named = endpoint.get("targetRef") or {}
    if not pods or named.get("kind") != PODS.kind or not named.get("name"):
        return {}
    if named.get("namespace") not in (None, "", namespace):
        return {}
    host_key = ctx.names.to_host(PODS, Key(namespace, named["name"]))
    if host_key not in pods:
        return {}
    return {
        "targetRef": {"kind": PODS.kind, "namespace": host_key.namespace, "name": host_key.name}
    }


def _with_own_target(endpoint: Obj, pods_by_address: Iterable[Collection[Key]]) -> Obj:
    """Return an endpoint of a copy that names no Pod but one that has an address of it."""
    named = endpoint.get("targetRef")
    if named is None:
        return endpoint
    pod = Key(named.get("namespace", ""), named.get("name", ""))
    if any(pod in pods for pods in pods_by_address):
        return endpoint
    return {field: value for field, value in endpoint.items() if field != "targetRef"}


def _warned(virtual: Obj, decision: Decision) -> Decision:
    """Return the decision with a warning of the addresses that the copy lacks, if it writes one."""
    copies = [write.obj for write in decision.writes if write.side is Side.HOST]
    if not copies:
        return decision
    copied = {address for copy in copies for _, address in _endpoints(copy)}
    missing = [address for _, address in _endpoints(virtual) if address not in copied]
    left_out = list(dict.fromkeys(missing))
    if not left_out:
        return decision

    named = ", ".join(f"{address:.{LONGEST_QUOTE}}" for address in left_out[:MOST_NAMED])
    if len(left_out) > MOST_NAMED:
        named = f"{named} and {len(left_out) - MOST_NAMED} more"
    why = f"nothing reaches {named} through the Service"
    why = f"{why}: not the address of a running Pod of this virtual cluster"
    return decision.warn("AddressesLeftOut", f"{why}, nor one that its operator allows")
