"""What the values of an object take in indexes is counted, as long as they are there."""

import asyncio
from collections.abc import Iterable

import pytest
from informer_scene import A, B, Watched, obj, of_namespaces

from syncer.api import Key, Obj
from syncer.byte_budget import ByteBudget
from syncer.cache.budget import FREE_VALUES, OVERHEAD, VALUE
from syncer.cache.newcomers import MANY

#: Values that are charged for.
CHARGED = 100


def uses(value: Obj) -> Iterable[str]:
    return [f"value-{number}" for number in range(value.get("uses", 0))]


def named(value: Obj) -> Iterable[Key]:
    return [Key("shop", value) for value in uses(value)]


def using(version: int, number: int, key: Key = A, *, uid: str = "u1") -> Obj:
    """Return an object with so many values, of the same size for any number."""
    return obj(version, key, uid=uid, uses=number, pad="x" * (10 - len(str(number))))


@pytest.fixture
def shares() -> ByteBudget:
    return of_namespaces()


@pytest.fixture
def watched(shares: ByteBudget) -> Watched:
    return Watched(budget=shares)


def add(watched: Watched, kind: str, owner: str = "pods") -> None:
    if kind == "index":
        watched.informer.add_index("uses", uses, owner=owner)
    else:
        watched.informer.add_map_function(named, "keys", lambda keys: None, owner=owner)


both = pytest.mark.parametrize("kind", ["index", "map function"])


@both
def test_values_of_an_object_are_charged_for_but_for_the_first_ones(
    watched: Watched, shares: ByteBudget, kind: str
) -> None:
    add(watched, kind)
    watched.event("ADDED", using(1, 0))
    alone = shares.used
    for version, (number, charged) in enumerate(
        [(FREE_VALUES, 0), (FREE_VALUES + 1, 1), (FREE_VALUES + CHARGED, CHARGED), (FREE_VALUES + 3, 3), (2, 0)], 2
    ):
        watched.event("MODIFIED", using(version, number))
        assert shares.used - alone == charged * VALUE
    assert shares.parent is not None
    assert shares.parent.used == shares.used


@both
@pytest.mark.parametrize("many", [1, MANY], ids=["at once", "in steps"])
def test_values_of_a_new_subscriber_are_charged_until_it_is_forgotten(
    watched: Watched, shares: ByteBudget, kind: str, many: int
) -> None:
    for number in range(many):
        watched.event("ADDED", using(number + 1, FREE_VALUES + CHARGED, Key("shop", f"m{number}")))
    without = shares.used
    add(watched, kind)
    asyncio.run(watched.informer.newcomers.catch_up())
    assert shares.used - without == many * CHARGED * VALUE
    watched.informer.forget("pods")
    assert shares.used == without


def test_index_that_is_replaced_is_charged_for_no_longer(watched: Watched, shares: ByteBudget) -> None:
    add(watched, "index")
    watched.event("ADDED", using(1, FREE_VALUES + CHARGED))
    used = shares.used
    add(watched, "index")
    assert shares.used == used
    watched.informer.add_index("uses", lambda value: ["x"], owner="pods")
    assert shares.used == used - CHARGED * VALUE


def test_object_without_contents_is_charged_for_the_values_that_it_keeps(watched: Watched, shares: ByteBudget) -> None:
    add(watched, "index")
    watched.event("ADDED", using(1, FREE_VALUES + CHARGED))
    watched.event("MODIFIED", {**using(2, 0), "apiVersion": "evil/v1"})
    assert A in watched.informer.quarantined
    assert shares.used > CHARGED * VALUE
    watched.event("DELETED", using(3, 0))
    assert shares.used == 0


@both
@pytest.mark.parametrize("end", ["gone", "left out of a list", "emptied"])
def test_nothing_is_charged_for_when_all_objects_are_gone(
    watched: Watched, shares: ByteBudget, kind: str, end: str
) -> None:
    add(watched, kind)
    watched.event("ADDED", using(1, FREE_VALUES + CHARGED))
    watched.event("ADDED", using(2, CHARGED, B))
    watched.event("MODIFIED", using(3, 2 * CHARGED))
    assert shares.used > 2 * CHARGED * VALUE
    if end == "gone":
        watched.event("DELETED", using(4, 0))
        watched.event("DELETED", using(5, CHARGED, B))
    elif end == "left out of a list":
        watched.listed(version=9)
    else:
        watched.informer.empty()
        watched.informer.forget("pods")
    assert (shares.used, shares.parts) == (0, {})


@both
def test_object_without_room_for_its_values_is_left_out_meanwhile(kind: str) -> None:
    shares = of_namespaces(200_000)
    watched = Watched(budget=shares)
    add(watched, kind)
    watched.event("ADDED", using(1, 500))
    watched.event("ADDED", using(2, 100, B))
    assert list(watched.informer.left_out) == [A]
    assert A in watched.informer.quarantined
    assert watched.informer.left_out[A] > (500 - FREE_VALUES) * VALUE + OVERHEAD, "its JSON needs room, too"
    watched.event("MODIFIED", using(3, 20))
    assert not watched.informer.left_out
    assert not watched.informer.quarantined
    watched.event("DELETED", using(4, 20))
    watched.event("DELETED", using(5, 100, B))
    assert (shares.used, shares.parts) == (0, {})


@both
def test_objects_that_change_without_growing_take_no_more_than_there_is(kind: str) -> None:
    shares = of_namespaces(200_000)
    watched = Watched(budget=shares)
    add(watched, kind)
    keys = [Key("shop", f"m{number}") for number in range(10)]
    for version, key in enumerate(keys, 1):
        watched.event("ADDED", using(version, 0, key))
    for version, key in enumerate(keys, 11):
        watched.event("MODIFIED", using(version, 50, key))
    assert 0 < len(watched.informer.left_out) < 10
    assert shares.used <= 100_000


def test_new_index_takes_no_more_than_there_is() -> None:
    shares = of_namespaces(200_000)
    watched = Watched(budget=shares)
    for version in range(1, 11):
        watched.event("ADDED", using(version, 50, Key("shop", f"m{version}")))
    add(watched, "index")
    assert shares.used <= 100_000
    assert not watched.informer.indexer.is_certain("pods")
