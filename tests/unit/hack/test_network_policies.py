"""NetworkPolicies as rules of nftables; whether they stop traffic is tested on a real node."""

from typing import Any

import pytest
import yaml

from hack.realnode.policies import Pod, pod_of, ruleset

WEB = Pod("shop", "10.244.0.2", {"app": "web"}, {("TCP", "http", 8080), ("UDP", "dns", 53)})
CART = Pod("shop", "10.244.0.3", {"app": "cart"}, {("TCP", "http", 9090)})
GUEST = Pod("other", "10.244.0.4", {"app": "web"}, ())
PODS = [WEB, CART, GUEST]
NAMESPACES = {"shop": {"tenant": "a"}, "other": {"tenant": "b"}}


def chains(spec: str, *, namespace: str = "shop") -> dict[str, list[str]]:
    """Return the statements of each chain that a policy with this spec makes."""
    policy = {"metadata": {"namespace": namespace}, "spec": yaml.safe_load(spec)}
    found: dict[str, list[str]] = {}
    for line in ruleset([policy], PODS, NAMESPACES).splitlines():
        if line.startswith("  chain "):
            statements = found[line.split()[1]] = []
        elif line.startswith("    "):
            statements.append(line.strip())
    return found


def ingress(rule: str) -> list[str]:
    """Return what a rule of ingress of the web server accepts."""
    return chains(f"{{podSelector: {{matchLabels: {{app: web}}}}, policyTypes: [Ingress], ingress: [{rule}]}}")[
        "policy-0-ingress"
    ]


def egress(rule: str) -> list[str]:
    """Return what a rule of egress of the web server accepts."""
    return chains(f"{{podSelector: {{matchLabels: {{app: web}}}}, policyTypes: [Egress], egress: [{rule}]}}")[
        "policy-0-egress"
    ]


def test_default_deny_drops_all_but_the_pod_itself_in_both_directions() -> None:
    found = chains("{podSelector: {}, policyTypes: [Ingress, Egress]}")
    assert found["ingress-10.244.0.2"] == ["ip saddr 10.244.0.2 accept", "jump policy-0-ingress", "drop"]
    assert found["egress-10.244.0.3"] == ["ip daddr 10.244.0.3 accept", "jump policy-0-egress", "drop"]
    assert found["policy-0-ingress"] == found["policy-0-egress"] == []
    verdicts = "ip saddr vmap { 10.244.0.2 : jump egress-10.244.0.2, 10.244.0.3 : jump egress-10.244.0.3 }"
    for hook in ("egress-forward", "egress-input"):
        assert found[hook][1:] == ["ct state established,related accept", verdicts]
    assert "10.244.0.4" not in str(found)


def test_direction_that_is_no_type_of_the_policy_is_open() -> None:
    found = chains("{podSelector: {}, policyTypes: [Ingress]}")
    assert not [chain for chain in found if chain.startswith("egress-1")]
    assert len(found["egress-forward"]) == 2


@pytest.mark.parametrize(
    ("peers", "addresses"),
    [
        ("{podSelector: {matchLabels: {app: web}}}", "10.244.0.2"),
        ("{namespaceSelector: {matchLabels: {tenant: b}}}", "10.244.0.4"),
        ("{namespaceSelector: {}, podSelector: {matchLabels: {app: web}}}", "10.244.0.2, 10.244.0.4"),
        ("{namespaceSelector: {}}", "10.244.0.2/31, 10.244.0.4"),
        ("{ipBlock: {cidr: 10.0.0.0/30, except: [10.0.0.1/32]}}", "10.0.0.0, 10.0.0.2/31"),
        ("{ipBlock: {cidr: 192.0.2.9/24}}", "192.0.2.0/24"),
        ("{ipBlock: {cidr: 10.244.0.0/30}}, {podSelector: {}}", "10.244.0.0/30"),
    ],
)
def test_peers_are_the_addresses_of_their_pods_and_blocks(peers: str, addresses: str) -> None:
    [accepted] = ingress(f"{{from: [{peers}]}}")
    assert accepted.replace("/32", "") == f"ip saddr {{ {addresses} }} accept"


@pytest.mark.parametrize(
    "peers",
    [
        "{podSelector: {matchLabels: {app: none}}}",
        "{namespaceSelector: {matchLabels: {tenant: none}}}",
        '{ipBlock: {cidr: "2001:db8::/32"}}',
        "{ipBlock: {cidr: 10.0.0.0/30, except: [10.0.0.0/8]}}",
    ],
)
def test_rule_without_known_peers_accepts_nothing(peers: str) -> None:
    assert ingress(f"{{from: [{peers}]}}") == []


@pytest.mark.parametrize(
    ("ports", "accepted"),
    [
        ("{port: 80, protocol: TCP}", ["tcp dport 80 accept"]),
        ("{port: 80, protocol: UDP}, {port: 443}", ["udp dport 80 accept", "tcp dport 443 accept"]),
        ("{port: 80, endPort: 90}", ["tcp dport 80-90 accept"]),
        ("{protocol: SCTP}", ["meta l4proto sctp accept"]),
        (
            "{port: http, protocol: TCP}",
            ["ip daddr { 10.244.0.2 } tcp dport 8080 accept", "ip daddr { 10.244.0.3 } tcp dport 9090 accept"],
        ),
        ("{port: dns, protocol: TCP}", []),
    ],
)
def test_ports_are_numbers_ranges_and_names_of_the_pod_that_is_connected_to(ports: str, accepted: list[str]) -> None:
    assert ingress(f"{{ports: [{ports}]}}") == egress(f"{{ports: [{ports}]}}") == accepted


def test_rule_without_peers_and_ports_accepts_all() -> None:
    assert ingress("{}") == ["accept"]
    assert ingress("{from: [], ports: []}") == ["accept"]


@pytest.mark.parametrize(
    ("changed", "concerned"),
    [
        ({}, True),
        ({"spec": {"hostNetwork": True, "containers": []}}, False),
        ({"status": {"phase": "Succeeded", "podIP": "10.244.0.2"}}, False),
        ({"status": {"phase": "Pending"}}, False),
    ],
)
def test_pod_concerns_policies_while_it_has_an_address_of_its_own(changed: dict[str, Any], concerned: bool) -> None:
    ports = [{"name": "http", "containerPort": 8080, "protocol": "TCP"}, {"containerPort": 1, "protocol": "TCP"}]
    pod = {
        "metadata": {"namespace": "shop", "name": "web", "labels": {"app": "web"}},
        "spec": {"containers": [{"ports": ports}]},
        "status": {"phase": "Running", "podIP": "10.244.0.2"},
        **changed,
    }
    expected = Pod("shop", "10.244.0.2", {"app": "web"}, frozenset({("TCP", "http", 8080)}))
    assert pod_of(pod) == (expected if concerned else None)
