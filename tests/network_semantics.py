"""Which connections NetworkPolicies allow, by the rules of
https://kubernetes.io/docs/concepts/services-networking/network-policies/, evaluated without a network; and policies
to try it with.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network

from hypothesis import strategies as st

from syncer.api import Obj
from syncer.api.selectors import matches
from syncer.resources.network_policies import DIRECTIONS
from syncer.testing import strategies

_WEB = {"matchLabels": {"app": "web"}}
SELECTORS = st.sampled_from(
    [{}, _WEB, {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web", "db"]}]}]
)
BLOCKS = st.sampled_from(
    [
        {"cidr": "0.0.0.0/0"},
        {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8", "192.0.2.0/25"]},
        {"cidr": "192.0.2.0/24", "except": ["192.0.2.128/25"]},
        {"cidr": "10.1.0.0/16"},
        {"cidr": "::/0"},
    ]
)
PEERS = st.one_of(
    st.fixed_dictionaries({"podSelector": SELECTORS}),
    st.fixed_dictionaries({"namespaceSelector": SELECTORS}, optional={"podSelector": SELECTORS}),
    st.fixed_dictionaries({"ipBlock": BLOCKS}),
)
PORTS = st.sampled_from(
    [
        {"protocol": "TCP", "port": 80},
        {"protocol": "UDP", "port": "dns"},
        {"protocol": "TCP", "port": 1000, "endPort": 2000},
        {"protocol": "SCTP"},
    ]
)


def _rules(peers: str) -> st.SearchStrategy[list[Obj]]:
    return st.lists(
        strategies.some({peers: st.lists(PEERS, max_size=3), "ports": st.lists(PORTS, max_size=2)}), max_size=3
    )


SPECS = strategies.some(
    {
        "podSelector": SELECTORS,
        "policyTypes": st.sampled_from([["Ingress"], ["Egress"], ["Ingress", "Egress"]]),
        "ingress": _rules("from"),
        "egress": _rules("to"),
    }
)

#: What an operator allows, for example.
ALLOWED = {"ingress": [{"cidr": "192.0.2.0/24"}], "egress": [{"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}]}


@dataclass(frozen=True)
class End:
    """An end of a connection: a Pod, or with ``namespace=""`` an address outside."""

    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    address: str = ""


@dataclass(frozen=True)
class Cluster:
    """The NetworkPolicies of a cluster, and the labels of its namespaces."""

    policies: Sequence[Obj]
    namespaces: Mapping[str, Mapping[str, str]]

    def lets(self, one: End, other: End, port: Obj) -> bool:
        """Return True if a connection from one end to the other is allowed, at both."""
        return self.lets_out(one, other, port) and self.lets_in(other, one, port)

    def lets_in(self, pod: End, peer: End, port: Obj) -> bool:
        """Return True if a Pod's policies let a connection in; those of the peer aren't asked."""
        return self._lets(DIRECTIONS[0], pod, peer, port)

    def lets_out(self, pod: End, peer: End, port: Obj) -> bool:
        """Return True if a Pod's policies let a connection out; those of the peer aren't asked."""
        return self._lets(DIRECTIONS[1], pod, peer, port)

    def isolates(self, direction: str, pod: End) -> bool:
        """Return True if a policy selects a Pod for a direction, ``Ingress`` or ``Egress``."""
        return bool(self._selecting(direction, pod))

    def _selecting(self, direction: str, pod: End) -> list[Obj]:
        return [
            policy
            for policy in self.policies
            if pod.namespace == policy["metadata"]["namespace"]
            and direction in policy["spec"]["policyTypes"]
            and matches(policy["spec"].get("podSelector") or {}, pod.labels)
        ]

    def _lets(self, direction: tuple[str, str, str], pod: End, peer: End, port: Obj) -> bool:
        kind, rules, peers = direction
        found = self._selecting(kind, pod)
        return not found or any(
            (not rule.get(peers) or any(self._is(one, policy["metadata"]["namespace"], peer) for one in rule[peers]))
            and (not rule.get("ports") or port in rule["ports"])
            for policy in found
            for rule in policy["spec"].get(rules) or ()
        )

    def _is(self, term: Obj, home: str, peer: End) -> bool:
        if block := term.get("ipBlock"):
            address = ip_address(peer.address) if not peer.namespace else None
            excepted = block.get("except") or ()
            return address is not None and (
                address in ip_network(block["cidr"], strict=False)
                and not any(address in ip_network(each, strict=False) for each in excepted)
            )
        within = term.get("namespaceSelector")
        there = peer.namespace == home if within is None else matches(within, self.namespaces.get(peer.namespace, {}))
        return bool(peer.namespace) and there and matches(term.get("podSelector") or {}, peer.labels)
