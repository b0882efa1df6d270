"""The operator's rules for copies that give access, and the parts of a copy that exceed them.

The rules stay as they are. `FROZEN` has the kinds whose copies give access: an object within the rules, a change of the
tenant's that asks for more, and a copy as earlier rules would have made it.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Network, ip_address, ip_network
from typing import Any

from syncer.api import Marks, Obj, Resource, annotations_of, dig, labels_of
from syncer.resources.kinds import (
    INGRESS_CLASSES,
    NETWORK_POLICIES,
    PRIORITY_CLASSES,
    RUNTIME_CLASSES,
    STORAGE_CLASSES,
    VOLUME_ATTRIBUTES_CLASSES,
)
from syncer.testing.merge import merged
from syncer.testing.objects import build, endpointslice, ingress, namespace, service

#: The classes of the host that appear in the virtual cluster, and those that don't.
SHOWN_CLASS, HIDDEN_CLASS = "public", "canary-class"
#: The labels of classes that appear, and of objects that the operator's selectors leave out.
SHOWN = {"tenants": "yes"}
LEFT_OUT = {"tier": "out"}
#: The hosts of Ingresses, the addresses of egress, the value of PriorityClasses that are allowed, and others.
DOMAIN, OTHER_HOST = ".example.org", "login.bank.example"
RANGE, OTHER_RANGE = "192.0.2.0/24", "10.0.0.0/8"
HIGHEST, HIGHER = 10, 1000
OTHER_ADDRESS = "8.8.8.8"
#: The addresses that the host gives Pods.
POD_RANGE = "10.8.0.0/16"
#: The address of another tenant's Pod, which `address_of` returns for none.
NEIGHBOUR_ADDRESS = "10.8.255.1"
#: The most copies of EndpointSlices, and those that a namespace may have.
SLICES = 40
SLICES_OF_A_NAMESPACE = SLICES * 3 // 4
LEVEL = "pod-security.kubernetes.io/enforce"

_SELECTED = {"selector": {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": [LEFT_OUT["tier"]]}]}}
_SHOWING = {"enabled": True, "selector": {"matchLabels": SHOWN}}
#: The sections of the daemon's configuration.
TO_HOST: Mapping[str, Any] = {
    "endpointSlices": {**_SELECTED, "most": SLICES},
    "services": _SELECTED,
    "ingresses": {**_SELECTED, "enabled": True, "allowedHosts": [f"*{DOMAIN}"]},
    "networkPolicies": {**_SELECTED, "enabled": True, "allowedCIDRs": {"egress": [{"cidr": RANGE}]}},
    "priorityClasses": {**_SELECTED, "enabled": True, "maxValue": HIGHEST, "most": 200},
}
FROM_HOST: Mapping[str, Any] = dict.fromkeys(
    ("ingressClasses", "storageClasses", "volumeAttributesClasses", "runtimeClasses"), _SHOWING
)
_CONTENTS: Mapping[Resource, Obj] = {
    INGRESS_CLASSES: {"spec": {"controller": "example.org/a"}},
    STORAGE_CLASSES: {"provisioner": "disk.example.org"},
    VOLUME_ATTRIBUTES_CLASSES: {"driverName": "disk.example.org", "parameters": {"iops": "10"}},
    RUNTIME_CLASSES: {"handler": "runsc"},
    PRIORITY_CLASSES: {"value": HIGHER},
}
_DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}
#: Endings of annotations that name classes.
_CLASS_ENDINGS = ("ingress.class", "storage-class")


def class_of_host(resource: Resource, name: str, **metadata: Any) -> Obj:
    """Return a class of the host."""
    return build(resource, name, metadata=metadata, **_CONTENTS[resource])


def hidden_classes() -> list[Obj]:
    """Return the host's classes that no tenant may name."""
    return [class_of_host(resource, HIDDEN_CLASS) for resource in _CONTENTS]


def shown_classes() -> list[Obj]:
    """Return the host's classes that tenants may name."""
    return [
        class_of_host(INGRESS_CLASSES, SHOWN_CLASS, labels=SHOWN),
        class_of_host(STORAGE_CLASSES, SHOWN_CLASS, labels=SHOWN, annotations=_DEFAULT),
    ]


# -- the parts that exceed the rules ---------------------------------------------------------------


def excess(copy: Obj) -> Iterator[str]:
    """Yield the parts of a copy that the operator's rules don't allow."""
    spec = copy.get("spec") or {}
    kind = copy["kind"]
    for name, value in annotations_of(copy).items():
        if name.endswith(_CLASS_ENDINGS) and value == HIDDEN_CLASS:
            yield f"annotation {name}"
    if kind == "Ingress":
        yield from _of_ingress(spec)
    elif kind == "NetworkPolicy":
        yield from _of_policy(spec)
    elif kind == "EndpointSlice":
        yield from _of_slice(copy)
    elif kind == "Service":
        yield from (name for name in ("externalIPs", "loadBalancerIP", "loadBalancerClass") if spec.get(name))
    elif kind == "PriorityClass":
        if (copy.get("value") or 0) > HIGHEST:
            yield f"value {copy['value']}"
        if copy.get("globalDefault") or copy.get("preemptionPolicy") != "Never":
            yield "globalDefault or preemptionPolicy"
    elif kind == "Namespace" and labels_of(copy).get(LEVEL) == "privileged":
        yield f"label {LEVEL}"


