"""Whom NetworkPolicies isolate is known from their index, so that a Pod's decision reads none of them."""

from typing import Any

import pytest

from syncer.api import Key, Obj, Resource, Side
from syncer.engine.reconcile.controller import Reads
from syncer.resources.kinds import NETWORK_POLICIES
from syncer.resources.pods import isolation
from syncer.testing import World
from syncer.testing.objects import build, pod

BOTH = {"vsyncer.dev/isolated-ingress": "true", "vsyncer.dev/isolated-egress": "true"}
WEB = {"matchLabels": {"app": "web"}}
TYPES: dict[str, Any] = {"policyTypes": ["Ingress", "Egress"]}
MANY_LABELS = {f"label-{number}": "" for number in range(40)}


def isolated(*policies: Obj, selector: Any = None) -> dict[str, str]:
    options = {"enabled": True, **({"selector": selector} if selector else {})}
    world = World(config={"sync": {"toHost": {"networkPolicies": options}}})
    world.given(virtual=list(policies))
    return isolation.labels(world.context("pods"), pod("x", metadata={"labels": {"app": "web"}}))


def policy(name: str = "p", *, labels: Any = None, **spec: Any) -> Obj:
    return build(NETWORK_POLICIES, name, spec=spec, metadata={"labels": labels or {}})


def test_decision_about_a_pod_reads_no_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Resource] = []

    def get(reads: Reads, side: Side, resource: Resource, key: Key) -> None:
        read.append(resource)

    monkeypatch.setattr(Reads, "get", get)
    policies = [policy(f"p{number}", podSelector=WEB, **TYPES) for number in range(3)]
    assert (isolated(*policies), read) == (BOTH, [])


def test_policy_that_selects_others_isolates_nothing() -> None:
    assert isolated(policy(podSelector={"matchLabels": {"app": "db"}}, **TYPES)) == {}


@pytest.mark.parametrize("labels", [{"team": "a"}, MANY_LABELS])
def test_unsynced_policy_isolates_only_with_too_many_labels(labels: Any) -> None:
    narrow = {"matchLabels": {"team": "b"}}
    expected = BOTH if labels is MANY_LABELS else {}
    assert isolated(policy(labels=labels, podSelector=WEB, **TYPES), selector=narrow) == expected


def test_policy_that_is_being_deleted_isolates_nothing() -> None:
    gone = policy(podSelector=WEB, **TYPES)
    gone["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.org/x"]}
    assert isolated(gone) == {}


def test_policy_that_is_too_long_isolates_all() -> None:
    others = {"matchLabels": {"app": "db", "x": "x" * 40_000}}
    assert isolated(policy(podSelector=others, **TYPES)) == BOTH


def test_more_policies_than_are_looked_at_isolate_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "MOST_READ", 2)
    others = [policy(f"p{number}", podSelector={"matchLabels": {"app": "db"}}, **TYPES) for number in range(3)]
    assert [isolated(*others[:2]), isolated(*others)] == [{}, BOTH]


@pytest.mark.parametrize("wrong", [{"podSelector": 5}, {"podSelector": WEB, "ingress": 5}, {"policyTypes": 5}])
def test_policy_with_values_of_wrong_types_isolates_all(wrong: Any) -> None:
    assert isolated(policy(**{**TYPES, **wrong})) == BOTH
