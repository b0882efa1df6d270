"""Indexes, map functions and waiters follow the objects."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from informer_scene import A, B, Watched, obj

from syncer.api import Key, Obj
from syncer.cache import newcomers
from syncer.cache.informer import Informer
from syncer.cache.newcomers import MANY


def uses(value: Obj) -> Iterator[str]:
    return iter(value.get("uses", ()))


def named(value: Obj) -> Iterable[Key]:
    return [Key("shop", name) for name in value.get("uses", ())]


def test_index_follows_the_object(watched: Watched, informer: Informer) -> None:
    informer.add_index("uses", uses)
    watched.event("ADDED", obj(1, uses=["x", "y"]))
    watched.event("ADDED", obj(2, B, uses=["y"]))
    assert set(informer.indexer.keys("uses", "y")) == {A, B}
    watched.event("MODIFIED", obj(3, uses=["z"]))
    assert [set(informer.indexer.keys("uses", value)) for value in "xyz"] == [set(), {B}, {A}]
    assert set(informer.indexer.values("uses")) == {"y", "z"}
    watched.event("DELETED", obj(4))
    assert set(informer.indexer.keys("uses", "z")) == set()
    assert set(informer.indexer.values("uses")) == {"y"}


def test_index_has_earlier_objects_and_our_own_writes(watched: Watched, informer: Informer) -> None:
    watched.event("ADDED", obj(1, uses=["x"]))
    informer.add_index("uses", uses)
    watched.wrote(obj(2, B, uses=["x"]))
    assert set(informer.indexer.keys("uses", "x")) == {A, B}


def test_index_notifies_of_values_gained_and_lost(watched: Watched, informer: Informer) -> None:
    notified: list[set[str]] = []
    informer.add_index("uses", uses, notify=lambda values: notified.append(set(values)))
    watched.event("ADDED", obj(1, uses=["x", "y"]))
    watched.event("MODIFIED", obj(2, uses=["y", "z"]))
    watched.event("MODIFIED", obj(3, uses=["z", "y"]))
    watched.event("DELETED", obj(4))
    assert notified == [{"x", "y"}, {"x", "z"}, {"y", "z"}]


def test_index_of_used_values_notifies_of_those_that_no_other_object_has(watched: Watched, informer: Informer) -> None:
    notified: list[set[str]] = []
    informer.add_index("uses", uses, notify=lambda values: notified.append(set(values)), when="used")
    watched.event("ADDED", obj(1, A, uses=["x", "y"]))
    watched.event("ADDED", obj(2, B, uses=["y", "z"]))
    watched.event("MODIFIED", obj(3, A, uses=["x", "z"]))
    watched.event("MODIFIED", obj(4, A, uses=["x", "z"]))
    watched.event("MODIFIED", obj(5, B, uses=["z"]))
    watched.event("DELETED", obj(6, A))
    watched.event("DELETED", obj(7, B))
    watched.event("ADDED", obj(8, A, uses=["z"]))
    assert notified == [{"x", "y"}, {"z"}, set(), {"y"}, {"x"}, {"z"}, {"z"}]


def test_index_for_changes_notifies_of_all_values_each_time(watched: Watched, informer: Informer) -> None:
    notified: list[set[str]] = []
    informer.add_index("uses", uses, notify=lambda values: notified.append(set(values)), when="change")
    watched.event("ADDED", obj(1, uses=["x"]))
    watched.event("MODIFIED", obj(2, uses=["x"]))
    watched.event("MODIFIED", obj(3, uses=["y"]))
    watched.event("DELETED", obj(4))
    assert notified == [{"x"}, {"x"}, {"x", "y"}, {"y"}]


def test_owner_that_is_forgotten_has_no_index_map_function_or_handler(watched: Watched, informer: Informer) -> None:
    heard: list[Any] = []
    for owner in ("pods", "maps"):
        informer.add_index(f"{owner}/uses", uses, owner=owner, notify=heard.append)
        informer.add_map_function(named, "keys", heard.append, owner=owner)
        informer.add_handler(lambda key, last: heard.append(key), owner=owner)
    informer.forget("pods")
    watched.event("ADDED", obj(1, uses=["x"]))
    assert len(heard) == 3
    assert (list(informer.handlers.mapped_keys("pods")), list(informer.handlers.mapped_keys("maps"))) == (
        [],
        [Key("shop", "x")],
    )
    with pytest.raises(KeyError):
        informer.indexer.keys("pods/uses", "x")


@pytest.mark.parametrize(
    ("when", "notified"),
    [
        ("keys", [{"x", "y"}, {"x", "z"}, {"y", "z"}]),
        ("change", [{"x", "y"}, {"x", "y", "z"}, {"y", "z"}, {"y", "z"}]),
    ],
)
def test_map_function_notifies_of_keys_named_now_or_before(
    watched: Watched, informer: Informer, when: Any, notified: list[set[str]]
) -> None:
    heard: list[set[str]] = []
    informer.add_map_function(named, when, lambda found: heard.append({key.name for key in found}))
    watched.event("ADDED", obj(1, uses=["x", "y"]))
    watched.event("MODIFIED", obj(2, uses=["y", "z"]))
    watched.event("MODIFIED", obj(3, uses=["z", "y"]))
    watched.event("DELETED", obj(4))
    watched.event("ADDED", obj(5))
    assert heard == notified


def test_map_function_notifies_of_keys_that_no_other_object_names(watched: Watched, informer: Informer) -> None:
    heard: list[set[str]] = []
    informer.add_map_function(named, "used", lambda found: heard.append({key.name for key in found}))
    watched.event("ADDED", obj(1, A, uses=["x", "y"]))
    watched.event("ADDED", obj(2, B, uses=["y", "z"]))
    watched.event("MODIFIED", obj(3, A, uses=["x", "z"]))
    watched.event("MODIFIED", obj(4, B, uses=["z"]))
    watched.event("DELETED", obj(5, A))
    watched.event("DELETED", obj(6, B))
    watched.event("ADDED", obj(7, A, uses=["z"]))
    assert heard == [{"x", "y"}, {"z"}, {"y"}, {"x"}, {"z"}, {"z"}]


def test_map_function_gets_existing_objects(watched: Watched, informer: Informer) -> None:
    watched.event("ADDED", obj(1, uses=["x"]))
    heard: list[Any] = []
    informer.add_map_function(named, "keys", heard.append)
    assert heard == [{Key("shop", "x")}]


# -- who waits for one key -------------------------------------------------------------------------


def test_waiter_is_notified_once(watched: Watched, informer: Informer) -> None:
    woken: list[str] = []
    for _ in range(3):
        informer.waiters.add(A, "first", lambda: woken.append("first"))
    informer.waiters.add(A, "second", lambda: woken.append("second"))
    watched.event("ADDED", obj(1, B))
    assert woken == []
    watched.event("ADDED", obj(2))
    watched.event("MODIFIED", obj(3))
    assert woken == ["first", "second"]


def test_waiter_is_notified_of_a_write_of_ours_and_of_a_deletion(watched: Watched, informer: Informer) -> None:
    woken: list[str] = []
    informer.waiters.add(A, "one", lambda: woken.append("written"))
    watched.wrote(obj(1))
    informer.waiters.add(A, "one", lambda: woken.append("deleted"))
    watched.deleted("u1")
    assert woken == ["written", "deleted"]


def test_waiter_that_has_gone_is_not_notified(watched: Watched, informer: Informer) -> None:
    woken: list[str] = []
    for who in ("first", "second"):
        informer.waiters.add(A, who, lambda who=who: woken.append(who))  # type: ignore[misc]
    informer.waiters.remove(A, "first")
    informer.waiters.remove(A, "nobody")
    informer.waiters.remove(B, "first")
    watched.event("ADDED", obj(1))
    assert woken == ["second"]


# -- added later -----------------------------------------------------------------------------------


def filled(watched: Watched, informer: Informer) -> list[Key]:
    """Fill a store with many objects, each of which uses x."""
    keys = [Key("shop", f"m{number}") for number in range(MANY)]
    for number, key in enumerate(keys, 1):
        watched.event("ADDED", obj(number, key, uses=["x"]))
    return keys


def test_index_of_many_objects_is_uncertain_until_it_has_caught_up_in_steps(
    watched: Watched, informer: Informer, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, steps = filled(watched, informer), 0
    monkeypatch.setattr(newcomers, "STEP_BYTES", 1000)
    notified: list[set[str]] = []
    informer.add_index("uses", uses, owner="pods", notify=lambda values: notified.append(set(values)))
    assert (informer.indexer.is_certain("pods"), bool(informer.newcomers)) == (False, True)
    watched.event("DELETED", obj(1000, keys[3], uses=["x"]))
    watched.event("MODIFIED", obj(1001, keys[5], uses=["y"]))

    async def scenario() -> None:
        nonlocal steps
        catching_up = asyncio.create_task(informer.newcomers.catch_up())
        while not catching_up.done():
            steps += 1
            await asyncio.sleep(0)

    asyncio.run(scenario())
    assert steps > 10
    assert (informer.indexer.is_certain("pods"), bool(informer.newcomers)) == (True, False)
    assert set(informer.indexer.keys("uses", "x")) == {*keys} - {keys[3], keys[5]}
    assert set(informer.indexer.keys("uses", "y")) == {keys[5]}
    assert notified == [{"y"}, *[{"x"}] * (MANY - 2)]


def test_index_of_an_owner_that_is_forgotten_catches_up_with_nothing(watched: Watched, informer: Informer) -> None:
    filled(watched, informer)
    notified: list[Any] = []
    informer.add_index("uses", uses, owner="pods", notify=notified.append)
    informer.add_map_function(named, "keys", notified.append, owner="pods")
    informer.forget("pods")
    asyncio.run(informer.newcomers.catch_up())
    assert notified == []


def of_generation(version: int, generation: object, *, uid: str = "u1", **parts: Any) -> Obj:
    """Return an object with a generation; None for none."""
    found = obj(version, uid=uid, **parts)
    if generation is not None:
        found["metadata"]["generation"] = generation
    return found


@pytest.mark.parametrize(
    ("next_one", "searched"),
    [
        pytest.param(of_generation(2, 1, uses=["x"]), 1, id="its status has changed"),
        pytest.param(of_generation(2, 2, uses=["x"]), 2, id="its spec has changed"),
        pytest.param(of_generation(2, 1, uid="u2", uses=["x"]), 2, id="it is another object"),
        pytest.param(of_generation(2, None, uses=["x"]), 2, id="its API server counts no changes"),
        pytest.param(of_generation(2, "1", uses=["x"]), 2, id="its generation is no number"),
    ],
)
def test_index_by_spec_searches_an_object_once_for_each_spec(
    watched: Watched, informer: Informer, next_one: Obj, searched: int
) -> None:
    seen: list[str] = []

    def uses_seen(value: Obj) -> Iterator[str]:
        seen.append(value["metadata"]["resourceVersion"])
        return uses(value)

    informer.add_index("uses", uses_seen, by_spec=True)
    watched.event("ADDED", of_generation(1, 1, uses=["x"]))
    watched.event("MODIFIED", next_one)
    assert len(seen) == searched
    assert set(informer.indexer.keys("uses", "x")) == {A}
    watched.event("DELETED", of_generation(3, 1))
    assert set(informer.indexer.keys("uses", "x")) == set()
    watched.event("ADDED", of_generation(4, 1, uses=["x"]))
    assert set(informer.indexer.keys("uses", "x")) == {A}


def test_index_by_spec_searches_an_object_again_that_it_was_in_doubt_about(
    watched: Watched, informer: Informer
) -> None:
    fails = True

    def uses_or_raises(value: Obj) -> Iterator[str]:
        if fails:
            raise ValueError("no")
        return uses(value)

    informer.add_index("uses", uses_or_raises, by_spec=True)
    watched.event("ADDED", of_generation(1, 1, uses=["x"]))
    fails = False
    watched.event("MODIFIED", of_generation(2, 1, uses=["x"]))
    assert set(informer.indexer.keys("uses", "x")) == {A}
    assert not informer.indexer.doubted("uses")
