"""Scheduling selectors of a Pod match this tenant's pods only."""

from typing import Any

import pytest

from syncer.api import Obj, Refused, Side, TooLarge, selectors
from syncer.names import PerNamespace
from syncer.resources import selected_namespaces
from syncer.resources.pods.scheduling import MOST_TERMS, affinity, spread
from syncer.resources.pods.syncer import PodSyncer
from syncer.resources.selected_namespaces import (
    MOST_COMPARED,
    MOST_EXPRESSIONS,
    MOST_LABELS,
    MOST_NAMESPACES,
    NamespaceSelection,
)
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


def test_term_defaults_to_the_pods_own_namespace(world: World) -> None:
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


LABELS = [{}, {"team": "x"}, {"team": "y"}, {"team": "x", "tier": "web"}, {"tier": "web"}]
LABELS += [{"team": "x", **{f"l{number}": "" for number in range(MOST_LABELS)}}]


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"team": "x"}},
        {"matchLabels": {"team": "x", "tier": "web"}},
        *(
            {"matchExpressions": [{"key": "team", "operator": operator, "values": values}]}
            for operator, values in (("In", ["x", "z"]), ("In", ["x", "y"]), ("NotIn", ["x"]), ("NotIn", ["x", "y"]))
        ),
        {"matchExpressions": [{"key": "team", "operator": "Exists"}, {"key": "tier", "operator": "DoesNotExist"}]},
        {"matchLabels": {"l3": ""}},
    ],
    ids=str,
)
def test_selector_finds_the_same_namespaces_in_the_index_as_by_matching_each(world: World, selector: Obj) -> None:
    world.given(virtual=[namespace(f"n{number}", metadata={"labels": each}) for number, each in enumerate(LABELS)])
    there = [obj for resource, obj in world.objects(Side.VIRTUAL) if resource.kind == "Namespace"]
    wanted = [
        one["metadata"]["name"] for one in there if selectors.matches(selector, one["metadata"].get("labels", {}))
    ]
    found = term(world, labelSelector=WEB, namespaceSelector=selector)["labelSelector"]["matchExpressions"]
    assert found == [selectors.one_of("vsyncer.dev/namespace", wanted)]


