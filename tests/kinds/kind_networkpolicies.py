"""NetworkPolicies, with peers of every form."""

from hypothesis import strategies as st
from network_semantics import ALLOWED, SPECS

from syncer.api import Obj
from syncer.resources.kinds import NETWORK_POLICIES
from syncer.resources.network_policies import NetworkPolicySyncer
from syncer.testing import strategies
from syncer.testing.objects import build
from syncer.testing.samples import Sample

_WEB = {"matchLabels": {"app": "web"}}


def _policy(name: str) -> Obj:
    rule = {"from": [{"podSelector": _WEB}], "ports": [{"protocol": "TCP", "port": 80}]}
    return build(NETWORK_POLICIES, name, spec={"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [rule]})


SAMPLE = Sample(
    syncer=NetworkPolicySyncer,
    objects=strategies.objects(NETWORK_POLICIES, st.fixed_dictionaries({"spec": SPECS})),
    make=_policy,
    change={"spec": {"policyTypes": ["Ingress", "Egress"]}},
    tamper={"spec": {"ingress": [{}]}},
    config={"sync": {"toHost": {"networkPolicies": {"allowedCIDRs": ALLOWED}}}},
    # What isn't known there is refused, as without it a copy may allow more.
    dropped=("spec.podSelector", "spec.ingress", "spec.egress"),
)
