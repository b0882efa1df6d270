"""Host namespaces, if each virtual one has its own."""

from typing import Any

import pytest
from pydantic import ValidationError

from syncer.api import Key, Obj, Outcome, Refused, Resource, annotations_of, labels_of
from syncer.names import PerNamespace, SingleNamespace, Unchanged
from syncer.resources.kinds import PODS
from syncer.resources.namespace_values import ENFORCE
from syncer.resources.namespaces import NamespaceConfig, NamespaceSyncer
from syncer.testing import World
from syncer.testing.objects import namespace, pod, serviceaccount


def test_host_namespace_has_no_label_and_no_annotation_of_the_tenants() -> None:
    world = World([NamespaceSyncer], translator=PerNamespace)
    labels = {
        "team": "a",
        "kubernetes.io/metadata.name": "shop",
        "pod-security.kubernetes.io/enforce": "privileged",
    }
    annotations = {"scheduler.alpha.kubernetes.io/node-selector": "role=master"}
    world.given(virtual=[namespace("shop", metadata={"labels": labels, "annotations": annotations})])
    [write] = world.decide("namespaces", "shop").writes
    metadata = write.obj["metadata"]
    assert metadata["name"] == "shop-x-vc-x-vc-ns"
    assert metadata["labels"] == {"vsyncer.dev/cluster": "vc.vc-ns", ENFORCE: "baseline"}
    assert all(key.startswith("vsyncer.dev/") for key in metadata["annotations"])


def test_namespace_syncer_does_not_apply_where_all_copies_share_a_namespace() -> None:
    syncer = NamespaceSyncer()
    assert syncer.applies_to(World([], translator=PerNamespace).settings)
    assert not syncer.applies_to(World([], translator=SingleNamespace).settings)


@pytest.mark.reason("BuiltInNamespace")
def test_objects_that_every_cluster_has_are_the_hosts_own() -> None:
    world = World([NamespaceSyncer], translator=Unchanged)
    world.given(virtual=[namespace("default"), namespace("shop")])
    assert not world.decide("namespaces", "default").writes
    assert world.decide("namespaces", "shop").writes


@pytest.mark.reason("HostNamespaceListed")
def test_namespace_that_the_host_has_and_that_is_listed_has_no_copy() -> None:
    config = {"names": {"namespaces": ["shop"]}}
    world = World([NamespaceSyncer], config=config, translator=Unchanged).given(virtual=[namespace("shop")])
    assert not world.decide("namespaces", "shop").writes


class Elsewhere(PerNamespace):
    """Puts copies into other host namespaces than those that stand for virtual ones."""

    def to_host(self, resource: Resource, key: Key) -> Key:
        host = super().to_host(resource, key)
        return host._replace(namespace=f"{host.namespace}-x") if resource == PODS else host


@pytest.mark.reason("NoHostNamespaces")
def test_namespace_in_which_no_copies_would_be_has_no_copy() -> None:
    world = World([NamespaceSyncer], translator=Elsewhere).given(virtual=[namespace("shop")])
    assert not world.decide("namespaces", "shop").writes


HOME = "shop-x-vc-x-vc-ns"
QUOTA, LIMITS = {"hard": {"pods": "10"}}, {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}


def world_of(**options: Any) -> World:
    """Return a world where a virtual namespace has its own on the host."""
    config = {"sync": {"toHost": {"namespaces": options}}, "networking": {"dns": {"service": ""}}}
    return World(config=config, translator=PerNamespace).given(virtual=[namespace("shop")])


def home(world: World) -> Obj:
    found = world.host("Namespace", HOME)
    assert found
    return found


@pytest.mark.reason("TooManyNamespaces")
def test_host_namespaces_beyond_the_bound_are_refused_and_present_ones_go_on() -> None:
    """Each has the whole quota, so that their number is what bounds a tenant."""
    world = world_of(most=1).given(virtual=[namespace("bank")], host=[namespace("foreign")])
    world.settle("namespaces", "shop")
    with pytest.raises(Refused, match="this virtual cluster has 1 namespaces where Pods run already"):
        world.decide("namespaces", "bank")
    assert world.settle("namespaces", "shop") == []


@pytest.mark.parametrize(
    ("options", "labels"),
    [
        ({}, {ENFORCE: "baseline"}),
        ({"podSecurity": "restricted", "labels": {"a": "1"}}, {ENFORCE: "restricted", "a": "1"}),
        ({"podSecurity": ""}, {}),
    ],
)
def test_host_namespace_has_the_labels_of_the_operator(options: Any, labels: dict[str, str]) -> None:
    world = world_of(**options)
    world.settle("namespaces", "shop")
    assert labels_of(home(world)) == {"vsyncer.dev/cluster": "vc.vc-ns", **labels}


