"""What a tenant's NetworkPolicies allow on the host is what they allow in the virtual cluster, and never more than the
operator does.
"""

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from network_semantics import ALLOWED, PORTS, SPECS, Cluster, End

from syncer.api import Key, NameTranslator, Obj, Refused, Side, TooLarge, key_of, labels_of
from syncer.names import PerNamespace, SingleNamespace, Unchanged, VclusterCompat
from syncer.resources.kinds import NETWORK_POLICIES, PODS
from syncer.resources.network_policies import DIRECTIONS
from syncer.resources.pods import isolation
from syncer.testing import World
from syncer.testing.objects import build, namespace, pod

pytestmark = pytest.mark.slow

LABELS: tuple[Mapping[str, str], ...] = ({}, {"app": "web"}, {"app": "db"}, {"app": "x"})
SPACES = ("shop", "front")
ADDRESSES = ("10.1.2.3", "192.0.2.7", "192.0.2.200", "198.51.100.1", "2001:db8::1")
OUTSIDE = [End(address=address) for address in ADDRESSES]

POLICIES = st.lists(st.tuples(st.sampled_from(SPACES), SPECS), min_size=1, max_size=3)


def _virtual(number: int, space: str, spec: Obj) -> Obj:
    types = ["Ingress", *(["Egress"] if spec.get("egress") else [])]
    return build(NETWORK_POLICIES, f"p{number}", namespace=space, spec={"policyTypes": types, **spec})


@pytest.mark.parametrize("translator", [SingleNamespace, PerNamespace, VclusterCompat, Unchanged])
@settings(max_examples=60, deadline=None)
@given(
    drawn=POLICIES, spaces=st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), port=PORTS, allows=st.booleans()
)
def test_copies_allow_the_policies_traffic_and_no_more_than_the_operator(
    translator: type[NameTranslator],
    drawn: list[tuple[str, Obj]],
    spaces: tuple[Mapping[str, str], Mapping[str, str]],
    port: Obj,
    allows: bool,
) -> None:
    allowed: Any = ALLOWED if allows else {}
    policies = {"networkPolicies": {"enabled": True, "allowedCIDRs": allowed}}
    names = {"names": {"trustTenant": True}} if translator is Unchanged else {}
    world = World(config={"sync": {"toHost": policies}, **names}, translator=translator)
    labelled = dict(zip(SPACES, spaces, strict=True))
    virtual = [_virtual(number, *each) for number, each in enumerate(drawn)]
    world.given(
        virtual=[*virtual, *(namespace(name, metadata={"labels": labels}) for name, labels in labelled.items())]
    )
    if translator in (PerNamespace, Unchanged):
        for name in SPACES:
            world.settle("namespaces", Key("", name))
    for policy in virtual:
        try:
            world.settle("networkpolicies", key_of(policy))
        except (Refused, TooLarge):
            assume(False)
    copies = [obj for resource, obj in world.objects(Side.HOST) if resource == NETWORK_POLICIES]
    assert len(copies) == len(virtual)
    marks, identity = world.settings.marks, world.settings.identity

    def on_host(pod: End) -> End:
        home = world.settings.names.to_host(PODS, Key(pod.namespace, "any")).namespace
        return End(home, {**pod.labels, **marks.labels(identity, Key(pod.namespace, "any"))})

    pods = [End(space, labels) for space, labels in product(SPACES, LABELS)]
    homes = {on_host(pod).namespace for pod in pods}
    # Pods of another tenant, in the same host namespaces and in one of its own, and one of the host's own.
    others = [
        End(home, {**labels, **other})
        for home, labels, other in product(
            (*homes, "vc-other", "kube-system"),
            LABELS,
            ({}, marks.labels("other.vc-other", Key("shop", "any"))),
        )
    ]
    known = {name: {"kubernetes.io/metadata.name": name} for name in (*homes, "vc-other", "kube-system")}
    ours, theirs = Cluster(virtual, labelled), Cluster(copies, known)
    for one, other in product(pods, pods):
        assert ours.lets(one, other, port) == theirs.lets(on_host(one), on_host(other), port), f"{one} to {other}"
    for own in pods:
        for kind, direction, _ in DIRECTIONS:
            assert ours.isolates(kind, own) == theirs.isolates(kind, on_host(own))
            lets = "lets_in" if kind == "Ingress" else "lets_out"
            if not ours.isolates(kind, own):
                continue
            for outside in OUTSIDE:
                may = getattr(ours, lets)(own, outside, port) and _may(allowed.get(direction, []), outside.address)
                assert getattr(theirs, lets)(on_host(own), outside, port) == may, f"{kind} {own} {outside}"
            for foreign in others:
                assert not getattr(theirs, lets)(on_host(own), foreign, port), f"{kind} {own} {foreign}"
    for foreign in others:
        assert not any(theirs.isolates(kind, foreign) for kind, _, _ in DIRECTIONS), "they select nobody else's pods"
    assert all(labels_of(copy)[marks.cluster] == identity for copy in copies)


