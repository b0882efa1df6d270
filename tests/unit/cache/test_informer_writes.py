"""Our own writes: the response counts at once, its event brings nothing, and changes of others are
still notified.
"""

from typing import Any

import pytest
from informer_scene import A, B, Watched, obj

from syncer.api import Key, Obj
from syncer.cache.assumed import ECHO_SECONDS, MOST_DEFERRED, MOST_VERSIONS, UnseenWrite
from syncer.translate.merge_patch import merged

# -- the reply, then the event ---------------------------------------------------------------------


def test_event_after_its_reply_brings_nothing(either: Watched) -> None:
    assert either.wrote(obj(5))
    either.event("ADDED", obj(5))
    assert either.heard() == []
    assert either.version() == "5"


def test_event_older_than_a_reply_does_not_undo_it(either: Watched) -> None:
    either.listed(obj(1), version=1)
    either.wrote(obj(5))
    either.event("MODIFIED", obj(4))
    assert either.version() == "5"
    either.event("MODIFIED", obj(5))
    either.event("MODIFIED", obj(6))
    assert either.version() == "6"


def test_change_of_others_between_our_read_and_our_write_notifies(either: Watched) -> None:
    either.listed(obj(1), version=1)
    either.heard()
    either.wrote(obj(5))
    either.event("MODIFIED", obj(4))
    assert either.heard() == [(A, "5")]


def test_events_of_several_writes_bring_nothing_one_after_the_other(either: Watched) -> None:
    either.listed(version=1)
    either.wrote(obj(5))
    either.wrote(obj(7))
    for version in (5, 7):
        either.event("MODIFIED", obj(version))
        assert either.version() == "7"
    assert either.heard() == []
    either.event("MODIFIED", obj(8))
    assert either.version() == "8"


def test_event_later_than_our_write_is_taken_though_ours_got_lost(watched: Watched) -> None:
    watched.listed(version=1)
    watched.wrote(obj(5))
    watched.wrote(obj(7))
    watched.event("MODIFIED", obj(6))
    assert watched.version() == "7"
    watched.event("MODIFIED", obj(8))
    assert watched.version() == "8"
    watched.event("MODIFIED", obj(9))
    assert watched.version() == "9"


@pytest.mark.parametrize("versions", [("b5", "b6", "b7"), ("5", "6", "7")], ids=["of another form", "of an old server"])
def test_event_without_order_is_taken_when_ours_has_not_come_for_long(versions: tuple[str, str, str]) -> None:
    watched = Watched(ordered=versions[0] == "b5")
    watched.listed(version="b1" if versions[0] == "b5" else "1")
    watched.wrote(obj(versions[0]))
    watched.now = ECHO_SECONDS - 0.1
    watched.event("MODIFIED", obj(versions[1]))
    assert watched.version() == versions[0]
    watched.now = ECHO_SECONDS + 0.1
    watched.event("MODIFIED", obj(versions[2]))
    assert watched.version() == versions[2]


def test_writes_that_no_watch_shows_take_no_room(either: Watched) -> None:
    either.listed(version=1)
    for version in range(2, 2000):
        either.wrote(obj(version))
    assert len(either.informer._assumed.table[A].versions) == MOST_VERSIONS
    either.event("MODIFIED", obj(1999))
    assert not either.informer._assumed.table


def test_replies_in_the_other_order_leave_the_later_state(watched: Watched) -> None:
    watched.listed(version=1)
    with watched.informer.writing(A) as first, watched.informer.writing(A) as second:
        watched.informer.wrote(A, second, obj(6))
        watched.informer.wrote(A, first, obj(5))
    assert watched.version() == "6"
    watched.event("ADDED", obj(5))
    watched.event("MODIFIED", obj(6))
    assert (watched.version(), watched.heard()) == ("6", [])


def test_reply_after_a_later_live_read_brings_nothing(either: Watched) -> None:
    either.listed(version=1)
    with either.informer.writing(A) as writing:
        with either.informer.writing(A) as other:
            either.informer.seen_live(obj(6), other)
        either.informer.wrote(A, writing, obj(5))
    either.event("ADDED", obj(5))
    either.event("MODIFIED", obj(6))
    assert either.version() == "6"


def test_reply_after_a_live_read_of_it_and_later_events_brings_nothing(either: Watched) -> None:
    either.listed(version=1)
    with either.informer.writing(A) as writing:
        with either.informer.writing(A) as other:
            either.informer.seen_live(obj(5), other)
        either.event("ADDED", obj(5))
        either.event("MODIFIED", obj(6))
        either.informer.wrote(A, writing, obj(5))
    assert either.version() == "6"


