"""Events at a shared watch that no test server sends."""

import asyncio
from collections.abc import Iterable

import pytest
from informer_scene import MAPS
from shared_scene import HOME, MARK, marked, raw

from syncer.api import Key, Obj
from syncer.cache import shared
from syncer.cache.informer import Informer
from syncer.cache.shared import ENOUGH_WAITING, Lost, Seat, SharedWatch, WatchedPart
from syncer.clusters import codec
from syncer.clusters.codec import WatchEvent
from syncer.steps import STEP_BYTES

pytestmark = pytest.mark.real_time

both = pytest.mark.parametrize("ordered", [True, False], ids=["ordered", "unordered"])


class Seats:
    """A shared watch with seats whose reflectors take all events."""

    def __init__(self, *clusters: str) -> None:
        self.watch = SharedWatch(None, WatchedPart(MAPS, HOME, MARK, ""))  # type: ignore[arg-type]  # it isn't opened
        self.seats = {name: Seat(Informer(MAPS, trusted=True, clock=lambda: 0.0), name) for name in clusters}
        for name, seat in self.seats.items():
            self.watch._seats[name] = [seat]
            seat.begin("1")
            seat.open("1", ordered=True)

    def show(self, kind: str, value: codec.Raw) -> None:
        self.watch._pass_on(WatchEvent(kind, value))
        for seat in self.seats.values():
            for event in seat._next():
                seat.store.event(event.type, event.object)

    def names(self) -> dict[str, list[str]]:
        return {name: sorted(key.name for key in list(seat.store.keys())) for name, seat in self.seats.items()}


def with_version(obj: Obj, version: int) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "uid": "u1", "resourceVersion": str(version)}}


#: A mark that is none: in a value, a key, an annotation, another object's metadata, or with escapes.
FORGED = [
    {"data": {MARK: "b"}},
    {"data": {"text": f'"labels":{{"{MARK}":"b"}}'}},
    {"data": {"text": '"}},"metadata":{"labels":{"' + MARK + '":"b"}}'}},
    {"metadata": {"annotations": {MARK: "b"}}},
    {"metadata": {"annotations": {"metadata": '{"labels":{"' + MARK + '":"b"}}'}}},
    {"metadata": {"managedFields": [{"labels": {MARK: "b"}}]}},
    {"metadata": {"labels": {MARK + "s": "b", "labels": "b", MARK.upper(): "b"}}},
    {"template": {"metadata": {"labels": {MARK: "b"}}}},
    {"labels": {MARK: "b"}},
]


@pytest.mark.parametrize("parts", FORGED)
@pytest.mark.parametrize("owner", ["a", None])
def test_only_the_label_of_the_object_itself_is_a_mark(parts: Obj, owner: str | None) -> None:
    obj = with_version(marked("one", owner), 5)
    metadata = {**parts.get("metadata", {})}
    labels = {**metadata.pop("labels", {}), **obj["metadata"]["labels"]}
    obj = {**obj, **parts, "metadata": {**obj["metadata"], **metadata, "labels": labels}}
    for first_last in (obj, dict(reversed(obj.items()))):
        seats = Seats("a", "b")
        seats.show("ADDED", raw(first_last))
        assert seats.names() == {"a": ["one"] if owner else [], "b": []}


def test_event_for_another_has_nothing_of_its_object_but_the_identity() -> None:
    seats = Seats("a", "b")
    seats.show("ADDED", raw(with_version(marked("one", "a"), 5)))
    seats.watch._pass_on(WatchEvent("MODIFIED", raw(with_version(marked("one", "b", secret="hidden"), 6))))
    (event,) = seats.seats["a"]._next()
    assert (event.type, b"hidden" in bytes(event.object), b"labels" in bytes(event.object)) == ("DELETED", False, False)


def test_object_with_unreadable_labels_stays_with_its_cluster() -> None:
    seats = Seats("a", "b")
    obj = with_version(marked("one", "a"), 5)
    seats.show("ADDED", raw(obj))
    broken = with_version(obj, 6)
    broken["metadata"]["labels"] = {MARK: 5}
    seats.show("MODIFIED", raw(broken))
    assert seats.names() == {"a": ["one"], "b": []}
    assert list(seats.seats["a"].store.quarantined) == [Key(HOME, "one")]
    other = with_version(marked("two", "a"), 7)
    other["metadata"]["labels"] = [MARK]
    seats.show("ADDED", raw(other))
    assert seats.names() == {"a": ["one"], "b": []}


def test_malformed_object_with_a_mark_is_its_clusters_quarantine() -> None:
    seats = Seats("a", "b")
    text = codec.encode(with_version(marked("one", "a"), 5))[:-1] + b',"data":{"x":1e999999}}'
    seats.show("ADDED", codec.Raw(text))
    assert seats.names() == {"a": ["one"], "b": []}
    assert (len(seats.seats["a"].store.quarantined), len(seats.seats["b"].store.quarantined)) == (1, 0)


