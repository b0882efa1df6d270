"""The store ends where the API server is, in whatever order replies and events come, and tells who must know."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from store_scene import A, B, Watched, obj, raw, remove, write

from syncer.api import Key, Obj
from syncer.engine.cache.assumed import Writing
from syncer.engine.cache.store import ECHO_SECONDS, Store

# -- what is kept ------------------------------------------------------------------------------------------------------


def test_managed_fields_are_not_kept_and_the_kind_is_filled_in(watched: Watched) -> None:
    listed = obj(1, data={"color": "blue"})
    del listed["apiVersion"], listed["kind"]
    listed["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    watched.listed(listed, version=1)
    kept = watched.store.get(A)
    assert kept == obj(1, data={"color": "blue"})


def test_what_is_read_is_a_private_copy(watched: Watched, store: Store) -> None:
    watched.event("ADDED", obj(1, data={"color": "blue"}))
    read = store.get(A)
    assert read
    read["data"]["color"] = "red"
    assert store.get(A) == obj(1, data={"color": "blue"})


def test_a_store_is_synced_only_when_a_list_is_complete(watched: Watched, store: Store) -> None:
    with pytest.raises(OSError, match="cut"), store.replacing() as page:
        page([raw(obj(1))], "5")
        raise OSError("cut")
    assert not store.synced
    watched.listed(obj(1), version=5)
    assert store.synced


def test_a_list_that_breaks_off_takes_nothing_away(watched: Watched, store: Store) -> None:
    watched.listed(obj(1), obj(2, B), version=5)
    with pytest.raises(OSError, match="cut"), store.replacing() as page:
        page([raw(obj(7, B))], "9")
        raise OSError("cut")
    assert (watched.version(A), watched.version(B)) == ("1", "7")


# -- listeners ---------------------------------------------------------------------------------------------------------


def test_changes_of_others_are_told_with_the_object_as_it_last_was(watched: Watched) -> None:
    watched.event("ADDED", obj(1))
    watched.event("MODIFIED", obj(2))
    watched.event("DELETED", obj(3))
    assert watched.heard() == [(A, "1"), (A, "2"), (A, "2")]


def test_an_event_that_brings_nothing_new_is_not_told(watched: Watched) -> None:
    watched.listed(obj(1), version=1)
    watched.heard()
    watched.event("ADDED", obj(1))
    watched.event("DELETED", obj(4, B))
    assert watched.heard() == []


def test_what_went_while_away_is_told(watched: Watched) -> None:
    watched.listed(obj(1), obj(2, B), version=5)
    watched.heard()
    watched.listed(obj(2, B), version=9)
    assert watched.heard() == [(A, "1")]
    assert list(watched.store.keys()) == [B]


# -- echoes of our own writes ------------------------------------------------------------------------------------------


def test_an_event_after_its_reply_is_an_echo(watched: Watched) -> None:
    assert write(watched, obj(5))
    watched.event("ADDED", obj(5))
    assert watched.heard() == []
    assert watched.version() == "5"


def test_a_reply_after_its_event_brings_nothing_new(watched: Watched) -> None:
    assert write(watched, obj(5), ("ADDED", obj(5)))
    assert watched.version() == "5"


def test_a_reply_after_its_event_does_not_undo_a_later_event(watched: Watched) -> None:
    assert write(watched, obj(5), ("ADDED", obj(5)), ("MODIFIED", obj(6)))
    assert watched.version() == "6"


def test_a_reply_does_not_bring_back_what_was_deleted_meanwhile(watched: Watched) -> None:
    assert write(watched, obj(5), ("ADDED", obj(5)), ("DELETED", obj(6)))
    assert watched.version() is None


def test_older_events_after_a_reply_do_not_undo_it(watched: Watched) -> None:
    watched.event("ADDED", obj(1))
    write(watched, obj(5))
    watched.event("MODIFIED", obj(4))
    assert watched.version() == "5"
    watched.event("MODIFIED", obj(5))
    watched.event("MODIFIED", obj(6))
    assert watched.version() == "6"


def test_somebody_elses_change_between_our_read_and_our_write_is_told(watched: Watched) -> None:
    watched.event("ADDED", obj(1))
    watched.heard()
    write(watched, obj(5))
    watched.event("MODIFIED", obj(4))
    assert watched.heard() == [(A, "5")]


def test_echoes_of_several_writes_come_one_after_the_other(watched: Watched) -> None:
    write(watched, obj(5))
    write(watched, obj(7))
    for version in (5, 7):
        watched.event("MODIFIED", obj(version))
        assert watched.version() == "7"
    assert watched.heard() == []
    watched.event("MODIFIED", obj(8))
    assert watched.version() == "8"


def test_an_echo_that_got_lost_is_waited_for_only_until_something_later_is_shown(watched: Watched) -> None:
    write(watched, obj(5))
    write(watched, obj(7))
    watched.event("MODIFIED", obj(6))
    assert watched.version() == "7"
    watched.event("MODIFIED", obj(8))
    assert watched.version() == "8"


def test_where_versions_are_no_numbers_an_echo_that_got_lost_is_waited_for_only_so_long(watched: Watched) -> None:
    write(watched, obj("b5"))
    watched.now = ECHO_SECONDS - 0.1
    watched.event("MODIFIED", obj("b6"))
    assert watched.version() == "b5"
    watched.now = ECHO_SECONDS + 0.1
    watched.event("MODIFIED", obj("b7"))
    assert watched.version() == "b7"


def test_a_write_that_changes_nothing_is_said_to_be_one(watched: Watched) -> None:
    watched.event("ADDED", obj(5))
    assert not write(watched, obj(5))
    watched.event("MODIFIED", obj(6))
    assert watched.version() == "6"


def test_a_list_that_shows_our_write_before_its_reply_does_not_make_it_futile(watched: Watched) -> None:
    watched.event("ADDED", obj(1))
    with watched.store.writing(A) as writing:
        watched.listed(obj(5), version=6)
        assert watched.store.wrote(A, writing, obj(5))
    watched.event("MODIFIED", obj(7))
    assert watched.version() == "7"


# -- deletes -----------------------------------------------------------------------------------------------------------


def test_what_we_deleted_is_gone_at_once_and_late_events_do_not_bring_it_back(watched: Watched) -> None:
    watched.event("ADDED", obj(1))
    remove(watched)
    assert watched.version() is None
    watched.event("MODIFIED", obj(2))
    assert watched.version() is None
    watched.event("DELETED", obj(3))
    watched.event("ADDED", obj(4, uid="u2"))
    assert watched.version() == "4"


def test_somebody_makes_it_again_before_the_reply_to_our_delete(watched: Watched) -> None:
    watched.event("ADDED", obj(1))
    remove(watched, "u1", ("DELETED", obj(3)), ("ADDED", obj(4, uid="u2")))
    assert watched.version() == "4"


def test_somebody_makes_it_again_and_the_event_of_our_delete_is_lost(watched: Watched) -> None:
    watched.event("ADDED", obj(1))
    remove(watched)
    watched.event("ADDED", obj(4, uid="u2"))
    assert watched.version() == "4"
    watched.event("MODIFIED", obj(5, uid="u2"))
    assert watched.version() == "5"


def test_we_make_again_what_we_deleted(watched: Watched) -> None:
    watched.event("ADDED", obj(1))
    remove(watched)
    write(watched, obj(4, uid="u2"))
    for kind, value in (("MODIFIED", obj(2)), ("DELETED", obj(3)), ("ADDED", obj(4, uid="u2"))):
        watched.event(kind, value)
        assert watched.version() == "4"
    watched.event("DELETED", obj(5, uid="u2"))
    assert watched.version() is None


def test_a_delete_that_only_marks_keeps_the_object_until_it_goes(watched: Watched) -> None:
    watched.event("ADDED", obj(1))
    write(watched, obj(2))
    watched.event("MODIFIED", obj(2))
    watched.event("DELETED", obj(3))
    assert watched.version() is None


# -- lists and our own writes ------------------------------------------------------------------------------------------


def test_a_list_does_not_undo_a_write_made_after_it_was_taken(watched: Watched, store: Store) -> None:
    watched.event("ADDED", obj(1))
    with store.replacing() as page:
        write(watched, obj(8))
        page([raw(obj(1))], "5")
    assert watched.version() == "8"
    watched.event("MODIFIED", obj(6))
    assert watched.version() == "8"
    watched.event("MODIFIED", obj(8))
    watched.event("MODIFIED", obj(9))
    assert watched.version() == "9"


def test_a_list_does_not_take_away_what_we_made_after_it_was_taken(watched: Watched, store: Store) -> None:
    with store.replacing() as page:
        page([], "5")
        write(watched, obj(8))
    assert watched.version() == "8"


def test_a_list_does_not_bring_back_what_we_deleted_after_it_was_taken(watched: Watched, store: Store) -> None:
    watched.event("ADDED", obj(1))
    with store.replacing() as page:
        remove(watched)
        page([raw(obj(1))], "5")
    assert watched.version() is None
    watched.event("MODIFIED", obj(6))
    assert watched.version() is None


@pytest.mark.parametrize("during", [True, False])
def test_a_reply_older_than_a_list_brings_nothing(watched: Watched, store: Store, during: bool) -> None:
    with store.writing(A) as writing:
        with store.replacing() as page:
            page([raw(obj(2))], "2")
            if during:
                store.wrote(A, writing, obj(1))
        store.wrote(A, writing, obj(1))
    assert watched.version() == "2"


def test_a_list_with_what_we_deleted_takes_an_earlier_object_of_that_name_away(watched: Watched, store: Store) -> None:
    watched.event("ADDED", obj(1))
    with store.replacing() as page:
        with store.writing(A) as writing:
            store.deleted(A, writing, "u2")
        page([raw(obj(3, uid="u2"))], "3")
    assert watched.version() is None


def test_a_list_taken_after_our_write_has_later_changes(watched: Watched, store: Store) -> None:
    with store.replacing() as page:
        write(watched, obj(3))
        page([raw(obj(4))], "5")
    assert watched.version() == "4"
    watched.event("MODIFIED", obj(6))
    assert watched.version() == "6", "no echo of our write comes after such a list"


def test_a_list_taken_after_what_we_made_was_deleted_takes_it_away(watched: Watched, store: Store) -> None:
    with store.replacing() as page:
        write(watched, obj(3))
        page([], "5")
    assert watched.version() is None


def test_a_list_ends_the_wait_for_echoes_of_before(watched: Watched) -> None:
    write(watched, obj(3))
    watched.listed(obj(3), version=4)
    watched.event("MODIFIED", obj(5))
    assert watched.version() == "5"


def test_a_list_in_place_of_an_echo_is_told_since_others_may_have_written_before_us(watched: Watched) -> None:
    write(watched, obj(3))
    watched.listed(obj(3), version=4)
    assert watched.heard() == [(A, "3")]


# -- what was read because the store was behind ------------------------------------------------------------------------


def test_what_was_read_live_is_told_and_older_events_do_not_undo_it(watched: Watched, store: Store) -> None:
    watched.event("ADDED", obj(1))
    watched.heard()
    with store.writing(A) as writing:
        store.seen_live(obj(4), writing)
    assert watched.heard() == [(A, "4")]
    watched.event("MODIFIED", obj(3))
    assert watched.version() == "4"
    watched.event("MODIFIED", obj(4))
    watched.event("MODIFIED", obj(5))
    assert watched.version() == "5"


def test_what_was_read_live_does_not_undo_events_that_came_before_the_answer(watched: Watched, store: Store) -> None:
    with store.writing(A) as writing:
        watched.event("ADDED", obj(4))
        watched.event("MODIFIED", obj(5))
        store.seen_live(obj(4), writing)
    assert watched.version() == "5"
    with store.writing(A) as writing:
        watched.event("MODIFIED", obj(6))
        store.gone_live(A, writing)
    assert watched.version() == "6"


def test_a_reply_that_comes_after_a_later_live_read_is_put_right_by_the_events(watched: Watched, store: Store) -> None:
    with store.writing(A) as writing:
        with store.writing(A) as other:
            store.seen_live(obj(6), other)
        store.wrote(A, writing, obj(5))
    watched.event("ADDED", obj(5))
    watched.event("MODIFIED", obj(6))
    assert watched.version() == "6"


def test_a_list_older_than_our_write_tells_of_what_others_did_before_it(watched: Watched, store: Store) -> None:
    with store.replacing() as page:
        write(watched, obj(2))
        page([raw(obj(1))], "1")
    assert watched.version() == "2"
    assert watched.heard() == [(A, "2")]


def test_what_is_not_there_any_more_is_taken_away(watched: Watched, store: Store) -> None:
    watched.event("ADDED", obj(1))
    with store.writing(A) as writing:
        store.gone_live(A, writing)
    assert watched.version() is None


# -- indexes, watchers, waiters ----------------------------------------------------------------------------------------


def uses(value: Obj) -> Iterator[str]:
    return iter(value.get("uses", ()))


def test_an_index_follows_the_object(watched: Watched, store: Store) -> None:
    store.add_index("uses", uses)
    watched.event("ADDED", obj(1, uses=["x", "y"]))
    watched.event("ADDED", obj(2, B, uses=["y"]))
    assert set(store.indexed("uses", "y")) == {A, B}
    watched.event("MODIFIED", obj(3, uses=["z"]))
    assert [set(store.indexed("uses", value)) for value in "xyz"] == [set(), {B}, {A}]
    watched.event("DELETED", obj(4))
    assert set(store.indexed("uses", "z")) == set()


def test_our_own_writes_are_indexed_too(watched: Watched, store: Store) -> None:
    store.add_index("uses", uses)
    write(watched, obj(1, uses=["x"]))
    assert set(store.indexed("uses", "x")) == {A}


@pytest.mark.parametrize(
    ("when", "told"),
    [
        ("keys", [{"x", "y"}, {"x", "z"}, {"y", "z"}]),
        ("change", [{"x", "y"}, {"x", "y", "z"}, {"y", "z"}, {"y", "z"}]),
    ],
)
def test_a_watcher_hears_of_keys_named_now_or_before(
    watched: Watched, store: Store, when: Any, told: list[set[str]]
) -> None:
    heard: list[set[str]] = []

    def keys(value: Obj) -> Iterable[Key]:
        return [Key("shop", name) for name in value.get("uses", ())]

    store.add_watcher(keys, when, lambda found: heard.append({key.name for key in found}))
    watched.event("ADDED", obj(1, uses=["x", "y"]))
    watched.event("MODIFIED", obj(2, uses=["y", "z"]))
    watched.event("MODIFIED", obj(3, uses=["z", "y"]))
    watched.event("DELETED", obj(4))
    watched.event("ADDED", obj(5))
    assert heard == told


def test_who_waits_for_an_object_is_woken_once(watched: Watched, store: Store) -> None:
    woken: list[str] = []
    for _ in range(3):
        store.wake(A, "first", lambda: woken.append("first"))
    store.wake(A, "second", lambda: woken.append("second"))
    watched.event("ADDED", obj(1, B))
    assert woken == []
    watched.event("ADDED", obj(2))
    watched.event("MODIFIED", obj(3))
    assert woken == ["first", "second"]


def test_who_waits_is_woken_by_a_write_of_ours_and_by_a_deletion(watched: Watched, store: Store) -> None:
    woken: list[str] = []
    store.wake(A, "one", lambda: woken.append("written"))
    write(watched, obj(1))
    store.wake(A, "one", lambda: woken.append("deleted"))
    remove(watched)
    assert woken == ["written", "deleted"]


def test_a_write_that_fails_leaves_no_trace(watched: Watched, store: Store) -> None:
    with pytest.raises(OSError, match="lost"), store.writing(A):
        raise OSError("lost")
    watched.event("ADDED", obj(1))
    assert watched.version() == "1"


def test_a_writing_of_one_key_sees_nothing_of_another(watched: Watched, store: Store) -> None:
    with store.writing(A) as writing:
        watched.event("ADDED", obj(1, B))
        assert isinstance(writing, Writing)
        assert writing.seen == set()
