"""NetworkPolicies go to the host, and allow nothing there but the tenant's own and what the operator allows."""

from ipaddress import ip_network
from typing import Any

import pytest

from syncer.api import Decision, Obj, Refused, TooLarge
from syncer.names import PerNamespace
from syncer.resources.kinds import NETWORK_POLICIES
from syncer.resources.network_policies import (
    CROWDED_SECONDS,
    LONGEST,
    MOST_PARTS,
    Block,
    NetworkPolicyConfig,
    NetworkPolicySyncer,
)
from syncer.resources.selected_namespaces import MOST_EXPRESSIONS, MOST_LABELS, MOST_NAMESPACES
from syncer.testing import World
from syncer.testing.objects import build, namespace

ON = {"sync": {"toHost": {"networkPolicies": {"enabled": True}}}}
TEAM = {"namespaceSelector": {"matchLabels": {"team": "a"}}}


@pytest.fixture
def on(world: World) -> World:
    return world.configure(ON)


def policy(name: str = "web", **spec: Any) -> Obj:
    given: Obj = {"podSelector": {}, "policyTypes": ["Ingress"], **spec}
    return build(NETWORK_POLICIES, name, spec=given)


def decided(world: World, virtual: Obj) -> Decision:
    return world.given(virtual=[virtual]).decide("networkpolicies", "shop/web")


def test_policies_are_off_by_default(world: World) -> None:
    with pytest.raises(ValueError, match="networkpolicies"):
        world.decide("networkpolicies", "shop/web")


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("10.0.0.0/8", "0.0.0.0/0", "10.0.0.0/8"),
        ("0.0.0.0/0", "10.0.0.0/8", "10.0.0.0/8"),
        ("10.0.0.0/8", "11.0.0.0/8", None),
        ("0.0.0.0/0", "::/0", None),
        ("10.0.0.0/8", "0.0.0.0/0 but 10.0.0.0/8", None),
        ("10.0.0.0/8", "0.0.0.0/0 but 8.0.0.0/5", None),
        ("10.0.0.0/8", "0.0.0.0/0 but 10.1.0.0/16 192.0.2.0/24", "10.0.0.0/8 but 10.1.0.0/16"),
        ("10.0.0.0/8 but 10.0.0.0/9", "0.0.0.0/0 but 10.128.0.0/9", None),
        ("10.0.0.0/8 but 10.1.0.0/16", "10.1.2.0/24", None),
        ("2001:db8::/32", "::/0 but 2001:db8:1::/48", "2001:db8::/32 but 2001:db8:1::/48"),
    ],
)
def test_range_is_cut_to_allowed_addresses(one: str, other: str, both: str | None) -> None:
    assert block(one).within(block(other)) == (block(both) if both else None)


def block(text: str) -> Block:
    network, _, excepted = text.partition(" but ")
    return Block(ip_network(network), tuple(map(ip_network, excepted.split())))


@pytest.mark.parametrize("excepted", ["11.0.0.0/8", "10.0.0.0/8", "0.0.0.0/0", "::/0"])
def test_exception_of_an_allowed_range_is_strictly_within_it(excepted: str) -> None:
    allowed = {"ingress": [{"cidr": "10.0.0.0/8", "except": [excepted]}]}
    with pytest.raises(ValueError, match="not strictly within"):
        NetworkPolicyConfig.model_validate({"allowedCIDRs": allowed})


def test_event_names_only_the_fields_that_are_cut(on: World) -> None:
    rules = [{"from": [{"ipBlock": {"cidr": f"10.{number}.0.0/16"}}]} for number in range(5)]
    warning = decided(on, policy(ingress=rules)).warning
    assert warning
    assert warning.reason == "NetworkPolicyCut"
    assert warning.message.startswith("spec.ingress[0].from[0].ipBlock, spec.ingress[1].from[0].ipBlock, ")
    assert " and 2 more: " in warning.message
    assert decided(on, policy(ingress=[{"from": [{"podSelector": {}}]}])).warning is None


