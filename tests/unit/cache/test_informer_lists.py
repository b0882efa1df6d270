"""A list is the truth but for our later writes; one that may be older clears the table of our writes."""

import pytest
from informer_scene import A, B, Watched, obj, raw

from syncer.cache.informer import Informer


def test_informer_is_synced_only_when_a_list_is_complete(either: Watched) -> None:
    with pytest.raises(OSError, match="cut"), either.informer.replacing() as page:
        page([raw(obj(1))], "5")
        raise OSError("cut")
    assert not either.informer.synced
    assert either.informer.is_in_part
    either.listed(obj(1), version=5)
    assert either.informer.synced
    assert not either.informer.is_in_part


def test_age_counts_from_the_latest_list_and_from_where_the_watch_was_lost(either: Watched) -> None:
    assert either.informer.age == float("inf")
    with either.informer.replacing() as page:
        page([], "5")
        assert either.informer.age == 0
    either.now = 7
    assert either.informer.age == 7
    either.informer.left_behind()
    assert either.informer.age == 0


def test_list_that_breaks_off_takes_nothing_away(either: Watched) -> None:
    either.listed(obj(1), obj(2, B), version=5)
    with pytest.raises(OSError, match="cut"), either.informer.replacing() as page:
        page([raw(obj(7, B))], "9")
        raise OSError("cut")
    assert (either.version(A), either.version(B)) == ("1", "7")


def test_object_deleted_during_an_interruption_notifies(either: Watched) -> None:
    either.listed(obj(1), obj(2, B), version=5)
    either.heard()
    either.listed(obj(2, B), version=9)
    assert either.heard() == [(A, "1")]
    assert list(either.informer.keys()) == [B]


# -- writes beside a list --------------------------------------------------------------------------


def test_write_later_than_a_list_is_kept_and_notifies(watched: Watched, informer: Informer) -> None:
    watched.listed(obj(1), version=2)
    watched.heard()
    with informer.replacing() as page:
        watched.wrote(obj(8))
        page([raw(obj(3))], "5")
    assert watched.version() == "8"
    assert watched.heard() == [(A, "8")], "others may have written 3, and we decided without it"
    watched.event("MODIFIED", obj(6))
    assert watched.version() == "8"
    watched.event("MODIFIED", obj(8))
    watched.event("MODIFIED", obj(9))
    assert watched.version() == "9"


def test_object_that_we_made_later_than_a_list_stays(watched: Watched, informer: Informer) -> None:
    with informer.replacing() as page:
        page([], "5")
        watched.wrote(obj(8))
    assert watched.version() == "8"


def test_object_that_we_deleted_while_a_list_is_read_is_not_brought_back(either: Watched) -> None:
    either.listed(obj(1), version=2)
    with either.informer.replacing() as page:
        page([], "5")
        either.deleted("u1")
        page([raw(obj(1))], "5")
    assert either.version() is None
    either.event("MODIFIED", obj(6))
    assert either.version() is None


def test_object_recreated_after_our_deletion_is_taken_from_a_list(either: Watched) -> None:
    either.listed(obj(1), version=2)
    with either.informer.replacing() as page:
        page([], "9")
        either.deleted("u1")
        page([raw(obj(8, uid="u2"))], "9")
    assert either.version() == "8"


@pytest.mark.parametrize("during", [True, False])
def test_reply_older_than_a_list_brings_nothing(either: Watched, during: bool) -> None:
    with either.informer.writing(A) as writing:
        with either.informer.replacing() as page:
            page([raw(obj(2))], "2")
            if during:
                either.informer.wrote(A, writing, obj(1))
        either.informer.wrote(A, writing, obj(1))
    assert either.version() == "2"


def test_reply_older_than_a_list_gives_way_to_a_page_that_comes_later(watched: Watched, informer: Informer) -> None:
    watched.listed(obj(1), obj(2, B), version=2)
    with informer.writing(B) as writing, informer.replacing() as page:
        page([raw(obj(1))], "8")
        informer.wrote(B, writing, obj(5, B))
        assert watched.version(B) == "5"
        page([raw(obj(7, B))], "8")
    assert watched.version(B) == "7"


def test_reply_brings_back_no_object_missing_in_a_list(either: Watched) -> None:
    with either.informer.writing(A) as writing:
        either.listed(version=2)
        either.informer.wrote(A, writing, obj(1))
    assert either.version() is None


def test_list_with_our_deleted_object_removes_an_earlier_namesake(either: Watched) -> None:
    either.listed(obj(1), version=1)
    with either.informer.replacing() as page:
        page([], "3")
        either.deleted("u2")
        page([raw(obj(3, uid="u2"))], "3")
    assert either.version() is None


def test_list_without_our_deleted_object_removes_an_earlier_namesake(either: Watched) -> None:
    either.listed(obj(1), version=1)
    with either.informer.replacing() as page:
        either.deleted("u2")
        page([], "5")
    assert either.version() is None


def test_reply_that_a_list_has_passed_notifies(watched: Watched, informer: Informer) -> None:
    """Others may have changed the object before us, and no watch will say so."""
    watched.listed(obj(1), version=1)
    watched.heard()
    with informer.writing(A) as writing, pytest.raises(OSError, match="cut"), informer.replacing() as page:
        page([], "5")
        informer.wrote(A, writing, obj(5))
        raise OSError("cut")
    assert watched.heard() == [(A, "5")]