# -- the event, then the reply ---------------------------------------------------------------------


def test_event_before_its_reply_does_not_notify(either: Watched) -> None:
    either.listed(obj(1), version=1)
    either.heard()
    assert either.wrote(obj(5), ("MODIFIED", obj(5)))
    assert (either.version(), either.heard()) == ("5", [])


def test_reply_after_its_event_does_not_undo_a_later_event(either: Watched) -> None:
    assert either.wrote(obj(5), ("ADDED", obj(5)), ("MODIFIED", obj(6)))
    assert either.version() == "6"


def test_late_reply_brings_no_deleted_object_back(either: Watched) -> None:
    assert either.wrote(obj(5), ("ADDED", obj(5)), ("DELETED", obj(6)))
    assert either.version() is None


@pytest.mark.parametrize("theirs", [4, 6])
def test_change_of_others_beside_our_write_notifies_after_the_reply(either: Watched, theirs: int) -> None:
    either.listed(obj(1), version=1)
    either.heard()
    events = [("MODIFIED", obj(version)) for version in sorted((theirs, 5))]
    assert either.wrote(obj(5), *events)
    assert either.heard() == [(A, str(theirs))]


def test_deletion_and_new_object_beside_our_write_notify(either: Watched) -> None:
    either.listed(obj(1), version=1)
    either.heard()
    either.wrote(obj(5), ("MODIFIED", obj(5)), ("DELETED", obj(6)), ("ADDED", obj(7, uid="u2")))
    assert either.version() == "7"
    assert either.heard() == [(A, "5"), (A, "7")]


def test_event_notifies_without_a_reply(either: Watched) -> None:
    either.listed(obj(1), version=1)
    either.heard()
    with pytest.raises(OSError, match="lost"), either.informer.writing(A):
        either.event("MODIFIED", obj(5))
        assert (either.version(), either.heard()) == ("5", [])
        raise OSError("lost")
    assert either.heard() == [(A, "5")]


def test_oldest_of_many_changes_beside_our_write_notify_at_once(either: Watched) -> None:
    either.listed(obj(1), version=1)
    either.heard()
    ours, last = 5 + MOST_DEFERRED, 10 + MOST_DEFERRED
    with either.informer.writing(A) as writing:
        for version in range(5, last):
            either.event("MODIFIED", obj(version))
        assert len(writing.deferred) == MOST_DEFERRED
        assert either.heard() == [(A, str(version)) for version in range(5, last - MOST_DEFERRED)]
        assert either.informer.wrote(A, writing, obj(ours))
    assert either.heard() == [(A, str(version)) for version in range(last - MOST_DEFERRED, last) if version != ours]
    assert either.version() == str(last - 1)


def test_reply_after_its_event_has_notified_does_not_undo_later_events(either: Watched) -> None:
    either.listed(obj(1), version=1)
    events = [("MODIFIED", obj(version)) for version in range(5, 7 + MOST_DEFERRED)]
    assert either.wrote(obj(5), *events)
    assert either.version() == str(6 + MOST_DEFERRED)
    assert [version for _, version in either.heard()] == ["1", *map(str, range(5, 7 + MOST_DEFERRED))]
    either.event("MODIFIED", obj(8 + MOST_DEFERRED))
    assert either.version() == str(8 + MOST_DEFERRED)


def test_index_and_waiter_follow_before_handlers_are_called(either: Watched) -> None:
    woken: list[str] = []
    either.informer.add_index("version", lambda found: [found["metadata"]["resourceVersion"]])
    either.informer.waiters.add(A, "somebody", lambda: woken.append("woken"))
    with either.informer.writing(A):
        either.event("MODIFIED", obj(5))
        assert set(either.informer.indexer.keys("version", "5")) == {A}
        assert woken == ["woken"]


def test_write_that_fails_leaves_no_trace(either: Watched) -> None:
    with pytest.raises(OSError, match="lost"), either.informer.writing(A):
        raise OSError("lost")
    either.event("ADDED", obj(1))
    assert either.heard() == [(A, "1")]
    assert not either.informer._assumed.under_way


def test_write_holds_nothing_back_of_another_object(either: Watched) -> None:
    with either.informer.writing(A):
        either.event("ADDED", obj(1, B))
        assert either.heard() == [(B, "1")]


# -- writes that change nothing --------------------------------------------------------------------


