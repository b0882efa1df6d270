"""The marks that count as a pause, and the only write during one."""

from typing import Any

import pytest
from engine_fakes import KEY, MARKS, PLACE, SETTINGS, copy_of, observed, virtual

from syncer.api import Obj, Outcome, Request, Side, Verb, Write, annotations_of
from syncer.engine.cache.informers import Informers
from syncer.engine.reconcile.calls import needed
from syncer.engine.reconcile.policies.pause import MOST_NAMES, Pause
from syncer.testing.merge import merged

REQUEST = Request("vc", "widgets", KEY)


def pause() -> Pause:
    made = Pause(SETTINGS, Informers(clock=lambda: 0.0))
    made.watch(lambda namespace: None, lambda syncer: None)
    return made


def paused(obj: Obj, value: Any = "true") -> Obj:
    return merged(obj, {"metadata": {"annotations": {MARKS.paused: value}}})


def test_object_that_is_not_paused_is_left_to_the_syncer() -> None:
    obj = virtual()
    assert pause().answer(observed(REQUEST, virtual=obj, host=copy_of(obj))) is None
    assert pause().answer(observed(REQUEST, virtual=obj, host=None)) is None
    assert pause().answer(observed(REQUEST, virtual=None, host=None)) is None


def test_paused_object_waits_and_its_copy_is_marked_once() -> None:
    obj, copy = paused(virtual()), copy_of(virtual())
    decision = pause().answer(observed(REQUEST, virtual=obj, host=copy))
    assert decision
    assert decision.outcome is Outcome.PENDING
    [write] = decision.writes
    assert (write.side, write.verb) == (Side.HOST, Verb.NOTE)
    assert annotations_of(write.obj) == {MARKS.paused: "virtual"}
    again = pause().answer(observed(REQUEST, virtual=obj, host=paused(copy, "virtual")))
    assert again
    assert (again.outcome, again.writes) == (Outcome.PENDING, ())


def test_copy_at_another_place_and_one_that_is_not_ours_get_no_mark() -> None:
    obj, copy = paused(virtual()), copy_of(virtual())
    elsewhere = pause().answer(observed(REQUEST._replace(host_key=PLACE), virtual=obj, host=copy))
    foreign = pause().answer(observed(REQUEST, virtual=obj, host=merged(copy, {"metadata": {"labels": None}})))
    ending = merged(copy, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    going = pause().answer(observed(REQUEST, virtual=obj, host=ending))
    for decision in (elsewhere, foreign, going):
        assert decision
        assert (decision.outcome, decision.writes) == (Outcome.PENDING, ())


@pytest.mark.parametrize("annotations", [None, [], "true", 3, {"x": None}, {MARKS.paused: None}, {MARKS.paused: True}])
def test_annotations_of_any_shape_pause_nothing_and_break_nothing(annotations: object) -> None:
    obj = virtual()
    obj["metadata"]["annotations"] = annotations
    made = pause()
    made.namespaces.seen_live({"metadata": {"name": "shop", "resourceVersion": "1", "annotations": annotations}})
    made.notes.seen_live(
        {
            "metadata": {
                "name": "vsyncer",
                "namespace": "kube-system",
                "resourceVersion": "1",
                "annotations": annotations,
            }
        }
    )
    assert made.answer(observed(REQUEST, virtual=obj, host=None)) is None


def test_namespace_and_the_note_pause_what_they_are_about() -> None:
    made = pause()
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "resourceVersion": "1"}}
    made.namespaces.seen_live(paused(space))
    assert made.answer(observed(REQUEST, virtual=virtual(), host=None))
    other = REQUEST._replace(key=KEY._replace(namespace="yard"))
    assert made.answer(observed(other, virtual=virtual(), host=None)) is None
    note = {"metadata": {"name": "vsyncer", "namespace": "kube-system", "resourceVersion": "1"}}
    made.notes.seen_live(paused({"apiVersion": "v1", "kind": "ConfigMap", **note}))
    assert made.is_on
    assert made.answer(observed(other, virtual=virtual(), host=None))


NOTE = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "vsyncer", "namespace": "kube-system", "resourceVersion": "1"},
}


@pytest.mark.parametrize(
    ("value", "syncers"),
    [
        ("pods", {"pods"}),
        (" pods,,widgets , ", {"pods", "widgets"}),
        ("false", {"false"}),
        ("", set()),
        ("true,pods", {"pods"}),
        (",".join(f"s{number}" for number in range(9999)), {f"s{number}" for number in range(MOST_NAMES)}),
    ],
)
def test_note_names_the_syncers_that_are_paused(value: str, syncers: set[str]) -> None:
    told: list[str] = []
    made = Pause(SETTINGS, Informers(clock=lambda: 0.0))
    made.watch(lambda namespace: None, told.append)
    made.notes.seen_live(paused(NOTE, value))
    assert made.syncers == set(told) == syncers
    assert made.is_on is value.startswith("true")
    assert made.is_paused("widgets") is (made.is_on or "widgets" in syncers)
    decision = made.answer(observed(REQUEST, virtual=virtual(), host=None))
    assert bool(decision) is made.is_paused("widgets")
    made.notes.seen_live(merged(NOTE, {"metadata": {"resourceVersion": "2"}}))
    assert made.syncers == set()
    assert set(told) == syncers
    assert not made.is_on


# -- the write -------------------------------------------------------------------------------------


def calls(live: Obj | None, value: str | None) -> list[Obj]:
    noted = merged(copy_of(virtual()), {})
    noted["metadata"]["annotations"] = {MARKS.paused: value}
    write = Write(Side.HOST, Verb.NOTE, noted)
    return [call.body for call in needed(write, live, exact=(), marks=MARKS)]


def test_note_changes_that_annotation_alone_and_only_of_that_object() -> None:
    live = copy_of(virtual())
    uid = live["metadata"].get("uid", "")
    assert calls(live, "virtual") == [{"metadata": {"annotations": {MARKS.paused: "virtual"}, "uid": uid}}]
    assert calls(paused(live, "virtual"), "virtual") == []
    assert calls(paused(live, "virtual"), None) == [{"metadata": {"annotations": {MARKS.paused: None}, "uid": uid}}]
    assert calls(live, None) == []
    assert calls(None, "virtual") == []
    assert calls(merged(live, {"metadata": {"uid": "another"}}), "virtual") == []