def test_list_taken_after_our_write_has_later_changes(either: Watched) -> None:
    either.listed(version=1)
    with either.informer.replacing() as page:
        either.wrote(obj(3))
        page([raw(obj(4))], "5")
    assert either.version() == "4"
    either.event("MODIFIED", obj(6))
    assert either.version() == "6", "no event of our write comes after such a list"


def test_list_after_deletion_of_our_object_removes_it(either: Watched) -> None:
    either.listed(version=1)
    with either.informer.replacing() as page:
        either.wrote(obj(3))
        page([], "5")
    assert either.version() is None


def test_list_ends_the_wait_for_our_write_and_notifies(either: Watched) -> None:
    either.listed(version=1)
    either.wrote(obj(3))
    either.listed(obj(3), version=4)
    assert either.heard() == [(A, "3")]
    either.event("MODIFIED", obj(5))
    assert either.version() == "5"


def test_change_that_a_list_shows_beside_our_write_notifies(either: Watched) -> None:
    """The list has our own state already, and with it what others did before, which no watch will show."""
    either.listed(obj(1), version=1)
    either.heard()
    with either.informer.writing(A) as writing:
        either.listed(obj(5), version=5)
        either.informer.wrote(A, writing, obj(5))
    assert (A, "5") in either.heard()


def test_list_does_not_wait_for_a_live_read_of_its_rest(either: Watched) -> None:
    either.listed(version=1)
    with either.informer.replacing() as page:
        page([], "9")
        either.informer.seen_live(obj(4))
        page([raw(obj(4))], "9")
    either.event("MODIFIED", obj(10))
    assert either.version() == "10"


# -- versions that go back -------------------------------------------------------------------------


def test_list_below_earlier_versions_is_taken_as_it_is(either: Watched) -> None:
    """As from an etcd that was restored from a snapshot: what has the version that it had may be another state."""
    either.listed(obj(50, color="lost"), obj(60, B), version=60)
    either.wrote(obj(70, color="ours"))
    either.heard()
    either.listed(obj(20), version=30)
    assert either.versions() == {"a": "20"}
    assert {key for key, _ in either.heard()} == {A, B}
    either.event("MODIFIED", obj(31))
    assert either.version() == "31", "what we wrote before the restore is not waited for"
    either.event("ADDED", obj(32, B))
    assert either.versions() == {"a": "31", "b": "32"}


def test_list_below_earlier_versions_brings_even_unchanged_versions(watched: Watched) -> None:
    watched.listed(obj(50, color="of the lost history"), version=60)
    watched.heard()
    watched.listed(obj(50, color="of the new one"), version=55)
    assert watched.informer.get(A) == obj(50, color="of the new one")
    assert watched.heard() == [(A, "50")]


def test_reply_from_before_versions_went_back_teaches_nothing(either: Watched) -> None:
    either.listed(obj(50), version=60)
    with either.informer.writing(A) as writing:
        either.listed(obj(20), version=30)
        assert either.informer.wrote(A, writing, obj(61))
    assert either.version() == "20"
    with either.informer.writing(A) as writing:
        either.listed(obj(20), version=29)
        either.informer.deleted(A, writing, "u1")
        assert either.version() == "20"
        either.informer.seen_live(obj(62), writing)
        assert either.version() == "20"
    with either.informer.writing(A) as writing:
        either.listed(obj(20), version=28)
        either.informer.gone_live(A, writing)
        assert either.version() == "20"
    either.event("MODIFIED", obj(31))
    assert either.version() == "31"


def test_write_after_versions_went_back_counts_as_any_other(either: Watched) -> None:
    either.listed(obj(50), version=60)
    either.listed(obj(20), version=30)
    either.heard()
    either.wrote(obj(31))
    either.event("MODIFIED", obj(31))
    assert (either.version(), either.heard()) == ("31", [])


def test_write_replied_before_an_older_list_is_forgotten(either: Watched) -> None:
    either.listed(obj(50), version=60)
    with either.informer.replacing() as page:
        either.wrote(obj(61))
        page([raw(obj(20))], "30")
        either.wrote(obj(32))
    assert either.version() == "32"
    either.event("MODIFIED", obj(31))
    assert either.version() == "32"
    either.event("MODIFIED", obj(32))
    either.event("MODIFIED", obj(33))
    assert either.version() == "33"


def test_list_older_than_our_unshown_write_has_gone_back(watched: Watched) -> None:
    watched.listed(obj(50), version=60)
    watched.wrote(obj(70))
    watched.listed(obj(50), version=65)
    assert watched.informer.went_back
    assert watched.version() == "50"


def test_object_that_we_deleted_and_a_later_list_has_is_there(either: Watched) -> None:
    """The list was asked for after the deletion, so that is undone: versions may have come past what was seen."""
    either.listed(obj(50), version=60)
    either.deleted("u1")
    either.listed(obj(50), version=61)
    assert either.version() == "50"
    either.event("MODIFIED", obj(62))
    assert either.version() == "62"


def test_deletion_that_was_lost_with_the_history_is_forgotten(either: Watched) -> None:
    either.listed(obj(50), version=60)
    either.deleted("u1")
    either.listed(obj(50), version=55)
    assert either.version() == "50"
    assert not either.informer.saw_go(A)


def test_going_back_is_detected_only_with_ordered_versions(either: Watched) -> None:
    found = []
    for version in (10, 20, 5, 6):
        either.listed(version=version)
        found.append(either.informer.went_back)
    assert found == [False, False, either.informer.is_ordered, False]


def test_versions_of_another_form_are_never_compared(watched: Watched) -> None:
    watched.listed(version="abc")
    assert not watched.informer.is_ordered
    watched.listed(version="7")
    assert watched.informer.is_ordered