def test_allowed_range_is_copied_without_a_warning(world: World) -> None:
    allowed = {"ingress": [{"cidr": "0.0.0.0/0", "except": ["192.0.2.0/24"]}]}
    world.configure({"sync": {"toHost": {"networkPolicies": {"enabled": True, "allowedCIDRs": allowed}}}})
    halves = ["10.0.0.0/25", "10.0.0.128/25"]
    found = decided(world, policy(ingress=[{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": halves}}]}]))
    assert found.warning is None
    [rule] = found.writes[0].obj["spec"]["ingress"]
    assert rule == {"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.0.0.0/24"]}}]}


def test_policy_is_decided_again_when_a_selector_finds_other_namespaces(on: World) -> None:
    exact = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["b"]}]}
    apart = {"matchExpressions": [{"key": "closed", "operator": "DoesNotExist"}]}
    selecting = {
        "team": {"matchLabels": {"team": "a"}},
        "not-in": exact,
        "without": apart,
        "every": {},
    }
    for name, selector in selecting.items():
        on.given(virtual=[policy(name, ingress=[{"from": [{"namespaceSelector": selector}]}])])
    on.given(virtual=[policy("none", ingress=[{"from": [{"podSelector": {}}]}]), namespace("one")])

    def woken(**labels: str) -> set[str]:
        on.woken()
        on.given(virtual=[namespace("one", metadata={"labels": labels})])
        return {each.key.name for each in on.woken() if each.syncer == "networkpolicies"}

    assert woken(other="x") == set()
    assert woken(team="a") == {"team"}
    assert woken(team="b") == {"team", "not-in"}
    assert woken(closed="") == {"not-in", "without"}
    on.woken()
    on.given(virtual=[namespace("two")])
    assert {each.key.name for each in on.woken() if each.syncer == "networkpolicies"} == set(selecting)


def test_policy_is_looked_at_again_where_labels_of_namespaces_are_too_many_to_be_indexed(on: World) -> None:
    many = {f"l{number}": "" for number in range(MOST_LABELS)}
    on.given(virtual=[namespace("crowded", metadata={"labels": {"team": "a", **many}})])
    found = decided(on, policy(ingress=[{"from": [TEAM]}]))
    assert found.after == CROWDED_SECONDS
    [rule] = found.writes[0].obj["spec"]["ingress"]
    [expression] = rule["from"][0]["podSelector"]["matchExpressions"]
    assert expression["values"] == ["crowded"]
    assert decided(on, policy(ingress=[{"from": [{"namespaceSelector": {}}]}])).after is None