def names_text(copy: Obj, text: str) -> bool:
    """Return True if a value of a copy is this text."""
    return json.dumps(text) in json.dumps(copy)


def _of_ingress(spec: Obj) -> Iterator[str]:
    if spec.get("defaultBackend"):
        yield "defaultBackend"
    hosts = [rule.get("host") or "" for rule in spec.get("rules") or ()]
    for certificate in spec.get("tls") or ():
        hosts.extend(certificate.get("hosts") or ())
    for host in hosts:
        if not host.endswith(DOMAIN):
            yield f"host {host}"


def _of_policy(spec: Obj) -> Iterator[str]:
    allowed = IPv4Network(RANGE)
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for rule in spec.get(direction) or ():
            if not rule.get(peers):
                yield f"{direction} without peers"
            for peer in rule.get(peers) or ():
                block = dig(peer, "ipBlock.cidr")
                if not block:
                    continue
                network = ip_network(block)
                is_allowed = isinstance(network, IPv4Network) and network.subnet_of(allowed)
                if direction == "ingress" or not is_allowed:
                    yield f"{direction} {block}"


def _of_slice(copy: Obj) -> Iterator[str]:
    for endpoint in copy.get("endpoints") or ():
        for address in endpoint["addresses"]:
            if address == NEIGHBOUR_ADDRESS or ip_address(address) not in ip_network(POD_RANGE):
                yield f"address {address}"


# -- objects of the tenant's -----------------------------------------------------------------------


@dataclass(frozen=True)
class Frozen:
    """A kind of object whose copy gives access."""

    #: Returns an object within the rules, of this name and namespace.
    within: Callable[[str, str], Obj]
    #: A change of the tenant's that asks for more.
    more: Obj
    #: Returns what earlier, generous rules would have left in a copy.
    earlier: Callable[[Obj], Obj]


def address_of(number: int) -> str:
    """Return the address of a Pod."""
    return f"10.8.{number // 250 % 250}.{number % 250 + 1}"


def slice_of(address: str, name: str, home: str) -> Obj:
    """Return an EndpointSlice that leads to an address."""
    return endpointslice(name, address, namespace=home)


def _ingress(name: str, home: str) -> Obj:
    return ingress(name, namespace=home, spec={"ingressClassName": SHOWN_CLASS})


def _policy(name: str, home: str) -> Obj:
    egress = [{"to": [{"ipBlock": {"cidr": RANGE}}]}]
    return build(
        NETWORK_POLICIES,
        name,
        namespace=home,
        spec={"podSelector": {}, "policyTypes": ["Egress"], "egress": egress},
    )


def _service(name: str, home: str) -> Obj:
    return service(name, namespace=home)


def _priority(name: str, home: str) -> Obj:
    return build(PRIORITY_CLASSES, name, value=HIGHEST)


def _namespace(name: str, home: str) -> Obj:
    return namespace(name)


def _with_rule(copy: Obj) -> Obj:
    return {"spec": {"rules": [*copy["spec"]["rules"], {"host": OTHER_HOST}]}}


def _with_set_address(copy: Obj) -> Obj:
    """Return the changes of a Service by a daemon that has set an external address."""
    mark = Marks().fields
    fields = json.loads(annotations_of(copy).get(mark, "{}"))
    fields = merged(fields, {"spec": {"externalIPs": 1}})
    return {"metadata": {"annotations": {mark: json.dumps(fields)}}, "spec": {"externalIPs": [OTHER_ADDRESS]}}


def _always(parts: Obj, copy: Obj) -> Obj:
    return parts


_OPEN = {"spec": {"egress": [{"to": [{"ipBlock": {"cidr": OTHER_RANGE}}]}]}}
_LABELLED = {"metadata": {"labels": {LEVEL: "privileged"}}}
_LEADING = {"endpoints": [{"addresses": [OTHER_ADDRESS]}]}

FROZEN: Mapping[str, Frozen] = {
    "Ingress": Frozen(_ingress, {"spec": {"rules": [{"host": OTHER_HOST}]}}, _with_rule),
    "NetworkPolicy": Frozen(_policy, _OPEN, partial(_always, _OPEN)),
    "Service": Frozen(_service, {"spec": {"externalIPs": [OTHER_ADDRESS]}}, _with_set_address),
    "PriorityClass": Frozen(_priority, {"globalDefault": True}, partial(_always, {"value": HIGHER})),
    "Namespace": Frozen(_namespace, _LABELLED, partial(_always, _LABELLED)),
    "EndpointSlice": Frozen(partial(slice_of, OTHER_ADDRESS), _LEADING, partial(_always, _LEADING)),
}