def _may(ranges: list[Obj], address: str) -> bool:
    return any(
        ip_address(address) in ip_network(each["cidr"])
        and not any(ip_address(address) in ip_network(one) for one in each.get("except", ()))
        for each in ranges
    )


def _operators(marks: Any) -> list[Obj]:
    """Return the policies of a host namespace as charts/virtual-cluster has them: they close all Pods, and open to each
    other those about which no policy of the tenant's decides.
    """

    def one(name: str, spec: Obj) -> Obj:
        return build(NETWORK_POLICIES, name, namespace="vc-ns", spec=spec)

    def without(label: str) -> Obj:
        return {"matchExpressions": [{"key": label, "operator": "DoesNotExist"}]}

    every: list[Obj] = [{"podSelector": {}}]
    ingress = {"podSelector": without(marks.isolated_ingress), "policyTypes": ["Ingress"], "ingress": [{"from": every}]}
    egress = {"podSelector": without(marks.isolated_egress), "policyTypes": ["Egress"], "egress": [{"to": every}]}
    closed = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    return [one("closed", closed), one("ingress", ingress), one("egress", egress)]


@settings(max_examples=60, deadline=None)
@given(drawn=POLICIES, spaces=st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), port=PORTS)
def test_with_the_operators_policies_pods_reach_the_peers_the_tenants_policies_allow(
    drawn: list[tuple[str, Obj]], spaces: tuple[Mapping[str, str], Mapping[str, str]], port: Obj
) -> None:
    world = World(config={"sync": {"toHost": {"networkPolicies": {"enabled": True}}}})
    labelled = dict(zip(SPACES, spaces, strict=True))
    virtual = [_virtual(number, *each) for number, each in enumerate(drawn)]
    world.given(
        virtual=[*virtual, *(namespace(name, metadata={"labels": labels}) for name, labels in labelled.items())]
    )
    for policy in virtual:
        world.settle("networkpolicies", key_of(policy))
    copies = [obj for resource, obj in world.objects(Side.HOST) if resource == NETWORK_POLICIES]
    marks, identity, ctx = world.settings.marks, world.settings.identity, world.context("pods")
    ours = Cluster(virtual, labelled)
    theirs = Cluster([*copies, *_operators(marks)], {"vc-ns": {}})

    def on_host(end: End) -> End:
        copy = isolation.labels(ctx, pod("x", namespace=end.namespace, metadata={"labels": dict(end.labels)}))
        return End("vc-ns", {**end.labels, **marks.labels(identity, Key(end.namespace, "x")), **copy})

    pods = [End(space, labels) for space, labels in product(SPACES, LABELS)]
    for one, other in product(pods, pods):
        assert ours.lets(one, other, port) == theirs.lets(on_host(one), on_host(other), port), f"{one} to {other}"