def test_operators_labels_and_annotations_win_over_allowed_ones_of_the_tenant() -> None:
    both = {"metadata": {part: {"allow": ["a", ENFORCE]} for part in ("labels", "annotations")}}
    world = world_of(labels={"a": "ours"}, annotations={"a": "ours"}, **both)
    theirs = {"a": "theirs", ENFORCE: "privileged"}
    world.given(virtual=[namespace("shop", metadata={"labels": theirs, "annotations": theirs})])
    world.settle("namespaces", "shop")
    assert (labels_of(home(world))["a"], annotations_of(home(world))["a"]) == ("ours", "ours")
    assert labels_of(home(world))[ENFORCE] == "baseline"


def test_host_namespace_gets_a_quota_and_limits_and_gets_them_back() -> None:
    world = world_of(quota=QUOTA, limits=LIMITS)
    for _ in range(2):
        world.settle("namespaces", "shop")
        found = [world.host(kind, f"{HOME}/vsyncer") or {} for kind in ("ResourceQuota", "LimitRange")]
        assert [each["spec"] for each in found] == [QUOTA, LIMITS]
        assert {each["metadata"]["labels"]["vsyncer.dev/cluster"] for each in found} == {"vc.vc-ns"}
        assert [str(reference.key) for reference in world.decide("namespaces", "shop").on] == [f"{HOME}/vsyncer"] * 2
        world.gone(host=found)
    world = world_of(quota={"hard": {"pods": "20"}}).given(host=[*found, home(world)])
    world.settle("namespaces", "shop")
    assert (world.host("ResourceQuota", f"{HOME}/vsyncer") or {})["spec"] == {"hard": {"pods": "20"}}
    assert (world.host("LimitRange", f"{HOME}/vsyncer") or {})["spec"] == LIMITS, "it is no longer configured"


@pytest.mark.reason("HomeOutdated")
def test_no_pod_is_sent_while_the_quota_is_an_earlier_one() -> None:
    before = world_of(quota=QUOTA)
    before.settle("namespaces", "shop")
    quota = before.host("ResourceQuota", f"{HOME}/vsyncer") or {}
    world = world_of(quota={"hard": {"pods": "20"}}).given(host=[quota, home(before)])
    world.given(virtual=[pod("web"), serviceaccount("default")])
    assert world.decide("pods", "shop/web").reason == "its host namespace still has an earlier ResourceQuota"


def enforced(world: World, hard: dict[str, str]) -> None:
    """Fill in the status of the quota as the host's controller does."""
    world.given(host=[{**(world.host("ResourceQuota", f"{HOME}/vsyncer") or {}), "status": {"hard": hard}}])


@pytest.mark.parametrize("status", [{}, {"pods": "10"}])
def test_no_pod_is_sent_before_the_host_enforces_the_whole_quota(status: dict[str, str]) -> None:
    world = world_of(quota={"hard": {"pods": "10", "cpu": "1"}})
    world.given(virtual=[pod("web"), serviceaccount("default")])
    for name in ("shop", "shop"):
        world.settle("namespaces", name)
    world.settle("serviceaccounts", "shop/default")
    enforced(world, status)
    decision = world.decide("pods", "shop/web")
    assert (decision.outcome, decision.writes) == (Outcome.PENDING, ())
    assert decision.reason == "the host doesn't enforce the ResourceQuota of its host namespace yet"
    enforced(world, {"pods": "10", "cpu": "1"})
    assert world.decide("pods", "shop/web").writes


@pytest.mark.reason("HomeUnlabelled", "HomeLacks", "QuotaNotEnforced")
def test_no_pod_goes_into_a_host_namespace_that_is_not_ready() -> None:
    plain, full = world_of(podSecurity=""), world_of(quota=QUOTA, limits=LIMITS)
    plain.settle("namespaces", "shop")
    full.given(virtual=[pod("web"), serviceaccount("default")], host=[home(plain)])
    full.settle("serviceaccounts", "shop/default")
    waited: list[str] = []
    for _ in range(4):
        decision = full.decide("pods", "shop/web")
        assert (decision.outcome, decision.writes) == (Outcome.PENDING, ())
        if "doesn't enforce" in decision.reason:
            enforced(full, {"pods": "10", "services": "1"})
            waited.append("status")
            continue
        waited += [str(reference.resource) for reference in decision.on]
        if waited == ["namespaces"]:
            full.settle("namespaces", "shop")
            full.gone(host=[full.host("LimitRange", f"{HOME}/vsyncer") or {}])
            full.gone(host=[full.host("ResourceQuota", f"{HOME}/vsyncer") or {}])
        elif waited[-1] == "resourcequotas":
            full.settle("namespaces", "shop")
            full.gone(host=[full.host("LimitRange", f"{HOME}/vsyncer") or {}])
    assert waited == ["namespaces", "resourcequotas", "status", "limitranges"]
    full.settle("namespaces", "shop")
    assert full.decide("pods", "shop/web").writes


