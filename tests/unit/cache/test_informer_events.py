"""An informer's handling of events and of live objects; the deletions that it has seen."""

import pytest
from informer_scene import A, B, Watched, obj

from syncer.api import Key
from syncer.cache import informer as informers
from syncer.cache.informer import Informer


def test_change_of_others_notifies_with_the_object_as_it_last_was(either: Watched) -> None:
    either.event("ADDED", obj(1))
    either.event("MODIFIED", obj(2))
    either.event("DELETED", obj(3))
    assert either.heard() == [(A, "1"), (A, "2"), (A, "2")]


def test_event_that_brings_nothing_new_does_not_notify(either: Watched) -> None:
    either.listed(obj(1), version=1)
    either.heard()
    either.event("ADDED", obj(1))
    either.event("DELETED", obj(4, B))
    assert either.heard() == []


def test_watch_goes_on_from_the_latest_list_event_or_bookmark(either: Watched) -> None:
    either.listed(version=5)
    assert either.informer.version == "5"
    either.event("ADDED", obj(7))
    assert either.informer.version == "7"
    either.informer.bookmark("9")
    assert either.informer.version == "9"
    either.informer.bookmark("")
    assert either.informer.version == "9"


# -- what was read because the store was behind ----------------------------------------------------


def test_live_object_notifies_and_older_events_do_not_undo_it(either: Watched) -> None:
    either.listed(obj(1), version=2)
    either.heard()
    with either.informer.writing(A) as writing:
        either.informer.seen_live(obj(4), writing)
    assert either.heard() == [(A, "4")]
    either.event("MODIFIED", obj(3))
    assert either.version() == "4"
    either.event("MODIFIED", obj(4))
    either.event("MODIFIED", obj(5))
    assert either.version() == "5"


def test_live_object_does_not_undo_events_that_came_before_the_answer(either: Watched) -> None:
    either.listed(version=2)
    with either.informer.writing(A) as writing:
        either.event("ADDED", obj(4))
        either.event("MODIFIED", obj(5))
        either.informer.seen_live(obj(4), writing)
    assert either.version() == "5"
    with either.informer.writing(A) as writing:
        either.event("MODIFIED", obj(6))
        either.informer.gone_live(A, writing)
    assert either.version() == "6"


def test_live_object_repairs_a_store_after_a_lost_event(watched: Watched) -> None:
    watched.listed(obj(1), version=2)
    watched.informer.bookmark("20")
    watched.informer.seen_live(obj(9))
    assert watched.version() == "9"
    watched.event("MODIFIED", obj(21))
    assert watched.version() == "21"


def test_live_object_with_an_observed_deletion_stays_deleted(watched: Watched) -> None:
    watched.listed(obj(1), version=2)
    watched.event("DELETED", obj(9))
    watched.informer.seen_live(obj(7))
    assert watched.version() is None


def test_object_that_is_not_there_any_more_is_taken_away(either: Watched) -> None:
    either.event("ADDED", obj(1))
    with either.informer.writing(A) as writing:
        either.informer.gone_live(A, writing)
    assert either.version() is None
    assert either.heard() == [(A, "1"), (A, "1")]


def test_event_of_a_live_read_object_already_gone_brings_nothing(either: Watched) -> None:
    either.listed(version=2)
    either.informer.seen_live(obj(4))
    either.informer.gone_live(A)
    either.event("ADDED", obj(4))
    assert either.version() is None
    either.event("DELETED", obj(5))
    either.event("ADDED", obj(6, uid="u2"))
    assert either.version() == "6"


# -- what was seen to go ---------------------------------------------------------------------------


def test_object_that_never_existed_has_no_observed_deletion(watched: Watched) -> None:
    assert not watched.informer.saw_go(A)
    watched.listed(version=5)
    assert not watched.informer.saw_go(A)


def test_watch_shows_that_an_object_goes(watched: Watched) -> None:
    watched.event("ADDED", obj(1))
    assert not watched.informer.saw_go(A)
    watched.event("DELETED", obj(2))
    assert watched.informer.saw_go(A)


def test_deletion_of_our_own_is_observed(watched: Watched) -> None:
    watched.event("ADDED", obj(1))
    watched.deleted("u1")
    assert watched.informer.saw_go(A)


def test_object_that_a_list_lacks_has_no_observed_deletion(watched: Watched) -> None:
    watched.event("ADDED", obj(1))
    watched.listed(version=5)
    assert A not in watched.informer
    assert not watched.informer.saw_go(A)


def test_object_that_a_live_answer_lacks_has_no_observed_deletion(watched: Watched) -> None:
    """The answer was one moment's; who deletes something because of it asks again."""
    watched.event("ADDED", obj(1))
    watched.informer.gone_live(A)
    assert not watched.informer.saw_go(A)


@pytest.mark.parametrize("how", ["event", "list", "live"])
def test_object_that_exists_again_has_no_observed_deletion(watched: Watched, how: str) -> None:
    watched.event("ADDED", obj(1))
    watched.event("DELETED", obj(2))
    match how:
        case "event":
            watched.event("ADDED", obj(3, uid="u2"))
        case "list":
            watched.listed(obj(3, uid="u2"), version=3)
        case _:
            watched.informer.seen_live(obj(3, uid="u2"))
    assert not watched.informer.saw_go(A)
    assert watched.informer.saw_replaced(A) is (how == "event")


@pytest.mark.parametrize("how", ["event", "list", "live"])
def test_object_that_came_again_and_is_missing_then_has_no_observed_deletion(watched: Watched, how: str) -> None:
    """That an earlier object of the name went says nothing of the later one."""
    test_object_that_exists_again_has_no_observed_deletion(watched, how)
    watched.listed(version=9)
    assert A not in watched.informer
    assert not watched.informer.saw_go(A)


def test_deletions_are_remembered_up_to_a_number(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informers, "WITNESSED", 3)
    keys = [Key("shop", str(number)) for number in range(5)]
    for number, key in enumerate(keys):
        watched.event("ADDED", obj(2 * number + 1, key))
        watched.event("DELETED", obj(2 * number + 2, key))
    assert [watched.informer.saw_go(key) for key in keys] == [False, False, True, True, True]


def test_uid_names_the_deleted_object(watched: Watched) -> None:
    watched.event("ADDED", obj(1))
    watched.event("DELETED", obj(2))
    assert watched.informer.saw_go(A, "u1")
    assert not watched.informer.saw_go(A, "u2")
    watched.event("ADDED", obj(3, uid="u2"))
    watched.event("DELETED", obj(4, uid="u2"))
    assert watched.informer.saw_go(A, "u2")


def test_object_that_was_replaced_is_known_while_that_was_observed(watched: Watched, informer: Informer) -> None:
    watched.listed(obj(1), version=5)
    watched.event("DELETED", obj(6))
    watched.event("ADDED", obj(7, uid="u2"))
    assert informer.saw_replaced(A)
    assert not informer.saw_go(A)
    watched.compared(20, obj(15, uid="u3"))
    assert not informer.saw_replaced(A), "what has become of u2 nobody saw"


def test_object_that_a_list_brings_again_has_no_observed_replacement(watched: Watched) -> None:
    for version, uid in ((5, "u1"), (9, "u2")):
        watched.listed(obj(version, uid=uid), version=version)
    assert not watched.informer.saw_replaced(A)