def test_write_that_changes_nothing_is_futile(either: Watched) -> None:
    either.listed(obj(5), version=5)
    assert not either.wrote(obj(5))
    either.event("MODIFIED", obj(6))
    assert either.version() == "6"


@pytest.mark.parametrize(
    ("held", "ends"),
    [({}, True), ({"deletionGracePeriodSeconds": 30}, False), ({"finalizers": ["example.org/a"]}, False)],
    ids=["nothing", "a grace period", "a finalizer"],
)
def test_write_that_ends_an_object_is_not_futile(either: Watched, held: Obj, ends: bool) -> None:
    metadata = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0, **held}
    marked = merged(obj(5), {"metadata": metadata})
    either.listed(marked, version=5)
    assert either.wrote(marked) == ends
    either.event("DELETED", merged(marked, {"metadata": {"resourceVersion": "6"}}))
    assert A not in either.informer


def test_write_that_a_list_shows_before_its_reply_is_not_futile(either: Watched) -> None:
    either.listed(obj(1), version=1)
    with either.informer.writing(A) as writing:
        either.listed(obj(5), version=6)
        assert either.informer.wrote(A, writing, obj(5))
    either.event("MODIFIED", obj(7))
    assert either.version() == "7"


# -- deletions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("events", [[], [("DELETED", obj(5))]], ids=["reply first", "event first"])
def test_deletion_of_our_own_is_notified_once(either: Watched, events: Any) -> None:
    either.listed(obj(1), version=1)
    either.heard()
    either.deleted("u1", *events)
    either.event("DELETED", obj(5))
    assert (either.version(), either.heard()) == (None, [(A, "1")])


def test_object_that_we_deleted_is_not_brought_back_by_late_events(either: Watched) -> None:
    either.event("ADDED", obj(1))
    either.deleted("u1")
    assert either.version() is None
    either.event("MODIFIED", obj(2))
    assert either.version() is None
    either.event("DELETED", obj(3))
    assert not either.informer._assumed.table
    either.event("ADDED", obj(4, uid="u2"))
    assert either.version() == "4"


def test_reply_to_an_earlier_write_brings_no_deleted_object_back(either: Watched) -> None:
    either.listed(obj(1), version=1)
    with either.informer.writing(A) as first:
        either.deleted("u1")
        either.informer.wrote(A, first, obj(2))
    assert either.version() is None
    either.event("MODIFIED", obj(3))
    assert either.version() is None


def test_object_created_again_before_the_reply_to_our_deletion_stays_and_notifies(either: Watched) -> None:
    either.listed(obj(1), version=1)
    either.heard()
    either.deleted("u1", ("DELETED", obj(3)), ("ADDED", obj(4, uid="u2")))
    assert either.version() == "4"
    assert either.heard() == [(A, "1"), (A, "4")]


def test_object_made_again_is_taken_though_the_event_of_our_deletion_got_lost(either: Watched) -> None:
    either.event("ADDED", obj(1))
    either.deleted("u1")
    either.event("ADDED", obj(4, uid="u2"))
    assert either.version() == "4"
    either.event("MODIFIED", obj(5, uid="u2"))
    assert either.version() == "5"


def test_recreated_object_survives_the_events_of_the_earlier_one(either: Watched) -> None:
    either.event("ADDED", obj(1))
    either.deleted("u1")
    either.wrote(obj(4, uid="u2"))
    for kind, value in (("MODIFIED", obj(2)), ("DELETED", obj(3)), ("ADDED", obj(4, uid="u2"))):
        either.event(kind, value)
        assert either.version() == "4"
    either.event("DELETED", obj(5, uid="u2"))
    assert either.version() is None


def test_object_that_our_deletion_only_marks_stays_until_it_goes(either: Watched) -> None:
    either.listed(obj(1), version=1)
    either.wrote(obj(2))
    either.event("MODIFIED", obj(2))
    either.event("DELETED", obj(3))
    assert either.version() is None


def test_later_deletion_by_others_counts_before_the_event_of_our_write(either: Watched) -> None:
    """The object left the selection of the watch; an old server names the version of the last state then."""
    either.listed(obj(1), version=1)
    either.wrote(obj(5))
    either.event("DELETED", obj(5))
    assert either.version() is None
    assert either.informer.saw_go(A)


def test_deletion_that_came_long_before_leaves_no_trace(either: Watched) -> None:
    either.listed(obj(1), version=1)
    either.event("DELETED", obj(3))
    either.deleted("u1")
    assert not either.informer._assumed.table
    assert either.informer.saw_go(A, "u1")


