"""A store knows whether an object was seen to go, or is only not to be seen."""

import pytest
from store_scene import MAPS, A, obj, raw

from syncer.api import Key, Obj, Side
from syncer.engine.cache import store as stores
from syncer.engine.cache.store import Store


@pytest.fixture
def store() -> Store:
    return Store(Side.VIRTUAL, MAPS, clock=lambda: 0.0)


def listed(store: Store, *values: Obj, version: int) -> None:
    with store.replacing() as page:
        page([raw(value) for value in values], str(version))


def test_what_was_never_there_was_not_seen_to_go(store: Store) -> None:
    assert not store.saw_go(A)
    listed(store, version=5)
    assert not store.saw_go(A)


def test_a_watch_shows_that_an_object_goes(store: Store) -> None:
    store.event("ADDED", raw(obj(1)))
    assert not store.saw_go(A)
    store.event("DELETED", raw(obj(2)))
    assert store.saw_go(A)


def test_what_we_delete_goes(store: Store) -> None:
    store.event("ADDED", raw(obj(1)))
    with store.writing(A) as writing:
        store.deleted(A, writing, "u1")
    assert store.saw_go(A)


def test_what_a_list_lacks_was_not_seen_to_go(store: Store) -> None:
    store.event("ADDED", raw(obj(1)))
    listed(store, version=5)
    assert A not in store
    assert not store.saw_go(A)


def test_what_a_live_answer_lacks_was_not_seen_to_go(store: Store) -> None:
    """The answer was one moment's; who deletes something because of it asks again."""
    store.event("ADDED", raw(obj(1)))
    with store.writing(A) as writing:
        store.gone_live(A, writing)
    assert not store.saw_go(A)


@pytest.mark.parametrize("how", ["event", "list", "live"])
def test_what_is_there_again_was_not_seen_to_go(store: Store, how: str) -> None:
    store.event("ADDED", raw(obj(1)))
    store.event("DELETED", raw(obj(2)))
    match how:
        case "event":
            store.event("ADDED", raw(obj(3, uid="u2")))
        case "list":
            listed(store, obj(3, uid="u2"), version=3)
        case _:
            store.seen_live(obj(3, uid="u2"))
    assert not store.saw_go(A)


@pytest.mark.parametrize("how", ["event", "list", "live"])
def test_what_came_again_and_is_missing_then_was_not_seen_to_go(store: Store, how: str) -> None:
    """That an earlier object of the name went says nothing of the later one."""
    test_what_is_there_again_was_not_seen_to_go(store, how)
    listed(store, version=9)
    assert A not in store
    assert not store.saw_go(A)


def test_only_so_many_are_remembered(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "WITNESSED", 3)
    keys = [Key("shop", str(number)) for number in range(5)]
    for number, key in enumerate(keys):
        store.event("ADDED", raw(obj(2 * number + 1, key)))
        store.event("DELETED", raw(obj(2 * number + 2, key)))
    assert [store.saw_go(key) for key in keys] == [False, False, True, True, True]


def test_it_is_known_which_one_went(store: Store) -> None:
    store.event("ADDED", raw(obj(1)))
    store.event("DELETED", raw(obj(2)))
    assert store.saw_go(A, "u1")
    assert not store.saw_go(A, "u2")
    store.event("ADDED", raw(obj(3, uid="u2")))
    store.event("DELETED", raw(obj(4, uid="u2")))
    assert store.saw_go(A, "u2")
