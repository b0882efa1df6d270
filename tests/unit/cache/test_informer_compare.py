"""A list beside a running watch corrects errors of the cache, and never takes it back in time."""

import pytest
from informer_scene import A, B, Watched, obj, raw

from syncer.cache.versions import WentBack


@pytest.fixture
def kept(watched: Watched) -> Watched:
    """An informer that has listed A, and whose watch has come to version 5."""
    watched.listed(obj(1), version=5)
    watched.heard()
    watched.engine_notified.clear()
    return watched


def test_object_that_the_watch_had_passed_was_wrong_and_notifies_no_syncer(kept: Watched) -> None:
    kept.informer.bookmark("20")
    kept.compared(20, obj(10), obj(15, B))
    assert kept.versions() == {"a": "10", "b": "15"}
    assert kept.wrong == [A, B]
    assert kept.heard() == []
    assert kept.engine_notified == [A, B], "what isn't a syncer's own has to know"


def test_object_that_the_watch_will_bring_is_no_error_and_notifies(kept: Watched) -> None:
    kept.compared(20, obj(10))
    assert kept.versions() == {"a": "10"}
    assert kept.wrong == []
    assert kept.heard() == [(A, "10")]


def test_missing_object_is_wrong_only_if_the_watch_has_passed_the_list(kept: Watched) -> None:
    kept.compared(20)
    assert kept.versions() == {}
    assert kept.wrong == []
    assert kept.heard() == [(A, "1")]
    assert not kept.informer.saw_go(A), "nobody has seen it go"

    kept.event("ADDED", obj(21, B))
    kept.informer.bookmark("30")
    kept.compared(30)
    assert kept.versions() == {}
    assert kept.wrong == [B]


def test_watch_that_is_ahead_of_the_list_counts(kept: Watched) -> None:
    meanwhile = (("MODIFIED", obj(25)), ("ADDED", obj(12, B)), ("DELETED", obj(26, B)))
    kept.compared(20, obj(10), obj(12, B), meanwhile=meanwhile)
    assert kept.versions() == {"a": "25"}, "neither is the change undone nor does what was deleted come back"
    assert kept.informer.saw_go(B)


def test_object_that_came_after_the_list_was_made_is_not_missing(kept: Watched) -> None:
    kept.compared(20, obj(1), meanwhile=(("ADDED", obj(25, B)),))
    assert kept.versions() == {"a": "1", "b": "25"}


def test_watch_that_lags_behind_the_list_undoes_nothing(kept: Watched) -> None:
    kept.compared(20, obj(18))
    kept.event("MODIFIED", obj(10))
    assert kept.versions() == {"a": "18"}
    kept.event("DELETED", obj(15))
    kept.informer.bookmark("16")
    kept.event("ADDED", obj(18, uid="u2"))
    assert kept.versions() == {"a": "18"}
    assert kept.informer.version == "20", "another watch would go on from the list"
    kept.event("MODIFIED", obj(21))
    assert kept.versions() == {"a": "21"}
    assert kept.informer.version == "21"


def test_latest_event_of_the_lagging_watch_gives_way_to_the_list(kept: Watched) -> None:
    kept.compared(20, obj(18), meanwhile=(("MODIFIED", obj(10)),))
    assert kept.versions() == {"a": "18"}, "the event of 18 will be dropped, as the list had it"


def test_event_behind_a_page_that_has_come_already_undoes_nothing(kept: Watched) -> None:
    with kept.informer.comparing(kept.wrong.append) as page:
        page([raw(obj(18))], "20")
        kept.event("MODIFIED", obj(10))
        kept.event("DELETED", obj(12))
        page([], "20")
    assert kept.versions() == {"a": "18"}, "the event of 18 will be dropped, as the list had it"
    assert kept.heard() == [(A, "18")]
    assert kept.wrong == []


def test_list_from_an_older_state_changes_nothing_and_raises(kept: Watched) -> None:
    kept.event("MODIFIED", obj(40))
    kept.event("ADDED", obj(41, B))
    with pytest.raises(WentBack):
        kept.compared(30, obj(20))
    assert kept.versions() == {"a": "40", "b": "41"}
    assert kept.wrong == []
    assert not kept.informer.is_in_part


def test_write_of_ours_while_the_list_is_read_stays(kept: Watched) -> None:
    with kept.informer.comparing(kept.wrong.append) as page:
        kept.wrote(obj(22))
        kept.wrote(obj(23, B))
        page([raw(obj(1))], "20")
    assert kept.versions() == {"a": "22", "b": "23"}
    assert kept.wrong == []
    kept.event("MODIFIED", obj(21))
    assert kept.versions()["a"] == "22"
    kept.event("MODIFIED", obj(22))
    kept.heard()
    kept.event("MODIFIED", obj(24))
    assert kept.heard() == [(A, "24")]


def test_write_that_the_list_includes_notifies_since_its_events_are_dropped(kept: Watched) -> None:
    kept.wrote(obj(10))
    kept.compared(20, obj(10))
    assert kept.heard() == [(A, "10")]
    kept.event("MODIFIED", obj(8))
    kept.event("MODIFIED", obj(21))
    assert kept.heard() == [(A, "21")]


def test_deletion_of_ours_while_the_list_is_read_stays(kept: Watched) -> None:
    with kept.informer.comparing(kept.wrong.append) as page:
        kept.deleted("u1")
        page([raw(obj(1))], "20")
    assert kept.versions() == {}
    assert kept.informer.saw_go(A)


def test_deletion_of_ours_before_a_list_that_is_behind_stays(kept: Watched) -> None:
    kept.deleted("u1")
    kept.compared(20, obj(1))
    assert kept.versions() == {}
    kept.event("DELETED", obj(21))
    kept.event("ADDED", obj(22, uid="u2"))
    assert kept.versions() == {"a": "22"}


def test_list_that_fails_takes_nothing_away(kept: Watched) -> None:
    with pytest.raises(RuntimeError), kept.informer.comparing(kept.wrong.append) as page:
        assert kept.informer.is_in_part
        page([raw(obj(12, B))], "20")
        raise RuntimeError
    assert kept.versions() == {"a": "1", "b": "12"}
    assert not kept.informer.is_in_part
    kept.event("MODIFIED", obj(13))
    assert kept.versions() == {"a": "13", "b": "12"}, "and the watch goes on"
