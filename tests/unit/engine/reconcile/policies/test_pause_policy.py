"""The marks that count as a pause, and what it stops."""

from typing import Any

import pytest
from engine_fakes import KEY, MARKS, SETTINGS, Widgets, copy_of, observed, virtual

from syncer.api import Obj, Outcome, SyncRequest
from syncer.engine.reconcile.policies.pause import MOST_NAMES, Pause
from syncer.engine.stores.informers import Informers
from syncer.testing.merge import merged

REQUEST = SyncRequest("vc", "widgets", KEY)


SPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "resourceVersion": "1"}}
NOTE = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "vsyncer", "namespace": "kube-system", "resourceVersion": "1"},
}


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


ENDING = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}


def test_paused_object_waits_without_a_write() -> None:
    obj = virtual()
    for one, host in ((paused(obj), None), (paused(obj), copy_of(obj)), (obj, paused(copy_of(obj)))):
        decision = pause().answer(observed(REQUEST, virtual=one, host=host))
        assert decision
        assert (decision.outcome, decision.writes) == (Outcome.PENDING, ())


def test_pause_in_the_virtual_cluster_stops_no_deletion() -> None:
    obj, made = virtual(), pause()
    copy = copy_of(obj)
    earlier = merged(copy, {"metadata": {"annotations": {MARKS.uid: "earlier"}}})
    made.namespaces.seen_live(paused(SPACE))
    made.notes.seen_live(paused(NOTE))
    for one, host in ((None, copy), (merged(paused(obj), ENDING), copy), (paused(obj), earlier)):
        assert made.answer(observed(REQUEST, virtual=one, host=host)) is None
    assert made.answer(observed(REQUEST, virtual=paused(obj), host=copy)), "a change"


def test_mark_of_a_deletion_that_a_copy_outlasts_ends_no_pause() -> None:
    class ReadOnly(Widgets):
        deletion = "whenGone"

    obj, made = virtual(), pause()
    copy = copy_of(obj)
    assert made.answer(observed(REQUEST, virtual=merged(paused(obj), ENDING), host=copy, syncer=ReadOnly()))
    assert made.answer(observed(REQUEST, virtual=None, host=copy, syncer=ReadOnly())) is None
    assert not made.kept


def test_pause_on_the_host_keeps_copies_and_knows_which() -> None:
    obj, made = virtual(), pause()
    copy = paused(copy_of(obj))
    for one in (None, merged(obj, ENDING)):
        decision = made.answer(observed(REQUEST, virtual=one, host=copy))
        assert decision
        assert made.kept == {REQUEST: decision.reason}
    assert made.answer(observed(REQUEST, virtual=obj, host=copy))
    assert not made.kept, "the object is there again"
    made.answer(observed(REQUEST, virtual=None, host=copy))
    assert made.answer(observed(REQUEST, virtual=None, host=copy_of(obj))) is None
    assert not made.kept
    made.answer(observed(REQUEST, virtual=None, host=copy))
    made.drop("others")
    assert made.kept
    made.drop("widgets")
    assert not made.kept


@pytest.mark.parametrize("annotations", [None, {}, {"x": ""}, {MARKS.paused: ""}, {MARKS.paused: "yes"}])
def test_annotations_without_the_mark_pause_nothing(annotations: object) -> None:
    obj = virtual()
    obj["metadata"]["annotations"] = annotations
    made = pause()
    made.namespaces.seen_live(merged(SPACE, {"metadata": {"annotations": annotations}}))
    made.notes.seen_live(merged(NOTE, {"metadata": {"annotations": annotations}}))
    assert made.answer(observed(REQUEST, virtual=obj, host=None)) is None


def test_marks_on_namespace_and_note_pause_their_objects() -> None:
    made = pause()
    made.namespaces.seen_live(paused(SPACE))
    assert made.answer(observed(REQUEST, virtual=virtual(), host=None))
    other = REQUEST._replace(key=KEY._replace(namespace="yard"))
    assert made.answer(observed(other, virtual=virtual(), host=None)) is None
    made.notes.seen_live(paused(NOTE))
    assert made.is_on
    assert made.answer(observed(other, virtual=virtual(), host=None))


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
    notified: list[str] = []
    made = Pause(SETTINGS, Informers(clock=lambda: 0.0))
    made.watch(lambda namespace: None, notified.append)
    made.notes.seen_live(paused(NOTE, value))
    assert made.syncers == set(notified) == syncers
    assert made.is_on is value.startswith("true")
    assert (made.reason("widgets") is not None) is (made.is_on or "widgets" in syncers)
    decision = made.answer(observed(REQUEST, virtual=virtual(), host=None))
    assert bool(decision) is (made.reason("widgets") is not None)
    made.notes.seen_live(merged(NOTE, {"metadata": {"resourceVersion": "2"}}))
    assert made.syncers == set()
    assert set(notified) == syncers
    assert not made.is_on