def test_pods_wait_for_no_label_where_the_daemon_makes_no_host_namespaces() -> None:
    world = World(config={"networking": {"dns": {"service": ""}}}, translator=SingleNamespace)
    world.given(virtual=[pod("web"), serviceaccount("default")]).settle("serviceaccounts", "shop/default")
    assert world.decide("pods", "shop/web").writes


CONTAINER = {"type": "Container"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"quota": {"pods": "10"}}, "pods: no such field; the spec of a ResourceQuota has hard"),
        ({"quota": {"hard": {"pods": "1"}, "foo": 1}}, "foo: no such field"),
        ({"quota": {"hard": {}}}, "hard is required"),
        ({"quota": {"scopes": ["BestEffort"]}}, "hard is required"),
        ({"quota": {"hard": ["pods"]}}, "hard: expected amounts by resource"),
        ({"quota": {"hard": {"pods": "ten"}}}, r"hard\.pods: expected a quantity, .* found 'ten'"),
        ({"quota": {"hard": {"pods": -1}}}, r"hard\.pods: expected a quantity"),
        ({"quota": {"hard": {"pods": True}}}, r"hard\.pods: expected a quantity"),
        ({"quota": {"hard": {"pods": None}}}, r"hard\.pods: expected a quantity"),
        ({"limits": CONTAINER}, "type: no such field; the spec of a LimitRange has limits"),
        ({"limits": {"limit": []}}, "limit: no such field"),
        ({"limits": {"limits": []}}, "limits is required"),
        ({"limits": {"limits": [{"max": {"cpu": "1"}}]}}, r"limits\[0\]: type is required"),
        ({"limits": {"limits": [CONTAINER]}}, r"limits\[0\]: has none of max"),
        ({"limits": {"limits": [{**CONTAINER, "maximum": {"cpu": "1"}}]}}, r"limits\[0\]\.maximum: no such field"),
        ({"limits": {"limits": [{**CONTAINER, "max": {"cpu": "one"}}]}}, r"limits\[0\]\.max\.cpu: expected a quan"),
        ({"labels": {ENFORCE: "privileged"}}, "is set by podSecurity"),
        ({"labels": {"a b": "c"}}, "'a b' is not a key"),
        ({"labels": {f"{'x' * 254}/a": "c"}}, "is not a key"),
        ({"labels": {"a": "b c"}}, "'b c' is not the value of a label"),
        ({"annotations": {"a b": "c"}}, "'a b' is not a key"),
    ],
)
def test_namespace_options_that_the_host_refuses_or_takes_as_nothing_are_refused(given: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        NamespaceConfig.model_validate(given)


def test_namespace_options_of_a_manifest_are_taken() -> None:
    hard = {"requests.cpu": 1.5, "pods": 10, "requests.memory": "2Gi", "count/ingresses.networking.k8s.io": "0"}
    given: Obj = {
        "quota": {"hard": hard, "scopes": ["NotTerminating"], "scopeSelector": {"matchExpressions": []}},
        "limits": {"limits": [{**CONTAINER, "max": {"cpu": "500m"}, "default": {"cpu": 1}}]},
        "labels": {"example.org/team": "", "pod-security.kubernetes.io/enforce-version": "v1.33"},
        "annotations": {"example.org/note": "any text"},
    }
    read = NamespaceConfig.model_validate(given).model_dump(include=set(given))
    amounts = {
        "requests.cpu": "1500m",
        "pods": "10",
        "requests.memory": "2Gi",
        "count/ingresses.networking.k8s.io": "0",
    }
    assert read.pop("quota") == {**given["quota"], "hard": amounts}, "as API servers write quantities"
    assert read.pop("limits") == {"limits": [{**CONTAINER, "max": {"cpu": "500m"}, "default": {"cpu": "1"}}]}
    assert read == {"labels": given["labels"], "annotations": given["annotations"]}
