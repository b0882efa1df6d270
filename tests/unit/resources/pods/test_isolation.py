"""Whom NetworkPolicies isolate is known from their index, so that a Pod's decision reads none of them.

It is worked out once for each state of a namespace, whatever the number of its Pods.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

from syncer.api import Decision, Key, Obj, Resource, Side, selectors
from syncer.engine.reconcile.controller import Reads
from syncer.resources.kinds import NETWORK_POLICIES
from syncer.resources.network_policies import LONGEST
from syncer.resources.pods import isolation
from syncer.testing import World
from syncer.testing.objects import build, pod

BOTH = {"vsyncer.dev/isolated-ingress": "true", "vsyncer.dev/isolated-egress": "true"}
WEB = {"matchLabels": {"app": "web"}}
TYPES: dict[str, Any] = {"policyTypes": ["Ingress", "Egress"]}
MANY_LABELS = {f"label-{number}": "" for number in range(40)}


def world_of(*policies: Obj, selector: Any = None) -> World:
    options = {"enabled": True, **({"selector": selector} if selector else {})}
    world = World(config={"sync": {"toHost": {"networkPolicies": options}}})
    return world.given(virtual=list(policies))


def isolated(*policies: Obj, selector: Any = None) -> dict[str, str]:
    world = world_of(*policies, selector=selector)
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


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ({"key": "app", "operator": "Resembles", "values": ["web"]}, "has the operator 'Resembles', which isn't known"),
        ({"key": "app", "operator": "in", "values": ["web"]}, "has the operator 'in', which isn't known"),
        ({"key": "app", "operator": "In", "values": []}, "has the operator In without values"),
        ({"key": "app", "operator": "In", "values": "website"}, "has values that aren't texts"),
        ({"key": "app", "operator": "In", "values": [5]}, "has values that aren't texts"),
        ({"key": "app", "operator": "DoesNotExist", "values": ["db"]}, "has the operator DoesNotExist with values"),
    ],
)
def test_policy_with_an_expression_that_no_api_server_accepts_isolates_all(expression: Any, words: str) -> None:
    world = world_of(policy(podSelector={"matchExpressions": [expression]}, **TYPES))
    ctx, web = world.context("pods"), pod("x", metadata={"labels": {"app": "web"}})
    assert isolation.labels(ctx, web) == BOTH
    warning = isolation.warned(ctx, web, Decision()).warning
    assert warning is not None
    assert words in warning.message


def test_policy_with_labels_of_wrong_types_isolates_all() -> None:
    assert isolated(policy(podSelector={"matchLabels": {"app": 5}}, **TYPES)) == BOTH


# -- many Pods, and many expressions ---------------------------------------------------------------

PODS, POLICIES, EXPRESSIONS = 100, 100, 520


def large(name: str, expressions: int, **labels: str) -> Obj:
    """Return a policy with expressions of its own that hold for Pods with these labels."""
    absent = [{"key": f"{name}-{number}", "operator": "DoesNotExist"} for number in range(expressions)]
    return policy(name, podSelector={"matchLabels": labels, "matchExpressions": absent}, **TYPES)


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, counts: Callable[[Any], bool]) -> list[Any]:
    """Return a list to which each call of a function is added whose first argument counts."""
    calls: list[Any] = []
    original = getattr(module, name)

    def call(first: Any, *given: Any, **options: Any) -> Any:
        if counts(first):
            calls.append(first)
        return original(first, *given, **options)

    monkeypatch.setattr(module, name, call)
    return calls


def labels_of_pods(world: World) -> list[dict[str, str]]:
    """Return the labels of the copies of many Pods, each with a label of its own besides a common one."""
    ctx = world.context("pods")
    names = [f"pod-{number}" for number in range(PODS)]
    pods = [pod(name, metadata={"labels": {"app": "web", "pod-name": name}}) for name in names]
    return [isolation.labels(ctx, each) for each in pods]


def test_policies_are_parsed_once_and_compared_once_for_many_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of(*(large(f"once-{number}", 20, app="web") for number in range(POLICIES)))
    parsed = counted(monkeypatch, json, "loads", lambda text: '"selector"' in str(text))
    compared = counted(monkeypatch, selectors, "matches", lambda selector: "once-" in str(selector))
    assert labels_of_pods(world) == [BOTH] * PODS
    assert max(len(parsed), len(compared)) <= POLICIES
    world.given(virtual=[large("once-0", 21, app="db")])
    assert labels_of_pods(world) == [BOTH] * PODS
    assert max(len(parsed), len(compared)) <= 2 * POLICIES


def test_policies_with_too_many_expressions_are_never_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of(*(large(f"much-{number}", EXPRESSIONS, app="db") for number in range(POLICIES)))
    parsed = counted(monkeypatch, json, "loads", lambda text: '"selector"' in str(text))
    compared = counted(monkeypatch, selectors, "matches", lambda selector: "much-" in str(selector))
    assert labels_of_pods(world) == [BOTH] * PODS
    assert len(parsed) <= isolation.MOST_EXPRESSIONS / EXPRESSIONS + 1
    assert compared == []


def test_pods_with_other_values_of_a_named_label_are_compared_by_themselves() -> None:
    world = world_of(policy(podSelector=WEB, **TYPES))
    ctx = world.context("pods")
    found = [isolation.labels(ctx, pod("x", metadata={"labels": {"app": app}})) for app in ("web", "db", "web")]
    assert found == [BOTH, {}, BOTH]


def test_policies_of_one_namespace_always_fit_the_memory_for_parsed_ones() -> None:
    text = isolation.MOST_READ * (LONGEST + 100)
    parts = isolation.OVERHEAD * (1 + isolation.MOST_READ + isolation.MOST_EXPRESSIONS)
    assert text + parts <= isolation.PARSED_BYTES


@pytest.mark.parametrize(
    ("policies", "why"),
    [
        ([large("e", isolation.MOST_EXPRESSIONS + 1)], "a NetworkPolicy there is too long"),
        ([large(f"e{number}", 500) for number in range(11)], "more than 5000 labels, expressions and values together"),
        ([policy(podSelector=WEB, policyTypes=5)], "a NetworkPolicy there is too long, or malformed"),
        ([policy(podSelector=5, **TYPES)], "the podSelector of a NetworkPolicy there"),
        ([policy(podSelector={"matchExpressions": [5]}, **TYPES)], "the podSelector of a NetworkPolicy there"),
        ([policy(f"p{number}", podSelector=WEB) for number in range(101)], "there are more than 100 NetworkPolicies"),
    ],
)
def test_pod_that_all_policies_together_isolate_has_a_warning(policies: list[Obj], why: str) -> None:
    world = world_of(*policies)
    ctx = world.context("pods")
    assert isolation.labels(ctx, pod("x")) == BOTH
    decision = isolation.warned(ctx, pod("x"), Decision())
    assert decision.warning is not None
    assert decision.warning.reason == "NamespaceIsolated"
    assert why in decision.warning.message


def test_pod_that_a_policy_isolates_has_no_warning() -> None:
    world = world_of(policy(podSelector=WEB, **TYPES))
    assert isolation.warned(world.context("pods"), pod("x"), Decision()).warning is None


def test_warning_of_isolation_replaces_no_other() -> None:
    world = world_of(policy(podSelector=5, **TYPES))
    decision = Decision().warn("Other", "Something else.")
    assert isolation.warned(world.context("pods"), pod("x"), decision) == decision