def test_item_without_a_name_is_counted_by_all() -> None:
    seats = Seats("a", "b")
    for kind in ("ADDED", "BOOKMARK", "NONSENSE"):
        seats.watch._pass_on(WatchEvent(kind, codec.Raw(b'{"metadata":3}')))
    assert [[event.type for event in seat._next()] for seat in seats.seats.values()] == [
        ["ADDED", "BOOKMARK", "NONSENSE"]
    ] * 2


def test_owners_of_a_limited_number_of_objects_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "MOST_OWNERS", 3)
    seats = Seats("a", "b")
    for number in range(10):
        obj = with_version(marked("one", "a"), number + 2)
        obj["metadata"]["uid"] = f"u{number}"
        seats.show("ADDED", raw(obj))
        assert len(seats.watch._owners) <= 3
    seats.show("DELETED", raw(obj))
    assert obj["metadata"]["uid"] not in seats.watch._owners


def test_large_event_comes_alone() -> None:
    seats = Seats("a")
    for version, size in ((5, 10), (6, STEP_BYTES), (7, 10), (8, 10)):
        event = WatchEvent("MODIFIED", raw(with_version(marked("one", "a", text="x" * size), version)))
        seats.watch._pass_on(event)
    taken = [[codec.version(event.object) for event in seats.seats["a"]._next()] for _ in range(3)]
    assert taken == [["5"], ["6"], ["7", "8"]]


def modified(version: int, text: str = "") -> WatchEvent:
    return WatchEvent("MODIFIED", raw(with_version(marked("one", "a", text=text), version)))


def versions(events: Iterable[WatchEvent]) -> list[str]:
    return [codec.version(event.object) for event in events]


async def test_small_event_is_taken_at_once_where_none_waits_before_it() -> None:
    taken: list[WatchEvent] = []
    seat = Seat(Informer(MAPS, clock=lambda: 0.0), "a", taken.append)
    seat.begin("1")
    seat.add(modified(2))
    seat.open("1", ordered=True)
    seat.add(modified(3))
    batches = seat.batches()
    assert versions(await anext(batches)) == ["2", "3"]
    seat.add(modified(4))
    assert versions(await anext(batches)) == ["4"], "the batch before was still being processed"
    waiting = asyncio.ensure_future(anext(batches))
    await asyncio.sleep(0)
    seat.add(modified(5))
    seat.add(WatchEvent("DELETED", modified(6).object), Lost(Key(HOME, "one"), "u1"))
    assert versions(taken) == ["5"], "the store doesn't know the object that was lost"
    seat.add(modified(7, text="x" * STEP_BYTES))
    seat.add(modified(8))
    assert versions(await waiting) == ["7"]
    assert versions(await anext(batches)) == ["8"]
    assert versions(taken) == ["5"]


def test_event_that_concerns_every_reflector_is_taken_in_a_step_of_each() -> None:
    taken: list[WatchEvent] = []
    seat = Seat(Informer(MAPS, clock=lambda: 0.0), "", taken.append)
    seat.begin("1")
    seat.open("1", ordered=False)
    seat.add(modified(2))
    assert taken == []
    assert versions(seat._next()) == ["2"]


async def test_others_run_between_two_batches_and_not_after_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    seats = Seats("a")
    seat = seats.seats["a"]
    for version in (5, 6):
        event = WatchEvent("MODIFIED", raw(with_version(marked("one", "a", text="x" * STEP_BYTES), version)))
        seats.watch._pass_on(event)
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    taken: list[list[str]] = []
    async for batch in seat.batches():
        taken.append([codec.version(event.object) for event in batch])
        seat.end(None)
    assert taken == [["5"], ["6"]]
    assert pauses == [0]


async def test_reader_waits_only_for_reflectors_that_take_the_events_and_are_far_behind() -> None:
    seats = Seats("a", "b")
    a, b = seats.seats["a"], seats.seats["b"]
    b.is_open = False
    for version in range(2, 12):
        for name in ("a", "b"):
            obj = with_version(marked("one", name, text="x" * STEP_BYTES), version)
            seats.watch._pass_on(WatchEvent("MODIFIED", raw(obj)))
    await asyncio.wait_for(b.room(), 1)
    waiting = asyncio.ensure_future(a.room())
    for _ in range(10 - ENOUGH_WAITING // STEP_BYTES):
        assert not waiting.done()
        a._next()
        await asyncio.sleep(0)
    assert not waiting.done()
    a._next()
    await asyncio.wait_for(waiting, 1)


def test_events_that_the_list_has_included_are_left_out() -> None:
    seats = Seats("a")
    seat = seats.seats["a"]
    seat.open("7", ordered=True)
    for version in (5, 7, 8, 9):
        seats.watch._pass_on(WatchEvent("MODIFIED", raw(with_version(marked("one", "a"), version))))
    assert [codec.version(event.object) for event in seat._next()] == ["8", "9"]