# -- writes whose responses don't show the object --------------------------------------------------

#: The state that such a write leads to.
BOUND: dict[str, Any] = {"node": "n1"}


@pytest.mark.parametrize("when", ["before the reply", "after it", "after a later write of ours"])
def test_state_that_an_unseen_write_has_made_is_only_for_the_handlers_of_others(either: Watched, when: str) -> None:
    either.listed(obj(1), version=1)
    either.heard()
    others = heard_by_others(either)
    if when == "before the reply":
        wrote_unseen(either, ("MODIFIED", obj(4)), ("MODIFIED", obj(5, **BOUND)), ("MODIFIED", obj(6, **BOUND)))
        assert either.heard() == [(A, "4"), (A, "6")]
        assert others == ["5", "4", "6"]
        return
    wrote_unseen(either)
    latest = "5"
    if when == "after a later write of ours":
        either.wrote(obj(6, **BOUND))
        latest = "6"
    either.event("MODIFIED", obj(5, **BOUND))
    assert (either.version(), either.heard(), others) == (latest, [], [latest])
    either.event("MODIFIED", obj(7, **BOUND))
    assert [key for key, _ in either.heard()] == [A]


def test_state_before_an_unseen_write_or_of_a_later_object_is_for_all(either: Watched) -> None:
    either.listed(obj(1), version=1)
    either.heard()
    wrote_unseen(either)
    either.event("MODIFIED", obj(4))
    either.event("DELETED", obj(5, **BOUND))
    either.event("ADDED", obj(6, uid="u2", **BOUND))
    assert [version for _, version in either.heard()] == ["4", "4", "6"]


@pytest.mark.parametrize("how", ["our next state", "an earlier state of ours", "a list", "a list of our next state"])
def test_unseen_write_is_over_once_its_state_was_passed(watched: Watched, how: str) -> None:
    watched.listed(obj(1), version=1)
    wrote_unseen(watched)
    if how != "a list":
        watched.wrote(obj(6, **BOUND))
    match how:
        case "our next state":
            watched.event("MODIFIED", obj(6, **BOUND))
        case "an earlier state of ours":
            watched.wrote(obj(7, **BOUND))
            watched.event("MODIFIED", obj(6, **BOUND))
        case _:
            watched.compared(6, obj(6, **BOUND))
    watched.heard()
    watched.event("MODIFIED", obj(8, **BOUND))
    assert watched.heard() == [(A, "8")]


def test_unseen_write_is_over_if_a_list_has_shown_its_state_before_the_reply(watched: Watched) -> None:
    watched.listed(obj(1), version=1)
    unseen = UnseenWrite("u1", "maps", lambda found: "node" in found)
    with watched.informer.writing(A) as writing:
        watched.compared(5, obj(5, **BOUND))
        watched.informer.wrote_unseen(A, writing, unseen)
    watched.heard()
    watched.event("MODIFIED", obj(8, **BOUND))
    assert watched.heard() == [(A, "8")]


def test_unseen_writes_are_forgotten_with_a_list_and_beyond_a_number(
    either: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("syncer.cache.assumed.MOST_UNSEEN", 1)
    either.listed(obj(1), obj(2, B, uid="u2"), version=2)
    wrote_unseen(either)
    wrote_unseen(either, key=B, uid="u2")
    either.heard()
    either.event("MODIFIED", obj(5, **BOUND))
    assert either.heard() == [(A, "5")]
    either.listed(obj(5, **BOUND), obj(2, B, uid="u2"), version=6)
    either.event("MODIFIED", obj(7, B, uid="u2", **BOUND))
    assert either.heard() == [(B, "7")]


def heard_by_others(watched: Watched) -> list[str]:
    """Return the versions that the handler of another syncer hears from now on."""
    heard: list[str] = []
    watched.informer.add_handler(lambda key, last: heard.append(last["metadata"]["resourceVersion"]), owner="others")
    return heard


def wrote_unseen(watched: Watched, *events: tuple[str, Obj], key: Key = A, uid: str = "u1") -> None:
    """Make a write for the syncer's handler, whose reply comes after the events and shows nothing."""
    unseen = UnseenWrite(uid, "maps", lambda found: "node" in found)
    with watched.informer.writing(key) as writing:
        for kind, value in events:
            watched.event(kind, value)
        watched.informer.wrote_unseen(key, writing, unseen)