def terms(world: World, *each: Obj) -> Obj:
    given = {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone", "labelSelector": WEB, **one} for one in each]}}
    return affinity(world.context("pods"), pod("web"), given)


def test_terms_of_affinity_are_bounded(world: World) -> None:
    assert terms(world, *[{}] * MOST_TERMS)
    with pytest.raises(TooLarge, match=f"{MOST_TERMS + 1} terms") as refused:
        terms(world, *[{}] * (MOST_TERMS + 1))
    assert refused.value.path == "spec.affinity"


def test_namespaces_of_all_terms_are_bounded(world: World) -> None:
    named = {"namespaces": [f"n{number}" for number in range(MOST_NAMESPACES // 4)]}
    assert terms(world, *[named] * 4)
    with pytest.raises(TooLarge, match=f"more than {MOST_NAMESPACES} namespaces"):
        terms(world, *[named] * 4, {"namespaces": ["one"]})


def test_namespaces_that_selectors_find_are_bounded_and_found_once(world: World) -> None:
    labels = {"labels": {"team": "x"}}
    world.given(virtual=[namespace(f"n{number}", metadata=labels) for number in range(MOST_NAMESPACES // 100)])
    selecting = {"namespaceSelector": {"matchLabels": {"team": "x"}}}
    assert terms(world, *[selecting] * 100)
    with pytest.raises(Refused, match=f"find more than {MOST_NAMESPACES} namespaces") as refused:
        terms(world, *[selecting] * 101)
    assert type(refused.value) is Refused, "a change of Namespaces may mend it"


def test_selector_looks_up_the_fewest_namespaces_that_it_may_find(world: World) -> None:
    world.given(
        virtual=[
            namespace(f"n{number}", metadata={"labels": {"all": "yes", "few": "yes" if number < 3 else "no"}})
            for number in range(500)
        ]
    )
    found = NamespaceSelection(world.context("pods"), "label", "it", "terms", "spec")
    few = {"key": "few", "operator": "In", "values": ["yes"]}
    assert sorted(found.selected({"matchLabels": {"all": "yes"}, "matchExpressions": [few]})) == ["n0", "n1", "n2"]
    assert found.looked_up == 3 * 2
    assert found.everything is None


def test_selectors_that_only_exclude_are_refused_by_count_before_they_are_evaluated(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selected_namespaces, "MOST_LOOKED_UP", 200 * 50)
    labels = {"labels": {"team": "x"}}
    world.given(virtual=[namespace(f"n{number}", metadata=labels) for number in range(196)])
    there = [obj for resource, obj in world.objects(Side.VIRTUAL) if resource.kind == "Namespace"]
    excluding = [
        {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x", f"y{one}"]}]}}
        for one in range(200 * 50 // len(there) // 3 + 1)
    ]
    assert terms(world, *excluding[:-1])
    with pytest.raises(Refused, match="compare labels of namespaces more than") as refused:
        terms(world, *excluding)
    assert type(refused.value) is Refused, "a change of Namespaces may mend it"
    assert refused.value.path == "spec.affinity"


EXISTS: Obj = {"key": "team", "operator": "Exists"}


def test_expressions_and_values_of_all_namespace_selectors_are_bounded(world: World) -> None:
    values = {"key": "team", "operator": "In", "values": ["x"] * (MOST_EXPRESSIONS // 2 - 1)}
    half = {"namespaceSelector": {"matchExpressions": [values]}}
    assert terms(world, half, half)
    for more in ({"matchExpressions": [EXISTS]}, {"matchLabels": {"team": "x"}}):
        with pytest.raises(TooLarge, match=f"more than {MOST_EXPRESSIONS} expressions") as refused:
            terms(world, half, half, {"namespaceSelector": more})
        assert refused.value.path == "spec.affinity"


def asked(world: World, monkeypatch: pytest.MonkeyPatch, *expressions: Obj) -> list[str]:
    """Return the values that the index of Namespaces is asked for."""
    reader, values = type(world.context("pods").reader), []
    indexed = reader.indexed

    def counted(self: Any, side: Side, resource: Any, index: str, value: str) -> Any:
        values.append(value)
        return indexed(self, side, resource, index, value)

    monkeypatch.setattr(reader, "indexed", counted)
    assert terms(world, {"namespaceSelector": {"matchExpressions": list(expressions)}})
    return values


def test_index_is_asked_once_for_a_label(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.given(virtual=[namespace("a", metadata={"labels": {"team": "x"}})])
    assert asked(world, monkeypatch, *[EXISTS] * 50).count("team") == 1


def test_index_is_not_asked_once_nothing_can_be_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.given(virtual=[namespace("a", metadata={"labels": {"team": "x"}})])
    many = [{"key": f"tier{number}", "operator": "Exists"} for number in range(50)]
    found = asked(world, monkeypatch, EXISTS, *many)
    assert found[:2] == ["team", "tier0"]


def test_comparisons_with_namespaces_of_many_labels_are_bounded(world: World) -> None:
    crowded = {"team": "x", **{f"l{number}": "" for number in range(MOST_LABELS)}}
    count = MOST_COMPARED // MOST_EXPRESSIONS
    world.given(virtual=[namespace(f"n{number}", metadata={"labels": crowded}) for number in range(count)])
    most = {"namespaceSelector": {"matchExpressions": [EXISTS] * MOST_EXPRESSIONS}}
    assert terms(world, most)
    world.given(virtual=[namespace("one-more", metadata={"labels": crowded})])
    with pytest.raises(Refused, match=f"more than {MOST_LABELS} labels") as refused:
        terms(world, most)
    assert type(refused.value) is Refused, "a change of Namespaces may mend it"


def test_selector_of_namespaces_with_an_unknown_operator_is_refused(world: World) -> None:
    selector = {"matchExpressions": [{"key": "team", "operator": "Gt", "values": ["1"]}]}
    with pytest.raises(Refused, match="a namespaceSelector has the operator 'Gt', which isn't known") as refused:
        term(world, labelSelector=WEB, namespaceSelector=selector)
    assert refused.value.path == "spec.affinity"


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
