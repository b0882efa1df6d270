"""A list that is read beside a running watch mends what the store has wrong, and never takes it back in time."""

from collections.abc import Iterable

import pytest
from store_scene import MAPS, A, B, obj, raw

from syncer.api import Key, Obj, Side
from syncer.engine.cache.store import Store


class Kept:
    """A store beside a watch that has come to some version."""

    def __init__(self) -> None:
        self.store = Store(Side.HOST, MAPS, clock=lambda: 0.0)
        self.passed, self.wrong = "", list[Key]()
        self.syncer, self.engine = list[Key](), list[Key]()
        self.store.add_listener(lambda key, last: self.syncer.append(key), owner="maps")
        self.store.add_listener(lambda key, last: self.engine.append(key))

    def watch(self, kind: str, value: Obj) -> None:
        self.passed = self.store.event(kind, raw(value))

    def relisted(self, version: int, *values: Obj, meanwhile: Iterable[tuple[str, Obj]] = ()) -> None:
        with self.store.replacing(watched=lambda: self.passed, wrong=self.wrong.append) as page:
            for kind, value in meanwhile:
                self.watch(kind, value)
            page([raw(value) for value in values], str(version))

    def versions(self) -> dict[str, str]:
        entries = {key.name: self.store.entry(key) for key in list(self.store.keys())}
        return {name: entry.version for name, entry in entries.items() if entry}


@pytest.fixture
def kept() -> Kept:
    made = Kept()
    with made.store.replacing() as page:
        page([raw(obj(1))], "5")
    made.passed = "5"
    made.syncer.clear()
    made.engine.clear()
    return made


def test_what_the_watch_had_passed_was_wrong_and_is_told_to_no_syncer(kept: Kept) -> None:
    kept.passed = "20"
    kept.relisted(20, obj(10), obj(15, B))
    assert kept.versions() == {"a": "10", "b": "15"}
    assert kept.wrong == [A, B]
    assert kept.syncer == []
    assert kept.engine == [A, B], "what isn't a syncer's own has to know"


def test_what_the_watch_is_yet_to_bring_is_no_error_and_told_as_its_event_would_be(kept: Kept) -> None:
    kept.relisted(20, obj(10))
    assert kept.versions() == {"a": "10"}
    assert kept.wrong == []
    assert kept.syncer == [A]


def test_what_is_gone_is_wrong_only_where_the_watch_has_come_past_the_list(kept: Kept) -> None:
    kept.relisted(20)
    assert kept.versions() == {}
    assert kept.wrong == []
    assert kept.syncer == [A]
    assert not kept.store.saw_go(A), "nobody has seen it go"

    kept.watch("ADDED", obj(21, B))
    kept.passed = "30"
    kept.relisted(30)
    assert kept.versions() == {}
    assert kept.wrong == [B]


def test_the_watch_is_ahead_of_a_list_that_is_being_read(kept: Kept) -> None:
    kept.relisted(
        20,
        obj(10),
        obj(12, B),
        meanwhile=[("MODIFIED", obj(25)), ("ADDED", obj(12, B)), ("DELETED", obj(26, B))],
    )
    assert kept.versions() == {"a": "25"}, "neither is the change undone nor does what was deleted come back"
    assert kept.store.saw_go(B)


def test_what_came_after_the_list_was_made_is_not_missing(kept: Kept) -> None:
    kept.relisted(20, obj(1), meanwhile=[("ADDED", obj(25, B))])
    assert kept.versions() == {"a": "1", "b": "25"}


def test_a_watch_that_lags_behind_the_list_undoes_nothing(kept: Kept) -> None:
    kept.relisted(20, obj(18))
    kept.watch("MODIFIED", obj(10))
    assert kept.versions() == {"a": "18"}
    kept.watch("DELETED", obj(15))
    kept.watch("ADDED", obj(18, uid="u2"))
    assert kept.versions() == {"a": "18"}
    kept.watch("MODIFIED", obj(21))
    assert kept.versions() == {"a": "21"}
    kept.watch("MODIFIED", obj(19))  # only what came before the watch had caught up is dropped
    assert kept.versions() == {"a": "19"}


def test_the_latest_that_the_lagging_watch_has_shown_meanwhile_gives_way_to_the_list(kept: Kept) -> None:
    kept.relisted(20, obj(18), meanwhile=[("MODIFIED", obj(10))])
    assert kept.versions() == {"a": "18"}, "the event of 18 will be dropped, as the list had it"


def test_a_list_from_an_older_state_changes_nothing(kept: Kept) -> None:
    kept.watch("MODIFIED", obj(40))
    kept.watch("ADDED", obj(41, B))
    kept.relisted(30, obj(20))
    assert kept.versions() == {"a": "40", "b": "41"}
    assert kept.wrong == []


def test_our_own_write_while_the_list_is_read_stays(kept: Kept) -> None:
    with kept.store.replacing(watched=lambda: "20", wrong=kept.wrong.append) as page:
        with kept.store.writing(A) as writing:
            kept.store.wrote(A, writing, obj(22))
        page([raw(obj(1))], "20")
    assert kept.versions() == {"a": "22"}
    assert kept.wrong == []


def test_our_own_deletion_while_the_list_is_read_stays(kept: Kept) -> None:
    with kept.store.replacing(watched=lambda: "20", wrong=kept.wrong.append) as page:
        with kept.store.writing(A) as writing:
            kept.store.deleted(A, writing, "u1")
        page([raw(obj(1))], "20")
    assert kept.versions() == {}
    assert kept.store.saw_go(A)


def test_a_list_that_fails_takes_nothing_away(kept: Kept) -> None:
    with pytest.raises(RuntimeError), kept.store.replacing(watched=lambda: "20") as page:
        page([raw(obj(12, B))], "20")
        raise RuntimeError
    assert kept.versions() == {"a": "1", "b": "12"}
    kept.watch("MODIFIED", obj(13))
    assert kept.versions() == {"a": "13", "b": "12"}, "and the watch goes on"


def test_versions_that_are_no_numbers_are_left_to_the_watch_where_it_has_spoken() -> None:
    kept = Kept()
    first, other = obj(1), obj(1, B)
    first["metadata"]["resourceVersion"] = "x"
    other["metadata"]["resourceVersion"] = "y"
    with kept.store.replacing(watched=lambda: "l0") as page:
        kept.watch("ADDED", first)
        page([raw({**first, "metadata": {**first["metadata"], "resourceVersion": "w"}}), raw(other)], "l1")
    assert kept.versions() == {"a": "x", "b": "y"}


def test_that_an_object_was_replaced_is_known_for_as_long_as_it_was_seen(kept: Kept) -> None:
    kept.watch("DELETED", obj(6))
    kept.watch("ADDED", obj(7, uid="u2"))
    assert kept.store.saw_replaced(A)
    assert not kept.store.saw_go(A)
    kept.relisted(20, obj(15, uid="u3"))
    assert not kept.store.saw_replaced(A), "what has become of u2 nobody saw"


def test_what_a_list_brings_anew_was_not_seen_to_be_replaced() -> None:
    kept = Kept()
    for version, uid in ((5, "u1"), (9, "u2")):
        with kept.store.replacing() as page:
            page([raw(obj(version, uid=uid))], str(version))
    assert not kept.store.saw_replaced(A)