def test_policy_with_too_many_parts_is_refused_before_work_is_spent(on: World) -> None:
    peers: list[Obj] = [{"podSelector": {}}] * (MOST_PARTS - 2)
    decided(on, policy(ingress=[{"from": peers, "ports": [{"port": 80}]}]))
    with pytest.raises(TooLarge, match=f"{MOST_PARTS + 1} rules, peers, ports and exceptions"):
        decided(on, policy(ingress=[{"from": [*peers, *peers[:1]], "ports": [{"port": 80}]}]))
    blocks = [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"] * MOST_PARTS}}]
    with pytest.raises(TooLarge):
        decided(on, policy(egress=[{"to": blocks}]))


def test_policy_that_would_be_long_to_read_for_each_pod_is_refused(on: World) -> None:
    selector = {"matchLabels": {f"k{number}": "x" * 60 for number in range(500)}}
    with pytest.raises(TooLarge, match="more than 32768 characters"):
        decided(on, policy(ingress=[{"from": [{"podSelector": selector}]}]))


def test_policy_with_too_many_values_is_looked_up_without_them(on: World) -> None:
    values = [f"v{number}" for number in range(LONGEST // 8)]
    for name, chosen in {"long": values, "short": values[:9]}.items():
        selector = {"matchExpressions": [{"key": "team", "operator": "In", "values": chosen}]}
        on.given(virtual=[policy(name, ingress=[{"from": [{"namespaceSelector": selector}]}])])

    def woken(team: str) -> set[str]:
        on.woken()
        on.given(virtual=[namespace("one", metadata={"labels": {"team": team}})])
        return {each.key.name for each in on.woken() if each.syncer == "networkpolicies"}

    assert woken("other") == {"long", "short"}, "a Namespace appears"
    assert woken("v1") == {"short"}


def test_selectors_of_namespaces_are_bounded(on: World) -> None:
    values = [str(number) for number in range(MOST_EXPRESSIONS)]
    wide = {"matchExpressions": [{"key": "team", "operator": "In", "values": values}]}
    with pytest.raises(TooLarge, match="expressions and values for namespaces"):
        decided(on, policy(ingress=[{"from": [{"namespaceSelector": wide}]}]))
    on.given(virtual=[namespace(f"n{number}", metadata={"labels": {"team": "a"}}) for number in range(101)])
    with pytest.raises(Refused, match=f"more than {MOST_NAMESPACES} namespaces"):
        decided(on, policy(ingress=[{"from": [TEAM] * 50}]))


def test_number_of_copies_is_bounded(world: World) -> None:
    world.configure({"sync": {"toHost": {"networkPolicies": {"enabled": True, "most": 1}}}})
    world.given(virtual=[policy("a"), policy("b")]).settle("networkpolicies", "shop/a")
    with pytest.raises(Refused, match="its share of the 1 NetworkPolicies that a virtual cluster may have"):
        world.decide("networkpolicies", "shop/b")
    assert world.settle("networkpolicies", "shop/a") == []


def test_namespace_that_fills_its_share_closes_no_pods_of_others(world: World) -> None:
    """One policy of each other namespace has its copy, and so its Pods aren't closed for good."""
    world.configure({"sync": {"toHost": {"networkPolicies": {"enabled": True, "most": 8}}}})
    many = [policy(f"p{number}") for number in range(8)]
    other = policy("only")
    other["metadata"]["namespace"] = "bank"
    world.given(virtual=[namespace("bank"), *many, other])
    copied = 0
    with pytest.raises(Refused, match="its share of the 8 NetworkPolicies"):
        for each in many:
            world.settle("networkpolicies", f"shop/{each['metadata']['name']}")
            copied += 1
    assert copied == 6
    assert world.settle("networkpolicies", "bank/only")


def test_peers_in_other_host_namespaces_are_named_by_these() -> None:
    world = World(config=ON, translator=PerNamespace)
    spaces = [namespace(name, metadata={"labels": {"team": "a"}}) for name in ("shop", "front")]
    world.given(virtual=spaces).settle("namespaces", "/shop")
    found = decided(world, policy(ingress=[{"from": [TEAM]}, {}]))
    homes = ["front-x-vc-x-vc-ns", "shop-x-vc-x-vc-ns"]
    chosen, every = found.writes[0].obj["spec"]["ingress"]
    for rule in (chosen, every):
        [expression] = rule["from"][0]["namespaceSelector"]["matchExpressions"]
        assert expression["key"] == "kubernetes.io/metadata.name"
        assert expression["values"] == homes


@pytest.mark.parametrize(
    "spec",
    [
        {"podSelector": {"matchFields": {}}},
        {"podSelector": {"matchExpressions": [{"key": "a"}]}},
        {"podSelector": {"matchLabels": {"eks.amazonaws.com/pod": "x"}}},
        {"ingress": [{"from": [{}]}]},
        {"ingress": [{"from": [{"ipBlock": {"cidr": "010.0.0.0/8"}}]}]},
        {"ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "unless": []}}]}]},
        {"ingress": [{"action": "Deny"}]},
        {"egress": [{"to": [{"namespaceSelector": {"matchFields": {}}}]}]},
    ],
)
def test_policy_without_equivalent_on_the_host_is_refused(on: World, spec: Obj) -> None:
    with pytest.raises(Refused):
        decided(on, policy(**spec))


def test_policy_copy_has_only_known_fields() -> None:
    assert set(NetworkPolicySyncer.down) == set(NetworkPolicySyncer.translates)
