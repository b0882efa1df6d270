"""What the watch shows of an object while we write it is told only where it turns out to be somebody else's doing."""

from typing import Any

import pytest
from store_scene import A, Watched, obj, remove, write

from syncer.engine.cache.store import Store


@pytest.fixture
def known(watched: Watched) -> Watched:
    watched.event("ADDED", obj(1))
    watched.heard()
    return watched


def test_an_event_that_turns_out_to_be_our_own_write_is_not_told(known: Watched) -> None:
    assert write(known, obj(5), ("MODIFIED", obj(5)))
    assert (known.version(), known.heard()) == ("5", [])


@pytest.mark.parametrize("events", [[], [("DELETED", obj(5))]])
def test_our_own_deletion_is_told_once_whether_its_event_or_its_reply_is_first(known: Watched, events: Any) -> None:
    remove(known, "u1", *events)
    known.event("DELETED", obj(5))
    assert (known.version(), known.heard()) == (None, [(A, "1")])


@pytest.mark.parametrize("theirs", [4, 6])
def test_what_somebody_else_did_beside_our_write_is_told_when_the_reply_is_there(known: Watched, theirs: int) -> None:
    events = [("MODIFIED", obj(version)) for version in sorted((theirs, 5))]
    assert write(known, obj(5), *events)
    assert known.heard() == [(A, str(theirs))]


def test_a_deletion_and_a_new_object_beside_our_write_are_told(known: Watched) -> None:
    write(known, obj(5), ("MODIFIED", obj(5)), ("DELETED", obj(6)), ("ADDED", obj(7, uid="u2")))
    assert known.version() == "7"
    assert known.heard() == [(A, "5"), (A, "7")]


def test_what_follows_our_own_deletion_is_told(known: Watched) -> None:
    remove(known, "u1", ("DELETED", obj(5)), ("ADDED", obj(6, uid="u2")))
    assert known.version() == "6"
    assert known.heard() == [(A, "1"), (A, "6")]


def test_what_came_is_told_where_no_reply_does(known: Watched, store: Store) -> None:
    with pytest.raises(OSError, match="lost"), store.writing(A):
        known.event("MODIFIED", obj(5))
        assert (known.version(), known.heard()) == ("5", [])
        raise OSError("lost")
    assert known.heard() == [(A, "5")]


def test_indexes_watchers_and_who_waits_hear_of_it_at_once(known: Watched, store: Store) -> None:
    woken: list[str] = []
    store.add_index("version", lambda found: [found["metadata"]["resourceVersion"]])
    store.wake(A, "somebody", lambda: woken.append("woken"))
    with store.writing(A):
        known.event("MODIFIED", obj(5))
        assert set(store.indexed("version", "5")) == {A}
        assert woken == ["woken"]
