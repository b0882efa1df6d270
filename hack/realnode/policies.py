"""NetworkPolicies as rules of nftables, by the rules of
https://kubernetes.io/docs/concepts/services-networking/network-policies/: enforced by a node's
network.

A pod that a policy selects has a chain for each direction that its policies isolate: it accepts
what any of them allows, and drops the rest. As with other networks, established connections go on,
a pod always reaches itself, and the node its pods; connections to the node are egress like others.
Only IPv4 is known here.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from ipaddress import IPv4Network, collapse_addresses
from typing import NamedTuple

from syncer.api import Obj, dig
from syncer.api.selectors import Labels, matches

TABLE = "inet network-policies"
_OVER = {"Succeeded", "Failed"}


class Pod(NamedTuple):
    """A Pod, as policies see it."""

    namespace: str
    address: str
    labels: Labels
    #: The named ports, each ``(protocol, name, number)``.
    ports: Collection[tuple[str, str, int]]


class _Direction(Enum):
    """A direction, with its name in a policy, the list of its peers there, and the fields of a
    packet that hold the address of the selected pod and that of the peer.
    """

    INGRESS = ("Ingress", "from", "daddr", "saddr")
    EGRESS = ("Egress", "to", "saddr", "daddr")

    def __init__(self, policy_type: str, peers: str, own: str, other: str) -> None:
        self.policy_type = policy_type
        self.peers = peers
        self.own = own
        self.other = other
        self.rules = policy_type.lower()

    @property
    def hooks(self) -> Mapping[str, int]:
        """The kernel's hooks, each with its priority.

        Egress is asked first; ingress may drop what it accepts.
        """
        return {"forward": -10, "input": -10} if self is _Direction.EGRESS else {"forward": -9}


def pod_of(obj: Obj) -> Pod | None:
    """Return a Pod as policies see it; None if they don't concern it:
    it has no address of its own.
    """
    address = dig(obj, "status.podIP")
    if not address or dig(obj, "spec.hostNetwork") or dig(obj, "status.phase") in _OVER:
        return None
    containers = [*(dig(obj, "spec.initContainers") or ()), *dig(obj, "spec.containers")]
    ports = {
        (port["protocol"], port["name"], port["containerPort"])
        for container in containers
        for port in container.get("ports") or ()
        if "name" in port
    }
    metadata = obj["metadata"]
    return Pod(metadata["namespace"], address, metadata.get("labels") or {}, frozenset(ports))


def ruleset(policies: Iterable[Obj], pods: Sequence[Pod], namespaces: Mapping[str, Labels]) -> str:
    """Return the input of ``nft -f`` that puts policies in force, in place of those before, in one
    step.

    Args:
        policies: The NetworkPolicies of the cluster.
        pods: The pods of the cluster.
        namespaces: The labels of each namespace.
    """
    cluster = _Cluster(pods, namespaces)
    lines = [f"table {TABLE} {{}}", f"delete table {TABLE}", f"table {TABLE} {{"]
    isolated: dict[_Direction, dict[str, list[str]]] = {
        direction: defaultdict(list) for direction in _Direction
    }
    for number, policy in enumerate(policies):
        namespace = policy["metadata"]["namespace"]
        spec = policy["spec"]
        selected = [
            pod for pod in cluster.pods(spec.get("podSelector") or {}) if pod.namespace == namespace
        ]
        for direction in _Direction:
            if selected and direction.policy_type in spec["policyTypes"]:
                chain = f"policy-{number}-{direction.rules}"
                lines += _chain(
                    chain, _accepted(spec.get(direction.rules) or (), direction, namespace, cluster)
                )
                for pod in selected:
                    isolated[direction][pod.address].append(chain)
    for direction, chains in isolated.items():
        for address, jumps in chains.items():
            itself = f"ip {direction.other} {address} accept"
            lines += _chain(
                f"{direction.rules}-{address}",
                [itself, *(f"jump {chain}" for chain in jumps), "drop"],
            )
        verdicts = [f"{address} : jump {direction.rules}-{address}" for address in chains]
        asked = [f"ip {direction.own} vmap {_set(verdicts)}"] if verdicts else []
        for hook, priority in direction.hooks.items():
            base = f"type filter hook {hook} priority {priority}; policy accept;"
            lines += _chain(
                f"{direction.rules}-{hook}", [base, "ct state established,related accept", *asked]
            )
    return "\n".join((*lines, "}", ""))


class _Cluster:
    """The pods of a cluster, as policies name them."""

    def __init__(self, pods: Sequence[Pod], namespaces: Mapping[str, Labels]) -> None:
        self._pods = pods
        self._namespaces = namespaces

    def pods(self, selector: Obj) -> Iterator[Pod]:
        """Yield the pods that a selector of labels selects, in all namespaces."""
        return (pod for pod in self._pods if matches(selector, pod.labels))

    def networks(self, peers: Iterable[Obj], namespace: str) -> list[IPv4Network]:
        """Return the networks of the peers in a policy of a namespace, without overlaps."""
        return list(
            collapse_addresses(one for peer in peers for one in self._networks(peer, namespace))
        )

    def _networks(self, peer: Obj, namespace: str) -> Iterator[IPv4Network]:
        if block := peer.get("ipBlock"):
            yield from _block(block)
            return
        within = peer.get("namespaceSelector")
        for pod in self.pods(peer.get("podSelector") or {}):
            labels = self._namespaces.get(pod.namespace, {})
            if pod.namespace == namespace if within is None else matches(within, labels):
                yield IPv4Network(pod.address)

    def named(self, protocol: str, name: str) -> Mapping[int, list[str]]:
        """Return the numbers that a named port has,
        each with the addresses of the pods where it has.
        """
        found: dict[int, list[str]] = defaultdict(list)
        for pod in self._pods:
            for its_protocol, its_name, number in pod.ports:
                if (its_protocol, its_name) == (protocol, name):
                    found[number].append(pod.address)
        return found


def _block(block: Obj) -> Iterator[IPv4Network]:
    """Yield the networks of an ipBlock, without those that it excepts; none of IPv6."""
    if ":" in block["cidr"]:
        return
    left = [IPv4Network(block["cidr"], strict=False)]
    for text in block.get("except") or ():
        excepted = IPv4Network(text, strict=False)
        left = [part for network in left for part in _without(network, excepted)]
    yield from left


def _without(network: IPv4Network, excepted: IPv4Network) -> Iterable[IPv4Network]:
    if network.subnet_of(excepted):
        return ()
    return network.address_exclude(excepted) if excepted.subnet_of(network) else (network,)


def _accepted(
    rules: Iterable[Obj], direction: _Direction, namespace: str, cluster: _Cluster
) -> Iterator[str]:
    """Yield the statements that accept what the rules of a policy allow. Without peers a rule is
    for all, as without ports.
    """
    for rule in rules:
        peers = ""
        if rule.get(direction.peers):
            networks = cluster.networks(rule[direction.peers], namespace)
            if not networks:
                continue
            peers = f"ip {direction.other} {_set(networks)} "
        for ports in _ports(rule["ports"], cluster) if rule.get("ports") else ("",):
            yield f"{peers}{ports}accept"


def _ports(ports: Iterable[Obj], cluster: _Cluster) -> Iterator[str]:
    """Yield the conditions for the ports of a rule;
    a port by its name is that of the pod which is connected to.
    """
    for entry in ports:
        protocol = entry.get("protocol") or "TCP"
        port = entry.get("port")
        kind = protocol.lower()
        if port is None:
            yield f"meta l4proto {kind} "
        elif isinstance(port, str):
            for number, addresses in cluster.named(protocol, port).items():
                yield f"ip daddr {_set(addresses)} {kind} dport {number} "
        else:
            last = entry.get("endPort")
            yield f"{kind} dport {port}-{last} " if last else f"{kind} dport {port} "


def _set(elements: Iterable[object]) -> str:
    return "{ " + ", ".join(map(str, elements)) + " }"


def _chain(name: str, statements: Iterable[str]) -> list[str]:
    return [f"  chain {name} {{", *(f"    {statement}" for statement in statements), "  }"]
