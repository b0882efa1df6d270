"""An object with so many parts that no decision is made about it is shown to no index and no map function."""

import asyncio
from collections.abc import Iterator

import pytest
from informer_scene import A, Watched, obj

from syncer.api import Key, Obj
from syncer.cache.informer import Informer
from syncer.cache.newcomers import MANY
from syncer.cache.parts import MOST_PARTS
from syncer.multicluster.cluster_informer import ClusterInformer
from syncer.resources.kinds import CONFIG_MAPS


def large(version: int, *uses: str) -> Obj:
    return obj(version, uses=uses, items=[0] * MOST_PARTS)


@pytest.fixture
def walked(informer: Informer) -> list[str]:
    """The versions of the objects that an index and a map function were shown."""
    walked: list[str] = []

    def uses(value: Obj) -> Iterator[Key]:
        walked.append(value["metadata"]["resourceVersion"])
        return (Key("shop", name) for name in value.get("uses", ()))

    informer.add_index("uses", uses, owner="pods")
    informer.add_map_function(uses, "keys", lambda keys: None, owner="pods")
    return walked


def used(informer: Informer) -> list[str]:
    """Return what A uses by the index and by the map function, which agree."""
    found = {key for key in informer.indexer.values("uses") if A in informer.indexer.keys("uses", key)}
    assert found == set(informer.handlers.mapped_keys("pods"))
    return sorted(key.name for key in found)


def test_object_with_too_many_parts_keeps_its_earlier_values_until_it_has_fewer(
    watched: Watched, informer: Informer, walked: list[str]
) -> None:
    watched.listed(obj(5, uses=["x"]), version=5)
    watched.event("MODIFIED", large(6, "y"))
    assert (used(informer), walked) == (["x"], ["5", "5"])
    assert not informer.is_certain("pods")
    assert not informer.quarantined
    assert informer.get(A) == {**large(6), "uses": ["y"]}
    assert watched.heard()[-1] == (A, "6")
    watched.event("MODIFIED", obj(7, uses=["z"]))
    assert (used(informer), walked) == (["z"], ["5", "5", "7", "7"])
    assert informer.is_certain("pods")


def test_index_has_no_value_of_unreadable_objects(watched: Watched, informer: Informer) -> None:
    notified: list[str] = []
    informer.add_index("given", lambda value: value.get("uses", ()), keeps=False, notify=notified.extend)
    watched.listed(obj(5, uses=["x"]), version=5)
    watched.event("MODIFIED", large(6, "x"))
    assert (list(informer.indexer.keys("given", "x")), notified) == ([], ["x", "x"])
    assert list(informer.indexer.doubted("given")) == [A]
    watched.event("MODIFIED", obj(7, uses=["x"]))
    assert (list(informer.indexer.keys("given", "x")), notified) == ([A], ["x"] * 3)


def test_object_with_too_many_parts_that_goes_leaves_no_value(
    watched: Watched, informer: Informer, walked: list[str]
) -> None:
    watched.listed(obj(5, uses=["x"]), version=5)
    watched.event("MODIFIED", large(6, "y"))
    watched.event("DELETED", large(7, "y"))
    assert (used(informer), walked) == ([], ["5", "5"])
    assert informer.is_certain("pods")


def test_malformed_object_that_becomes_one_with_too_many_parts_is_quarantined_no_longer(
    watched: Watched, informer: Informer, walked: list[str]
) -> None:
    watched.event("ADDED", {**obj(5), "apiVersion": "evil/v1"})
    assert A in informer.quarantined
    watched.event("MODIFIED", large(6, "y"))
    assert (list(informer.quarantined), walked) == ([], [])
    assert not informer.is_certain("pods")


@pytest.mark.parametrize("others", [0, MANY], ids=["at once", "in steps"])
def test_later_index_skips_an_object_with_too_many_parts(
    watched: Watched, informer: Informer, others: int, request: pytest.FixtureRequest
) -> None:
    watched.listed(large(1, "x"), *(obj(1, Key("shop", f"m{number}")) for number in range(others)), version=5)
    walked = request.getfixturevalue("walked")
    asyncio.run(informer.newcomers.catch_up())
    assert (used(informer), len(walked)) == ([], 2 * others)
    assert list(informer.indexer.doubted("uses")) == [A]


def test_cache_without_limits_indexes_an_object_with_many_parts() -> None:
    cache = ClusterInformer("east", CONFIG_MAPS, namespace="", selector="", clock=lambda: 0.0, ordered=lambda: True)
    cache.add_index("early", lambda value: value["uses"])
    cache.seen_live(large(6, "x"))
    cache.add_index("late", lambda value: value["uses"])
    assert (set(cache.indexer.keys("early", "x")), set(cache.indexer.keys("late", "x"))) == ({A}, {A})
