"""Scheduling selectors of a Pod match this tenant's pods only."""

from typing import Any

import pytest

from syncer.api import Obj
from syncer.names import PerNamespace
from syncer.resources.pods.scheduling import affinity, spread
from syncer.resources.pods.syncer import PodSyncer
from syncer.testing import World
from syncer.testing.objects import namespace, pod

MARK = {"vsyncer.dev/cluster": "vc.vc-ns"}
HERE = {"key": "vsyncer.dev/namespace", "operator": "In", "values": ["shop"]}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
WEB = {"matchLabels": {"app": "web"}}


def term(world: World, **given: Any) -> Obj:
    virtual = pod("web", metadata={"labels": {"app": "web", "hash": "1"}})
    one = {"topologyKey": "zone", **given}
    result: Obj = affinity(world.context("pods"), virtual, {"podAntiAffinity": {REQUIRED: [one]}})
    return result["podAntiAffinity"][REQUIRED][0]  # type: ignore[no-any-return]


def test_term_speaks_of_the_pods_own_namespace_unless_it_says_otherwise(world: World) -> None:
    assert term(world, labelSelector=WEB) == {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"app": "web", **MARK}, "matchExpressions": [HERE]},
    }


def test_named_namespaces_become_a_label(world: World) -> None:
    found = term(world, labelSelector=WEB, namespaces=["b", "a"])
    assert found["labelSelector"]["matchExpressions"] == [{**HERE, "values": ["a", "b"]}]
    assert "namespaces" not in found


def test_selected_namespaces_are_looked_up_and_added_to_the_named_ones(world: World) -> None:
    world.given(virtual=[namespace("a", metadata={"labels": {"team": "x"}}), namespace("b")])
    found = term(world, labelSelector=WEB, namespaces=["c"], namespaceSelector={"matchLabels": {"team": "x"}})
    assert found["labelSelector"]["matchExpressions"] == [{**HERE, "values": ["a", "c"]}]
    assert "namespaceSelector" not in found


def test_selector_of_namespaces_that_finds_none_selects_no_pod(world: World) -> None:
    found = term(world, labelSelector=WEB, namespaceSelector={"matchLabels": {"team": "x"}})
    assert found["labelSelector"]["matchExpressions"] == [{"key": "vsyncer.dev/namespace", "operator": "DoesNotExist"}]


def test_selector_of_all_namespaces_selects_all_of_this_tenant(world: World) -> None:
    found = term(world, labelSelector=WEB, namespaceSelector={})
    assert found == {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web", **MARK}}}


def test_term_without_a_selector_still_selects_nothing(world: World) -> None:
    assert term(world, namespaces=["a"]) == {"topologyKey": "zone"}


def test_label_keys_are_folded_into_the_selector(world: World) -> None:
    found = term(world, labelSelector=WEB, matchLabelKeys=["hash"], mismatchLabelKeys=["app"])
    assert found["labelSelector"]["matchExpressions"] == [
        {"key": "hash", "operator": "In", "values": ["1"]},
        {"key": "app", "operator": "NotIn", "values": ["web"]},
        HERE,
    ]
    assert not {"matchLabelKeys", "mismatchLabelKeys"} & found.keys()


def test_preferred_terms_keep_their_weight_and_node_affinity_is_as_it_was(world: World) -> None:
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    nodes: Obj = {REQUIRED: {"nodeSelectorTerms": []}}
    weighted = [{"weight": 5, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {}}}]
    found = affinity(world.context("pods"), pod("web"), {"nodeAffinity": nodes, "podAffinity": {preferred: weighted}})
    assert found["nodeAffinity"] == nodes
    [one] = found["podAffinity"][preferred]
    assert one["weight"] == 5
    assert one["podAffinityTerm"]["labelSelector"] == {"matchLabels": MARK, "matchExpressions": [HERE]}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"namespaces": ["shop"]}, {}),
        ({"namespaces": ["a", "shop"]}, {"namespaces": ["a-x-vc-x-vc-ns", "shop-x-vc-x-vc-ns"]}),
        ({"namespaceSelector": {}}, {"namespaceSelector": {}}),
    ],
)
def test_terms_name_the_host_namespaces_where_these_are_separate(given: Obj, expected: Obj) -> None:
    found = term(World([PodSyncer], translator=PerNamespace), labelSelector=WEB, **given)
    assert {part: found[part] for part in ("namespaces", "namespaceSelector") if part in found} == expected


def test_spreading_counts_pods_of_the_same_namespace(world: World) -> None:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "labelSelector": WEB, "matchLabelKeys": ["hash"]}
    virtual = pod("web", metadata={"labels": {"hash": "1"}})
    [found, nothing] = spread(world.context("pods"), virtual, [constraint, {"topologyKey": "zone"}])
    assert found == {
        "maxSkew": 1,
        "topologyKey": "zone",
        "labelSelector": {
            "matchLabels": {"app": "web", **MARK, "vsyncer.dev/namespace": "shop"},
            "matchExpressions": [{"key": "hash", "operator": "In", "values": ["1"]}],
        },
    }
    assert nothing == {"topologyKey": "zone"}
